"""Killed jobs, killed Snakemakes, interrupts, two rebuilds at once, damaged results and data that are not available."""

from __future__ import annotations

import os
import signal
import subprocess

import pytest

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


def in_the_second_cell(slow, process) -> list[int]:
    """Let the first cell end, and wait until the second is in the middle of its work; returns its process."""
    slow.waiting("first")
    slow.hold("second")
    slow.release("first")
    return slow.waiting("second")


def test_a_killed_job_loses_the_cell_in_progress_only(slow, truth):
    slow.hold("first")
    process = slow.start("privpost", *REPRODUCE)
    (job,) = in_the_second_cell(slow, process)
    os.kill(job, signal.SIGKILL)
    output, _ = process.communicate(timeout=120)
    assert process.returncode == 1
    assert "Not built" in output
    (first,) = cells(slow)
    written = first.stat().st_mtime_ns
    slow.release("second")
    slow.run("privpost", *REPRODUCE)
    assert first.stat().st_mtime_ns == written
    assert slow.contents(RESULTS) == truth


def test_after_a_killed_snakemake_the_message_says_how_to_go_on(slow, truth):
    slow.hold("first")
    process = slow.start("snakemake", *CONFIG)
    slow.waiting("first")
    process.kill()
    # Its jobs live on and hold its output open, so there is no end of it to wait for.
    process.wait(timeout=60)
    assert "snakemake --unlock" in slow.run("privpost", *REPRODUCE, status=2)
    slow.release("first")
    slow.gone("first")
    slow.run("snakemake", "--unlock", *CONFIG)
    slow.run("privpost", *REPRODUCE)
    assert slow.contents(RESULTS) == truth


def test_a_second_rebuild_is_refused_and_the_first_is_undisturbed(slow, truth):
    slow.hold("first")
    process = slow.start("privpost", *REPRODUCE)
    slow.waiting("first")
    assert "Snakemake is running in this checkout" in slow.run("privpost", *REPRODUCE, status=2)
    slow.release("first")
    output, _ = process.communicate(timeout=120)
    assert process.returncode == 0, output
    assert slow.contents(RESULTS) == truth


@pytest.mark.parametrize(("sent", "status"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_a_stopped_rebuild_stops_its_jobs_and_the_next_one_goes_on(slow, truth, sent, status):
    slow.hold("first")
    process = subprocess.Popen(
        ["env", "--default-signal=INT", *slow.start_command("privpost", *REPRODUCE)],
        cwd=slow.folder, env=slow.environment(), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT, text=True,
    )  # fmt: skip
    in_the_second_cell(slow, process)
    process.send_signal(sent)
    output, _ = process.communicate(timeout=60)
    assert process.returncode == status
    assert "Stopped. Finished cells are kept" in output
    assert "Traceback" not in output
    slow.gone("second")
    assert len(cells(slow)) == 1
    slow.release("second")
    slow.run("privpost", *REPRODUCE)
    assert slow.contents(RESULTS) == truth


def test_damaged_results_are_set_aside_and_computed_again(smoke, truth):
    """A cell in another one's place and an empty one; `test_store.py` has every kind of damage."""
    first, second = cells(smoke)
    first.write_bytes(second.read_bytes())
    second.write_bytes(b"")
    output = smoke.run("privpost", "build", QUICK, "--scale", "smoke")
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


def test_progress_on_a_terminal_is_one_line_that_changes(smoke):
    import pty

    cells(smoke)[0].unlink()
    (smoke / f"build/smoke/results/{QUICK}/rdp_curves.csv").unlink()
    leader, follower = pty.openpty()
    process = subprocess.Popen(
        smoke.start_command("privpost", *REPRODUCE),
        cwd=smoke.folder, env=smoke.environment(), stdin=follower, stdout=follower, stderr=follower,
    )  # fmt: skip
    os.close(follower)
    shown = b""
    while True:
        try:
            piece = os.read(leader, 4096)
        except OSError:
            break
        if not piece:
            break
        shown += piece
    assert process.wait(timeout=60) == 0
    text = shown.decode()
    assert "1 of 2 cells" not in text
    assert "\r1 of 1 cells done" in text
    assert text.startswith("1 study, 2 cells, 1 of them in the store already. About ")
    assert "Everything is in build/smoke/" in text
