"""The data dictionary: every published column and every setting has a meaning, and every meaning is used."""

from __future__ import annotations

import re
from types import SimpleNamespace

import pandas as pd
import pytest

from privpost.experiments import columns
from privpost.lab import grid
from privpost.lab.schema import Real, Schema
from privpost.report.documents import dictionary


@pytest.fixture(scope="module")
def studies():
    return grid.load_studies()


def lacking(study) -> list[str]:
    """The columns and settings of a study without a meaning."""
    return [
        f"{place}.{name}"
        for place, names in (*dictionary.columns(study).items(), (study.name, dictionary.settings(study)))
        for name, meaning in names.items()
        if meaning is None or not meaning.text
    ]


def test_every_column_and_every_setting_has_a_meaning(checkout, studies):
    assert [entry for study in studies for entry in lacking(study)] == []


def test_every_declared_meaning_is_of_a_column_or_a_setting(checkout, studies):
    names = set()
    for study in studies:
        tables = dictionary.columns(study)
        names |= {*dictionary.settings(study), *(name for table in tables.values() for name in table)}
        idle = [f"{table}.{name}" for table, given in study.module().TABLES.items() for name in given]
        idle = [entry for entry in idle if entry.split(".")[1] not in tables[entry.split(".")[0]]]
        assert idle == [], study.name
    # `x_mean` gives the meaning of `x_sem`, and `x` that of `x_sem`.
    assert [name for name in columns.COLUMNS if name not in names] == []


@pytest.mark.parametrize(
    ("name", "column"), [("bernstein2018/calibration", "band_low"), ("bernstein2018/utility", "mmd2_mean")]
)
def test_a_meaning_that_is_taken_away_is_missed(checkout, monkeypatch, name, column):
    study = grid.load_study(name)
    for given in study.module().TABLES.values():
        if column in given:
            monkeypatch.delitem(given, column)
    found = {entry.split(".")[1] for entry in lacking(study)}
    # And with a mean the standard error that leans on it.
    assert found == {column, *([column.replace("_mean", "_sem")] if column.endswith("_mean") else [])}


def test_no_label_drops_what_turns_its_meaning_round(checkout, studies):
    """A loss is no log-likelihood: whatever a meaning is of, its label says it, too."""
    turning = re.compile(r"(?<!mean )(?<!square )\b(less|below|loss|losses|over|above|against)\b")
    seen = set()
    for study in studies:
        for table in study.tables:
            for name in pd.read_csv(study.table_path(table), nrows=0):
                known = columns.of_column(study, table, name)
                if known and turning.search(re.sub(r"\([^)]*\)", "", re.split("[;:]", known.text)[0])):
                    label = known.label(name)
                    assert turning.search(label), (study.name, table, name, label)
                    seen.add(name)
    assert {"loss_mean", "joint_mean", "kl_gain_mean"} <= seen
    assert (
        columns.Meaning("log-likelihood, how far below `y_mean`; a note", "nats").label("x").endswith("below y [nats]")
    )


def test_a_tables_own_meaning_comes_before_the_settings_and_errors_follow_their_mean():
    tables = {"curve": {"bound": "a share [share]", "loss_mean": "a loss [nats]"}, "other": {"extra": "more"}}
    study = SimpleNamespace(
        schema=Schema(bound=Real(says="an upper bound", unit="nats"), silent=Real()),
        module=lambda: SimpleNamespace(TABLES=tables),
    )
    assert columns.of_column(study, "curve", "bound") == ("a share", "share")
    assert columns.of_column(study, "other", "bound") == ("an upper bound", "nats")
    assert columns.of_column(study, "curve", "extra") == ("more", "")
    assert columns.of_column(study, "curve", "loss_sem") == ("standard error of `loss_mean`", "nats")
    assert columns.of_column(study, "curve", "other_sem") is None
    assert columns.of_setting(study, "silent") is None
