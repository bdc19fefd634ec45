"""Every verdict of the scorecard can turn: some falsified table changes it. A typed verdict could not."""

from __future__ import annotations

import importlib
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from privpost.pipeline import grid, tables

ROOT = Path(__file__).resolve().parents[2]
STUDIES = sorted(
    str(path.relative_to(ROOT / "conf/study").with_suffix("")) for path in ROOT.glob("conf/study/*/*.yaml")
)
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


def verdicts(module, own):
    return {claim.id: claim.verdict for claim in module.claims(own) if claim is not None}


def _calibrated_with_dependence_only(own):
    table = own["truncation"]
    p_value = table.p_value.mask(table.variant == "corrected", 1.0).mask(table.variant == "public_bounds", 0.0)
    return {**own, "truncation": table.assign(p_value=p_value)}


def _twice_the_variates(own):
    table = own["war_logs_operations"]
    plain = table[table.method == "non_private"].set_index(["dataset", "n_states"]).sampling_variates
    doubled = [2 * plain[key] for key in zip(table.dataset, table.n_states, strict=True)]
    doubled = table.sampling_variates.mask(table.method == "ops", pd.Series(doubled, index=table.index))
    return {**own, "war_logs_operations": table.assign(sampling_variates=doubled)}


# Claims whose checks pull in opposite directions take a lie about some rows only.
LIES = {"B10": _calibrated_with_dependence_only, "F11": _twice_the_variates}


def not_read(module, own, true) -> bool:
    try:
        return verdicts(module, own) == true
    except (*REFUSALS, AttributeError):
        return False


def unturned(module, own) -> set[str]:
    """Return the claims that no falsified column turns; `not testable` ones have no verdict to turn."""
    true = verdicts(module, own)
    left = {id for id, verdict in true.items() if verdict != "not testable"}
    for id in sorted(left & set(LIES)):
        left -= {id} if verdicts(module, LIES[id](own))[id] != true[id] else set()
    read = [
        (name, column)
        for name, table in own.items()
        if not not_read(module, {other: own[other] for other in own if other != name}, true)
        for column in table
    ]
    # Exchanged labels turn most claims at once.
    read.sort(key=lambda place: pd.api.types.is_numeric_dtype(own[place[0]][place[1]]))
    for base in (own, certain(own)):
        for name, column in read:
            table = base[name]
            if not left or not_read(module, {**own, name: own[name].drop(columns=column)}, true):
                continue
            for new in falsified(table[column]):
                try:
                    found = verdicts(module, {**base, name: table.assign(**{column: new})})
                except REFUSALS:
                    continue
                left -= {id for id in left if id in found and found[id] != true[id]}
                if not left:
                    break
    return left


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", STUDIES)
def test_a_falsified_table_turns_every_verdict(name, monkeypatch):
    monkeypatch.chdir(ROOT)
    study = grid.load_study(name)
    if not all(study.table_path(table).is_file() for table in study.tables):
        pytest.skip(f"the tables of {name} are not in this checkout")
    assert unturned(study.module(), tables.read_tables(study)) == set()


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("paper", sorted(path.parent.name for path in ROOT.glob("src/privpost/studies/*/claims.py")))
def test_a_falsified_table_turns_the_claims_over_several_studies(paper, monkeypatch):
    monkeypatch.chdir(ROOT)
    studies = [grid.load_study(name) for name in STUDIES if name.startswith(f"{paper}/")]
    if not all(study.table_path(table).is_file() for study in studies for table in study.tables):
        pytest.skip(f"tables of {paper} are not in this checkout")
    own = {name: table for study in studies for name, table in tables.read_tables(study).items()}
    assert unturned(importlib.import_module(f"privpost.studies.{paper}.claims"), own) == set()


def test_a_typed_verdict_is_caught():
    from privpost.evaluation.claims import Claim

    class Typed:
        @staticmethod
        def claims(tables):
            return [Claim("X1", "ours", "s", "t", "holds")]

    assert unturned(Typed(), {"a": pd.DataFrame({"x": [1.0, 2.0], "m": ["a", "b"]})}) == {"X1"}
