"""`privpost ledger check`: verifies a ledger's hash chain, digests and sums, and the statements of its releases."""

import decimal
import json
import math
import sys
from argparse import Namespace
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from privpost.lab.schema import SettingError
from privpost.privacy.ledger import file as ledger_file
from privpost.progress import Progress, counted


def main(given: Namespace) -> int:
    """Check a ledger and the statements of its releases, and return 1 if anything is inconsistent, else 0."""
    delta = None if given.delta is None else _delta(given.delta)
    content = ledger_file.read(given.ledger)
    if content.budget is None:
        raise SettingError(f"{given.ledger} is empty.")
    spent = content.spent()
    print(
        f"{given.ledger}: {counted(len(content.entries), 'release')}, chain and digests right; spent epsilon "
        f"{spent['epsilon']:g}, delta {spent['delta']:g} of epsilon {content.budget.epsilon:g}, delta "
        f"{content.budget.delta:g}"
    )
    if delta is not None or len(content.entries) > 1:
        try:
            print(f"  {together(content, delta)}")
        except SettingError as error:
            raise SettingError(f"{given.ledger}: {error}") from None
    problems = list(_problems(content, given.statement))
    for problem in problems:
        print(f"privpost: {problem}", file=sys.stderr)
    return 1 if problems else 0


def together(content: ledger_file.Content, delta: float | None = None, number: int | None = None) -> str:
    """Return a line on the joint ε of the first `number` releases, at the budget's δ or 1e-6 by default."""
    delta = delta or (content.budget and content.budget.delta) or 1e-6
    progress = Progress(sys.stderr, "steps of composing laws")
    exact, several = content.together(delta, number, progress.update), counted(len(content.entries[:number]), "release")
    progress.clear()
    if math.isinf(exact):
        return f"{several} together: no epsilon is known at delta {delta:g}"
    # Rounded up.
    epsilon = decimal.Context(prec=4, rounding=decimal.ROUND_CEILING).plus(decimal.Decimal(exact))
    return (
        f"{several} together: epsilon {float(epsilon):g} at delta {delta:g} if no earlier result influenced "
        "a later specification or the decision to stop; otherwise only the sum holds"
    )


def _delta(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not 0 < value < 1:
        raise SettingError(f"--delta is {text!r}, but must be a number in (0, 1).")
    return value


def _problems(content: ledger_file.Content, statements: list[Path]) -> Iterator[str]:
    """Yield a sentence for each inconsistency in a ledger, or between the ledger and statements."""
    budget = {"epsilon": content.budget.epsilon, "delta": content.budget.delta}
    if any(spent > budget[key] * (1 + 1e-9) for key, spent in content.spent().items()):
        yield "more was spent than the budget"
    seen: dict[int, tuple[Path, Any]] = {}
    lines = {entry["digest"]: entry for entry in content.entries}
    for path in statements:
        try:
            statement = json.loads(path.read_bytes())
            shown, privacy, number = statement["ledger"], statement["privacy"], int(statement["ledger"]["release"])
            line = lines.get(shown["entry_sha256"], {})
            stated = {"spent": shown["spent"], "budget": shown["budget"], "model": statement["specification"]["model"]}
            stated |= {key: privacy[key] for key in ("mechanism", "epsilon", "delta")}
        except OSError as error:
            yield f"{path}: it cannot be read: {error.strerror}"
            continue
        except (ValueError, KeyError, TypeError, AttributeError, OverflowError, RecursionError):
            yield f"{path}: it is not the statement of a release with a ledger"
            continue
        if line.get("release") != shown["release"]:
            yield f"{path}: the ledger has no such line of release {number}: it was rolled back, or is another ledger"
        else:
            known = {**line, "spent": content.spent(number), "budget": budget}
            for key in stated:
                if stated[key] != known.get(key):
                    yield f"{path}: it says {stated[key]} for {key}, the ledger {known.get(key)}"
        drawn = shown["entry_sha256"], [statement.get(key) for key in ("release", "statistics", "draw")]
        if number in seen and seen[number][1] != drawn:
            yield f"{path}: {seen[number][0]} is release {number}, too, but with other content"
        seen.setdefault(number, (path, drawn))
    missing = [str(number) for number in range(1, len(content.entries) + 1) if number not in seen]
    if statements and missing:
        named = ", ".join(missing[:20]) + " ..." * (len(missing) > 20)
        yield f"no statement was given for release{'s' * (len(missing) > 1)} {named}"
