"""`privpost reproduce`: Snakemake with an estimate first, progress on one line, and a summary at the end."""

import argparse
import csv
import os
import shutil
import time
from pathlib import Path

from privpost import progress
from privpost.commands import options
from privpost.datasets import catalogue
from privpost.lab import inventory, locks, runner, times
from privpost.lab.cells import in_store
from privpost.lab.plan import PREPARED, Plan
from privpost.lab.runner import Failure

PROFILES = Path("profiles")
# A cell whose time no earlier run recorded counts as this long.
DEFAULT_SECONDS = 5.0
# What a job costs beside its work: a fork, the project's own imports, Snakemake's bookkeeping.
JOB_SECONDS = 0.5


def positive(text: str) -> int:
    """Return a whole number of at least 1; raises argparse.ArgumentTypeError for anything else."""
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number of at least 1")
    return int(text)


def main(argv: list[str]) -> int:
    """Rebuild all studies, or the named ones; returns Snakemake's exit status."""
    parser = options.parser("reproduce", "Rebuild studies from raw data to figures.", study="any", root=True)
    parser.add_argument("--cores", type=positive, default=2, help="processes at a time, at least 1")
    parser.add_argument(
        "--profile", default="default", help="folder of profiles/ that says how jobs run: default, or slurm (a cluster)"
    )
    parser.add_argument(
        "--strict", action="store_true", help="end with status 1 when a data set that users bring is missing"
    )
    parser.add_argument(
        "--behind", action="store_true", help="compute again also what older code or other libraries computed"
    )
    given = parser.parse_args(argv)
    known = sorted(path.parent.name for path in PROFILES.glob("*/config.yaml"))
    if given.profile not in known:
        parser.error(f"there is no profile {given.profile!r}, but {', '.join(known)}")
    return rebuild(given)


def rebuild(given: argparse.Namespace, afresh: bool = False) -> int:
    """Run Snakemake for what `main` was given, with what comes before and after it; returns its exit status.

    With `afresh` the folder of results is deleted first.
    """
    plan = Plan(given.scale, given.root, given.study or None)
    with locks.only_rebuild():
        # Not before: another rebuild might be working in that folder.
        if afresh:
            shutil.rmtree(plan.root, ignore_errors=True)
        _look_through(plan, given.behind)
        _look_through_data(plan)
        missing = _announce(plan, given.cores)
        before = _shipped_scorecard()
        started, start = time.time(), time.perf_counter()
        code, failures = runner.snakemake(_arguments(given))
        seconds = time.perf_counter() - start
        complete = _summarise(plan, code, failures, seconds)
        _tell_claims(plan, before)
        if not given.study:
            _tell_report(plan, code)
        whole = not given.study and missing == sum(map(len, plan.cells.values()))
        # The time that the README quotes is that of one computer.
        if whole and given.profile == "default" and complete and code in (0, 1) and plan.root == Path("results"):
            _record(plan, code, started, seconds, given.cores)
        _tell_missing(plan)
    return code or int(given.strict and bool(plan.missing))


def _look_through(plan: Plan, behind: bool) -> None:
    """Set damaged cells aside, so that they are computed again; with `behind`, drop outdated ones too."""
    for name, cells in plan.cells.items():
        for cell in cells:
            # Also a link to nothing, which Snakemake takes for a file that vanishes.
            if os.path.lexists(cell.path):
                in_store(cell)
        if behind:
            outdated = inventory.take(plan.studies[name], cells).behind
            inventory.remove(cell.path for cell in outdated)
            if outdated:
                print(f"{name}: {progress.counted(len(outdated), 'cell')} behind the present code: computed again.")


def _look_through_data(plan: Plan) -> None:
    """Remove prepared data that missing cells would read in vain, so that they are prepared again."""
    from privpost.datasets import prepared

    wanted = {cell.dataset for cell in plan.by_path.values() if cell.dataset and not cell.path.exists()}
    for name in sorted(wanted):
        path = PREPARED / f"{name}.npz"
        try:
            if path.is_file():
                prepared.read(name, plan.datasets[name], prepared=PREPARED)
        except ValueError as error:
            path.unlink()
            print(f"{str(error).partition(';')[0]}; it is prepared again.")


def _arguments(given: argparse.Namespace) -> list[str]:
    config = [f"scale={given.scale}"]
    config += [f"root={given.root}"] * (given.root is not None)
    config += [f"studies={','.join(given.study)}"] * bool(given.study)
    # Of a profile with an executor of its own the cores are those of the jobs that stay here.
    cores = ["--cores", str(given.cores)] if given.profile == "default" else ["--local-cores", str(given.cores)]
    return ["--workflow-profile", str(PROFILES / given.profile), *cores, "--config", *config]


def _announce(plan: Plan, cores: int) -> int:
    """Say what is to be done and how long it takes; returns the number of cells that are missing."""
    missing = [cell for cell in plan.by_path.values() if not cell.path.exists()]
    total = sum(len(cells) for cells in plan.cells.values())
    known = {}
    for study in plan.studies.values():
        recorded = times.latest(Path("results") / "timing" / f"{study.identifier}.csv")
        if study.config["scale"] == "paper" and recorded.is_file():
            with recorded.open(encoding="utf-8") as handle:
                known.update({(study.name, row["cell"]): float(row["wall_seconds"]) for row in csv.DictReader(handle)})
    seconds = [known.get((cell.study, cell.slug), DEFAULT_SECONDS) + JOB_SECONDS for cell in missing]
    seconds += [JOB_SECONDS * 2] * len(plan.studies)
    disk = sum(file.bytes for dataset in plan.datasets.values() for file in dataset.files) * 5
    print(
        f"{len(plan.studies)} {'study' if len(plan.studies) == 1 else 'studies'}, "
        f"{progress.counted(total, 'cell')}, {total - len(missing)} of them in the store already. "
        f"About {progress.minutes(sum(seconds) / cores)} on {cores} cores; "
        f"data and results take up to {disk / 1e6 + 50:.0f} MB."
    )
    return len(missing)


def _summarise(plan: Plan, code: int, failures: list[Failure], seconds: float) -> bool:
    """Print what was built, what was not and why; returns whether every study has its cells, tables and figures."""
    built, lacking = [], []
    for name in plan.studies:
        study = plan.partial.get(name, plan.studies[name])
        cells = plan.cells_of(study)
        present = sum(cell.path.exists() for cell in cells)
        tables, _ = inventory.tables_state(study, cells)
        figures, _ = inventory.figures_state(study)
        reasons = [failure for failure in failures if failure.concerns(study, plan)]
        if not reasons and (tables, figures, present) == ("current", "current", len(cells)):
            built.append(f"{name} (in part)" if study.left_out else name)
        else:
            lacking.append(
                f"  {name}: {present} of {progress.counted(len(cells), 'cell')}, tables {tables}, figures {figures}"
            )
            lacking += [f"    {failure}" for failure in reasons]
    print(f"Built in {progress.minutes(seconds)}: {', '.join(built) or 'nothing'}.")
    if lacking:
        print("Not built:", *lacking, sep="\n")
    # What belongs to no study: scores, overview figures, README, report.
    others = [f for f in failures if not any(f.concerns(study, plan) for study in plan.studies.values())]
    for failure in others:
        print(f"Failed: {failure}")
    if code:
        print(f"The whole log is in {runner.LOG}.")
    else:
        print(f"Tables are in {plan.root}/, figures in {plan.figure_root}/.")
    return not lacking


def _record(plan: Plan, code: int, started: float, seconds: float, cores: int) -> None:
    """Keep when a whole rebuild began (seconds of the epoch) and what it and its cells took."""
    from privpost.report import numbers, record

    # Of this run: a study that is built again later leaves other times in results/timing.
    cells = round(float(numbers.measured(plan.studies.values(), times.latest).seconds.sum()), 1)
    measured = {"started": round(started, 2), "seconds": round(seconds), "cores": cores, "cell_seconds": cells}
    try:
        record.record(plan, "reproduce", **measured)
    except Exception as error:
        if not code:
            raise
        # The page that failed in the run fails here too, which costs its own content only.
        print(f"The time of this run is kept, but not quoted everywhere yet: {error}")


def _tell_missing(plan: Plan) -> None:
    """Print which data sets that users bring were not there, and where what was built without them is."""
    if not plan.missing:
        return
    print("Missing data sets, which each user has to obtain (see conf/dataset):")
    for name in plan.missing:
        dataset = catalogue.load(name)
        files = ", ".join(file.name for file in dataset.files)
        print(f"  {name}: {files} in data/raw/{name}/ or data/mirror/{dataset.mirror_folder}/; from {dataset.origin}")
    for name, study in plan.partial.items():
        cells = len(plan.cells_of(study))
        where = f"{cells} of {progress.counted(len(plan.cells[name]), 'cell')}"
        where += f", in {study.table_root}/{study.paper}/" if cells else ""
        print(f"  {name} was built without {', '.join(study.left_out)}: {where}")
    print("Shipped tables and figures of these studies are as they were.")


def _shipped_scorecard():
    """Return the scorecard as it was before the run, or None."""
    from privpost.report import scorecard

    path = Path("results/scorecard.csv")
    return scorecard.read(path) if path.is_file() else None


def _tell_claims(plan: Plan, before) -> None:
    """Print how many claims hold, and those whose verdict is not the shipped one."""
    from privpost.report import scorecard

    try:
        after = scorecard.table(scorecard.score(plan.studies.values()))
    except ValueError as error:
        print(f"Claims: not scored, since {error}.")
        return
    print(f"Claims: {scorecard.in_words(scorecard.counts(after))}.")
    if plan.scale != "paper":
        print(f"(Verdicts at scale {plan.scale} say that the code runs, not what the papers' experiments give.)")
    elif before is not None:
        changed = scorecard.changes(before, after)
        print("Verdicts are those of the shipped scorecard." if not changed else "Verdicts that changed:")
        for line in changed:
            print(f"  {line}")


def _tell_report(plan: Plan, code: int) -> None:
    """Print where the report is; after a failure it is written from what there is."""
    from privpost.report import build, page

    path = build.report_file(plan.root)
    if code:
        try:
            # Shipped scores are left alone: they would be those of half a rebuild.
            if plan.root != Path("results"):
                build.write_scores(plan)
                build.draw(plan)
            page.write(plan)
        except (ValueError, FileNotFoundError) as error:
            print(f"No report: {error}")
            return
    print(f"Report{' of what there is' if code else ''}: {path.resolve().as_uri()}")
