"""Status and prune on a toy project."""

from __future__ import annotations

import os

from dispatched import build, in_store, privpost

from privpost import atomic


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
    assert "ad hoc: 1 cell of" in text

    monkeypatch.setattr("privpost.lab.provenance.versions", lambda: {"python": "3.11.0", "numpy": "9", "scipy": "9"})
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
