"""`privpost release`: a private release of a user's own data."""

import contextlib
from argparse import Namespace
from pathlib import Path
from typing import Any

from privpost.commands import ledger, release_summary
from privpost.privacy.ledger import file as ledger_file
from privpost.release import command, spec


def main(given: Namespace) -> int:
    """Make a release, print a summary if the statement is in a file, and return the exit status."""
    status, content = command.run(given)
    if content and given.output:
        # The statement is already written, so a closed terminal does not make the release a failure.
        with contextlib.suppress(OSError):
            summary = release_summary.lines(content, given.output, _together(given.specification, content))
            print("\n".join(summary), flush=True)
    return status


def _together(specification: Path, content: dict[str, Any]) -> str:
    """Return a line on the joint cost of this release and all earlier ones, or "" if there is none to tell."""
    # The release has been made. An error from here on must not suggest that it failed.
    with contextlib.suppress(Exception):
        entry = content["ledger"]
        if (number := entry["release"]) > 1:
            account = ledger_file.read(spec.read(specification).ledger)
            if account.entries[number - 1]["digest"] == entry["entry_sha256"]:
                return ledger.together(account, number=number)
    return ""
