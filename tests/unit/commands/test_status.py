"""Status and prune on a toy project."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from dispatched import build, in_store, privpost

from privpost import atomic
from privpost.lab import published
from privpost.lab.schema import SettingError
from privpost.report import captions, page

OTHER = "made with other settings than today's"


def status(capsys) -> list[str]:
    """Return what `privpost status` says of the toy: numbers of cells, and the state of its tables."""
    capsys.readouterr()
    assert privpost("status") == 0
    (row,) = [line for line in capsys.readouterr().out.splitlines() if line.startswith("toy/curve ")]
    return row.split(maxsplit=5)[1:]


def expected(cells=4, current=0, behind=0, missing=0, tables="built") -> list[str]:
    return [*map(str, (cells, current, behind, missing)), tables]


def test_status_in_each_state(toy, capsys, monkeypatch):
    build(toy)
    assert status(capsys) == expected(current=4)
    victim = toy.cells()[2].path
    content = victim.read_bytes()
    victim.write_bytes(content[:-100])
    assert status(capsys) == expected(current=3, missing=1)
    victim.write_bytes(content)
    toy.edit("note: n", "note: m")
    assert status(capsys) == expected(missing=4, tables=OTHER)
    toy.edit("note: m", "note: n")
    toy.edit("level: [1, 2]", "level: [1, 2, 3]")
    assert status(capsys) == expected(cells=6, current=4, missing=2, tables=OTHER)
    toy.edit("level: [1, 2, 3]", "level: [1, 2]")
    versions = {"python": "3.11.0", "numpy": "9", "scipy": "9"}
    monkeypatch.setattr("privpost.lab.provenance.versions", lambda: versions)
    assert status(capsys) == expected(behind=4)


def test_the_summary_comes_first(toy, capsys):
    privpost("status")
    assert capsys.readouterr().out.splitlines() == [
        "1 study at paper scale: 0 of 4 cells in the store, 0 of them by other code; tables of 0 built.",
        "make reproduce computes what is missing.",
    ]
    privpost("status", "--scale", "smoke")
    said = capsys.readouterr().out
    assert said.startswith("1 study at smoke scale: 0 of ")
    assert "privpost reproduce --scale smoke computes what is missing." in said
    build(toy)
    privpost("study=toy/curve", "level=9")
    toy.edit("level: [1, 2]", "level: [1]")
    capsys.readouterr()
    privpost("status")
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "1 study at paper scale: 2 of 2 cells in the store, 0 of them by other code; tables of 0 built."
    assert lines[2].endswith(OTHER)
    privpost("prune", "-n", "--sweeps")
    assert capsys.readouterr().out.endswith("4 files would be removed\n")


def test_prune_removes_what_no_grid_names(toy, capsys):
    build(toy)
    privpost("study=toy/curve", "level=9")
    toy.cells()[0].path.with_name("x.npz.corrupt").write_text("")
    toy.edit("level: [1, 2]", "level: [1]")
    named = {str(cell.path) for cell in toy.cells()}
    before = in_store(toy)
    assert privpost("prune", "--dry-run") == 0
    assert in_store(toy) == before
    assert "3 files" in capsys.readouterr().out
    assert privpost("prune") == 0
    (ad_hoc,) = in_store(toy) - named
    assert "a-9_" in ad_hoc
    assert privpost("prune", "--sweeps") == 0
    assert in_store(toy) == named
    assert not list((toy.folder / "build/paper/cells").rglob("*.corrupt"))


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


def test_a_temporary_file_that_takes_its_name_meanwhile_is_not_abandoned(tmp_path):
    assert not atomic.is_abandoned(tmp_path / ".a.abcdefgh.npz")


def test_prune_removes_the_folders_of_sweeps_on_request(toy):
    privpost("-m", "study=toy/curve", "level=1,9")
    privpost("prune")
    assert (toy.folder / "build/sweeps/toy_curve__level=1,9").is_dir()
    privpost("prune", "--sweeps")
    assert not (toy.folder / "build/sweeps/toy_curve__level=1,9").exists()


def test_a_published_figure_that_was_altered_is_named_and_not_shown(toy, capsys):
    """What was measured has no sum."""
    figure, measured = Path("figures/toy/curve/one.svg"), Path("results/times.csv")
    for path in (figure, measured):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("<svg/>")
    published.write_sums()
    privpost("status")
    assert "altered by hand" not in capsys.readouterr().out
    for path in (figure, measured):
        path.write_text("<svg></svg>")
    privpost("status")
    assert f"1 published file altered by hand: {figure}\n" in capsys.readouterr().out
    with pytest.raises(SettingError, match=r"figures/toy/curve/one\.svg"):
        page.Packed().figure(figure, captions.Caption("One.", ""))
