"""Rebuilds without some data sets: partial, reported as such, and never published."""

from __future__ import annotations

import pytest
import yaml

STUDY = "geumlek2017/logistic"
# Which smoke rebuild loses cells with which data set.
READERS = {
    "abalone": (STUDY, "geumlek2017/finite_time"),
    "adult": ("zhang2016/adult_network",),
    "census_1980": ("zhang2016/linear_regression",),
    "mnist": (STUDY,),
}


@pytest.mark.parametrize("missing", READERS)
def test_a_missing_data_set_takes_away_its_cells_and_no_study_that_has_others(clone, without_network, missing) -> None:
    clone.take_away(missing)
    words = ("reproduce", *READERS[missing], "geumlek2017/rdp_curves", "--scale", "smoke")
    output = clone.run("privpost", *words, prefix=without_network)
    # What matters comes first, and nothing is asked again.
    files = yaml.safe_load((clone / f"conf/dataset/{missing}.yaml").read_text())["files"]
    first = output.splitlines()[0]
    assert first.startswith(files[0]["name"])
    assert first.endswith("could not be had: it is not here, and there is no connection to its publisher")
    assert (
        f"  {missing}: left out, since {', '.join(file['name'] for file in files)} is neither in data/original/"
        in output
    )
    assert "Not built" not in output
    assert (clone / "build/smoke/results/geumlek2017/rdp_curves/rdp_curves.csv").is_file()
    for study in READERS[missing]:
        table = clone / f"build/smoke/results/{study}/{study.partition('/')[2]}.csv"
        left = study == STUDY
        assert table.is_file() is left
        assert (f"{study} has no cells left, and was not built" in output) is not left
        if left:
            assert missing not in table.read_text()
            assert (clone / "build/smoke/figures/geumlek2017/logistic/fig3_test_error.svg").is_file()
    strict = clone.run("privpost", *words, "--strict", prefix=without_network, status=1)
    assert "Missing data sets" in strict
    lines = clone.run("privpost", "status", "--scale", "smoke").splitlines()
    assert sum(line.startswith(f"{missing}: left out") for line in lines) == 1


def test_the_audit_is_built_whatever_is_missing(everything, tmp_path, without_network) -> None:
    clone = everything[0].copy(tmp_path / "clone")
    clone.take_away("mnist", "adult")
    output = clone.run("privpost", "reproduce", STUDY, "audit/audit", "--scale", "smoke", prefix=without_network)
    assert "Not built" not in output
    assert "audit/audit" in output.partition("Built in")[2]


def test_figures_of_a_clone_are_drawn_from_published_tables_without_the_data(clone, without_network) -> None:
    clone.take_away("abalone", "adult", "mnist")
    clone.run("privpost", "draw", STUDY, prefix=without_network)
    assert (clone / "build/published/figures/geumlek2017/logistic/fig3_test_error.svg").stat().st_size > 5000
    assert not (clone / "build/paper/cells").exists()
