"""The dispatcher on a toy project: runs, sweeps, and messages about mistakes."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections import Counter

import pytest
from dispatched import in_store, privpost

from privpost import configurations
from privpost.commands import cli, run
from privpost.lab import published, request, store


def files(toy) -> set[str]:
    return {
        str(path.relative_to(toy.folder))
        for path in toy.folder.rglob("*")
        if path.is_file() and ".snakemake" not in path.parts and "__pycache__" not in path.parts
    }


def test_a_run_computes_the_base_point(toy, drawn, capsys):
    assert privpost("study=toy/curve") == 0
    assert in_store(toy) == {str(toy.cells()[0].path)}
    assert "build/sweeps/toy_curve/curve.csv" in capsys.readouterr().out


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
    """What a cell's record holds can be typed again."""
    toy.edit("sweep:\n  method: [a, b]\n  level: [1, 2]\n", "sweep:\n  - {method: [b], level: [2], order: [[2, 4]]}\n")
    (cell,) = toy.cells()
    assert privpost(*cell.command()) == 0
    assert in_store(toy) == {str(cell.path)}


def test_a_multirun_alone_is_the_whole_grid(toy, capsys):
    assert privpost("-m", "study=toy/curve") == 0
    assert in_store(toy) == {str(cell.path) for cell in toy.cells()}
    assert "build/paper/results/toy/curve/curve.csv" in capsys.readouterr().out
    assert {"build/paper/results/toy/curve/curve.csv", "build/paper/results/toy/curve/ledger.json"} <= files(toy)


def test_a_ragged_grid_takes_several_multiruns(toy):
    toy.edit(
        "sweep:\n  method: [a, b]\n  level: [1, 2]\n",
        "sweep:\n  - {method: [a], level: [1, 3]}\n  - {method: [b], order: [5, [6, 7]]}\n",
    )
    assert privpost("-m", "study=toy/curve") == 0
    assert in_store(toy) == {str(cell.path) for cell in toy.cells()}


def test_a_sweep_is_those_points_with_a_table_and_a_figure(toy, drawn):
    assert privpost("-m", "study=toy/curve", "level=1,5", "order=2,3") == 0
    assert len(in_store(toy)) == 4
    folder = toy.folder / "build/sweeps/toy_curve__level=1,5__order=2,3"
    assert sorted(os.listdir(folder)) == ["curve.csv", "multirun.yaml", "sweep.json", "sweep.pdf", "sweep.png"]
    assert (folder / "sweep.pdf").stat().st_size > 1000 < (folder / "sweep.png").stat().st_size
    record = json.loads((folder / "sweep.json").read_text())
    assert record["overrides"] == ["level=1,5", "order=2,3"]
    assert len(record["cells"]) == 4 and record["versions"]["numpy"]
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
    assert all(name.startswith(("build/paper/cells/", "build/sweeps/")) for name in new), new


def test_what_is_in_the_store_is_not_computed_again(toy, capsys):
    privpost("-m", "study=toy/curve", "level=1,2")
    times = {path: (toy.folder / path).stat().st_mtime_ns for path in in_store(toy)}
    capsys.readouterr()
    assert privpost("-m", "study=toy/curve") == 0
    assert all((toy.folder / path).stat().st_mtime_ns == time for path, time in times.items())
    assert "2 of 4 cells in the store already" in capsys.readouterr().out


def test_sweeps_that_differ_in_brackets_have_folders_of_their_own(toy):
    assert privpost("-m", "study=toy/curve", "order=[2,3],[4,5]") == 0
    assert privpost("-m", "study=toy/curve", "order=2,3,4,5") == 0
    assert len(os.listdir(toy.folder / "build/sweeps")) == 2


def test_the_command_of_a_cell_is_written_as_users_write_it(toy):
    (one,) = request.understand(["study=toy/curve", "order=3", "variant=[x,y]", "level=2"]).cells
    assert run.command_of(one) == "study=toy/curve order=3.0 'variant=[x,y]' level=2.0"


def test_a_signal_ends_a_sweep(toy, monkeypatch):
    """What the handler of SIGTERM raises in a cell ends the loop."""
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
        (["check"], ["check was a command of version 0.1.0: retired", "sha256sum"]),
        (["stdy=toy/curve"], ["study is missing", "did you mean 'study'?", "privpost list"]),
        (["study=toy/curv"], ["'toy/curv'", "Did you mean 'toy/curve'?", "privpost list"]),
        (["study=toy/curve", "levl=2"], ["no setting 'levl'", "Did you mean 'level'?", "Allowed: block"]),
        (["study=toy/curve", "scal=smoke"], ["no setting 'scal'", "Did you mean 'scale'?"]),
        (["study=toy/curve", "scale=smok"], ["scale is 'smok'", "Did you mean 'smoke'?"]),
        (["study=toy/curve", "method=c"], ["method is 'c', but must be one of a, b"]),
        (["study=toy/curve", "level=0"], ["level is 0, but must be a number in (0, inf)"]),
        (["-m", "study=toy/curve", "level=1,-2"], ["level is -2, but must be a number in (0, inf)"]),
        (["study=toy/curve", "order=1"], ["order is 1, but must be a number in (1, inf)"]),
        (["study=toy/curve,toy/other"], ["a run computes one study"]),
        (["study=toy/curve", "fresh=yes"], ["fresh is 'yes', but must be true or false"]),
        (
            ["-m", "study=toy/curve", "hydra/launcher=joblip"],
            ["Could not find 'hydra/launcher/joblip'", "basic joblib"],
        ),
        (["-m", "study=toy/curve", "hydra.launcher.n_jobs=2"], ["Could not override 'hydra.launcher.n_jobs'"]),
        (["study=toy/curve", "hydra.job.chdr=true"], ["Could not override 'hydra.job.chdr'"]),
        (["study=toy/curve", "--cfg", "jib"], ["argument --cfg/-c: invalid choice: 'jib'"]),
        (["study=toy/curve", "-m", "--cfg", "job"], ["Only one of --run, --multirun, --cfg"]),
        (["-m", "study=toy/curve", "study=toy/curve"], ["study is given twice, as 'toy/curve' and 'toy/curve'"]),
        (["-m", "study=toy/curve", "scale=smoke", "scale=paper"], ["scale is given twice, as 'smoke' and 'paper'"]),
        (["-m", "study=toy/curve", "shard=1/2", "shard=2/2"], ["shard is given twice, as '1/2' and '2/2'"]),
        (["study=toy/curve", "fresh=true", "fresh=false"], ["fresh is given twice, as 'true' and 'false'"]),
        (["study=toy/curve", "hydra.run.dir=a", "hydra.run.dir=b"], ["hydra.run.dir is given twice"]),
        (["-m", "study=toy/curve", "level=sort(range(7,0,-3))"], ["list the values (key=a,b)"]),
        (["study=toy/curve", "objective=kurve.mean"], ["objective is 'kurve.mean', but must be curve.<column>"]),
        (["study=toy/curve", "++extra=1"], ["there is no setting 'extra'"]),
        (["study=toy/curve", "trials=15", "block=10"], ["trials is 15, but must be a multiple of block, which is 10"]),
        (["study=toy/curve", "level=1,2"], ["level has 2 values, but a run takes one", "-m study=toy/curve"]),
        (["study=toy/curve", "+extra=1"], ["'+extra=1'", "not added or removed"]),
        (["study=toy/curve", "~level=1"], ["'~level=1'", "not added or removed"]),
        (["study=toy/curve", "~level"], ["'~level'", "not added or removed"]),
        (["~level", "study=toy/curve"], ["'~level'", "not added or removed"]),
        (
            ["-m", "study=toy/curve", "scale=smoke,paper"],
            ["scale is 'smoke,paper', but a run or a sweep has one scale"],
        ),
        (["claims", "toy/curve", "scale=smoke"], ["privpost: claims takes no key=value", "write --scale smoke"]),
        (["build", "toy/curve", "scale=smoke"], ["write --scale smoke"]),
        (["draw", "study=toy/curve"], ["write toy/curve alone"]),
        (["status", "level=2"], ["settings belong to a run"]),
        (["release", "tea.yaml", "epsilon=0.2"], ["'epsilon=0.2'", "tea.yaml holds all settings", "edit that file"]),
        (["study=toy/curve", "within.level=1"], ["'within.level=1'"]),
        (
            ["study=toy/curve", "level=[1"],
            ["'level=[1' cannot be read: it must be key=value, with every bracket and quote closed"],
        ),
        (["study=toy/curve", "method=glob(*)"], ["list the values"]),
        (["study=toy/curve", "--force"], ["there is no option '--force'"]),
        (["-m"], ["study is missing"]),
        (["build", "toy/kurve"], ["Did you mean 'toy/curve'?"]),
        (["study="], ["study is empty", "study=<paper>/<study>"]),
        (["study=curve"], ["study is 'curve'", "Did you mean 'toy/curve'?"]),
        (["prepare", "abalon"], ["dataset is 'abalon', but must be one of"]),
        (["fetch", "abalon"], ["dataset is 'abalon', but must be one of"]),
        (["reproduce", "--cores", "0"], ["--cores is '0', but must be a whole number of at least 1"]),
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


@pytest.mark.parametrize("argv", [["status"], ["study=toy/curve"], ["claims", "toy/curve"]])
def test_a_syntax_error_in_a_module_of_the_users_is_a_line(toy, capsys, argv):
    (toy.package / "curve/study.py").write_text("x = 1\ndef simulate(:\n")
    sys.modules.pop("privpost.experiments.toy.curve.study", None)
    assert privpost(*argv) == 2
    said = capsys.readouterr().err
    assert (
        said.startswith("privpost: ") and "curve/study.py, line 2: invalid syntax\n" in said and said.count("\n") == 1
    )


def test_hydras_own_words_that_are_served(toy, tmp_path):
    assert (
        privpost("-m", "study=toy/curve", "level=4,5", f"hydra.sweep.dir={tmp_path}/two", "hydra.job.chdir=true") == 0
    )
    assert (tmp_path / "two/curve.csv").is_file()
    assert not (toy.folder / "build/sweeps").exists()


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
    assert privpost("mechanisms") == 0


def test_studies_are_listed_with_all_their_cells(checkout, capsys):
    """Also with those that share a name in their times."""
    assert privpost("list") == 0
    listed = dict(re.findall(r"^(\S+) +(\d+) cells? ", capsys.readouterr().out, re.MULTILINE))
    assert listed == {
        name: str(cells) for name, cells in Counter(row["study"] for row in published.read_times()).items()
    }


def test_an_installed_package_works_in_any_folder(toy, tmp_path, monkeypatch, capsys):
    """With the configurations that its wheel brought; what a checkout ships it has not."""
    toy.folder.joinpath("conf").rename(tmp_path / "packaged")
    (tmp_path / "any").mkdir()
    monkeypatch.setattr(configurations, "PACKAGED", tmp_path / "packaged")
    monkeypatch.chdir(tmp_path / "any")
    assert privpost("list") == 0
    assert capsys.readouterr().out.split() == ["toy/curve", "new", "0", "s", "A", "toy"]
    assert privpost("study=toy/curve") == 0
    assert len(list((tmp_path / "any/build/paper/cells/toy/curve").iterdir())) == 1
    assert privpost("reproduce") == 2
    assert "run privpost inside a checkout" in capsys.readouterr().err


def test_commands_work_from_a_folder_inside_the_checkout(toy, monkeypatch, capsys):
    (toy.folder / "deep").mkdir()
    monkeypatch.chdir(toy.folder / "deep")
    assert privpost("list") == 0
    assert capsys.readouterr().out.split() == ["toy/curve", "new", "0", "s", "A", "toy"]


def test_mechanisms_are_listed_with_their_curves(toy, capsys):
    assert privpost("mechanisms") == 0
    lines = {line.split()[1]: line for line in capsys.readouterr().out.splitlines()}
    assert "from its pure ε" in lines["LaplaceMechanism"]
    assert "its own" in lines["GaussianMechanism"]


@pytest.mark.parametrize("unbuffered", ["", "1"])
def test_a_reader_that_stops_early_sees_no_traceback(unbuffered):
    """Also if Python writes only at its end."""
    given, environment = (
        [sys.executable, "-m", "privpost", "mechanisms"],
        {**os.environ, "PYTHONUNBUFFERED": unbuffered},
    )
    reading, writing = os.pipe()
    os.close(reading)
    done = subprocess.run(given, env=environment, stdout=writing, stderr=subprocess.PIPE, text=True, check=False)
    os.close(writing)
    assert (done.returncode, done.stderr) == (0, "")
