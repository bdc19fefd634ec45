"""Faults of the machine: a full disk, a read-only folder, raw data that change, a hostile TMPDIR, a killed sweep.

After each of them the same command completes, and the tables are those of an undisturbed run, byte by byte.
"""

from __future__ import annotations

import contextlib
import os
import pty
import shutil
import signal
import subprocess
from pathlib import Path

import pytest

from privpost.commands import cli
from privpost.lab import grid, project, store
from privpost.lab.cells import compute

QUICK = "geumlek2017/rdp_curves"
SMOKE = Path("build/smoke")
REPRODUCE = ("reproduce", QUICK, "--scale", "smoke")
DAY = 86_400
# Enough points that one failure stands alone; the sweep of 500 is run by hand (pytest -m by_hand).
MANY = 12

# Runs the command after "$2" with the folder "$1" on a disk that has no room left; copies what is there then to "$2".
FULL = """
set -e
folder=$1 after=$2
shift 2
mkdir -p "$folder" "$after"
cp -a "$folder" "$after/before"
mount -t tmpfs -o size=$(( $(du -sk "$folder" | cut -f1) + 64 ))k tmpfs "$folder"
cp -a "$after/before/." "$folder"
dd if=/dev/zero of="$folder/.filler" bs=1k 2>/dev/null || true
code=0
"$@" || code=$?
rm "$folder/.filler"
cp -a "$folder" "$after/after"
exit $code
"""


def cells(clone):
    return sorted((clone / SMOKE / "cells" / QUICK).glob("*.npz"))


@pytest.fixture
def truth(_smoke):
    return _smoke.contents(str(SMOKE))


@pytest.fixture(scope="module")
def undisturbed(_smoke, tmp_path_factory) -> dict[str, str]:
    """The checksums of the quick study's cells and of the one that the full disk stops, by file."""
    built = _smoke.copy(tmp_path_factory.mktemp("undisturbed") / "clone")
    succeeds(built, "-m", f"study={QUICK}", "scale=smoke", "coefficient=0.7", "shard=1/1")
    return sums(built)


def succeeds(clone, *words: str) -> None:
    """Run a command of privpost for the clone, in this process."""
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(clone.folder)
        assert cli.main([*words]) == 0


def sums(clone) -> dict[str, str]:
    return {path.name: store.checksum(store.read(path).arrays) for path in cells(clone)}


def can_mount() -> tuple[str, ...]:
    """A prefix for commands that lets them mount a disk in memory, which nobody else sees; empty if none does."""
    for prefix in (("unshare", "--mount"), ("unshare", "--map-root-user", "--mount")):
        mount = [*prefix, "sh", "-c", "mount -t tmpfs tmpfs /tmp"]
        if shutil.which("unshare") and subprocess.run(mount, check=False, capture_output=True).returncode == 0:
            return prefix
    return ()


@pytest.fixture(scope="session")
def small_disks() -> tuple[str, ...]:
    if not (prefix := can_mount()):
        pytest.skip("no disk of limited size can be mounted on this machine (unshare --mount)")
    return prefix


@pytest.fixture
def hostile(tmp_path) -> tuple[str, ...]:
    """A prefix for commands that gives them a TMPDIR whose name is longer than a socket's may be.

    Where it can be had, nothing in it may be executed, as on hardened hosts.
    """
    (long := tmp_path / ("x" * 100)).mkdir()
    if not (prefix := can_mount()):
        return ("env", f"TMPDIR={long}")
    return (*prefix, "sh", "-c", 'mount -t tmpfs -o noexec tmpfs "$0" && TMPDIR="$0" exec "$@"', str(long))


@pytest.fixture(scope="session")
def without_privileges() -> tuple[str, ...]:
    """A prefix for commands that makes the system's permissions hold for them, also when the tests run as root."""
    if os.geteuid() != 0:
        return ()
    if shutil.which("setpriv") is None:
        pytest.skip("the tests run as root, whom no permission stops, and there is no setpriv")
    return ("setpriv", "--bounding-set=-dac_override,-dac_read_search")


def failed(output: str, *parts: str) -> None:
    """Check that an error is one message that says these things, without a traceback."""
    assert "Traceback" not in output, output
    for part in parts:
        assert part in output, output


# A full disk


@pytest.mark.parametrize(
    ("folder", "arguments"),
    [
        ("cells", ("-m", f"study={QUICK}", "scale=smoke", "coefficient=0.5,0.7", "shard=1/1")),
        (".", ("build", QUICK, "--scale", "smoke")),
        ("figures", ("draw", QUICK, "--scale", "smoke")),
    ],
    ids=["sweep", "tables", "figures"],
)
def test_a_full_disk_is_one_message_and_leaves_what_was_there(
    smoke, truth, undisturbed, small_disks, tmp_path, folder, arguments
):
    place, after = smoke / SMOKE / folder, tmp_path / "disk"
    before = {path.name: path.read_bytes() for path in place.rglob("*") if path.is_file()}
    full = (*small_disks, "sh", "-c", FULL, "sh", str(place), str(after))
    output = smoke.run("privpost", *arguments, prefix=full, status=1)
    failed(output, "cannot write build/smoke/", "No space left on device", "run the same command again")
    assert {path.name: path.read_bytes() for path in (after / "after").rglob("*") if path.is_file()} == before
    succeeds(smoke, *arguments)
    assert truth.items() <= smoke.contents(str(SMOKE)).items()
    if folder == "cells":
        assert sums(smoke) == undisturbed


def test_prepared_data_on_a_full_disk_are_whole_or_absent(clone, small_disks, tmp_path):
    fetched(clone, "abalone")
    place = clone / "data/prepared"
    full = (*small_disks, "sh", "-c", FULL, "sh", str(place), str(tmp_path / "disk"))
    output = clone.run("privpost", "prepare", "abalone", prefix=full, status=1)
    failed(output, "cannot use data/prepared/abalone.npz: No space left on device")
    assert list((tmp_path / "disk" / "after").iterdir()) == []
    succeeds(clone, "prepare", "abalone")


# Folders that may not be written to


def test_a_read_only_results_folder_is_one_message_and_the_next_run_completes_in_a_hostile_tmpdir(
    smoke, truth, without_privileges, hostile
):
    """On a terminal, the progress of the next run is one line that changes; its jobs compute a cell and make tables."""
    # A figure would only cost seaborn's start.
    (smoke / f"src/privpost/experiments/{QUICK}/figures.py").unlink()
    cells(smoke)[0].unlink()
    (smoke / SMOKE / f"results/{QUICK}/rdp_curves.csv").unlink()
    folders = [smoke / SMOKE, *(path for path in (smoke / SMOKE).rglob("*") if path.is_dir())]
    for folder in folders:
        folder.chmod(0o555)
    try:
        output = smoke.run("privpost", *REPRODUCE, prefix=without_privileges, status=1)
        failed(output, "cannot use build/smoke/", "Permission denied")
    finally:
        for folder in folders:
            folder.chmod(0o755)
    text = on_a_terminal(smoke, *REPRODUCE, prefix=hostile)
    assert "1 of 2 cells" not in text
    assert "\r1 of 1 cells done" in text
    assert text.startswith("1 study, 2 cells, 1 of them in the store already. About ")
    assert "Everything is in build/smoke/" in text
    assert smoke.contents(str(SMOKE)) == truth


def on_a_terminal(clone, *words: str, prefix=()) -> str:
    """Run a command of privpost on a terminal of its own; return what the terminal gets."""
    leader, follower = pty.openpty()
    process = subprocess.Popen(
        clone.start_command("privpost", *words, prefix=prefix),
        cwd=clone.folder, env=clone.environment(), stdin=follower, stdout=follower, stderr=follower,
    )  # fmt: skip
    os.close(follower)
    shown = b""
    # A terminal that nobody writes to any more gives an error.
    with contextlib.suppress(OSError):
        while piece := os.read(leader, 4096):
            shown += piece
    assert process.wait(timeout=60) == 0
    return shown.decode()


# Raw data that change


def fetched(clone, dataset: str) -> Path:
    """Fetch a data set into the clone; returns its first raw file."""
    output = clone.run("privpost", "fetch", dataset)
    return clone / output.strip().splitlines()[-1].split("  ")[0]


def test_a_raw_file_that_changed_after_preparation_is_set_aside_and_fetched_again(clone):
    raw = fetched(clone, "abalone")
    succeeds(clone, "prepare", "abalone")
    prepared = clone / "data/prepared/abalone.npz"
    truth, content = prepared.read_bytes(), raw.read_bytes()
    raw.write_bytes(content.replace(b"0.455", b"0.456", 1))

    # Nothing can be had in its place: one message, and the data that were prepared from the right file stay.
    original = (clone / "data/original/abalone").rename(clone / "data/original/elsewhere")
    nowhere = {"http_proxy": "http://127.0.0.1:9", "https_proxy": "http://127.0.0.1:9"}
    output = clone.run("privpost", "prepare", "abalone", status=1, **nowhere)
    failed(output, "abalone.data (Abalone) could not be fetched", "by hand:")
    assert raw.with_name("abalone.data.rejected").is_file()
    assert prepared.read_bytes() == truth

    original.rename(clone / "data/original/abalone")
    succeeds(clone, "prepare", "abalone")
    assert raw.read_bytes() == content
    assert prepared.read_bytes() == truth


def test_snakemake_heals_a_changed_raw_file_before_it_is_used(clone):
    raw = fetched(clone, "abalone")
    target = ("data/prepared/abalone.npz",)
    succeeds(clone, "prepare", "abalone")
    truth, content = (clone / target[0]).read_bytes(), raw.read_bytes()
    (clone / target[0]).unlink()
    raw.write_bytes(content[:-100])
    clone.snakemake(*target, studies="geumlek2017/logistic")
    assert raw.read_bytes() == content
    assert (clone / target[0]).read_bytes() == truth


def test_damaged_prepared_data_are_prepared_again_before_a_cell_reads_them(clone):
    fetched(clone, "abalone")
    succeeds(clone, "prepare", "abalone")
    prepared = clone / "data/prepared/abalone.npz"
    prepared.write_bytes(prepared.read_bytes()[:-200])
    output = clone.run("privpost", "-m", "study=geumlek2017/finite_time", "scale=smoke", "shard=1/1")
    assert "Traceback" not in output
    assert prepared.stat().st_size > 1000


# Sweeps


def test_a_sweep_that_is_killed_goes_on_where_it_stopped(slow, truth):
    """Killed in the middle of its second cell, the first one is kept; the next run computes the other only."""
    slow.hold("first")
    process = slow.start("privpost", "-m", f"study={QUICK}", "scale=smoke")
    slow.waiting("first")
    slow.hold("second")
    slow.release("first")
    slow.waiting("second")
    process.kill()
    process.wait(timeout=60)
    (first,) = cells(slow)
    written = first.stat().st_mtime_ns
    store.read(first)

    slow.release("second")
    output = slow.run("privpost", "-m", f"study={QUICK}", "scale=smoke")
    assert "1 of 2 cells in the store already" in output
    assert first.stat().st_mtime_ns == written
    assert len(cells(slow)) == 2
    results = slow.contents(str(SMOKE / "results"))
    assert results and results.items() <= truth.items()


@pytest.mark.parametrize("points", [MANY, pytest.param(500, marks=pytest.mark.by_hand)])
def test_one_failing_point_of_many_is_named_and_alone_computed_again(toy, capsys, monkeypatch, points):
    argv = ["-m", "study=toy/curve", f"level=range(1,{points + 1})", "trials=10", "shard=1/1"]
    module = toy.study().module()
    simulate, calls = module.simulate, []
    bad = float(points // 2)

    def failing(config, streams, ledger):
        calls.append(config.level)
        if config.level == bad:
            raise RuntimeError("seeded failure")
        return simulate(config, streams, ledger)

    monkeypatch.setattr(module, "simulate", failing)
    assert cli.main(argv) == 1
    message = capsys.readouterr().err
    assert f"1 of {points} cells could not be computed" in message
    assert f"privpost study=toy/curve level={bad} trials=10" in message
    assert "seeded failure" in message
    assert sorted(calls) == [float(level) for level in range(1, points + 1)]

    calls.clear()
    monkeypatch.setattr(module, "simulate", lambda *given: (calls.append(given[0].level), simulate(*given))[1])
    assert cli.main(argv) == 0
    assert calls == [bad]
    monkeypatch.setattr(module, "simulate", simulate)
    study = grid.load_study("toy/curve", home=project.built("paper"))
    for level in (1.0, bad):
        cell = grid.make_cell(study, {"level": level, "trials": 10})
        kept = cell.path.read_bytes()
        arrays = store.read(cell.path).arrays
        cell.path.unlink()
        assert store.checksum(store.read(compute(study, cell)).arrays) == store.checksum(arrays)
        cell.path.write_bytes(kept)


def test_a_sweep_that_needs_more_memory_than_there_is_says_so(toy, capsys, monkeypatch):
    module = toy.study().module()
    monkeypatch.setattr(module, "simulate", lambda *given: {"x": bytearray(1 << 62)})
    assert cli.main(["study=toy/curve"]) == 1
    failed(capsys.readouterr().err, "privpost: a-1: not enough memory")
    assert cli.main(["-m", "study=toy/curve", "level=1,2"]) == 1
    failed(
        capsys.readouterr().err,
        "privpost: level=1.0: not enough memory",
        "2 of 2 cells could not be computed",
    )


def test_a_job_that_is_killed_while_it_writes_tables_leaves_the_old_ones(smoke, truth):
    """Killed after the first file has been written under its temporary name, before any has been replaced."""
    smoke.edit(
        "src/privpost/lab/store.py",
        'stack.enter_context(replacing(path)).write_text(text, encoding="utf-8")',
        "stack.enter_context(replacing(path)).write_text('half'); import signal; os.kill(os.getpid(), signal.SIGKILL)",
    )
    smoke.run("privpost", "build", QUICK, "--scale", "smoke", status=-signal.SIGKILL)
    after = smoke.contents(str(SMOKE))
    assert {name: content for name, content in after.items() if "/." not in name} == truth
    (litter,) = (path for path in (smoke / SMOKE).rglob(".*") if path.is_file() and path.name != ".snakemake_timestamp")
    os.utime(litter, (0, 0))
    subprocess.run(["git", "checkout", "--quiet", "src"], cwd=smoke.folder, check=True)
    assert str(litter.relative_to(smoke.folder)) in smoke.run("privpost", "prune", QUICK, "--scale", "smoke")
    assert not litter.exists()
    succeeds(smoke, "build", QUICK, "--scale", "smoke")
    assert smoke.contents(str(SMOKE)) == truth
