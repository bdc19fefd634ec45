"""The command line: `privpost study=<paper>/<study> key=value` runs a cell, words run the other commands."""

from __future__ import annotations

import os
import sys

# One BLAS thread per job, before anything imports numpy: jobs give the parallelism, and sums do not depend on it.
for _variable in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(_variable, "1")


def main(argv: list[str] | None = None) -> int:
    """Run one command of privpost and return its exit status."""
    from privpost.pipeline import cli

    return cli.main(sys.argv[1:] if argv is None else argv)


if __name__ == "__main__":
    sys.exit(main())
