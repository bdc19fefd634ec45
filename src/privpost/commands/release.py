"""`privpost release`: a private release of a user's own data."""

import contextlib
from argparse import Namespace
from pathlib import Path
from typing import Any

from privpost.commands import ledger, release_summary
from privpost.privacy.ledger import file as ledger_file
from privpost.release import command, spec


def main(given: Namespace) -> int:
    """Release, and sum up what is in the output's file."""
    status, content = command.run(given)
    if content and given.output:
        # The statement is on the disk: a terminal that is gone does not make the release a failure.
        with contextlib.suppress(OSError):
            summary = release_summary.lines(content, given.output, _together(given.specification, content))
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
