"""The dispatcher on a toy project: runs, sweeps, status, prune, and what it says of mistakes."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import numpy as np
import pytest

from privpost import atomic
from privpost.commands import cli, verify
from privpost.pipeline import cells, grid, store


@pytest.fixture(autouse=True)
def _environment(monkeypatch):
    # Runs set it for Hydra; taken back after each test.
    monkeypatch.setenv("HYDRA_FULL_ERROR", "0")


def privpost(*argv: str) -> int:
    return cli.main(list(argv))


def in_store(toy, root="results") -> set[str]:
    return {str(path.relative_to(toy.folder)) for path in (toy.folder / root / "cells").rglob("*.npz")}


def files(toy) -> set[str]:
    return {
        str(path.relative_to(toy.folder))
        for path in toy.folder.rglob("*")
        if path.is_file() and ".snakemake" not in path.parts and "__pycache__" not in path.parts
    }


def test_a_run_computes_the_base_point(toy, capsys):
    assert privpost("study=toy/curve") == 0
    assert in_store(toy) == {str(toy.cells()[0].path)}
    assert str(toy.cells()[0].path) in capsys.readouterr().out


def test_overrides_change_the_base_point_and_pin_within_axes(toy):
    assert privpost("study=toy/curve", "level=3", "order=2", "trials=40") == 0
    (path,) = in_store(toy)
    found = store.read(toy.folder / path)
    assert found.config.level == 3.0
    assert found.config.order == [2.0]
    assert found.config.variant == ["x", "y"]
    assert found.arrays["draws"].shape == (1, 40)
    assert found.record["asked_by"] == "sweep"


@pytest.mark.parametrize("word", ["order=[2,3]", "within.order=[2,3]", "++order=[2,3]"])
def test_a_within_axis_can_be_pinned_to_several_values(toy, word):
    assert privpost("study=toy/curve", word) == 0
    (path,) = in_store(toy)
    assert store.read(toy.folder / path).config.order == [2.0, 3.0]


def test_the_logged_command_gives_the_same_cell(toy):
    """What a cell's record holds can be typed again, with the digest that it must have."""
    toy.edit("sweep:\n  method: [a, b]\n  level: [1, 2]\n", "sweep:\n  - {method: [b], level: [2], order: [[2, 4]]}\n")
    (cell,) = toy.cells()
    assert privpost(*cell.command(), f"expect='{cell.digest}'") == 0
    assert in_store(toy) == {str(cell.path)}


def test_a_run_refuses_another_digest_than_expected(toy, capsys):
    assert privpost("study=toy/curve", "expect='0000000000'") == 2
    assert "expect is 0000000000, but these settings have the digest" in capsys.readouterr().err
    assert in_store(toy) == set()


def test_a_multirun_alone_is_the_whole_grid(toy, capsys):
    assert privpost("-m", "study=toy/curve") == 0
    assert in_store(toy) == {str(cell.path) for cell in toy.cells()}
    assert "4 cells" in capsys.readouterr().out
    assert {"build/sweeps/toy_curve/curve.csv", "build/sweeps/toy_curve/sweep.png"} <= files(toy)


def test_a_ragged_grid_takes_several_multiruns(toy):
    toy.edit(
        "sweep:\n  method: [a, b]\n  level: [1, 2]\n",
        "sweep:\n  - {method: [a], level: [1, 3]}\n  - {method: [b], order: [5, [6, 7]]}\n",
    )
    assert privpost("-m", "study=toy/curve") == 0
    assert in_store(toy) == {str(cell.path) for cell in toy.cells()}


def test_a_sweep_is_those_points_with_a_table_and_a_figure(toy):
    assert privpost("-m", "study=toy/curve", "level=1,5", "order=2,3") == 0
    assert len(in_store(toy)) == 4
    folder = toy.folder / "build/sweeps/toy_curve__level=1,5__order=2,3"
    assert sorted(os.listdir(folder)) == ["curve.csv", "sweep.pdf", "sweep.png"]
    rows = (folder / "curve.csv").read_text().splitlines()
    assert rows[0] == "method,level,order,mean,sem"
    assert [row.split(",")[:3] for row in rows[1:]] == [
        ["a", level, order] for level in ("1.0", "5.0") for order in ("2.0", "3.0")
    ]


def test_a_range_is_a_sweep_too(toy):
    assert privpost("-m", "study=toy/curve", "level=range(1,4)") == 0
    assert {store.read(toy.folder / path).config.level for path in in_store(toy)} == {1.0, 2.0, 3.0}


def test_a_sweep_at_smoke_scale_stays_out_of_the_results(toy):
    assert privpost("-m", "study=toy/curve", "scale=smoke", "level=1,2") == 0
    assert in_store(toy) == set()
    assert len(in_store(toy, "build/smoke")) == 2


def test_hydra_leaves_nothing_behind(toy):
    before = files(toy)
    assert privpost("study=toy/curve") == 0
    assert privpost("-m", "study=toy/curve", "level=1,2") == 0
    new = files(toy) - before
    assert all(name.startswith(("results/cells/", "build/sweeps/")) for name in new), new


def test_what_is_in_the_store_is_not_computed_again(toy, capsys):
    privpost("-m", "study=toy/curve", "level=1,2")
    times = {path: (toy.folder / path).stat().st_mtime_ns for path in in_store(toy)}
    capsys.readouterr()
    assert privpost("-m", "study=toy/curve") == 0
    assert all((toy.folder / path).stat().st_mtime_ns == time for path, time in times.items())
    assert "2 of 4 cells are in the store already" in capsys.readouterr().out


def test_a_sweep_with_gaps_computes_those_alone_and_without_hydra(toy, capsys, monkeypatch):
    from privpost.commands import run

    sweep = ("-m", "study=toy/curve", "level=range(1,8)", "method=a,b")
    privpost(*sweep, "shard=1/1")
    (table,) = (privpost(*sweep), *(toy.folder / "build/sweeps").rglob("curve.csv"))[1:]
    before = table.read_bytes()
    gone = sorted((toy.folder / "results/cells").rglob("*.npz"))[5]
    gone.unlink()
    capsys.readouterr()
    monkeypatch.setattr(run, "_hydra", None)
    assert privpost(*sweep) == 0
    output = capsys.readouterr().out.splitlines()
    assert output[:2] == ["13 of 14 cells are in the store already", str(gone.relative_to(toy.folder))]
    assert table.read_bytes() == before


def test_a_signal_ends_a_sweep_of_several_runs(toy, monkeypatch):
    """What the handler of SIGTERM raises in a cell passes Hydra, and no further block of the grid is begun."""
    toy.edit(
        "sweep:\n  method: [a, b]\n  level: [1, 2]\n",
        "sweep:\n  - {method: [a], level: [1, 3]}\n  - {method: [b], order: [5, [6, 7]]}\n",
    )
    calls = []

    def stopped(config, streams, ledger):
        calls.append(config.method)
        raise SystemExit(143)

    monkeypatch.setattr(toy.study().module(), "simulate", stopped)
    with pytest.raises(SystemExit) as end:
        privpost("-m", "study=toy/curve")
    assert end.value.code == 143
    assert calls == ["a"]


def test_a_run_replaces_a_damaged_result(toy, capsys):
    privpost("study=toy/curve")
    path = toy.cells()[0].path
    path.write_bytes(b"")
    assert privpost("study=toy/curve") == 0
    assert "set aside as" in capsys.readouterr().err
    store.read(path, toy.cells()[0].digest)


def test_a_sweep_whose_cells_fail_says_which(toy, capsys, monkeypatch):
    module = toy.study().module()
    simulate = module.simulate

    def failing(config, streams, ledger):
        if config.level == 2:
            raise RuntimeError("no such level")
        return simulate(config, streams, ledger)

    monkeypatch.setattr(module, "simulate", failing)
    assert privpost("-m", "study=toy/curve") == 1
    message = capsys.readouterr().err
    assert "2 of 4 cells could not be computed" in message
    assert "privpost study=toy/curve method=b level=2.0" in message
    assert "no such level" in message
    assert len(in_store(toy)) == 2


@pytest.mark.parametrize(
    ("argv", "parts"),
    [
        (["lst"], ["there is no command 'lst'", "Did you mean 'list'?", "status"]),
        (["stdy=toy/curve"], ["study is missing", "Did you mean 'study'?", "toy/curve"]),
        (["study=toy/curv"], ["'toy/curv'", "Did you mean 'toy/curve'?", "Known studies: toy/curve"]),
        (["study=toy/curve", "levl=2"], ["no setting 'levl'", "Did you mean 'level'?", "Allowed: block, level"]),
        (["study=toy/curve", "scal=smoke"], ["no setting 'scal'", "Did you mean 'scale'?"]),
        (["study=toy/curve", "scale=smok"], ["scale is 'smok'", "Did you mean 'smoke'?"]),
        (["study=toy/curve", "method=c"], ["method is 'c', but must be one of a, b"]),
        (["study=toy/curve", "level=0"], ["level is 0, but must be a number in (0, inf)"]),
        (["-m", "study=toy/curve", "level=1,-2"], ["level is -2, but must be a number in (0, inf)"]),
        (["study=toy/curve", "order=1"], ["order is 1, but must be a number in (1, inf)"]),
        (["study=toy/curve", "trials=15"], ["trials is 15, but must be a multiple of block, which is 10"]),
        (["study=toy/curve", "level=1,2"], ["level has several values", "-m"]),
        (["study=toy/curve", "+extra=1"], ["'+extra=1'", "not added or removed"]),
        (["study=toy/curve", "~level=1"], ["'~level=1'", "not added or removed"]),
        (["study=toy/curve", "within.level=1"], ["'within.level=1'"]),
        (["study=toy/curve", "level=[1"], ["'level=[1' cannot be read"]),
        (["study=toy/curve", "method=glob(*)"], ["list the values"]),
        (["study=toy/curve", "--force"], ["there is no option '--force'"]),
        (["-m"], ["study is missing"]),
        (["tabulate", "toy/kurve"], ["Did you mean 'toy/curve'?"]),
        (["prepare", "abalon"], ["there is no data set 'abalon'"]),
    ],
)
def test_a_mistake_says_what_is_wrong_and_what_is_allowed(toy, capsys, argv, parts):
    assert privpost(*argv) == 2
    message = capsys.readouterr().err
    assert message.startswith("privpost: ")
    assert "Traceback" not in message
    for part in parts:
        assert part in message
    assert in_store(toy) == set()


def test_an_unknown_launcher_names_the_known_ones(toy, capsys):
    assert privpost("-m", "study=toy/curve", "hydra/launcher=joblip") == 1
    message = capsys.readouterr().err
    assert "joblib" in message
    assert "basic" in message


@pytest.mark.parametrize("argv", [[], ["--help"], ["-h"], ["study=toy/curve", "--help"]])
def test_help_lists_every_command(toy, capsys, argv):
    assert privpost(*argv) == 0
    text = capsys.readouterr().out
    for command in cli.COMMANDS:
        assert f"privpost {command}" in text


def test_outside_a_checkout_the_error_says_so(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert privpost("list") == 2
    assert "inside a checkout" in capsys.readouterr().err


def test_commands_work_from_a_folder_inside_the_checkout(toy, monkeypatch, capsys):
    (toy.folder / "deep").mkdir()
    monkeypatch.chdir(toy.folder / "deep")
    assert privpost("list") == 0
    assert capsys.readouterr().out.split() == ["toy/curve", "4", "cells", "A", "toy"]


# Status and prune


def status(capsys) -> tuple[dict[str, str], str]:
    """Return the columns of the toy's line of `privpost status`, and the whole text."""
    capsys.readouterr()
    assert privpost("status") == 0
    text = capsys.readouterr().out
    header, line = text.splitlines()[:2]
    return dict(zip(header.split(), line.split(), strict=True)), text


def expected(cells=4, current=0, behind=0, missing=0, stale=0, tables="missing"):
    numbers = {"cells": cells, "current": current, "behind": behind, "missing": missing, "stale": stale}
    return {"study": "toy/curve", **{key: str(value) for key, value in numbers.items()}, "tables": tables,
            "figures": "current"}  # fmt: skip


def build(toy) -> None:
    study = toy.study()
    for cell in grid.expand(study):
        cells.compute(study, cell)
    assert privpost("tabulate", "toy/curve") == 0


def test_status_in_each_state(toy, capsys, monkeypatch):
    line, text = status(capsys)
    assert line == expected(missing=4)
    assert "results/toy/curve.csv does not exist" in text

    build(toy)
    line, text = status(capsys)
    assert line == expected(current=4, tables="current")
    assert len(text.splitlines()) == 2

    victim = toy.cells()[2].path
    content = victim.read_bytes()
    victim.unlink()
    assert status(capsys)[0] == expected(current=3, missing=1, tables="current")

    victim.write_bytes(content[:-100])
    line, text = status(capsys)
    assert line == expected(current=3, missing=1, tables="current")
    assert f"damaged: {victim}" in text
    victim.write_bytes(content)

    toy.edit("note: n", "note: m")
    line, text = status(capsys)
    assert line == expected(missing=4, stale=4, tables="stale")
    assert 'stale: note changed from "n" to "m" in 4 cells' in text
    assert "tables: they show 4 cells, of which 4 left the grid; 4 joined it" in text
    toy.edit("note: m", "note: n")
    assert status(capsys)[0] == expected(current=4, tables="current")

    toy.edit("level: [1, 2]", "level: [1, 2, 3]")
    assert status(capsys)[0] == expected(cells=6, current=4, missing=2, tables="stale")
    toy.edit("level: [1, 2, 3]", "level: [1]")
    assert status(capsys)[0] == expected(cells=2, current=2, stale=2, tables="stale")
    toy.edit("level: [1]\n", "level: [1, 2]\n")

    privpost("study=toy/curve", "level=9")
    line, text = status(capsys)
    assert line == expected(current=4, tables="current")
    assert "ad hoc: 1 cells" in text

    monkeypatch.setattr(
        "privpost.pipeline.provenance.versions", lambda: {"python": "3.11.0", "numpy": "9", "scipy": "9"}
    )
    line, text = status(capsys)
    assert line == expected(behind=4, tables="current")
    assert "became 9 since 4 cells were computed" in text


def test_prune_removes_what_no_grid_names(toy, capsys):
    build(toy)
    privpost("study=toy/curve", "level=9")
    toy.cells()[0].path.with_name("x.npz.corrupt").write_text("")
    toy.edit("level: [1, 2]", "level: [1]")
    kept = {str(cell.path) for cell in toy.cells()}
    before = in_store(toy)
    assert privpost("prune", "--dry-run") == 0
    assert in_store(toy) == before
    assert "3 files" in capsys.readouterr().out
    assert privpost("prune") == 0
    (ad_hoc,) = in_store(toy) - kept
    assert "a-9_" in ad_hoc
    assert privpost("prune", "--sweeps") == 0
    assert in_store(toy) == kept
    assert not list((toy.folder / "results").rglob("*.corrupt"))


def test_prune_spares_the_temporary_file_of_a_running_job(toy):
    build(toy)
    folder = toy.cells()[0].path.parent
    running, abandoned = folder / ".a.running.npz", folder / ".a.abandoned.npz"
    for path in (running, abandoned):
        path.write_text("")
    os.utime(abandoned, (0, 0))
    assert privpost("prune") == 0
    assert running.exists()
    assert not abandoned.exists()


def test_prune_removes_temporary_files_of_scores_figures_and_documents_and_no_others(toy):
    build(toy)
    (toy.folder / "docs/templates").mkdir(parents=True)
    (toy.folder / "docs/templates/faults.md.in").touch()
    names = ["results/.scorecard.ab_d0123.csv", "results/timing/.curve.abcdefgh.csv", "figures/.scorecard.abcdefgh.png",
             "figures/measured/.timeline.abcdefgh.svg", "docs/.faults.abcdefgh.md", ".README.abcdefgh.md"]  # fmt: skip
    others = [".prettier.settings.json", "docs/.notes.settings.md", ".README.settings.txt", "results/scorecard.csv"]
    for name in names + others:
        path = toy.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch()
        os.utime(path, (0, 0))
    running = toy.folder / "results/.numbers.abcdefgh.json"
    running.touch()
    assert privpost("prune") == 0
    assert [name for name in names if (toy.folder / name).exists()] == []
    assert [name for name in others if (toy.folder / name).exists()] == others
    assert running.exists()


def test_a_temporary_file_that_takes_its_name_meanwhile_is_not_abandoned(tmp_path):
    assert not atomic.is_abandoned(tmp_path / ".a.abcdefgh.npz")


def test_prune_removes_the_folders_of_sweeps_on_request(toy):
    privpost("-m", "study=toy/curve", "level=1,9")
    privpost("prune")
    assert (toy.folder / "build/sweeps/toy_curve__level=1,9").is_dir()
    privpost("prune", "--sweeps")
    assert not (toy.folder / "build/sweeps/toy_curve__level=1,9").exists()


# Tables


def test_tabulate_recomputes_a_damaged_cell_and_gives_the_same_tables(toy, capsys):
    build(toy)
    before = {path: path.read_text() for path in (toy.folder / "results/toy").iterdir()}
    toy.cells()[1].path.write_text("damaged")
    assert privpost("tabulate", "toy/curve") == 0
    assert {path: path.read_text() for path in before} == before
    assert "set aside" in capsys.readouterr().err


def test_a_failing_tabulate_leaves_the_shipped_tables(toy, monkeypatch):
    build(toy)
    before = {path: path.read_bytes() for path in (toy.folder / "results/toy").iterdir()}
    monkeypatch.setattr(toy.study().module(), "tabulate", lambda cells: {"other": None})
    with pytest.raises(ValueError, match=r"tabulate gave \['other'\], but conf/study/toy/curve.yaml names \['curve'\]"):
        privpost("tabulate", "toy/curve")
    assert {path: path.read_bytes() for path in before} == before


def test_tables_of_a_study_that_was_edited_meanwhile_are_not_written(toy, monkeypatch):
    """A job that outlived its run ends without writing, since the configuration is another one by then."""
    build(toy)
    before = {path: path.read_bytes() for path in (toy.folder / "results/toy").iterdir()}
    module = toy.study().module()
    tabulate = module.tabulate

    def slow(found):
        toy.edit("note: n", "note: m")
        return tabulate(found)

    monkeypatch.setattr(module, "tabulate", slow)
    with pytest.raises(RuntimeError, match="changed while the tables were being made"):
        privpost("tabulate", "toy/curve")
    assert {path: path.read_bytes() for path in before} == before


def test_the_grid_file_names_every_cell(toy):
    build(toy)
    found = json.loads((toy.folder / "results/toy/curve.grid.json").read_text())
    assert [entry["digest"] for entry in found["cells"]] == [cell.digest for cell in toy.cells()]


# Verify


def rebuilt(toy, change=None):
    import pandas as pd

    build(toy)
    old = toy.folder / "results/toy/curve.csv"
    table = pd.read_csv(old)
    if change is not None:
        table = change(table)
    new = toy.folder / "build/verify/toy/curve.csv"
    new.parent.mkdir(parents=True)
    table.to_csv(new, index=False, lineterminator="\n")
    return verify.compare("toy/curve")


def test_identical_tables_are_identical(toy):
    comparison = rebuilt(toy)
    assert comparison.rebuilt
    assert comparison.differences == []


def test_cells_that_moved_are_named_with_their_standard_errors(toy):
    def change(table):
        moved = (table.method == "b") & (table.level == 2)
        table.loc[moved, "mean"] += 3 * np.sqrt(2) * table.loc[moved, "sem"]
        return table

    comparison = rebuilt(toy, change)
    assert comparison.differences == [
        "curve, method=b, level=2.0: mean moved in 3 of 3 rows, by at most 3 standard errors"
    ]


@pytest.mark.parametrize(
    ("change", "part"),
    [
        (lambda table: table.iloc[1:], "12 rows became 11"),
        (lambda table: table.drop(columns="sem"), "columns method, level, order, mean, sem became"),
        (lambda table: table.assign(order=table.order + 1), "the column order has other values"),
        (lambda table: table.assign(sem=table["sem"] * 1.5), "sem moved in 3 of 3 rows, by at most 0.33 relative"),
    ],
)
def test_other_differences_are_said_in_words(toy, change, part):
    comparison = rebuilt(toy, change)
    assert part in comparison.differences[0]


def test_a_verify_empties_its_folder_unless_another_rebuild_is_running(toy, monkeypatch):
    from privpost.pipeline import locks, runner

    stored = toy.folder / "build/verify/cells/toy/curve/a.npz"
    stored.parent.mkdir(parents=True)
    stored.touch()
    with locks.only_rebuild(), pytest.raises(SystemExit, match="another rebuild is running"):
        privpost("verify", "toy/curve")
    assert stored.exists()
    monkeypatch.setattr(runner, "snakemake", lambda arguments: (1, []))
    assert privpost("verify", "toy/curve") == 1
    assert not stored.exists()


def test_a_study_that_could_not_be_rebuilt_is_not_identical(toy):
    build(toy)
    assert not verify.compare("toy/curve").rebuilt


def test_verdicts_and_numbers_that_differ_are_named(toy):
    from privpost.report import numbers, scorecard

    rebuilt(toy)
    studies = {"toy/curve": toy.study()}
    card = scorecard.table(scorecard.score(studies.values()))
    found = numbers.of_results(studies, {"toy/curve": toy.cells()}, card)

    def ship(verdict, quoted):
        store.write_text(toy.folder / "results/scorecard.csv", card.assign(verdict=verdict).to_csv(index=False))
        numbers.write(toy.folder / "results/numbers.json", quoted)
        return verify.compare_scores(["toy/curve"])

    assert ship("holds", found) == []
    assert ship("does not hold", found) == ["Verdict of T1: was does not hold, now holds"]
    assert ship("holds", {**found, "cells": 2 * found["cells"], "T1/gone": "x"}) == [
        "Number T1/gone: was x, now None",
        f"Number cells: was {2 * found['cells']}, now {found['cells']} (-0.5 relative)",
    ]
    (toy.folder / "results/scorecard.csv").unlink()
    assert "snakemake scorecard" in verify.compare_scores(["toy/curve"])[0]


def test_mechanisms_are_listed_with_their_curves(toy, capsys):
    assert privpost("mechanisms") == 0
    lines = {line.split()[1]: line for line in capsys.readouterr().out.splitlines()}
    assert "from its pure ε" in lines["LaplaceMechanism"]
    assert "its own" in lines["GaussianMechanism"]


def test_a_reader_that_stops_early_sees_no_traceback():
    command = f"{sys.executable} -m privpost mechanisms | head -n 1"
    done = subprocess.run(command, shell=True, capture_output=True, text=True, check=False)
    assert done.stdout.startswith("method") and done.stderr == ""
