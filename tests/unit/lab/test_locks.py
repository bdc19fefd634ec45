"""The locks of a checkout, also on file systems that grant none or grant them as NFS does."""

from __future__ import annotations

import errno
import fcntl
import os

import pytest

from privpost.lab import locks

flock = fcntl.flock


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """An empty folder as checkout, in which no Snakemake runs."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(locks, "_held", [])
    return tmp_path


def as_nfs(handle, operation):
    """Lock as NFS does: an exclusive lock takes a file that is open for writing."""
    mode = fcntl.fcntl(handle, fcntl.F_GETFL) & os.O_ACCMODE
    if operation & fcntl.LOCK_EX and mode == os.O_RDONLY:
        raise OSError(errno.EBADF, "Bad file descriptor")
    flock(handle, operation)


def as_nowhere(handle, operation):
    """Lock as a file system without locks does."""
    raise OSError(errno.ENOLCK, "No locks available")


def left_by_snakemake(folder):
    lock = folder / locks.SNAKEMAKE / "0.input.lock"
    lock.parent.mkdir(parents=True)
    lock.touch()
    return lock


@pytest.mark.parametrize("system", [flock, as_nfs])
def test_the_lock_of_a_killed_run_is_told_from_that_of_a_living_one(folder, monkeypatch, system):
    monkeypatch.setattr(fcntl, "flock", system)
    lock = left_by_snakemake(folder)
    locks.hold_running()
    assert not locks.clear_left_over()
    locks._held.pop().close()
    assert locks.clear_left_over()
    assert not lock.exists()


def test_without_locks_rebuilds_run_and_no_lock_counts_as_left_over(folder, monkeypatch, capsys):
    monkeypatch.setattr(fcntl, "flock", as_nowhere)
    locks.hold_running()
    with locks.only_rebuild():
        pass
    assert "cannot be locked (No locks available); do not start two rebuilds at once" in capsys.readouterr().err
    lock = left_by_snakemake(folder)
    assert not locks.is_left_over()
    with pytest.raises(SystemExit, match="Snakemake is running"), locks.only_rebuild():
        pass
    # Locks that come back do not make a living Snakemake look dead.
    monkeypatch.setattr(fcntl, "flock", flock)
    assert not locks.clear_left_over()
    assert lock.exists()


def test_two_rebuilds_at_once_are_refused(folder):
    with locks.only_rebuild(), pytest.raises(SystemExit, match="another rebuild is running"), locks.only_rebuild():
        pass
