"""Rebuilds without data sets that users must supply: partial, reported as such, and never published."""

from __future__ import annotations

STUDY = "foulds2016/war_logs_likelihood"
MISSING = "afghanistan_dense"


def test_missing_data_are_listed_and_the_rest_is_built(clone) -> None:
    clone.edit(
        f"conf/study/{STUDY}.yaml",
        "sweep: [{n_states: [1]}",
        f"sweep: [{{n_states: [1], dataset: [iraq_simulated, {MISSING}]}}",
    )
    nowhere = {"PRIVPOST_MIRRORS": str(clone / "no-such-folder")}
    output = clone.run("privpost", "reproduce", STUDY, "--scale", "smoke", **nowhere)
    assert "Missing data sets" in output
    assert f"  {MISSING}: afghanistan_events_reduced.csv in data/raw/{MISSING}/" in output
    assert f"{STUDY} was built, without {MISSING}" in output
    table = (clone / f"build/smoke/results/{STUDY}.csv").read_text()
    assert "iraq_simulated" in table
    assert MISSING not in table
    assert (clone / "build/smoke/figures/foulds2016/fig6_loglikelihood.svg").is_file()
    strict = clone.run("privpost", "reproduce", STUDY, "--scale", "smoke", "--strict", status=1, **nowhere)
    assert "Missing data sets" in strict


def test_figures_of_a_clone_are_drawn_from_published_tables_without_the_data(clone, without_network) -> None:
    clone.run("privpost", "draw", STUDY, prefix=without_network, PRIVPOST_MIRRORS="nowhere")
    assert (clone / "build/published/figures/foulds2016/fig6_loglikelihood.svg").stat().st_size > 5000
    assert not (clone / "build/cells").exists()
