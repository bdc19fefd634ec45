"""Rebuilds and sweeps through a real Slurm: a cluster of this computer alone, started by tests/slurm/up.sh.

A quick study; PRIVPOST_SLURM_STUDIES names others that are built beside it (comma-separated), or `all` of them.
"""

from __future__ import annotations

import importlib.util
import os
import re
import shutil
import socket
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from privpost.commands import cli, sweeps
from privpost.lab import grid

ROOT = Path(__file__).resolve().parents[2]
QUICK = "geumlek2017/rdp_curves"
NAMED = os.environ.get("PRIVPOST_SLURM_STUDIES", QUICK)
CHOSEN = NAMED if NAMED == "all" else ",".join(sorted({QUICK, *NAMED.split(",")}))
PROGRAMS = ("munged", "slurmctld", "slurmd", "sbatch", "srun", "squeue", "scancel")
SEARCHED = os.environ["PATH"] + ":/usr/sbin:/sbin"
# There is no accounting here, so jobs are watched by squeue, whose looks come 2, 14 and 36 seconds after a submission:
# a quick job is done before the second.
WATCHED = ("--slurm-status-command", "squeue", "--slurm-init-seconds-before-status-checks", "2", "--latency-wait", "5")

lacking = [name for name in PROGRAMS if not shutil.which(name, path=SEARCHED)]
if importlib.util.find_spec("snakemake_executor_plugin_slurm") is None:
    lacking.append("snakemake-executor-plugin-slurm")
pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(
        bool(lacking),
        reason=f"no Slurm ({', '.join(lacking)} missing): apt-get install slurmctld slurmd slurm-client munge",
    ),
]


@pytest.fixture(scope="module")
def slurm():
    """A running cluster; returns the variables by which commands find it."""
    base = tempfile.mkdtemp(prefix="slurm-")
    ports = {"SLURMCTLD_PORT": str(free_port()), "SLURMD_PORT": str(free_port())}
    own = {**os.environ, "SLURM_BASE": base, **ports}
    try:
        up = subprocess.run(["bash", ROOT / "tests/slurm/up.sh"], env=own, capture_output=True, text=True, check=False)
        assert up.returncode == 0, up.stdout + up.stderr
        yield {"SLURM_CONF": f"{base}/slurm.conf", "PATH": f"{base}/bin:{SEARCHED}"}
    finally:
        subprocess.run(["bash", ROOT / "tests/slurm/down.sh"], env=own, check=True, stdout=subprocess.DEVNULL)
        shutil.rmtree(base)


def free_port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return found.getsockname()[1]


@pytest.fixture(scope="module")
def local(_smoke, tmp_path_factory) -> dict[str, bytes]:
    """The tables of the chosen studies, built without Slurm."""
    if CHOSEN == QUICK:
        return tables(_smoke)
    built = _smoke.copy(tmp_path_factory.mktemp("local") / "clone")
    built.run("snakemake", "tables", "--cores", "2", *config())
    return tables(built)


def config() -> list[str]:
    return ["--config", "scale=smoke", *([] if CHOSEN == "all" else [f"studies={CHOSEN}"])]


def jobs(slurm) -> dict[str, str]:
    """Return the state of every job that the cluster knows, by id."""
    listed = subprocess.run(
        ["squeue", "--states=all", "--noheader", "--format=%i %T"],
        env={**os.environ, **slurm},
        capture_output=True,
        text=True,
        check=True,
    )
    return dict(line.split() for line in listed.stdout.splitlines())


def tables(clone) -> dict[str, bytes]:
    """Return the tables and ledgers of a clone's smoke rebuild."""
    found = clone.contents("build/smoke/results")
    assert f"build/smoke/results/{QUICK}/rdp_curves.csv" in found
    return found


FAILING = """
    if config.coefficient == 0.5 and pathlib.Path("fails").exists():
        pathlib.Path("fails").unlink()
        raise RuntimeError("no curve today")
"""


def test_a_rebuild_through_slurm_outlives_jobs_that_end_early_and_gives_the_tables_of_a_local_one(slow, slurm, local):
    """A job is cancelled, its successor fails in one of two cells, and the next computes this cell only."""
    place = "    epsilon = np.full"
    slow.edit(f"src/privpost/experiments/{QUICK}/study.py", place, FAILING.lstrip("\n") + place)
    slow.hold("first")
    before = set(jobs(slurm))
    process = slow.start("snakemake", "tables", "--workflow-profile", "profiles/slurm", *WATCHED, *config(), **slurm)
    (cell,) = slow.waiting("first")
    (job,) = re.findall(r"\bSLURM_JOB_ID=(\d+)", Path(f"/proc/{cell}/environ").read_text())
    (slow / "hold").write_text("nobody")
    (slow / "fails").touch()
    subprocess.run(["scancel", job], env={**os.environ, **slurm}, check=True)
    slow.gone("first")
    output, _ = process.communicate(timeout=240)
    assert process.returncode == 0, output
    assert "CANCELLED" in output
    # The failing job's error reaches the terminal, and its other cell stays.
    assert "privpost: coefficient=0.5: RuntimeError: no curve today" in output
    assert "1 of 2 cells could not be computed" in output
    assert "1 of 2 cells in the store already" in (slow / f"logs/smoke/{QUICK}/part_1.log").read_text()
    built = tables(slow)
    assert built == (local if CHOSEN == "all" else {name: local[name] for name in built})
    if CHOSEN == QUICK:
        # A study has two jobs: its cells, of one part, and its tables.
        states = [state for job, state in jobs(slurm).items() if job not in before]
        assert sorted(states) == ["CANCELLED", "COMPLETED", "COMPLETED", "FAILED"]


def test_an_array_job_computes_a_sweep_in_shards(clone, slurm, monkeypatch, capsys):
    words = [f"study={QUICK}", "scale=smoke", "coefficient=0.5,1", "alpha=range(1,3)", "order=[2,3]"]
    environment = {**clone.environment(), **slurm, "PRIVPOST_PYTHON": sys.executable, "SBATCH_WAIT": "1"}
    command = ["bash", clone / "profiles/slurm/sweep.sh", "2", *words]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False, timeout=300)
    logs = "".join(path.read_text() for path in sorted((clone / "logs").glob("sweep_*.log")))
    assert done.returncode == 0, done.stdout + done.stderr + logs
    assert [f"shard {i} of 2: 2 of 2 cells in the store" in logs for i in (1, 2)] == [True] * 2
    monkeypatch.chdir(clone.folder)
    study = grid.load_study(QUICK, "smoke")
    points = [{"coefficient": c, "alpha": a, "order": [2, 3]} for c in (0.5, 1) for a in (1, 2)]
    expected = {cell.path for cell in grid.make_cells(study, points)}
    assert {path.relative_to(clone.folder) for path in (clone / "build/smoke/cells").rglob("*.npz")} == expected
    # A figure would only cost seaborn's start.
    monkeypatch.setattr(sweeps, "_draw", lambda *given: ([], []))
    assert cli.main(["-m", *words]) == 0
    output = "".join(capsys.readouterr())
    assert "4 of 4 cells in the store already" in output
    assert "4 cells; tables, figure and record:" in output
