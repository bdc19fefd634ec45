"""Killed jobs, killed Snakemakes, orphans, two rebuilds at once, damaged results and data that cannot be had."""

from __future__ import annotations

import os
import signal
import subprocess

import pytest

from privpost.lab import store

QUICK = "geumlek2017/rdp_curves"
CONFIG = ("--cores", "2", "--config", "scale=smoke", f"studies={QUICK}")


def cells(clone):
    return sorted((clone / "build/smoke/cells" / QUICK).glob("*.npz"))


@pytest.fixture
def truth(_smoke):
    return _smoke.contents("build/smoke")


def test_a_killed_cell_fails_alone_and_is_computed_by_the_next_run(slow, truth):
    slow.hold("first")
    process = slow.start("snakemake", *CONFIG)
    killed, _ = slow.waiting("first", 2)
    os.kill(killed, signal.SIGKILL)
    slow.release("first")
    output, _ = process.communicate(timeout=120)
    assert process.returncode == 1
    assert "Error in rule cell" in output
    assert len(cells(slow)) == 1
    store.read(cells(slow)[0])
    slow.snakemake()
    assert slow.contents("build/smoke") == truth


def test_after_a_killed_snakemake_the_lock_is_cleared_and_orphans_spoil_nothing(slow, truth):
    slow.hold("orphan")
    process = slow.start("snakemake", *CONFIG)
    slow.waiting("orphan", 2)
    process.kill()
    # Its jobs live on and hold its output open, so there is no end of it to wait for.
    process.wait(timeout=60)
    assert any((slow / ".snakemake/locks").iterdir())

    # The orphans still wait in the middle of their cells when the next run computes the same ones.
    (slow / "hold").write_text("next")
    output = slow.snakemake()
    assert "A former run was killed and left its lock" in output
    assert slow.contents("build/smoke") == truth
    before = {path: (path.stat().st_mtime_ns, path.read_bytes()) for path in cells(slow)}

    slow.release("orphan")
    slow.gone("orphan")
    assert {path: (path.stat().st_mtime_ns, path.read_bytes()) for path in cells(slow)} == before
    assert slow.contents("build/smoke") == truth
    assert slow.planned() == {}


def test_reproduce_clears_a_stale_lock_and_says_so(slow):
    slow.hold("first")
    process = slow.start("snakemake", *CONFIG)
    slow.waiting("first", 2)
    process.kill()
    # Its jobs live on and hold its output open, so there is no end of it to wait for.
    process.wait(timeout=60)
    slow.release("first")
    slow.gone("first")
    output = slow.run("privpost", "reproduce", QUICK, "--scale", "smoke")
    assert "A former run was killed and left its lock; the lock is removed" in output
    assert "Built in" in output
    assert QUICK in output


def test_a_second_rebuild_is_refused_and_the_first_is_undisturbed(slow, truth):
    slow.hold("first")
    process = slow.start("privpost", "reproduce", QUICK, "--scale", "smoke")
    slow.waiting("first", 2)
    assert "another rebuild is running in this checkout" in slow.run(
        "privpost", "reproduce", QUICK, "--scale", "smoke", status=1
    )
    assert "LockException" in slow.snakemake(status=1)
    slow.release("first")
    output, _ = process.communicate(timeout=120)
    assert process.returncode == 0, output
    assert slow.contents("build/smoke") == truth


def test_a_rebuild_beside_a_running_snakemake_is_refused(slow, truth):
    slow.hold("first")
    process = slow.start("snakemake", *CONFIG)
    slow.waiting("first", 2)
    output = slow.run("privpost", "reproduce", QUICK, "--scale", "smoke", status=1)
    assert "Snakemake is running in this checkout" in output
    slow.release("first")
    output, _ = process.communicate(timeout=120)
    assert process.returncode == 0, output
    assert slow.contents("build/smoke") == truth


def test_ctrl_c_stops_the_jobs_and_the_next_run_goes_on(slow, truth):
    slow.hold("first")
    # In a session of its own, as a terminal sends the interrupt to the whole group.
    process = subprocess.Popen(
        ["env", "--default-signal=INT", *slow.start_command("privpost", "reproduce", QUICK, "--scale", "smoke")],
        cwd=slow.folder, env=slow.environment(), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT, text=True, start_new_session=True,
    )  # fmt: skip
    slow.waiting("first", 2)
    os.killpg(process.pid, signal.SIGINT)
    output, _ = process.communicate(timeout=60)
    assert process.returncode == 130
    assert "Stopped. Finished cells are kept" in output
    slow.gone("first")
    slow.release("first")
    slow.snakemake()
    assert slow.contents("build/smoke") == truth


def test_damaged_results_are_set_aside_computed_again_and_reported(smoke, truth):
    """A cell in another one's place and an empty one; `test_store.py` has every kind of damage."""
    first, second = cells(smoke)
    first.write_bytes(second.read_bytes())
    second.write_bytes(b"")
    output = smoke.run("privpost", "reproduce", QUICK, "--scale", "smoke")
    for victim in (first, second):
        assert f"set aside as {victim.name}.corrupt" in output
        store.read(victim)
    assert smoke.contents("build/smoke") == truth
    assert smoke.planned() == {}


def test_plain_snakemake_notices_a_damaged_result_too(smoke, truth):
    """It sees a newer file, tabulates, and the job that reads the cell finds the damage."""
    victim = cells(smoke)[0]
    content = bytearray(victim.read_bytes())
    # One bit, in the middle of the first array.
    content[content.index(b"epsilon.npy") + 300] ^= 1
    victim.write_bytes(content)
    smoke.snakemake()
    assert smoke.contents("build/smoke") == truth
    assert "set aside" in (smoke / f"logs/build/smoke/{QUICK}/tabulate.log").read_text()


def test_data_that_cannot_be_had_fail_their_own_studies_only(clone, without_network):
    """The other study is built, the exit status is not 0, and the terminal says what to do."""
    studies = ["geumlek2017/logistic", QUICK]
    output = clone.run(
        "privpost",
        "reproduce",
        *studies,
        "--scale",
        "smoke",
        prefix=without_network,
        status=1,
        PRIVPOST_MIRRORS="nowhere",
    )
    assert "could not be had" in output
    assert "by hand:" in output
    built, _, lacking = output.partition("Not built:")
    assert QUICK in built.splitlines()[-1]
    assert "geumlek2017/logistic" in lacking
    assert "fetch " in lacking
    assert (clone / f"build/smoke/{QUICK}.csv").is_file()


def test_a_failed_cell_is_named_with_its_reason(clone):
    clone.edit(
        f"src/privpost/experiments/{QUICK}/study.py",
        "    epsilon = np.full",
        '    if config.coefficient == 0.5:\n        raise RuntimeError("seeded failure")\n    epsilon = np.full',
    )
    output = clone.run("privpost", "reproduce", QUICK, "--scale", "smoke", status=1)
    lacking = output.partition("Not built:")[2]
    assert f"{QUICK}: 1 of 2 cells, tables missing, figures missing" in lacking
    assert "RuntimeError: seeded failure (logs/build/smoke/" in lacking


def test_progress_on_a_terminal_is_one_line_that_changes(smoke):
    import pty

    cells(smoke)[0].unlink()
    leader, follower = pty.openpty()
    process = subprocess.Popen(
        smoke.start_command("privpost", "reproduce", QUICK, "--scale", "smoke"),
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
    assert "\r1 of 4 jobs done" in text
    assert text.startswith("1 study, 2 cells, 1 of them in the store already. About ")
    assert "Tables are in build/smoke/" in text
