"""Faults by a user's machine, a hand edit or a strange name: one clear line, and no wrong result."""

from __future__ import annotations

import json
import os
import re
import shutil
from pathlib import Path

import matplotlib as mpl
import numpy as np
import pytest

from privpost import atomic
from privpost.commands import cli
from privpost.drawing import style
from privpost.lab import published, store

ROOT = Path(__file__).resolve().parents[2]


def privpost(*arguments: str) -> int:
    return cli.main(list(arguments))


@pytest.fixture
def built(toy):
    assert privpost("-m", "study=toy/curve") == 0
    return toy


# Figures


def drawn() -> bytes:
    import matplotlib.pyplot as plt

    with style.context():
        figure, axes = plt.subplots()
        axes.plot([1, 2], [3, 4], label="a_b")
        axes.legend()
        style.save(figure, path := Path("drawn.svg"))
        style.close(figure)
    return path.read_bytes()


def test_figures_do_not_follow_the_users_matplotlibrc(tmp_path, monkeypatch):
    """Its settings are in force from the start of Python, as these are."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "0")
    expected = drawn()
    users = {"font.size": 14, "savefig.bbox": "tight", "text.usetex": True, "lines.linestyle": ":", "legend.loc": 3}
    with mpl.rc_context(users):
        assert drawn() == expected


# Tables


@pytest.mark.parametrize("fault", ["a number is halved", "empty", "no header", "not in the sums"])
def test_an_altered_table_is_named_and_read_by_nobody(built, capsys, fault):
    shutil.copytree("build/paper/results/toy", "results/toy")
    published.write_sums()
    assert privpost("claims", "toy/curve") == 0
    table = published.RESULTS / "toy/curve/curve.csv"
    if fault == "a number is halved":
        head, first, rest = table.read_text().split("\n", 2)
        *words, number = first.split(",")
        table.write_text("\n".join([head, ",".join([*words, repr(float(number) / 2)]), rest]))
    elif fault == "not in the sums":
        published.SUMS.write_text(re.sub(".*curve.csv\n", "", published.SUMS.read_text()))
    else:
        table.write_text("" if fault == "empty" else "1,2\n")
    capsys.readouterr()
    assert privpost("status") == 0
    assert f"1 published file altered by hand: {table}" in capsys.readouterr().out
    for command in (["claims", "toy/curve"], ["scorecard"]):
        assert privpost(*command) == 2
        (line,) = capsys.readouterr().err.splitlines()
        assert f"{table} does not have the sha256 that {published.SUMS} names" in line


def test_every_file_is_on_the_disk_before_it_takes_its_place(tmp_path, monkeypatch):
    synced, replaced = set(), []
    fsync, replace = os.fsync, os.replace
    monkeypatch.setattr(os, "fsync", lambda number: (synced.add(os.fstat(number).st_ino), fsync(number)))
    monkeypatch.setattr(os, "replace", lambda old, new: (replaced.append(os.stat(old).st_ino), replace(old, new)))
    store.write_texts({tmp_path / "a.csv": "a", tmp_path / "b.json": "b"})
    with atomic.replacing(tmp_path / "c.npz") as temporary:
        temporary.write_bytes(b"c")
    assert len(replaced) == 3
    assert set(replaced) <= synced


def test_one_function_puts_files_in_their_place():
    """Two others rename a file that is no good aside."""
    found = {
        f"{path.relative_to(ROOT)}"
        for folder in ("src", "benchmarks", "workflow", "tools")
        for path in (ROOT / folder).rglob("*.py")
        if re.search(r"os\.(replace|rename)\(|\.(rename|replace)\(\w*(path|target)\w*\)", path.read_text())
    }
    aside = {"src/privpost/lab/store.py", "src/privpost/datasets/fetch.py"}
    assert found == {"src/privpost/atomic.py", *aside}


# Names


@pytest.mark.parametrize("name", ["a|touch pwned", "a b", "a;b", "ü"])
def test_a_study_with_letters_of_the_shell_in_its_name_is_refused(toy, capsys, name):
    toy.yaml.rename(toy.yaml.with_stem(name))
    assert privpost("list") == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert f"{name}.yaml" in line
    assert "may only have letters, digits, _, - and ." in line


def test_every_path_in_every_rule_is_quoted():
    """What a rule hands to the shell is quoted, but for the words of a command: names of studies and scales."""
    text = (ROOT / "workflow/Snakefile").read_text()
    lines = re.findall(r"shell:\n +f(.*)", text)
    for line in lines:
        assert set(re.findall(r"\{\{([^{}]+)\}\}", line)) == {"params.words", "log:q"}, line
        assert set(re.findall(r"(?<!\{)\{(\w+)\}(?!\})", line)) == {"RUN"}, line
    assert len(lines) == text.count("shell:") == 2
    assert """RUN = f'"{sys.executable}" -m privpost""" in text


@pytest.mark.parametrize(
    "content",
    [
        b'{"sha256": "abc"}', b"[" * 100_000, b"\xff\xfe\x00", b"abc  ../x\n", b"abc  /etc/passwd\n", b"abc  \n",
        b"abc  toy\n", b"abc  toy/curve.csv/x\n",
    ],
)  # fmt: skip
def test_sums_of_an_odd_shape_give_lines_and_no_stack(built, capsys, content):
    """One line for each file, and the other studies are reported as usual; a stack overflow once ended all of them."""
    shutil.copytree("build/paper/results/toy", "results/toy")
    published.SUMS.write_bytes(content)
    for words, status in ((["status"], 0), (["draw", "toy/curve"], 2)):
        assert privpost(*words) == status
        out, err = capsys.readouterr()
        assert "Traceback" not in out + err
        assert max(map(len, (out + err).splitlines())) < 300
        assert words != ["status"] or "in the store" in out


# Cells


@pytest.mark.parametrize("thing", ["fifo", "link to nothing", "unsealed"])
def test_what_is_no_result_in_a_cells_place_is_set_aside_and_computed_again(built, capsys, thing):
    cell = built.cells()[0]
    before = store.read(cell.path)
    if thing == "unsealed":
        record = {key: value for key, value in before.record.items() if key != "seal"}
        np.savez(cell.path, **before.arrays, record=np.array(json.dumps(record)))
    else:
        cell.path.unlink()
        os.mkfifo(cell.path) if thing == "fifo" else cell.path.symlink_to("/nowhere/at/all")
    assert privpost("build", "toy/curve") == 0
    assert "set aside as" in capsys.readouterr().err
    assert store.checksum(store.read(cell.path, cell.digest).arrays) == store.checksum(before.arrays)
    assert privpost("prune", "-n") == 0
    assert f"{cell.path.name}.corrupt" in capsys.readouterr().out


def test_a_folder_in_the_way_of_a_damaged_cell_keeps_it_from_nothing(built, capsys):
    """It stays with what it holds; every build of the study failed, and named the wrong file."""
    cell = built.cells()[0]
    before = store.read(cell.path)
    for number in ("", ".1"):
        folder = cell.path.with_name(f"{cell.path.name}{number}.corrupt")
        folder.mkdir()
        (folder / "x").touch()
    cell.path.write_bytes(cell.path.read_bytes()[:-50])
    assert privpost("build", "toy/curve") == 0
    assert f"set aside as {cell.path.name}.2.corrupt" in capsys.readouterr().err
    assert (folder / "x").is_file()
    assert store.checksum(store.read(cell.path, cell.digest).arrays) == store.checksum(before.arrays)
