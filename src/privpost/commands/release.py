"""`privpost release`: a private release of a user's own data."""

import argparse
import contextlib
from pathlib import Path
from typing import Any

from privpost.commands import ledger, release_summary
from privpost.privacy.ledger import file as ledger_file
from privpost.release import command, spec


def main(argv: list[str]) -> int:
    """Release, and sum up what is in the output's file."""
    options = _parser().parse_args(argv)
    status, content = command.run(options)
    if content and options.output:
        # The statement is on the disk: a terminal that is gone does not make the release a failure.
        with contextlib.suppress(OSError):
            summary = release_summary.lines(content, options.output, _together(options.specification, content))
            print("\n".join(summary), flush=True)
    return status


def _together(specification: Path, content: dict[str, Any]) -> str:
    """What the releases up to this one cost together; "" for the first one, and where nobody can tell any more."""
    # The release is delivered: nothing that fails now may look as if it were not.
    with contextlib.suppress(Exception):
        entry = content["ledger"]
        if (number := entry["release"]) > 1:
            account = ledger_file.read(spec.read(specification).ledger)
            if account.entries[number - 1]["digest"] == entry["entry_sha256"]:
                return ledger.together(account, number=number)
    return ""


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="privpost release",
        allow_abbrev=False,
        description="Release private statistics of a CSV file, or one draw from a private posterior, as JSON with a "
        "privacy statement. The YAML specification holds model, columns with levels or bounds, n, epsilon; "
        "docs/release.md explains it. After any error nothing is released.",
    )
    parser.add_argument("specification", type=Path, help="YAML file: what is public, and what the release may cost")
    parser.add_argument("--data", type=Path, help="CSV file with a header; default: the specification's data")
    parser.add_argument("--output", type=Path, help="new JSON file; default: standard output")
    parser.add_argument(
        "--draws",
        type=Path,
        metavar="FILE",
        help="new file for the posterior's draws, beside the JSON: .csv, or .nc for netCDF (ArviZ)",
    )
    parser.add_argument(
        "-n", "--dry-run", action="store_true", help="print the privacy terms; read no data and draw no noise"
    )
    parser.add_argument(
        "--again", type=Path, metavar="RELEASE", help="draw the posterior of an earlier release again, at no cost"
    )
    return parser
