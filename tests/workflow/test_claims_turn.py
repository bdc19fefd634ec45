"""Every check of every claim can turn: some falsified table changes it, as none could change a typed
verdict. The published verdicts are those of the claims on the published tables."""

from __future__ import annotations

import contextlib
import importlib
import itertools
from pathlib import Path
from types import ModuleType

import numpy as np
import pandas as pd
import pytest

from privpost.lab import claims, grid, tables
from privpost.report import scorecard

ROOT = Path(__file__).resolve().parents[2]
STUDIES = sorted(
    str(path.relative_to(ROOT / "conf/study").with_suffix("")) for path in ROOT.glob("conf/study/*/*.yaml")
)
SHARED = sorted(f"{path.parent.name}/claims" for path in ROOT.glob("src/privpost/experiments/*/claims.py"))
# What a falsified table may do to a claim function beside turning verdicts: a table of nonsense need not be scorable.
REFUSALS = (ValueError, KeyError, IndexError, TypeError, ArithmeticError)


def falsified(column):
    """Yield versions of a table's column, from plausible lies to nonsense."""
    if column.dtype == bool:
        yield ~column
    elif pd.api.types.is_numeric_dtype(column):
        values = column.to_numpy(float)
        yield from (pd.Series(new, index=column.index) for new in _lies(values))
    else:
        kinds = sorted(column.dropna().unique())
        for shift in range(1, min(len(kinds), 4)):
            yield column.map(dict(zip(kinds, kinds[shift:] + kinds[:shift], strict=True)))


def _lies(values):
    yield from (-values, values[::-1], 0 * values, 1e6 * values, 1e-6 * values, values + 10)
    yield np.random.default_rng(1).permutation(values)
    yield from (sign * np.abs(values) for sign in (1, -1))
    # Small effects of one sign turn claims of the kind "a little less than".
    yield from (np.full(len(values), constant) for constant in (-0.03, 0.03, -0.3, 0.3))


def certain(own):
    """Return the tables with standard errors so small that every difference counts."""
    return {
        name: table.assign(**{column: 1e-6 * table[column] for column in table if column.endswith("sem")})
        for name, table in own.items()
    }


def outcomes(declared, own):
    """Return whether each check of a claim's cases passes, by (claim, check); of one without checks, its verdict."""
    found = {}
    for claim in filter(None, [declared.score(own)]):
        if claim.verdict != "not testable":
            passed = claim.checks or {"": claim.verdict}
            found |= {(claim.id, check): outcome for check, outcome in passed.items()}
    return found


def _with(own, table, **columns):
    return {**own, table: own[table].assign(**columns)}


def _calibrated_with_dependence_only(own):
    table = own["truncation"]
    p_value = table.p_value.mask(table.variant == "corrected", 1.0).mask(table.variant == "public_bounds", 0.0)
    return _with(own, "truncation", p_value=p_value)


def _every_mechanism_twice_as_long(own):
    return _with(own, "war_logs_cpu", ratio=2.0)


def _every_mechanism_as_long(own):
    return _with(own, "war_logs_cpu", ratio=1.0)


def _other_numbers_of_states(own):
    used = own["war_logs_states_used"].states_used_at_all
    lied = {"states_used_at_all": np.where(used > 9.5, 2.0, 10.0)}
    return _with(own, "war_logs_states_used", **lied, states_over_1_percent=2.5, states_over_5_percent=2.5)


def _costly_privacy(own):
    table = own["war_logs_operations"]
    return _with(
        own, "war_logs_operations", multiplications=table.multiplications.mask(table.method != "non_private", 1e12)
    )


def _lead_largest_at_small_epsilon(own):
    return _with(own, "war_logs_differences", joint_mean=1 / own["war_logs_differences"].epsilon, joint_sem=1e-6)


def _restless_ops(own):
    table = own["war_logs_maps"]
    ops = table.method == "ops"
    lied = {column: table[column].mask(ops, 0.9) for column in ("switches_mean", "disagreement_mean")}
    return _with(own, "war_logs_maps", **lied, switches_sem=1e-6, disagreement_sem=1e-6)


def _civilians_in_two_states(own):
    table = own["war_logs_emissions"]
    rate = table.probability.mask((table.field == "civilian") & (table.state < 3), 1.0)
    return _with(own, "war_logs_emissions", probability=rate)


def _every_bound_holds(own):
    return _with(own, "bounds", holds=True)


def _infinite_costs(own):
    return _with(own, "rounding", epsilon=np.inf)


# Tables of calibration, with what tests their rows.
CALIBRATED = ("calibration", "families", "naive_bayes_calibration", "event_calibration")
TESTS = ("p_value", "z2_p")


def _of_methods(own, methods, **values):
    """Tables of calibration whose rows of some methods have other p-values."""
    lied = {}
    for name in CALIBRATED:
        if name in own:
            here = own[name].method.isin(methods)
            lied[name] = own[name].assign(**{test: own[name][test].mask(here, p) for test, p in values.items()})
    if not lied:
        raise KeyError("no table of calibration")
    return {**own, **lied}


def _uncalibrated_by_ks(own):
    return _of_methods(own, ["gibbs", "exact", "ops"], p_value=0.0)


def _uncalibrated_by_z2(own):
    return _of_methods(own, ["gibbs", "exact", "ops"], z2_p=0.0)


def _calibrated(own):
    return _of_methods(own, ["gibbs", "exact", "ops"], p_value=1.0, z2_p=1.0)


# Checks that pull in opposite directions, or read several columns, take a lie about some rows only.
def _exact_curves_leave_nothing(own):
    table = own["beta_bernoulli"]
    return _with(own, "beta_bernoulli", mean=table["mean"].mask(table.accounting == "exact", 1e-12))


def _mode_at_the_mean(own):
    table = own["limits"]
    peak = np.exp(-1e3 * (table.theta - table.prior_mean) ** 2)
    return _with(own, "limits", density=table.density.mask(table.method == "diffused", peak))


def _noisy_modes_as_likely(own):
    table = own["logistic_pairs"]
    alike = (table["first"] == "output_noise") & (table.metric == "test_log_likelihood")
    return _with(own, "logistic_pairs", difference_mean=table.difference_mean.mask(alike, 0.0))


LIES = (
    _calibrated_with_dependence_only, _every_mechanism_twice_as_long, _every_mechanism_as_long, _costly_privacy,
    _other_numbers_of_states, _lead_largest_at_small_epsilon, _civilians_in_two_states, _every_bound_holds,
    _restless_ops, _infinite_costs, _uncalibrated_by_ks, _uncalibrated_by_z2, _calibrated, _exact_curves_leave_nothing,
    _mode_at_the_mean, _noisy_modes_as_likely,
)  # fmt: skip


def scored(declared, own):
    """A claim's outcomes, and names of columns that its function asks pandas for, or rows by a name in its code."""
    asked = {*declared.function.__code__.co_names}

    def noting(shipped):
        def noted(self, key):
            asked.update(key if isinstance(key, list) else [key] if isinstance(key, str) else [])
            return shipped(self, key)

        return noted

    with pytest.MonkeyPatch.context() as patch:
        for name in ("__getitem__", "__getattr__"):
            patch.setattr(pd.DataFrame, name, noting(getattr(pd.DataFrame, name)))
        return outcomes(declared, own), asked


def unturned(module, own) -> set[tuple[str, str]]:
    """Return the checks that no falsified table turns; `not testable` claims have none to turn."""
    return set().union(*(_unturned(declared, own) for declared in claims.declared(module)))


def _unturned(declared, own) -> set[tuple[str, str]]:
    own = {name: own[name] for name in own if name in declared.reads}
    true, asked = scored(declared, own)
    left = set(true)

    def turn(falsified_tables):
        try:
            found = outcomes(declared, falsified_tables)
        except REFUSALS:
            return
        left.difference_update({key for key in left if key in found and found[key] != true[key]})

    for lie in LIES:
        if left:
            # Most lies are about the tables of another study.
            with contextlib.suppress(KeyError, AttributeError):
                turn(lie(own))
    # Then lies about many columns at once, which turn most checks.
    numbers = [(name, column) for name in own for column in own[name] if own[name][column].dtype.kind == "f"]
    for places in ([place for place in numbers if place[1].endswith("mean")], numbers):
        lies = itertools.zip_longest(*(falsified(own[name][column]) for name, column in places))
        for news in itertools.islice(lies, 8 if left else 0):
            if left:
                turn(_all_at_once(own, places, news))
    # Then of one column, of those that the claim is seen to read and means first.
    places = sorted(
        ((name, column) for name in own for column in own[name]),
        key=lambda place: (not place[1].endswith("mean"), own[place[0]][place[1]].dtype.kind != "f"),
    )
    for seen in (True, False):
        some = [place for place in places if (place[1] in asked) is seen]
        for base, told in ((own, 1), (certain(own) if left else own, None)):
            lies = itertools.zip_longest(*(falsified(base[name][column]) for name, column in some))
            for news in itertools.islice(lies, told if left else 0):
                for (name, column), new in zip(some, news, strict=True):
                    if left and new is not None:
                        turn({**base, name: base[name].assign(**{column: new})})
    return left


def _all_at_once(own, places, news):
    """The tables with a falsified version of each of some columns."""
    lies = {name: {} for name in own}
    for (name, column), new in zip(places, news, strict=True):
        lies[name][column] = new
    return {name: table.assign(**lies[name]) for name, table in own.items()}


def _shared(name) -> ModuleType:
    return importlib.import_module(f"privpost.experiments.{name.replace('/', '.')}")


def read_by(name) -> list[str]:
    """Return the studies that claims over several studies read: their paper's, and those of other papers they name."""
    read = getattr(_shared(name), "READS", ())
    return [each for each in STUDIES if each.split("/")[0] == name.split("/")[0] or each in read]


@pytest.mark.parametrize("name", [*STUDIES, *SHARED])
def test_the_published_scorecard_is_what_the_published_tables_give(name, monkeypatch):
    """Regression: verdicts, checks and evidence of a study came out of its own functions; score anew: make publish."""
    monkeypatch.chdir(ROOT)
    studies = [grid.load_study(each) for each in (read_by(name) if name in SHARED else [name])]
    scored = [each for each in scorecard.score(studies) if each.study == name]
    published = scorecard.read(ROOT / "results/scorecard.csv").query("study == @name")
    fresh = scorecard.table(scored).astype(str)
    assert fresh.to_csv(index=False) == published.to_csv(index=False)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", [n for n in STUDIES if (ROOT / f"src/privpost/experiments/{n}/claims.py").is_file()])
def test_a_falsified_table_turns_every_check(name, monkeypatch):
    monkeypatch.chdir(ROOT)
    study = grid.load_study(name)
    if not all(study.table_path(table).is_file() for table in study.tables):
        pytest.skip(f"the tables of {name} are not in this checkout")
    assert unturned(importlib.import_module(f"{study.package}.claims"), tables.read_tables(study)) == set()


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", SHARED)
def test_a_falsified_table_turns_the_claims_over_several_studies(name, monkeypatch):
    monkeypatch.chdir(ROOT)
    studies = [grid.load_study(each) for each in read_by(name)]
    if not all(study.table_path(table).is_file() for study in studies for table in study.tables):
        pytest.skip(f"tables that {name} reads are not in this checkout")
    own = {name: table for study in studies for name, table in tables.read_tables(study).items()}
    assert unturned(_shared(name), own) == set()


def test_the_published_scorecard_has_every_study_with_claims_and_no_other():
    published = scorecard.read(ROOT / "results/scorecard.csv").study
    own = [name for name in STUDIES if (ROOT / f"src/privpost/experiments/{name}/claims.py").is_file()]
    assert sorted(published.unique()) == sorted([*own, *SHARED])


@pytest.mark.parametrize(
    ("name", "id"),
    [
        ("bernstein2018/calibration", "B1"),
        ("bernstein2018/calibration", "B13"),
        ("bernstein2018/calibration", "B15"),
        ("noise_aware/naive_bayes", "N1"),
        ("noise_aware/event_calibration", "N6"),
    ],
)
def test_ks_and_z2_each_turn_the_claims_on_calibration(name, id, monkeypatch):
    monkeypatch.chdir(ROOT)
    study = grid.load_study(name)
    (declared,) = (
        each for each in claims.declared(importlib.import_module(f"{study.package}.claims")) if each.id == id
    )
    own = _calibrated(tables.read_tables(study))
    assert declared.score(own).verdict == "holds"
    for lie in (_uncalibrated_by_ks, _uncalibrated_by_z2):
        assert declared.score(lie(own)).verdict != "holds"


def test_a_typed_verdict_is_caught():
    module = ModuleType("typed")

    @claims.claim("X1", "ours", "s", "t")
    def typed(a):
        yield claims.check("typed", True)

    typed.__module__, module.typed = "typed", typed
    assert unturned(module, {"a": pd.DataFrame({"x": [1.0, 2.0], "m": ["a", "b"]})}) == {("X1", "typed")}
