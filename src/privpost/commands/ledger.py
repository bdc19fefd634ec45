"""`privpost ledger check`: a ledger's chain, digests and sums, and whether the statements that it paid for fit it."""

import argparse
import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from privpost.lab.schema import SettingError
from privpost.privacy import ledger_file
from privpost.progress import counted


def main(argv: list[str]) -> int:
    """Run the command; returns 1 where something does not fit."""
    parser = argparse.ArgumentParser(prog="privpost ledger", allow_abbrev=False, description=__doc__)
    check = parser.add_subparsers(required=True, metavar="check").add_parser("check", help="change nothing, and tell")
    check.add_argument("ledger", type=Path, help="the file that specifications name as budget: ledger")
    check.add_argument("statement", type=Path, nargs="*", help="files of releases that it paid for")
    options = parser.parse_args(argv)
    content = ledger_file.read(options.ledger)
    if content.budget is None:
        raise SettingError(f"{options.ledger} is empty.")
    spent = content.spent()
    print(
        f"{options.ledger}: {counted(len(content.entries), 'release')}, chain and digests right; spent epsilon "
        f"{spent['epsilon']:g}, delta {spent['delta']:g} of epsilon {content.budget.epsilon:g}, delta "
        f"{content.budget.delta:g}"
    )
    problems = list(_problems(content, options.statement))
    for problem in problems:
        print(f"privpost: {problem}", file=sys.stderr)
    return 1 if problems else 0


def _problems(content: ledger_file.Content, statements: list[Path]) -> Iterator[str]:
    """What does not fit, one sentence each."""
    budget = {"epsilon": content.budget.epsilon, "delta": content.budget.delta}
    if any(spent > budget[key] * (1 + 1e-9) for key, spent in content.spent().items()):
        yield "more was spent than the budget"
    seen: dict[int, tuple[Path, Any]] = {}
    lines = {entry["digest"]: entry for entry in content.entries}
    for path in statements:
        try:
            found = json.loads(path.read_bytes())
            shown, privacy, number = found["ledger"], found["privacy"], int(found["ledger"]["release"])
            line = lines.get(shown["entry_sha256"], {})
            told = {"spent": shown["spent"], "budget": shown["budget"], "model": found["specification"]["model"]}
            told |= {key: privacy[key] for key in ("mechanism", "epsilon", "delta")}
        except OSError as error:
            yield f"{path}: it cannot be read: {error.strerror}"
            continue
        except (ValueError, KeyError, TypeError, AttributeError, OverflowError, RecursionError):
            yield f"{path}: no statement of a release with a ledger"
            continue
        if line.get("release") != shown["release"]:
            yield f"{path}: the ledger has no such line of release {number}: it was rolled back, or is another"
        else:
            known = {**line, "spent": content.spent(number), "budget": budget}
            for key in told:
                if told[key] != known.get(key):
                    yield f"{path}: it says {told[key]} for {key}, the ledger {known.get(key)}"
        drawn = shown["entry_sha256"], [found.get(key) for key in ("release", "statistics", "draw")]
        if number in seen and seen[number][1] != drawn:
            yield f"{path}: release {number} is {seen[number][0]} too, with other content"
        seen.setdefault(number, (path, drawn))
    missing = [str(number) for number in range(1, len(content.entries) + 1) if number not in seen]
    if statements and missing:
        named = ", ".join(missing[:20]) + " ..." * (len(missing) > 20)
        yield f"no statement of release{'s' * (len(missing) > 1)} {named}"
