"""Rebuilds without data sets that users have to bring: in part, apart from what is shipped, and said so."""

from __future__ import annotations

STUDY = "foulds2016/war_logs_likelihood"
NAME = "war_logs_likelihood"
MISSING = "afghanistan_dense"


def prepare(clone) -> None:
    """Let the study's smallest scale ask for a data set that is not there."""
    clone.edit(f"conf/study/{STUDY}.yaml", "    dataset: [iraq_simulated]", f"    dataset: [iraq_simulated, {MISSING}]")


def nowhere(clone) -> dict[str, str]:
    return {"PRIVPOST_MIRRORS": str(clone / "no-such-folder")}


def test_missing_data_leave_shipped_files_and_are_listed(clone) -> None:
    prepare(clone)
    # What stands for shipped files: tables and figures that a partial build must not touch.
    for path in (f"build/smoke/foulds2016/{NAME}.csv", "build/smoke/figures/foulds2016/fig6_loglikelihood.svg"):
        (clone / path).parent.mkdir(parents=True, exist_ok=True)
        (clone / path).write_text("shipped\n")
    output = clone.run("privpost", "reproduce", STUDY, "--scale", "smoke", **nowhere(clone))
    assert "Missing data sets" in output
    assert f"  {MISSING}: afghanistan_events_reduced.csv in data/raw/{MISSING}/" in output
    assert f"{STUDY} was built without {MISSING}: 1 of 2 cells, in build/smoke/partial/foulds2016/" in output
    table = (clone / f"build/smoke/partial/foulds2016/{NAME}.csv").read_text()
    assert "iraq_simulated" in table
    assert MISSING not in table
    assert (clone / "build/smoke/partial/figures/foulds2016/fig6_loglikelihood.svg").is_file()
    assert (clone / f"build/smoke/foulds2016/{NAME}.csv").read_text() == "shipped\n"
    assert (clone / "build/smoke/figures/foulds2016/fig6_loglikelihood.svg").read_text() == "shipped\n"
    scored = clone.run("privpost", "claims", STUDY, "--scale", "smoke", "--partial", **nowhere(clone))
    assert "F8-iraq_simulated" in scored
    again = clone.snakemake(studies=STUDY, **nowhere(clone))
    assert "Nothing to be done" in again
    strict = clone.run("privpost", "reproduce", STUDY, "--scale", "smoke", "--strict", status=1, **nowhere(clone))
    assert "Missing data sets" in strict


def test_figures_of_a_clone_are_redrawn_from_shipped_tables_without_the_data(clone, without_network) -> None:
    figure = "figures/foulds2016/fig6_loglikelihood.svg"
    before = (clone / figure).read_bytes()
    (clone / figure).unlink()
    clone.snakemake("figures", studies=STUDY, scale="paper", prefix=without_network, **nowhere(clone))
    assert (clone / figure).is_file()
    assert len((clone / figure).read_bytes()) > len(before) / 2
    assert not (clone / "build/partial").exists()
    assert not (clone / "results/cells").exists()
