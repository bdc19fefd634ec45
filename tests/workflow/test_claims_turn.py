"""Every verdict of the scorecard can turn: some falsified table changes it. A typed verdict could not."""

from __future__ import annotations

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
        shuffled = np.random.default_rng(1).permutation(values)
        for new in (-values, values[::-1], 0 * values, 1e6 * values, 1e-6 * values, values + 10, shuffled):
            yield pd.Series(new, index=column.index)
    else:
        kinds = sorted(column.dropna().unique())
        for shift in range(1, min(len(kinds), 4)):
            yield column.map(dict(zip(kinds, kinds[shift:] + kinds[:shift], strict=True)))


def verdicts(module, own):
    return {claim.id: claim.verdict for claim in module.claims(own) if claim is not None}


def not_read(module, own, true) -> bool:
    try:
        return verdicts(module, own) == true
    except (*REFUSALS, AttributeError):
        return False


def unturned(module, own) -> set[str]:
    """Return the claims that no falsified column turns; `not testable` ones have no verdict to turn."""
    true = verdicts(module, own)
    left = {id for id, verdict in true.items() if verdict != "not testable"}
    for name, table in own.items():
        # Columns of values before labels: most claims compare values. One that can be left out turns nothing.
        for column in sorted(table.columns, key=lambda c: not pd.api.types.is_numeric_dtype(table[c])):
            if not_read(module, {**own, name: table.drop(columns=column)}, true):
                continue
            for new in falsified(table[column]):
                if not left:
                    return left
                try:
                    found = verdicts(module, {**own, name: table.assign(**{column: new})})
                except REFUSALS:
                    continue
                left -= {id for id in left if id in found and found[id] != true[id]}
    return left


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", STUDIES)
def test_a_falsified_table_turns_every_verdict(name, monkeypatch):
    monkeypatch.chdir(ROOT)
    study = grid.load_study(name)
    if not all(study.table_path(table).is_file() for table in study.tables):
        pytest.skip(f"the tables of {name} are not in this checkout")
    assert unturned(study.module(), tables.read_tables(study)) == set()


def test_a_typed_verdict_is_caught():
    from privpost.evaluation.claims import Claim

    class Typed:
        @staticmethod
        def claims(tables):
            return [Claim("X1", "ours", "s", "t", "holds")]

    assert unturned(Typed(), {"a": pd.DataFrame({"x": [1.0, 2.0], "m": ["a", "b"]})}) == {"X1"}
