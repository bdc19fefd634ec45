"""Keeps what a whole run of a command measured, and brings every page that quotes it up to date."""

from privpost.lab.plan import Plan
from privpost.report import build, documents, numbers, page


def record(plan: Plan, command: str, **measured: float) -> None:
    """Keep what a whole run of a command measured, and render the pages and documents that quote it anew."""
    numbers.record_run(plan.root / "timing", command, **measured)
    if command == "reproduce":
        build.write_timeline(plan)
    # In the order of the rules, so that the next run finds nothing to do.
    build.write_scores(plan)
    build.draw(plan)
    documents.write(plan)
    page.write(plan)
