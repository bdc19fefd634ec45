"""Messages of a running sweep: its progress, what an interrupt keeps, and what happens without a data set."""

from __future__ import annotations

import io
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from dispatched import in_store, privpost

from privpost import __version__, progress
from privpost.datasets import catalogue, fetch, prepared
from privpost.lab import grid

ROOT = Path(__file__).resolve().parents[3]
SWEEP = ("-m", "study=toy/curve", "level=range(1,7)")


class Terminal(io.StringIO):
    def isatty(self):
        return True


def test_a_terminal_has_one_line_with_the_time_left(monkeypatch):
    now = iter([0.0, 10.0, 20.0, 30.0])
    monkeypatch.setattr(progress.time, "perf_counter", lambda: next(now))
    shown = progress.Progress(Terminal(), "points")
    shown.update(1, 3)
    assert shown._stream.getvalue().strip() == "1 of 3 points done, 10 s so far, about 20 s left"
    shown.update(2, 3)
    shown.clear()
    assert "\n" not in shown._stream.getvalue()
    assert shown._stream.getvalue().endswith("\r")


def test_elsewhere_lines_are_sparse(monkeypatch):
    now = iter([0.0, 1.0, 2.0, 16.0, 17.0, 18.0])
    monkeypatch.setattr(progress.time, "perf_counter", lambda: next(now))
    stream = io.StringIO()
    shown = progress.Progress(stream, "points")
    for done in range(1, 6):
        shown.update(done, 5)
    shown.clear()
    lines = stream.getvalue().splitlines()
    assert [line.split(",")[0] for line in lines] == ["3 of 5 points done", "5 of 5 points done"]


def test_a_sweep_shows_how_far_it_is(toy, monkeypatch):
    monkeypatch.setattr(sys, "stderr", shown := Terminal())
    assert privpost(*SWEEP) == 0
    assert [f"\r{number} of 6 cells done" in shown.getvalue() for number in range(1, 6)] == [True] * 5


def test_an_interrupt_says_in_one_line_what_is_kept(toy, capsys, monkeypatch):
    module = toy.study().module()
    simulate = module.simulate

    def interrupted(config, streams, ledger):
        if config.level == 4:
            raise KeyboardInterrupt
        return simulate(config, streams, ledger)

    monkeypatch.setattr(module, "simulate", interrupted)
    assert privpost(*SWEEP) == 130
    said = capsys.readouterr().err.strip()
    assert said == "privpost: stopped; 3 of 6 cells are in the store, and the same command goes on from there."
    monkeypatch.setattr(module, "simulate", simulate)
    assert privpost(*SWEEP) == 0
    assert len(in_store(toy)) == 6
    assert capsys.readouterr().err == "writing tables and drawing the figure\n"


def test_a_reader_that_stops_early_fails_no_cell_and_the_sweep_ends(toy):
    sweep = "-m study=geumlek2017/rdp_curves scale=smoke order=2 coefficient=0.1,0.2,0.3"
    command = f"{sys.executable} -m privpost {sweep} | head -n 1"
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    for part in ("study", "network", "dataset"):
        shutil.copytree(ROOT / "conf" / part, toy.folder / "conf" / part, dirs_exist_ok=True)
    done = subprocess.run(command, shell=True, capture_output=True, text=True, check=False, env=environment)
    assert done.stdout.count("\n") == 1
    assert "could not be computed" not in done.stderr and "Traceback" not in done.stderr
    assert len(in_store(toy, "build/smoke")) == 3
    assert list(toy.folder.glob("build/sweeps/*/sweep.png"))


def reading(toy, monkeypatch, status: int) -> list[str]:
    """Let the toy study's cells read a data set that is not prepared; returns those that `prepare` is asked for."""
    made = grid.make_cells

    def with_data(*given):
        found = made(*given)
        for cell in found:
            cell.settings["dataset"] = "coins"
        return found

    asked = []
    monkeypatch.setattr(grid, "make_cells", with_data)
    monkeypatch.setattr(fetch, "main", lambda names: (asked.extend(names), status)[1])
    monkeypatch.setattr(catalogue, "load", lambda name: name)
    monkeypatch.setattr(prepared, "prepare", lambda dataset, code: None)
    return asked


def absent(name, dataset, prepared):
    raise FileNotFoundError(name)


def test_a_missing_data_set_is_prepared_once(toy, monkeypatch):
    asked = reading(toy, monkeypatch, 0)
    monkeypatch.setattr(prepared, "read", absent)
    assert privpost(*SWEEP) == 0
    assert asked == ["coins"]


def test_points_whose_data_cannot_be_had_have_a_line_each(toy, monkeypatch, capsys):
    reading(toy, monkeypatch, 1)
    monkeypatch.setattr(prepared, "read", absent)
    assert privpost(*SWEEP) == 1
    said = capsys.readouterr().err
    assert said.count("its data set coins is not available") == 6
    assert "6 of 6 cells could not be computed" in said
    assert in_store(toy) == set()


@pytest.mark.parametrize(("code", "again"), [("today's", []), ("other", ["coins"])])
def test_prepared_data_are_prepared_again_only_if_other_code_did(toy, monkeypatch, code, again):
    """Cells record today's loader: its name beside another loader's arrays would stay wrong forever."""
    asked = reading(toy, monkeypatch, 0)
    monkeypatch.setattr(prepared, "read", lambda name, dataset, prepared: {})
    monkeypatch.setattr(prepared, "code_of", lambda name, prepared: code)
    monkeypatch.setattr("privpost.lab.provenance.loader_digest", lambda name: "today's")
    assert privpost(*SWEEP) == 0
    assert asked == again


def test_the_version_is_the_package_s(capsys):
    assert privpost("--version") == 0
    assert capsys.readouterr().out == f"privpost {__version__}\n"


@pytest.mark.parametrize("argv", [["--cfg", "job", "study=toy/curve"], ["study=toy/curve", "--cfg", "job", "level=3"]])
def test_hydras_own_options_work_in_any_place(toy, capsys, argv):
    assert privpost(*argv) == 0
    said = capsys.readouterr().out
    assert "method: a" in said and ("level: 3" in said) == ("level=3" in argv)
    assert in_store(toy) == set()


def test_help_needs_no_numpy():
    code = "import sys; from privpost.commands import cli; cli.main(['--help']); sys.exit('numpy' in sys.modules)"
    subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)


@pytest.mark.parametrize(("number", "text"), [(0, "0 cells"), (1, "1 cell"), (2, "2 cells")])
def test_numbers_agree_with_their_nouns(number, text):
    assert progress.counted(number, "cell") == text
