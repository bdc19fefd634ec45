"""What a user's machine, a hand edit or a strange name can do: one clear line, and no wrong result."""

from __future__ import annotations

import json
import os
import re
import shlex
import signal
import time
from pathlib import Path

import matplotlib as mpl
import pytest

from privpost import atomic
from privpost.commands import cli, rebuild, run
from privpost.drawing import style
from privpost.lab import cells, request, store
from privpost.lab.plan import Plan
from privpost.lab.schema import SettingError

ROOT = Path(__file__).resolve().parents[2]


def privpost(*arguments: str) -> int:
    return cli.main(list(arguments))


@pytest.fixture
def built(toy):
    assert privpost("-m", "study=toy/curve") == 0
    assert privpost("tabulate", "toy/curve") == 0
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


@pytest.mark.parametrize("fault", ["a number is halved", "empty", "no header", "manifest is damaged"])
def test_an_altered_table_is_named_and_read_by_nobody(built, capsys, fault):
    table, manifest = built.study().table_path("curve"), built.study().grid_path()
    whole = {path: path.read_bytes() for path in (table, manifest)}
    if fault == "a number is halved":
        head, first, rest = table.read_text().split("\n", 2)
        *words, number = first.split(",")
        table.write_text("\n".join([head, ",".join([*words, repr(float(number) / 2)]), rest]))
    elif fault == "manifest is damaged":
        manifest.write_text("{}")
    else:
        table.write_text("" if fault == "empty" else "1,2\n")
    capsys.readouterr()
    assert privpost("status") == 0
    status = capsys.readouterr().out
    assert status.splitlines()[1].split()[-2] == "altered"
    named = "curve.grid.json is no manifest" if fault.startswith("manifest") else "curve.csv does not have the sha256"
    assert named in status
    for command in (["draw", "toy/curve"], ["claims", "toy/curve"], ["scorecard"]):
        assert privpost(*command) == 2
        (line,) = capsys.readouterr().err.splitlines()
        assert named in line
        assert "privpost reproduce toy/curve" in line
    assert privpost("tabulate", "toy/curve") == 0
    assert {path: path.read_bytes() for path in whole} == whole
    assert privpost("claims", "toy/curve") == 0


def test_a_rebuild_makes_altered_tables_anew(built):
    """Its stamp is then newer than they are; else it is older than everything."""
    study = built.study()
    assert os.stat(Plan().table_stamp(study)).st_mtime == 0
    study.table_path("curve").write_text("")
    assert os.stat(Plan().table_stamp(study)).st_mtime > study.table_path("curve").stat().st_mtime - 1


def test_a_rebuild_makes_tables_of_another_grid_anew_whenever_they_were_put_there(built):
    """As git does when it checks out older tables: they are newer than what a plan before saw, and other ones."""
    study, contents = built.study(), []
    grid = study.grid_path().read_text()
    for digest in ("a", "b"):
        study.grid_path().write_text(grid.replace('"digest":"', f'"digest":"{digest}'))
        later = time.time() + 0.01
        os.utime(study.table_path("curve"), (later, later))
        time.sleep(0.02)
        stamp = Path(Plan().table_stamp(study))
        assert stamp.stat().st_mtime > later
        contents.append(stamp.read_text())
    assert contents[0] != contents[1]
    study.grid_path().write_text(grid)
    assert os.stat(Plan().table_stamp(study)).st_mtime == 0


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
        for folder in ("src", "benchmarks", "workflow")
        for path in (ROOT / folder).rglob("*.py")
        if re.search(r"os\.(replace|rename)\(|\.(rename|replace)\(\w*(path|target)\w*\)", path.read_text())
    }
    aside = {"src/privpost/lab/store.py", "src/privpost/datasets/fetch.py"}
    assert found == {"src/privpost/atomic.py", *aside}


# Settings


@pytest.mark.parametrize("damage", ["", "{}", "cut", "changed"])
def test_damaged_settings_in_the_cache_are_composed_again(toy, damage):
    expected = toy.study().config
    (kept,) = Path(".snakemake/privpost/composed").glob("*/*.json")
    text = kept.read_text()
    kept.write_text({"cut": text[:-20], "changed": text.replace('"note": "n"', '"note": "m"')}.get(damage, damage))
    assert toy.study().config == expected
    assert kept.read_text() == text


# Names


@pytest.mark.parametrize("root", ["build/x|touch pwned", "build/$(touch pwned)", "a'b", "{x}", "a\nb", ""])
def test_a_folder_with_letters_of_the_shell_is_refused_by_name(toy, capsys, root):
    with pytest.raises(SettingError, match="root"):
        Plan("smoke", root)
    assert privpost("tabulate", "toy/curve", f"--root={root}") == 2
    assert len(capsys.readouterr().err.splitlines()) == 1
    assert not Path("pwned").exists()


def test_a_folder_with_blanks_is_one_word_of_every_job(toy):
    plan = Plan("smoke", "build/a b")
    (path,) = plan.by_path
    words = shlex.split(plan.arguments(path))
    assert path.startswith("build/a b/cells/")
    (cell,) = request.understand([word for word in words if not word.startswith("expect=")]).cells
    assert str(cell.path) == path


@pytest.mark.parametrize("name", ["a|touch pwned", "a b", "a;b", "ü"])
def test_a_study_with_letters_of_the_shell_in_its_name_is_refused(toy, capsys, name):
    toy.yaml.rename(toy.yaml.with_stem(name))
    assert privpost("list") == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert f"{name}.yaml" in line
    assert "must be called by letters, digits, _, - and ." in line


@pytest.mark.parametrize("key", ["tables", "figures"])
def test_a_table_or_figure_with_letters_of_the_shell_in_its_name_is_refused(toy, key):
    toy.edit("figures: []\n", f"{key}: ['a|b']\n")
    with pytest.raises(SettingError, match=rf"{key} is \['a\|b'\], but must be"):
        toy.study()


def test_every_path_in_every_rule_is_quoted():
    """What a rule hands to the shell is quoted, but for arguments that the plan has quoted already."""
    for path in (ROOT / "workflow/rules").glob("*.smk"):
        for line in re.findall(r"'\"\$\{\{.*'", path.read_text()):
            names = re.findall(r"(?<!\{)\{([^{}]+)\}(?!\})", line)
            assert [name for name in names if not name.endswith(":q")] in ([], ["params.arguments"]), line


# Cells


@pytest.mark.parametrize("thing", ["fifo", "link to nothing", "unsealed"])
def test_what_is_no_result_in_a_cells_place_is_set_aside_and_computed_again(built, capsys, thing):
    cell = built.cells()[0]
    before = store.read(cell.path).arrays
    if thing == "unsealed":
        record = json.loads(str(store._load(cell.path)[1] and json.dumps(store._load(cell.path)[1])))
        del record["seal"]
        import numpy as np

        np.savez(cell.path, **before, record=np.array(json.dumps(record)))
    else:
        cell.path.unlink()
        os.mkfifo(cell.path) if thing == "fifo" else cell.path.symlink_to("/nowhere/at/all")
    rebuild._look_through(Plan(), behind=False)
    assert "set aside as" in capsys.readouterr().err
    assert not os.path.lexists(cell.path)
    assert privpost("prune", "-n") == 0
    assert f"{cell.path.name}.corrupt" in capsys.readouterr().out
    assert privpost(*cell.command()) == 0
    assert store.checksum(store.read(cell.path).arrays) == store.checksum(before)
    assert cells.in_store(cell)


# Sweeps


def test_a_worker_ends_when_its_sweep_is_killed(monkeypatch):
    """An idle or a busy one: until then it would wait for minutes."""
    monkeypatch.setattr(run, "WATCHED", 0.02)
    run._end_with_the_sweep.cache_clear()
    reading, writing = os.pipe()
    sweep = os.fork()
    if not sweep:
        os.environ[run.SWEEP] = str(os.getpid())
        if not os.fork():
            os.close(reading)
            run._end_with_the_sweep()
            os.write(writing, b".")
            time.sleep(60)
        time.sleep(60)
        os._exit(0)
    os.close(writing)
    assert os.read(reading, 1) == b"."
    os.kill(sweep, signal.SIGKILL)
    os.waitpid(sweep, 0)
    start = time.monotonic()
    # The end of the pipe: the worker held it.
    assert os.read(reading, 1) == b""
    os.close(reading)
    assert time.monotonic() - start < 10
