"""The command line: `privpost study=<paper>/<study> key=value` runs a cell, words run the other commands."""

from __future__ import annotations

import os
import signal
import sys

# One BLAS thread per job, whatever the shell says, and before anything imports numpy: jobs give the parallelism, and
# the order of a sum's terms, so its last digits, would depend on the number of threads.
for _variable in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[_variable] = "1"


def _stop(number, frame) -> None:
    raise SystemExit(128 + number)


def main(argv: list[str] | None = None) -> int:
    """Run one command of privpost and return its exit status."""
    from privpost.commands import cli

    # A scheduler ends jobs with SIGTERM; as an exception it lets half-written files be deleted.
    signal.signal(signal.SIGTERM, _stop)
    for stream in (sys.stdout, sys.stderr):
        # A terminal that lacks a letter (ε in Latin-1) is shown its code instead.
        stream.reconfigure(errors="backslashreplace")

    return cli.main(sys.argv[1:] if argv is None else argv)


if __name__ == "__main__":
    sys.exit(main())
