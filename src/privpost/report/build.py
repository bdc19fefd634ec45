"""Scores, quoted numbers and the figures that cover all studies: what pages and documents are made of."""

import importlib
from pathlib import Path

from privpost.lab import store, times
from privpost.lab.plan import Plan
from privpost.report import numbers, scorecard

TIMELINE = "timing/timeline.csv"
# Figure → the table that it is drawn from, below the results folder, and its path below the figure folder.
FIGURES = {
    "scorecard": ("scorecard.csv", "scorecard"),
    "workflow": ("workflow.csv", "workflow"),
    "run_times": ("timing/studies.csv", "measured/run_times"),
    "timeline": (TIMELINE, "measured/timeline"),
}


def score_files(root: Path) -> list[Path]:
    """Return the files that `write_scores` makes."""
    names = ["scorecard.csv", "workflow.csv", "timing/studies.csv", TIMELINE, *numbers.FILES]
    return [root / name for name in names]


def figure_files(folder: Path) -> list[Path]:
    """Return the files that `draw` makes."""
    return [folder / f"{stem}.svg" for _, stem in FIGURES.values()] + [folder / "scorecard.png"]


def templates() -> list[Path]:
    """Return the files that the report's page is made of."""
    return [Path("docs/templates") / f"report.{ending}" for ending in ("html.in", "css", "js")]


def report_file(root: Path) -> Path:
    """Return where the report goes: outside the shipped results, else beside the tables."""
    return Path("build/report.html") if root == Path("results") else root / "report.html"


def write_scores(plan: Plan) -> list[Path]:
    """Score all claims of a plan's studies and collect all numbers; returns the paths of the files."""
    root = plan.root
    scored = scorecard.score(plan.studies.values())
    card = scorecard.table(scored)
    shipped = numbers.measured(plan.studies.values())
    latest = numbers.measured(plan.studies.values(), times.latest)
    scorecard.write(scored, root / "scorecard.csv")
    store.write_text(root / "workflow.csv", numbers.workflow(plan.studies, plan.cells).to_csv(index=False))
    # The later entry stands where both are one file.
    tables = {times.here(root / "timing/studies.csv"): latest, root / "timing/studies.csv": shipped}
    store.write_texts({path: table.to_csv(index=False) for path, table in tables.items()})
    # Of the last complete rebuild, as `record` keeps it: cells that are computed again later leave other times.
    if (root / TIMELINE).is_file():
        store.write_text(root / TIMELINE, (root / TIMELINE).read_text(encoding="utf-8"))
    else:
        write_timeline(plan)
    numbers.write(root / numbers.FILES[0], numbers.of_results(plan.studies, plan.cells, card))
    numbers.write(root / numbers.FILES[1], numbers.of_timing(shipped, root / "timing"))
    return score_files(root)


def write_timeline(plan: Plan) -> None:
    """Write when the cells of the last recorded rebuild ran."""
    table = numbers.timeline(plan.studies.values(), plan.root / "timing", times.latest)
    store.write_texts(times.texts(plan.root / TIMELINE, table.to_csv(index=False)))


def draw(plan: Plan) -> list[Path]:
    """Draw the scorecard, the graph of the rebuild, run times and timeline from their tables; returns the paths.

    This machine's own times are drawn for the report beside the shipped ones.
    """
    root, folder = plan.root, plan.figure_root
    import pandas as pd

    from privpost.drawing import style

    drawn = [(name, root / table, folder / stem) for name, (table, stem) in FIGURES.items()]
    own = [(name, times.here(path), times.here(stem)) for name, path, stem in drawn if times.here(path) != path]
    for name, path, stem in [*drawn, *(entry for entry in own if entry[1].is_file())]:
        frame = scorecard.read(path) if name == "scorecard" else pd.read_csv(path)
        with style.context():
            module = importlib.import_module(f"privpost.report.figures.{name}")
            figure = module.draw({path.stem: frame})
            with store.replacing(stem.with_name(f"{stem.name}.svg")) as temporary:
                style.save(figure, temporary)
            if name == "scorecard":
                # The one picture that README.md shows.
                with store.replacing(stem.with_suffix(".png")) as temporary:
                    style.save_small(figure, temporary, (mark["color"] for mark in module.MARKS.values()))
            style.close(figure)
    return figure_files(folder)
