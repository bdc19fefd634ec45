"""`privpost` is a Hydra application: options, launchers, sweepers, plugins, and what the folder of a sweep may hold."""

from __future__ import annotations

import importlib.util
import json
import os
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import yaml
from dispatched import in_store, privpost
from joblib.externals.loky import get_reusable_executor

from privpost.commands import cli, words
from privpost.lab import grid, request
from privpost.lab.schema import SettingError

ROOT = Path(__file__).resolve().parents[3]
STUDY = "geumlek2017/rdp_curves"


def command(*argv: str, status: int = 0, **extra: str) -> str:
    """Run privpost in the working directory, in a process of its own, and return what it says."""
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "src"), **extra}
    done = subprocess.run(
        [sys.executable, "-m", "privpost", *argv], env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == status, done.stdout + done.stderr
    return done.stdout + done.stderr


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A folder with the settings of the checkout. Joblib's processes start in it once, for all tests."""
    place = tmp_path_factory.mktemp("settings")
    shutil.copytree(ROOT / "conf", place / "conf")
    yield place
    # Joblib's processes would wait for more work.
    get_reusable_executor(reuse=True).shutdown()


@pytest.fixture
def settings(folder, monkeypatch):
    """The folder of settings as working directory, also that of processes of launchers; it holds no results."""
    monkeypatch.chdir(folder)
    monkeypatch.setenv("PYTHONPATH", str(ROOT / "src"))
    yield
    shutil.rmtree("build", ignore_errors=True)


# Options


@pytest.mark.parametrize(
    ("argv", "parts"),
    [
        (["--hydra-help"], ["== Flags ==", "hydra/launcher", "--info"]),
        (["--info", "defaults"], ["Defaults List", "hydra/sweeper/study"]),
        (["--info", "plugins"], ["StudySweeper", "BasicLauncher", "JoblibLauncher"]),
        (["--info", "searchpath"], ["Provider", "main", "conf"]),
        (["study=toy/curve", "order=2", "--info", "config"], ["order: 2"]),
        (["--cfg", "hydra", "-p", "hydra.launcher"], ["# @package hydra.launcher", "BasicLauncher"]),
        (["--cfg", "job", "-p", "seed"], ["20171204"]),
        (["study=toy/curve", "--cfg", "job", "level=3"], ["level: 3", "title: A toy", "start: 2"]),
        (["study=toy/curve", "--cfg", "all", "--resolve"], ["hydra:", "build/sweeps/toy_curve", "level: 1"]),
        (["-cn", "config", "study=toy/curve", "--cfg", "job"], ["level: 1"]),
        (["-sc", "install=bash"], ["hydra_bash_completion"]),
    ],
)
def test_hydras_options_do_what_hydra_says(toy, capfd, argv, parts):
    assert privpost(*argv) == 0
    said = "".join(capfd.readouterr())
    for part in parts:
        assert part in said
    assert in_store(toy) == set()


def test_another_folder_may_hold_more_configurations(toy, capsys):
    (toy.folder / "mine/hydra/launcher").mkdir(parents=True)
    (toy.folder / "mine/hydra/launcher/two.yaml").write_text("defaults: [joblib]\nn_jobs: 2\n")
    (toy.folder / "conf/other.yaml").write_text("defaults: [config, _self_]\nseed: 5\n")
    more = ["-cd", "mine", "hydra/launcher=two"]
    assert privpost("study=toy/curve", *more, "--cfg", "hydra", "-p", "hydra.launcher") == 0
    assert "n_jobs: 2" in capsys.readouterr().out
    assert privpost("study=toy/curve", "-cn", "other") == 0
    assert json.loads((toy.folder / "build/sweeps/toy_curve/sweep.json").read_text())["first point"]["seed"] == 5
    assert privpost("study=toy/curve", "-cd", "nowhere") == 2
    assert "nowhere' not found" in capsys.readouterr().err


def test_a_run_and_a_sweep_leave_hydras_records_below_build(toy):
    assert privpost("study=toy/curve", "level=3", "order=2") == 0
    (folder,) = (toy.folder / "build/sweeps").iterdir()
    assert yaml.safe_load((folder / ".hydra/overrides.yaml").read_text()) == ["study=toy/curve", "level=3", "++order=2"]
    assert yaml.safe_load((folder / ".hydra/config.yaml").read_text())["level"] == 3
    assert privpost("-m", "study=toy/curve", "level=1,2", "hydra.sweep.dir=build/mine") == 0
    composed = yaml.safe_load((toy.folder / "build/mine/multirun.yaml").read_text())
    assert composed["hydra"]["sweeper"]["_target_"] == "hydra_plugins.privpost_store.StudySweeper"
    assert {path.name for path in toy.folder.iterdir()} == {"build", "conf", "experiments"}


def test_a_job_that_changes_into_its_folder_finds_the_store(toy):
    assert privpost("study=toy/curve", "hydra.job.chdir=true") == 0
    assert len(in_store(toy)) == 1
    assert Path.cwd() == toy.folder


def test_every_message_about_a_setting_comes_before_hydra(toy, capsys, monkeypatch):
    monkeypatch.setattr("privpost.commands.run._hydra", lambda argv: pytest.fail("Hydra was started"))
    for argv in (["study=toy/curve", "level=0"], ["-m", "study=toy/curve", "levl=1,2"], ["study=toy/kurve"]):
        assert privpost(*argv) == 2
        assert capsys.readouterr().err.startswith("privpost: ")


def test_help_shows_the_groups_and_a_studys_settings(toy, capsys):
    assert privpost("study=toy/curve", "--help") == 0
    said = capsys.readouterr().out
    for part in ("study    toy/curve", "scale    paper, smoke", "Settings of toy/curve: A toy", "  level=1.0 "):
        assert part in said
    assert privpost("study=toy/kurve", "--help") == 2
    assert "'toy/kurve'" in capsys.readouterr().err


# Completion


@pytest.mark.parametrize(
    ("line", "offered"),
    [
        ("privpost study=toy/", ["study=toy/curve"]),
        ("privpost study=toy/curve sc", ["scale="]),
        ("privpost study=toy/curve or", ["order="]),
        ("privpost study=toy/curve shards", []),
        ("privpost stu", ["study="]),
        ("privpost claims to", ["toy/curve"]),
        ("privpost fetch to", []),
        ("privpost hyd", []),
        ("privpost study=nothing", []),
        ("privpost study=toy/curve method=", ["method=a", "method=b"]),
        ("privpost study=toy/curve level=", []),
        ("privpost study=toy/kurve method=", []),
        ("privpost pub", ["publish"]),
        ("privpost study=toy/curve pub", []),
    ],
)
def test_studies_values_and_commands_are_completed_and_hydra_does_the_rest(toy, monkeypatch, capsys, line, offered):
    monkeypatch.setenv("COMP_LINE", line)
    hydras = "=" in line.split()[-1] or "hyd" in line
    assert words.complete(cli.COMMANDS) == (bool(offered) or not hydras)
    assert capsys.readouterr().out.split() == offered


def test_bash_completes_what_hydras_script_asks_for(settings):
    """Zsh runs the same script."""
    script = f"""
        PATH={Path(sys.executable).parent}:$PATH
        export PYTHONPATH={ROOT / "src"}
        eval "$(privpost -sc install=bash)"
        COMP_LINE="privpost study={STUDY[:-3]}"; COMP_WORDS=($COMP_LINE); COMP_CWORD=1; COMP_POINT=${{#COMP_LINE}}
        hydra_bash_completion
        echo "${{COMPREPLY[@]}}"
        COMP_LINE="privpost study={STUDY} hydra/launcher=jo"
        COMP_WORDS=($COMP_LINE); COMP_CWORD=2; COMP_POINT=${{#COMP_LINE}}
        hydra_bash_completion
        echo "${{COMPREPLY[@]}}"
    """
    done = subprocess.run(["bash", "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout.split() == [f"study={STUDY}", "hydra/launcher=joblib"]


# Launchers and sweepers


def test_hydras_own_launchers_compute_the_same_cells(settings, capfd):
    """A sweep ends with its table, its figure and its record, whichever launcher ran it."""
    sweep = ("-m", f"study={STUDY}", "scale=smoke", "order=2", "coefficient=0.3,0.4")
    assert privpost(*sweep, "hydra.sweep.dir=build/ours") == 0
    assert "2 cells; tables, figure and record:" in capfd.readouterr().out
    for launcher in ("joblib", "submitit_local"):
        theirs = Path("build", launcher)
        shutil.rmtree("build/smoke/cells")
        assert privpost(*sweep, f"hydra.sweep.dir={theirs}", f"hydra/launcher={launcher}") == 0
        assert "2 cells; tables, figure and record:" in capfd.readouterr().out
        assert len(list(Path("build/smoke/cells").rglob("*.npz"))) == 2
        for name in ("rdp_curves.csv", "sweep.png"):
            assert Path("build/ours", name).read_bytes() == (theirs / name).read_bytes()
        jobs = [yaml.safe_load(path.read_text()) for path in theirs.glob("*/.hydra/overrides.yaml")]
        assert sorted(job[-1] for job in jobs) == ["coefficient=0.3", "coefficient=0.4"]


def test_a_cell_that_fails_in_another_process_is_named(settings):
    """The command, too, is a process of its own here: what it sends to a launcher's processes arrives there."""
    sweep = ("-m", f"study={STUDY}", "scale=smoke", "order=2", "coefficient=0.3,0.4", "hydra/launcher=joblib")
    Path("build").mkdir()
    Path("build/smoke").write_text("no folder")
    said = command(*sweep, status=1)
    assert said.count("cannot write build/smoke") == 2
    assert "2 of 2 cells could not be computed" in said


@pytest.mark.parametrize("launcher", ["basic", "joblib"])
def test_optuna_maximises_the_number_that_the_objective_names(settings, capfd, launcher):
    """The error of a private draw over ε: of four trials the best is the one with the largest."""
    pytest.importorskip("hydra_plugins.hydra_optuna_sweeper")
    status = privpost(
        "-m", "study=foulds2016/sampling_error", "scale=smoke", "method=laplace", "n=100", "epsilon=interval(0.1,1)",
        "hydra/sweeper=optuna", "hydra.sweeper.n_trials=4", "hydra.sweeper.n_jobs=2",
        "hydra.sweeper.direction=maximize", f"hydra/launcher={launcher}", "objective=sampling_error.l1_mean",
        "hydra.sweep.dir=build/best",
    )  # fmt: skip
    lines = Path("build/best/sampling_error.csv").read_text().splitlines()
    rows = [dict(zip(lines[0].split(","), map(str, line.split(",")), strict=True)) for line in lines[1:]]
    best = yaml.safe_load(Path("build/best/optimization_results.yaml").read_text())
    assert (status, len(rows)) == (0, 4) and "best_value" in "".join(capfd.readouterr())
    largest = max(rows, key=lambda row: float(row["l1_mean"]))
    assert best["best_value"] == pytest.approx(float(largest["l1_mean"]))
    assert best["best_params"]["epsilon"] == pytest.approx(float(largest["epsilon"]))


def test_an_objective_that_is_not_one_number_is_told(toy, capsys):
    assert privpost("study=toy/curve", "objective=curve.mean") == 2
    assert (
        "objective is 'curve.mean', but must be one number; the table curve has 3 rows at a point: "
        "give order one value each." in capsys.readouterr().err
    )


def test_ends_of_an_interval_are_checked(toy):
    with pytest.raises(SettingError, match="level is -1, but must be a number"):
        request.understand(
            ["-m", "study=toy/curve", "level=interval(-1,2)", "hydra/sweeper=optuna", "objective=curve.sem"]
        )
    with pytest.raises(SettingError, match="list the values"):
        request.understand(["-m", "study=toy/curve", "level=interval(1,2)"])
    assert request.ends("level=tag(log,interval(1,2))") == [1, 2]


@pytest.mark.skipif(importlib.util.find_spec("hydra_plugins.hydra_optuna_sweeper") is not None, reason="it is there")
def test_a_plugin_that_is_not_installed_is_named(toy, capsys):
    assert privpost("-m", "study=toy/curve", "level=1,2", "hydra/sweeper=optuna", "objective=curve.sem") == 2
    assert "Could not find 'hydra/sweeper/optuna'" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["hydra/launcher=dask"], "Could not find 'hydra/launcher/dask'"),
        (["hydra.sweeper.params=x"], "Could not override 'hydra.sweeper.params'"),
        (["+hydra.sweeper.params=x"], "+hydra.sweeper.params is 'x', but hydra/sweeper=study has no settings"),
        (
            ["hydra/sweeper=optuna"],
            "objective is missing: hydra/sweeper=optuna chooses points by it; it must be curve.<",
        ),
        (["-cn", "other"], "conf/other.yaml cannot be read: Cannot find primary config 'other'"),
    ],
)
def test_what_hydra_would_refuse_is_refused_before_anything_runs(toy, capsys, words, message):
    for dry in ([], ["-n"]):
        assert privpost("-m", "study=toy/curve", "level=1,2", *words, *dry) == 2
        said = capsys.readouterr()
        assert message in said.err and said.err.count("\n") == 1 and said.out == ""
    assert in_store(toy) == set()


# What is swept, and where it goes


def test_the_folder_of_a_sweep_may_be_named_after_what_hydra_chose(toy):
    assert (
        privpost("-m", "study=toy/curve", "level=1,2", "hydra.sweep.dir=build/of_${hydra:runtime.choices.scale}") == 0
    )
    assert Path("build/of_paper/sweep.json").is_file()


def test_a_range_stands_alone():
    """Within a function Hydra reads other numbers than the range has."""
    assert request.values("key=range(7,0,-3)") == [7, 4, 1]
    assert request.values("key=sort(3,1,2,reverse=true)") == [3, 2, 1]
    for text in ("sort(range(7,0,-3))", "shuffle(range(1,4))", "float(range(1,4))"):
        with pytest.raises(SettingError, match="list the values"):
            request.values(f"key={text}")


def test_a_legal_override_with_two_plus_signs_is_served(toy):
    assert privpost("study=toy/curve", "++level=3") == 0
    assert privpost("study=toy/curve", "level=3") == 0
    assert len(in_store(toy)) == 1


def test_a_sweeps_folder_takes_no_other_sweep_and_no_file_of_the_user(toy, capsys):
    sweep = ("-m", "study=toy/curve", "hydra.sweep.dir=mine")
    assert privpost(*sweep, "level=1,2") == 0
    before = (toy.folder / "mine/curve.csv").read_bytes()
    for other in (("level=3,4",), ("level=1,2", "scale=smoke"), ()):
        capsys.readouterr()
        assert privpost(*sweep, *other) == 2
        assert "mine holds the sweep study=toy/curve level=1,2" in capsys.readouterr().err
    assert (toy.folder / "mine/curve.csv").read_bytes() == before
    # The same sweep again, also one whose figure was removed.
    (toy.folder / "mine/sweep.png").unlink()
    assert privpost(*sweep, "level=1,2") == 0
    assert (toy.folder / "mine/sweep.png").is_file()
    (toy.folder / "mine/curve.csv.bak").touch()
    assert privpost(*sweep, "level=1,2") == 2
    assert "mine holds files that no sweep wrote (curve.csv.bak)" in capsys.readouterr().err
    (toy.folder / "own").mkdir()
    (toy.folder / "own/curve.csv").write_text("mine")
    for key, word in (("hydra.sweep.dir", "-m"), ("hydra.run.dir", "-n")):
        argv = ["study=toy/curve", "level=1", f"{key}=own", *([word] if word == "-m" else [])]
        assert privpost(*argv) == 2
        assert "own holds files that no sweep wrote (curve.csv)" in capsys.readouterr().err
    assert (toy.folder / "own/curve.csv").read_text() == "mine"


def test_a_data_set_alone_is_a_point_and_the_grid_on_it_is_told(checkout):
    asked = request.understand(["study=geumlek2017/logistic", "dataset=adult"])
    assert len(asked.cells) == 1
    said, *commands = request.grid_on(asked.study, asked.settings).splitlines()
    assert said == "dataset=adult alone is one point, at the study's other settings; the grid with it:"
    for command in commands:
        _, multirun, *words = shlex.split(command)
        assert multirun == "-m" and {cell.dataset for cell in request.understand(["-m", *words]).cells} == {"adult"}
        assert request.grid_on(asked.study, words[1:]) == ""


def test_a_sweep_of_constants_says_how_to_keep_the_grid(checkout):
    asked = request.understand(["-m", "study=geumlek2017/tradeoff", "alpha=1", "beta=1"])
    assert len(asked.cells) == 1
    said, command = request.grid_on(asked.study, asked.settings).splitlines()
    assert said == "alpha=1 beta=1 alone is one point, at the study's other settings; the grid with it:"
    assert len(request.understand(shlex.split(command)[1:]).cells) == len(grid.expand(asked.study)) > 1


def test_a_sweep_that_is_there_is_not_written_again_until_its_code_changes(toy, monkeypatch, capsys):
    assert privpost("-m", "study=toy/curve", "level=1,2") == 0
    path = toy.folder / "build/sweeps/toy_curve__level=1,2/curve.csv"
    before = path.stat().st_mtime_ns
    said = capsys.readouterr().out
    assert privpost("-m", "study=toy/curve", "level=1,2") == 0
    assert path.stat().st_mtime_ns == before
    assert set(said.splitlines()) < set(capsys.readouterr().out.splitlines())
    monkeypatch.setattr("privpost.lab.provenance.text_digest", lambda modules: "other")
    assert privpost("-m", "study=toy/curve", "level=1,2") == 0
    assert path.stat().st_mtime_ns > before
