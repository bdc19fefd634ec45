"""Rebuilds without some data sets: partial, reported as such, and never published."""

from __future__ import annotations

import csv

import yaml

STUDY = "geumlek2017/logistic"
AUDIT = "audit/audit"
# A mechanism that the cells of `STUDY` on Abalone run; the audit of this one alone is quick.
AUDITED = "LogisticConcentrated"
# Data sets that are taken away together, and the study that each leaves without cells; one keeps those on Abalone.
READERS = {"mnist": STUDY, "adult": "zhang2016/adult_network", "census_1980": "zhang2016/linear_regression"}


def test_missing_data_sets_take_away_their_cells_and_no_study_that_has_others(clone, without_network):
    """The audit is built from the ledgers that are left."""
    # The audit reads the ledgers of all studies that there are.
    for description in (clone / "conf/study").glob("*/*.yaml"):
        if f"{description.parent.name}/{description.stem}" not in {*READERS.values(), AUDIT}:
            description.unlink()
    clone.take_away(*READERS)
    # Of the audit, only what it reads, without its figure.
    clone.edit("conf/study/audit/audit.yaml", "mechanisms: all", f"mechanisms: [{AUDITED}]")
    clone.edit("conf/study/audit/audit.yaml", "    - source: [examples]\n      epsilon: [1]\n", "")
    for study, shards in ((AUDIT, 2), (STUDY, 4)):
        clone.edit(f"conf/study/{study}.yaml", f"shards: {shards}", "shards: 1")
    (clone / "src/privpost/experiments/audit/audit/figures.py").unlink()
    words = (*READERS.values(), "--scale", "smoke")
    output = clone.run("privpost", "reproduce", AUDIT, *words, prefix=without_network)
    assert "Not built" not in output
    assert AUDIT in output.partition("Built in")[2]
    with (clone / "build/smoke/results/audit/audit/audit.csv").open() as table:
        audited = list(csv.DictReader(table))
    assert {row["mechanism"] for row in audited} == {AUDITED}
    assert any(STUDY in row["study"] for row in audited)
    lines = clone.run("privpost", "status", *words).splitlines()
    # What matters comes first, and nothing is asked again.
    asked = "could not be fetched: it is not here, and there is no connection to its publisher"
    first = [line for line in output.splitlines()[: len(READERS)] if line.endswith(asked)]
    for missing, study in READERS.items():
        files = yaml.safe_load((clone / f"conf/dataset/{missing}.yaml").read_text())["files"]
        assert sum(line.startswith(files[0]["name"]) for line in first) == 1
        left_out = (
            f"{missing}: left out, since {', '.join(file['name'] for file in files)} is neither in data/original/"
        )
        assert f"  {left_out}" in output
        assert sum(line.startswith(f"{missing}: left out") for line in lines) == 1
        table = clone / f"build/smoke/results/{study}/{study.partition('/')[2]}.csv"
        left = study == STUDY
        assert table.is_file() is left
        assert (f"{study} has no cells left, and was not built" in output) is not left
        if left:
            assert missing not in table.read_text()
            assert (clone / "build/smoke/figures/geumlek2017/logistic/fig3_test_error.svg").is_file()


def test_figures_of_a_clone_are_drawn_from_published_tables_without_the_data(clone, without_network) -> None:
    study = READERS["census_1980"]
    clone.take_away("census_1980")
    clone.run("privpost", "draw", study, prefix=without_network)
    assert (clone / f"build/published/figures/{study}/fig2_linear_regression.svg").stat().st_size > 5000
    assert not (clone / "build/paper/cells").exists()
