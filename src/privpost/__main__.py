"""The command line. `privpost study=<paper>/<study> key=value` runs a cell, and other words run the other commands."""

import os
import signal
import sys

# Each job uses one BLAS thread, whatever the shell says: jobs run in parallel, and the number of threads changes the
# order of a sum's terms and so the sum's last digits. This must be set before numpy is imported.
for _variable in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[_variable] = "1"


def _stop(number, frame) -> None:
    raise SystemExit(128 + number)


def _open_streams() -> None:
    """Exit if standard output is closed. Replace a closed standard error or standard input by /dev/null."""
    # No file may get the number of a closed stream, since other libraries would write into such a file.
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
    # A scheduler ends jobs with SIGTERM. Turned into an exception, the signal lets half-written files be deleted.
    signal.signal(signal.SIGTERM, _stop)
    for stream in (sys.stdout, sys.stderr):
        # A letter that the terminal's encoding lacks (ε in Latin-1) is shown as its code.
        stream.reconfigure(errors="backslashreplace")

    return cli.main(sys.argv[1:] if argv is None else argv)


if __name__ == "__main__":
    sys.exit(main())
