"""Who is running in this checkout: Snakemake's own lock survives a kill, the system's locks do not."""

import fcntl
import platform
import shutil
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from privpost.lab.project import STATE

SNAKEMAKE = Path(".snakemake/locks")
RUNNING = STATE / "running"
REBUILD = STATE / "rebuild"

_held = []


def is_left_over() -> bool:
    """Whether Snakemake's lock was left by a killed run: every living Snakemake of this project holds `RUNNING`."""
    if not (SNAKEMAKE.is_dir() and any(SNAKEMAKE.iterdir())) or not RUNNING.is_file():
        return False
    try:
        # Open for writing: a shared file system grants exclusive locks on nothing else.
        with RUNNING.open("r+") as handle:
            # On another computer of a cluster the system's locks may not be seen.
            if handle.read().strip() != platform.node():
                return False
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        # Held, or no lock to be had here: then nobody can tell, and Snakemake's lock stands.
        return False
    return True


def clear_left_over() -> bool:
    """Remove Snakemake's lock when a killed run left it; returns whether there was one."""
    if not is_left_over():
        return False
    shutil.rmtree(SNAKEMAKE)
    return True


def hold_running() -> None:
    """Mark this process as a Snakemake that is running in this checkout, for as long as it lives."""
    RUNNING.parent.mkdir(parents=True, exist_ok=True)
    handle = RUNNING.open("a+")
    try:
        fcntl.flock(handle, fcntl.LOCK_SH)
        name = platform.node()
    except OSError:
        # A file system without locks: a name would say that this process is dead when it is not.
        name = "unlocked"
    handle.truncate(0)
    handle.write(name)
    handle.flush()
    _held.append(handle)


@contextmanager
def only_rebuild() -> Iterator[None]:
    """Hold the checkout for one rebuild.

    Raises SystemExit with a message when another rebuild or a Snakemake is running here.
    """
    REBUILD.parent.mkdir(parents=True, exist_ok=True)
    with REBUILD.open("w") as handle:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise SystemExit("privpost: another rebuild is running in this checkout; wait for it, or stop it") from None
        except OSError as error:
            # Snakemake's own lock, asked for below, needs none of the system's.
            text = f"privpost: {REBUILD} cannot be locked ({error.strerror}); do not start two rebuilds at once"
            print(text, file=sys.stderr)
        if clear_left_over():
            print("A former run was killed and left its lock; the lock is removed, finished results are kept.")
        elif SNAKEMAKE.is_dir() and any(SNAKEMAKE.iterdir()):
            raise SystemExit(
                "privpost: Snakemake is running in this checkout; wait for it, or stop it "
                "(if there is none, on no computer that shares this folder: snakemake --unlock)"
            )
        yield
