"""The command line: `privpost study=<paper>/<study> key=value` runs a cell, words run the other commands."""

import os
import signal
import sys

# One BLAS thread per job, set before anything imports numpy and whatever the shell says: jobs run in parallel, and the
# number of threads would change the order of a sum's terms, so its last digits.
for _variable in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[_variable] = "1"


def _stop(number, frame) -> None:
    raise SystemExit(128 + number)


def _open_streams() -> None:
    """Refuse to run where nobody could read the output; a closed standard error or input is as /dev/null."""
    # No file may take the number of a closed stream: other libraries would write into it.
    while (number := os.open(os.devnull, os.O_RDWR)) < 3:
        pass
    os.close(number)
    if sys.stderr is None:
        sys.stderr = os.fdopen(2, "w", encoding="utf-8", closefd=False)
    if sys.stdout is None:
        raise SystemExit("privpost: standard output is closed; nothing was done. Send it to a file, or to /dev/null.")


def main(argv: list[str] | None = None) -> int:
    """Run one command of privpost and return its exit status."""
    from privpost.commands import cli

    _open_streams()
    # A scheduler ends jobs with SIGTERM; as an exception it lets half-written files be deleted.
    signal.signal(signal.SIGTERM, _stop)
    for stream in (sys.stdout, sys.stderr):
        # A terminal that lacks a letter (ε in Latin-1) is shown its code instead.
        stream.reconfigure(errors="backslashreplace")

    return cli.main(sys.argv[1:] if argv is None else argv)


if __name__ == "__main__":
    sys.exit(main())
