"""`privpost check` on a toy project: every damaged file is named, and nothing is touched."""

from __future__ import annotations

import hashlib
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from dispatched import build, privpost

from privpost.datasets import catalogue
from privpost.lab import published
from privpost.lab.schema import SettingError
from privpost.report import captions, page


def everything(folder) -> dict[str, tuple[int, bytes]]:
    """Time and content of every file of a project, and the time of every folder."""
    return {
        str(path): (path.lstat().st_mtime_ns, path.read_bytes() if path.is_file() else b"")
        for path in sorted(folder.rglob("*"))
        if "__pycache__" not in path.parts
    }


@pytest.fixture
def checked(toy, capsys):
    """The toy, built and with a published table, and its check: exit status and lines."""
    build(toy)
    results = toy.folder / "results"
    results.mkdir(exist_ok=True)
    (results / "table.csv").write_text("a\n1\n")
    digest = hashlib.sha256(b"a\n1\n").hexdigest()
    (results / "SHA256SUMS").write_text(f"{digest}  table.csv\n")

    def check(*words: str) -> tuple[int, list[str]]:
        before = everything(toy.folder)
        capsys.readouterr()
        status = privpost("check", *words)
        assert everything(toy.folder) == before
        return status, capsys.readouterr().out.splitlines()

    return check


def test_nothing_is_damaged(checked):
    assert checked("--read-data") == (0, ["5 files read, none damaged"])
    assert checked() == (0, ["1 file read, none damaged"])


def flip(content: bytes) -> bytes:
    middle = len(content) // 2
    return content[:middle] + bytes([content[middle] ^ 1]) + content[middle + 1 :]


def cut(content: bytes) -> bytes:
    return content[:-1]


@pytest.mark.parametrize("harm", [flip, cut])
def test_a_damaged_cell_is_named(toy, checked, harm):
    victim = toy.cells()[2].path
    victim.write_bytes(harm(victim.read_bytes()))
    status, lines = checked("--read-data")
    assert (status, lines[1:]) == (1, ["5 files read, 1 damaged"])
    assert str(victim) in lines[0]
    assert checked() == (0, ["1 file read, none damaged"])


def test_a_cell_under_another_ones_name_is_named(toy, checked):
    one, other = toy.cells()[:2]
    one.path.write_bytes(other.path.read_bytes())
    status, lines = checked("--read-data")
    assert (status, len(lines)) == (1, 2)
    assert f"{one.path} holds the cell {other.digest}" in lines[0]


@pytest.mark.parametrize("harm", [lambda path: path.write_text("a\n2\n"), lambda path: path.unlink()])
def test_a_published_file_that_was_altered_or_taken_away_is_named(toy, checked, harm):
    harm(toy.folder / "results" / "table.csv")
    status, lines = checked()
    assert (status, lines[1:]) == (1, ["1 file read, 1 damaged"])
    assert lines[0].startswith("results/table.csv ")


def test_a_published_figure_that_was_altered_is_named_and_not_shown(checked):
    """What was measured has no sum."""
    figure, measured = Path("figures/toy/curve/one.svg"), Path("results/times.csv")
    for path in (figure, measured):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("<svg/>")
    published.write_sums()
    assert checked() == (0, ["2 files read, none damaged"])
    for path in (figure, measured):
        path.write_text("<svg></svg>")
    status, lines = checked()
    assert (status, lines[1:]) == (1, ["2 files read, 1 damaged"])
    assert lines[0].startswith("figures/toy/curve/one.svg does not have the sha256")
    with pytest.raises(SettingError, match=r"figures/toy/curve/one\.svg"):
        page.Packed().figure(figure, captions.Caption("One.", ""))


def test_damaged_data_are_named(toy, checked, monkeypatch):
    """Raw files by their sha256, and prepared ones by their own checksum."""
    raw, prepared = (toy.folder / "data" / kind for kind in ("raw", "prepared"))
    (raw / "bits").mkdir(parents=True)
    prepared.mkdir(parents=True)
    (raw / "bits" / "bits.csv").write_bytes(b"1\n")
    np.savez(prepared / "bits.npz", a=np.zeros(1))
    file = catalogue.File("bits.csv", 2, hashlib.sha256(b"0\n").hexdigest(), ())
    monkeypatch.setattr(catalogue, "names", lambda: ["bits"])
    monkeypatch.setattr(catalogue, "load", lambda name: SimpleNamespace(choices=lambda: [(file,)], identity=dict))
    status, lines = checked("--read-data")
    assert status == 1
    assert [line.split(": ")[0].split(" does ")[0] for line in lines] == [
        "data/raw/bits/bits.csv",
        "data/prepared/bits.npz",
        "7 files read, 2 damaged",
    ]
