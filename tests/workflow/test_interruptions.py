"""Killed jobs, killed Snakemakes, interrupts, two rebuilds at once, damaged results and data that are not available."""

from __future__ import annotations

import os
import signal
import subprocess

import pytest

from privpost.commands import cli
from privpost.lab import store

QUICK = "geumlek2017/rdp_curves"
REPRODUCE = ("reproduce", QUICK, "--scale", "smoke")
RESULTS = "build/smoke/results"
CONFIG = ("--cores", "2", "--config", "scale=smoke", f"studies={QUICK}")


def cells(clone):
    return sorted((clone / "build/smoke/cells" / QUICK).glob("*.npz"))


@pytest.fixture
def truth(_smoke):
    return _smoke.contents(RESULTS)


def started(slow, *command: str) -> subprocess.Popen:
    """Start a command that an interrupt reaches, as it does from a terminal."""
    return subprocess.Popen(
        ["env", "--default-signal=INT", *slow.start_command(*command)],
        cwd=slow.folder, env=slow.environment(), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT, text=True,
    )  # fmt: skip


def ended(clone, capsys, *words: str, status: int = 0) -> str:
    """Run a command of privpost for the clone, in this process; return its output."""
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(clone.folder)
        assert cli.main([*words]) == status
    return "".join(capsys.readouterr())


def test_a_rebuild_that_was_stopped_or_killed_goes_on(slow, truth, capsys):
    """Interrupted, terminated, its job killed, Snakemake killed: each loses at most the cell in progress."""
    slow.hold("first")
    process = started(slow, "privpost", *REPRODUCE)
    slow.waiting("first")
    assert "Snakemake is running in this checkout" in ended(slow, capsys, *REPRODUCE, status=2)
    # Another Snakemake that ends removes the first one's locks.
    for lock in (slow / ".snakemake/locks").iterdir():
        lock.unlink()
    assert "Snakemake is running in this checkout" in ended(slow, capsys, *REPRODUCE, status=2)
    for before, token, sent, status in (
        ("first", "interrupted", signal.SIGINT, 130), ("interrupted", "terminated", signal.SIGTERM, 143)
    ):  # fmt: skip
        slow.hold(token)
        slow.release(before)
        if before != "first":
            process = started(slow, "privpost", *REPRODUCE)
        slow.waiting(token)
        process.send_signal(sent)
        output, _ = process.communicate(timeout=60)
        assert process.returncode == status
        assert "Stopped. Finished cells are kept" in output
        assert "Traceback" not in output
        slow.gone(token)
    (first,) = cells(slow)
    written = first.stat().st_mtime_ns

    slow.hold("killed")
    process = started(slow, "privpost", *REPRODUCE)
    (job,) = slow.waiting("killed")
    os.kill(job, signal.SIGKILL)
    output, _ = process.communicate(timeout=120)
    assert process.returncode == 1
    assert "Not built" in output

    slow.hold("left")
    process = started(slow, "snakemake", *CONFIG)
    slow.waiting("left")
    process.kill()
    # Its jobs live on and hold its output open, so there is no end of it to wait for.
    process.wait(timeout=60)
    assert "snakemake --unlock" in ended(slow, capsys, *REPRODUCE, status=2)
    assert cells(slow) == [first]
    slow.release("left")
    slow.gone("left")
    slow.run("snakemake", "--unlock", *CONFIG)
    slow.run("privpost", *REPRODUCE)
    assert first.stat().st_mtime_ns == written
    assert slow.contents(RESULTS) == truth


def test_damaged_results_are_set_aside_and_computed_again(smoke, truth, capsys):
    """A cell in another one's place and an empty one; `test_store.py` has every kind of damage."""
    first, second = cells(smoke)
    first.write_bytes(second.read_bytes())
    second.write_bytes(b"")
    output = ended(smoke, capsys, "build", QUICK, "--scale", "smoke")
    for victim in (first, second):
        assert f"set aside as {victim.name}.corrupt" in output
        store.read(victim)
    assert smoke.contents(RESULTS) == truth


def test_a_failed_cell_is_named_with_its_reason_and_costs_no_other(clone):
    failing = '    if config.coefficient == 0.5:\n        raise RuntimeError("seeded failure")\n    epsilon = np.full'
    clone.edit(f"src/privpost/experiments/{QUICK}/study.py", "    epsilon = np.full", failing)
    output = clone.run("privpost", *REPRODUCE, status=1)
    lacking = output.partition("Not built:")[2]
    assert f"{QUICK}: 1 of 2 cells could not be computed (logs/smoke/{QUICK}/part_1.log)" in lacking
    log = (clone / f"logs/smoke/{QUICK}/part_1.log").read_text()
    assert "privpost: coefficient=0.5: RuntimeError: seeded failure" in log
    assert len(cells(clone)) == 1
