"""Rebuilds and sweeps through a real Slurm: a cluster of this computer alone, started by tests/slurm/up.sh.

Two quick studies; PRIVPOST_SLURM_STUDIES names others (comma-separated), or `all` of them.
"""

from __future__ import annotations

import importlib.util
import os
import shutil
import socket
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from privpost.lab import grid

ROOT = Path(__file__).resolve().parents[2]
QUICK = "geumlek2017/rdp_curves"
CHOSEN = os.environ.get("PRIVPOST_SLURM_STUDIES", f"{QUICK},foulds2016/efficiency")
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
def local(pristine, tmp_path_factory) -> dict[str, bytes]:
    """The tables of the chosen studies and of the quick one, built without Slurm."""
    built = pristine.copy(tmp_path_factory.mktemp("local") / "clone")
    if CHOSEN == "all":
        built.run("snakemake", "tables", "--cores", "2", *config(CHOSEN))
    for study in {QUICK, *CHOSEN.split(",")} - {"all"}:
        built.run("privpost", "build", study, "--scale", "smoke")
    return tables(built)


def config(studies: str) -> list[str]:
    return ["--config", "scale=smoke", *([] if studies == "all" else [f"studies={studies}"])]


def through_slurm(studies: str, *options: str) -> list[str]:
    """Return the arguments of a Snakemake that builds the tables of some studies through Slurm."""
    return ["snakemake", "tables", "--workflow-profile", "profiles/slurm", *WATCHED, *options, *config(studies)]


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
    found = clone.contents("build/smoke")
    assert found
    return found


def test_a_rebuild_through_slurm_gives_the_tables_of_a_local_one(clone, slurm, local):
    before = set(jobs(slurm))
    clone.run(*through_slurm(CHOSEN), **slurm)
    built = tables(clone)
    assert built == {name: local[name] for name in built}
    if CHOSEN == "all":
        assert built == local
    states = [state for job, state in jobs(slurm).items() if job not in before]
    # Two jobs a study, which has one part: its cells, then its tables.
    assert set(states) == {"COMPLETED"}
    if CHOSEN != "all":
        assert len(states) == 2 * len(CHOSEN.split(","))
        assert {f"build/smoke/results/{study}/ledger.json" for study in CHOSEN.split(",")} <= set(built)


def test_a_cancelled_job_is_submitted_again_and_the_rebuild_completes(slow, slurm, local):
    slow.hold("first")
    before = set(jobs(slurm))
    process = slow.start(*through_slurm(QUICK), **slurm)
    slow.waiting("first")
    (job,) = [job for job, state in jobs(slurm).items() if state == "RUNNING"]
    (slow / "hold").write_text("nobody")
    subprocess.run(["scancel", job], env={**os.environ, **slurm}, check=True)
    slow.gone("first")
    output, _ = process.communicate(timeout=240)
    assert process.returncode == 0, output
    assert "CANCELLED" in output
    assert sorted(state for job, state in jobs(slurm).items() if job not in before) == [
        "CANCELLED",
        "COMPLETED",
        "COMPLETED",
    ]
    built = tables(slow)
    assert f"build/smoke/results/{QUICK}/rdp_curves.csv" in built
    assert built == {name: local[name] for name in built}


def test_a_failing_jobs_error_reaches_the_terminal_and_its_other_cells_stay(clone, slurm):
    line = '    if config.coefficient == 0.5:\n        raise RuntimeError("no curve today")\n    epsilon = np.full'
    clone.edit(f"src/privpost/experiments/{QUICK}/study.py", "    epsilon = np.full", line)
    output = clone.run(*through_slurm(QUICK, "--retries", "0"), status=1, **slurm)
    assert "privpost: coefficient=0.5: RuntimeError: no curve today" in output
    assert "1 of 2 cells could not be computed" in output
    assert [path.name.split("_")[0] for path in (clone / "build/smoke/cells" / QUICK).glob("*.npz")] == ["1"]


def test_an_array_job_computes_a_sweep_in_shards(clone, slurm, monkeypatch):
    words = [f"study={QUICK}", "coefficient=0.5,1", "alpha=range(1,4)", "order=[2,3]"]
    environment = {**clone.environment(), **slurm, "PRIVPOST_PYTHON": sys.executable, "SBATCH_WAIT": "1"}
    command = ["bash", clone / "profiles/slurm/sweep.sh", "3", *words]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False, timeout=300)
    logs = "".join(path.read_text() for path in sorted((clone / "logs").glob("sweep_*.log")))
    assert done.returncode == 0, done.stdout + done.stderr + logs
    assert [f"shard {i} of 3: 2 of 2 cells in the store" in logs for i in (1, 2, 3)] == [True] * 3
    monkeypatch.chdir(clone.folder)
    study = grid.load_study(QUICK)
    points = [{"coefficient": c, "alpha": a, "order": [2, 3]} for c in (0.5, 1) for a in (1, 2, 3)]
    expected = {cell.path for cell in grid.make_cells(study, points)}
    assert {path.relative_to(clone.folder) for path in (clone / "build/paper/cells").rglob("*.npz")} == expected
    output = clone.run("privpost", "-m", *words)
    assert "6 of 6 cells in the store already" in output
    assert "6 cells; tables, figure and record:" in output
