"""No two places of a table share random numbers, but along axes that the study declares as common."""

from __future__ import annotations

import math
import sys
from collections import Counter, defaultdict
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from privpost.lab import grid
from privpost.lab.streams import Streams
from privpost.lab.study import canonical
from privpost.privacy.ledger.gate import Ledger

# It examines mechanisms, whatever studies drew, with one generator for each.
AUDIT = "audit/audit"
# Data are the same for every method: they may be drawn again.
DATA = {"data", "split"}
# Roles that methods share on purpose, so that their differences are paired, and the number of splits in one study.
SHARED = {
    ("fair_axis/beta_bernoulli", "mechanism"),
    ("fair_axis/logistic", "sampler"),
    ("geumlek2017/finite_time", "sampler"),
    ("geumlek2017/logistic", "sampler"),
    ("noise_aware/rivals", "ranks"),
}
# Lengths of chains and numbers of draws, on which no stream depends, divisors of the trials, and two methods, which are
# given their streams by name.
SHORT = {
    "bernstein2018/calibration": {"burn_in": 1, "draws": 4},
    "bernstein2018/convergence": {"burn_in": 1, "draws": 8, "collapsed_draws": 4},
    "foulds2016/war_logs_likelihood": {"iterations": 2, "burn_in": 1, "aware_iterations": 2, "aware_burn_in": 1},
    "geumlek2017/logistic": {"n_splits": [2, 4]},
    "noise_aware/regression_calibration": {"burn_in": 1, "draws": 4, "oracles": 1},
    "noise_aware/rivals": {"methods": ["exact", "prior"], "draws": 4, "burn_in": 1, "reference_draws": 100},
}


class Recording(Streams):
    """Streams that count how often each was handed out, by its first numbers, and the lines that asked for it."""

    def __call__(self, role, block=0, **point):
        first = super().__call__(role, block, **point).integers(2**63, size=2)
        SEEN[role, *first] += 1
        caller = sys._getframe(1)
        LINES[role, *first].add((caller.f_code.co_filename, caller.f_lineno))
        return super().__call__(role, block, **point)


SEEN: Counter[tuple] = Counter()
LINES: dict[tuple, set] = defaultdict(set)


def prepared(study) -> bool:
    dataset = grid.expand(study)[0].dataset
    return not dataset or Path(f"data/prepared/{dataset}.npz").is_file()


def at_two_places(cell):
    """Return the cell with the first and the last number of each axis: two places see a stream that they share."""
    numbers = {axis: values for axis, values in cell.within.items() if not isinstance(values[0], str)}
    ends = {axis: [values[0], values[-1]] for axis, values in numbers.items() if len(values) > 1}
    return replace(cell, within={**cell.within, **ends})


def in_two_blocks(cell):
    """Return the cell with two blocks of two trials: a stream that is given to all blocks, or trials, is seen."""
    return cell if cell.sizes["trials"] is None else replace(cell, sizes={**cell.sizes, "trials": 4, "block": 2})


@pytest.mark.parametrize("name", [name for name in grid.study_names() if name != AUDIT])
def test_a_stream_is_handed_out_once_for_every_place_of_common_axes(checkout, name):
    study = grid.load_study(name, "smoke")
    if not prepared(study):
        pytest.skip("its data are not prepared")
    # One data set for all: which streams are asked for does not depend on it.
    of_one = {canonical({**cell.point, "dataset": ""}): cell for cell in reversed(grid.expand(study))}
    for cell in map(in_two_blocks, map(at_two_places, of_one.values())):
        SEEN.clear()
        LINES.clear()
        config = cell.config
        vars(config).update(SHORT.get(name, {}))
        if cell.reads:
            config.ledgers, config.results = {}, lambda *given: []
        study.module().simulate(config, Recording.of(cell), Ledger(cell.dataset, cell.sizes["trials"]))
        shared = math.prod(len(getattr(config, axis)) for axis in cell.within if axis in cell.common)
        paired = {role for study_name, role in SHARED if study_name == name}
        alike = DATA | paired
        often = {role: count for (role, *_), count in SEEN.items() if count > shared and role not in alike}
        assert not often, f"{cell.point}: {often}, though common axes have {shared} places"
        # Nor do two steps, such as a split and a sampler, share one: each stream has one line that asks for it.
        twice = {(role, *lines) for (role, *_), lines in LINES.items() if len(lines) > 1 and role not in paired}
        assert not twice, f"{cell.point}: streams with two uses: {twice}"


def test_a_key_of_a_common_axis_is_refused():
    cell = grid.expand(grid.load_study("geumlek2017/tradeoff", "smoke"))[0]
    with pytest.raises(ValueError, match="the stream 'mechanism' names log_epsilon, method, common to all points"):
        Streams.of(cell)("mechanism", 0, log_epsilon=1.0, method="diffused")
    assert isinstance(Streams.of(cell)("mechanism", 0), np.random.Generator)
