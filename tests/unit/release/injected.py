"""Releases in which one system call fails, each in a separate process; run with `faults.c` in LD_PRELOAD.

Reads lines `folder call error argument...` of JSON and answers each with the exit status and the calls that were made.
"""

from __future__ import annotations

import contextlib
import ctypes
import json
import os
import sys
from pathlib import Path

from privpost.commands import cli


def run(folder: str, call: int, error: int, argv: list[str], read: int) -> None:
    """Never returns: the exit status is that of the release; the number of its calls goes to a file descriptor."""
    os.chdir(folder)
    for stream, name in ((1, "stdout"), (2, "stderr")):
        os.dup2(os.open(name, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o666), stream)
    library = ctypes.CDLL(None)
    library.arm(ctypes.c_long(call), error)
    status = cli.main(["release", "spec.yaml", "--data", "data.csv", *argv])
    made = library.counted()
    library.arm(ctypes.c_long(-1), 0)
    os.write(read, str(made).encode())
    with contextlib.suppress(OSError):
        sys.stdout.flush()
    os._exit(status)


def main() -> None:
    """Serve."""
    from privpost.release import models  # noqa: F401

    first = True
    for line in sys.stdin:
        folder, call, error, argv = json.loads(line)
        if first:
            # Everything is imported before, so that the calls are the release's own; the second one has a first one.
            here = Path.cwd()
            os.chdir(folder)
            with Path(os.devnull).open("w") as sink, contextlib.redirect_stdout(sink):
                for name in ("warm.json", "warm2.json"):
                    cli.main(["release", "warm.yaml", "--data", "data.csv", "--output", name])
            os.chdir(here)
            first = False
        ours, theirs = os.pipe()
        process = os.fork()
        if not process:
            try:
                run(folder, call, error, argv, theirs)
            except BaseException as failure:
                os.write(2, f"Traceback: {failure!r}\n".encode())
                os._exit(99)
        os.close(theirs)
        status = os.waitstatus_to_exitcode(os.waitpid(process, 0)[1])
        with os.fdopen(ours, "rb") as handle:
            made = int(handle.read() or -1)
        print(json.dumps([status, made]), flush=True)


if __name__ == "__main__":
    main()
