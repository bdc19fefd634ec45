"""The numbers that README and report quote: collected from tables and records, never typed.

Two files: `numbers.json` holds what the same results always give; `timing/numbers.json` what depends on the machine.
"""

import csv
import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from privpost.lab import tables
from privpost.lab.grid import Cell, Study
from privpost.report import scorecard

FILES = ("numbers.json", "timing/numbers.json")
WORKFLOW_COLUMNS = ("study", "paper", "datasets", "cells", "tables", "figures")


def flatten(value: Any, prefix: str) -> dict[str, Any]:
    """Return nested maps as one map, keys joined by slashes; lists are left out."""
    if isinstance(value, Mapping):
        return {k: v for key, item in value.items() for k, v in flatten(item, f"{prefix}/{key}").items()}
    return {} if isinstance(value, list) else {prefix: value}


def workflow(studies: Mapping[str, Study], cells: Mapping[str, Sequence[Cell]]):
    """Return what the rebuild consists of: one row per study, with the number of cells, tables and figures.

    `datasets` are names joined by spaces.
    """
    import pandas as pd

    rows = [
        {
            "study": name,
            "paper": study.paper,
            "datasets": " ".join(sorted({cell.dataset for cell in cells[name] if cell.dataset})),
            "cells": len(cells[name]),
            "tables": len(study.tables),
            "figures": len(study.figures),
        }
        for name, study in sorted(studies.items(), key=lambda item: scorecard.paper_order(item[0]))
    ]
    return pd.DataFrame(rows, columns=list(WORKFLOW_COLUMNS))


def measured(studies: Iterable[Study], place: Callable[[Path], Path] = Path):
    """Return run times and memory, one row per study, from the records that its cells left in results/timing.

    `place` says which version of a file of times is read: the shipped one, or `times.latest`.

    Columns: `study`, `beyond_papers`, `cells`, `seconds` (wall time, summed over the cells), `longest_cell_seconds`,
    `peak_mib`. Studies without a record are left out.
    """
    import pandas as pd

    rows = []
    for study in sorted(studies, key=lambda study: scorecard.paper_order(study.name)):
        records = _cell_records(place(study.timing_path()))
        if not records:
            continue
        seconds = [float(record["wall_seconds"]) for record in records]
        rows.append(
            {
                "study": study.name,
                "beyond_papers": study.beyond_papers,
                "cells": len(records),
                "seconds": round(sum(seconds), 1),
                "longest_cell_seconds": round(max(seconds), 1),
                "peak_mib": round(max(float(record["peak_mib"]) for record in records), 1),
            }
        )
    columns = ["study", "beyond_papers", "cells", "seconds", "longest_cell_seconds", "peak_mib"]
    return pd.DataFrame(rows, columns=columns)


def timeline(studies: Iterable[Study], folder: Path, place: Callable[[Path], Path] = Path):
    """Return when each cell of the last complete rebuild ran, in the order of their starts.

    Columns: `study`, `cell`, `core` (from 0; which of the cells that run at a time, not a core of the machine), `start`
    and `end` in seconds since the rebuild began. Cells that other runs computed are left out, and without a recorded
    rebuild in the folder there are no rows.
    """
    import pandas as pd

    columns = ["study", "cell", "core", "start", "end"]
    path = place(folder / "run_reproduce.json")
    run = json.loads(path.read_text(encoding="utf-8")) if path.is_file() else {}
    if "started" not in run:
        return pd.DataFrame(columns=columns)
    rows = []
    for study in studies:
        for record in _cell_records(place(study.timing_path())):
            start = float(record.get("started") or "nan") - run["started"]
            if 0 <= start <= run["seconds"]:
                rows.append([study.name, record["cell"], 0, start, start + float(record["wall_seconds"])])
    rows.sort(key=lambda row: row[3])
    busy_until: list[float] = []
    for row in rows:
        free = [core for core, until in enumerate(busy_until) if until <= row[3]]
        row[2] = free[0] if free else len(busy_until)
        busy_until[row[2] : row[2] + 1] = [row[4]]
    return pd.DataFrame(rows, columns=columns).round({"start": 2, "end": 2})


def _cell_records(path: Path) -> list[dict[str, str]]:
    """Return the rows of a study's file of times, one per cell; none where there is no file."""
    if not path.is_file():
        return []
    with path.open(encoding="utf-8") as handle:
        return list(csv.DictReader(handle))


def of_results(studies: Mapping[str, Study], cells: Mapping[str, Sequence[Cell]], card) -> dict[str, Any]:
    """Return every quotable number that the results determine, by name.

    Counts of studies, cells, tables, figures and claims; each claim's `<id>/verdict` and evidence (`<id>/<name>`);
    and what a study offers in an optional `numbers(tables)`, as `<paper>/<study>/<name>`.
    """
    plan = workflow(studies, cells)
    found: dict[str, Any] = {
        # Studies beyond the papers stand in folders without a year.
        "papers": len({study.paper for study in studies.values() if study.paper[-4:].isdigit()}),
        "studies": len(plan),
        **{name: int(plan[name].sum()) for name in ("cells", "tables", "figures")},
        "datasets": len({name for names in plan.datasets for name in names.split()}),
        "claims": int((card.id != "").sum()),
    }
    found |= {f"claims/{verdict}": count for verdict, count in scorecard.counts(card).items()}
    of_papers = card.paper.str.contains(r"\d{4}$")
    groups = {"papers": card[of_papers], "beyond": card[~of_papers], **dict(iter(card.groupby("paper")))}
    for group, part in groups.items():
        found[f"claims/{group}"] = int((part.id != "").sum())
        found |= {f"claims/{group}/{verdict}": count for verdict, count in scorecard.counts(part).items()}
    for row in card[card.id != ""].itertuples():
        found[f"{row.id}/verdict"] = row.verdict
        found |= flatten(json.loads(row.evidence), row.id)
    for name, study in studies.items():
        offer = getattr(study.module(), "numbers", None)
        if offer is not None and all(study.table_path(table).is_file() for table in study.tables):
            found |= flatten(scorecard.plain(offer(tables.read_tables(study))), name)
    return found


def of_timing(times, folder: Path) -> dict[str, Any]:
    """Return the numbers that depend on the machine: seconds and MiB, in all and per study.

    `reproduce/…` and `test/…` are the last recorded runs of the two commands, where there are any (see
    `record_run`).
    """
    found: dict[str, Any] = {"time/cells": round(float(times.seconds.sum()), 1)}
    if len(times):
        found["time/longest_cell"] = float(times.longest_cell_seconds.max())
        found["memory/peak"] = float(times.peak_mib.max())
        for name, part in (("papers", times[~times.beyond_papers]), ("beyond", times[times.beyond_papers])):
            found[f"time/{name}/studies"] = len(part)
            found[f"time/{name}/cells"] = round(float(part.seconds.sum()), 1)
    for row in times.itertuples():
        found[f"time/{row.study}"] = float(row.seconds)
        found[f"memory/{row.study}"] = float(row.peak_mib)
    for path in sorted(folder.glob("run_*.json")):
        found |= flatten(json.loads(path.read_text(encoding="utf-8")), path.stem.removeprefix("run_"))
    return found


def record_run(folder: Path, command: str, **numbers: float) -> None:
    """Keep what a whole run of a command measured: seconds, cores, and whatever else it names."""
    from privpost.lab import store, times

    store.write_texts(times.texts(folder / f"run_{command}.json", _json(numbers)))


def write(path: Path, numbers: Mapping[str, Any]) -> None:
    """Write numbers as sorted JSON, one per line."""
    from privpost.lab import store

    store.write_text(path, _json(numbers))


def _json(numbers: Mapping[str, Any]) -> str:
    return json.dumps(dict(sorted(numbers.items())), indent=0, ensure_ascii=False, allow_nan=False) + "\n"


def read(root: Path) -> dict[str, Any]:
    """Return all numbers of a results folder.

    Raises FileNotFoundError naming the command that makes them, ValueError when both files have the same name.
    """
    found: dict[str, Any] = {}
    for file in FILES:
        path = root / file
        tables.check_there(path, "scorecard")
        more = json.loads(path.read_text(encoding="utf-8"))
        if both := sorted(set(found) & set(more)):
            raise ValueError(f"{path}: {both[0]} is also in {FILES[0]}")
        found |= more
    return found
