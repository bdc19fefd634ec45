"""Makes and reads tidy tables of stored cells, for a study or for any set of points."""

import hashlib
import io
import traceback
from collections.abc import Container, Iterable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from privpost.lab import grid, ledgers, provenance, published, store
from privpost.lab.project import PUBLISHED
from privpost.lab.study import Cell, Study, canonical

# Modules that write tables and ledgers. A change of these modules changes tables, but no cells.
WRITING = ("privpost.lab.tables", "privpost.lab.ledgers")
# Number of frames that are joined at a time, since a frame of one row needs as much memory as 100 rows of a long frame.
JOINED = 500
OTHER_SETTINGS = "made with other settings than today's"


def write(study: Study, results: Sequence[store.Result], code: str) -> list[Path]:
    """Write a study's tables, ledger and times of cells from the stored cells, and return the paths of the tables.

    Files of the study's module `documents` are written too. Old files are replaced after all new files are written.
    `code` is the result of `code_of` before the cells were computed.
    """
    tables = tables_of(study, results)
    texts = {study.table_path(name): table.to_csv(index=False, lineterminator="\n") for name, table in tables.items()}
    if study.has("documents"):
        texts |= {study.results / name: text for name, text in study.module("documents").documents(tables).items()}
    texts[study.ledger_path] = ledgers.describe(study, results)
    cells = {cell.digest: cell.slug for cell in grid.expand(study)}
    files = _joint(texts[path].encode() for path in _files(study))
    records = [result.record for result in results]
    times = [
        {
            "study": study.name,
            "cell": cells.get(record["digest"], record["digest"]),
            "wall_seconds": round(record["wall_seconds"], 3),
            "peak_mib": round(record["peak_mib"], 1),
            "digest": record["digest"],
            "code": code,
            "files": files,
        }
        for record in records
    ]
    texts[times_path(study)] = published.times_text(times, published.BUILT_COLUMNS)
    store.write_texts(texts)
    return [study.table_path(name) for name in study.tables]


def times_path(study: Study) -> Path:
    """Return the path of the times of a study's built cells."""
    return study.results / "times.csv"


def gather_times(home: Path) -> None:
    """Collect the times of all built cells in one file."""
    rows = [row for path in sorted((home / "results").glob("*/*/times.csv")) for row in published.read_times(path)]
    store.write_text(home / "results/times.csv", published.times_text(rows))


def outdated(study: Study) -> str:
    """Return why a study's tables are out of date, or "" if they are current or missing.

    Tables are `made with other settings than today's` if the study has other cells today. Built tables may also be
    `made by other code than today's` or `altered`. Published times without digests give no reason.
    """
    if not all(path.is_file() for path in _files(study)):
        return ""
    if study.home == PUBLISHED:
        digests = {row.get("digest") for row in published.read_times() if row["study"] == study.name}
        known = all(digests) and digests
        return OTHER_SETTINGS * bool(known and digests != {cell.digest for cell in grid.expand(study)})
    rows = published.read_times(times_path(study))
    if {row.get("digest") for row in rows} != {cell.digest for cell in grid.expand(study)}:
        return OTHER_SETTINGS
    if {row.get("code") for row in rows} != {code_of(study)}:
        return "made by other code than today's"
    whole = {row["files"] for row in rows} == {_joint(path.read_bytes() for path in _files(study))}
    return "" if whole else "altered"


def read_outdated(study: Study) -> list[str]:
    """Of the studies whose ledgers a study reads, return the names of those with tables out of date."""
    return [other.name for other in grid.read_by(study) if outdated(other)]


def _files(study: Study) -> list[Path]:
    return [*map(study.table_path, study.tables), study.ledger_path]


def code_of(study: Study) -> str:
    """Return a digest of the code that makes a study's cells and tables."""
    return provenance.source_digest(f"{study.package}.study", f"{study.package}.documents", *WRITING)


def _joint(contents: Iterable[bytes]) -> str:
    """Return one digest of the contents of several files."""
    return hashlib.sha256(b"".join(hashlib.sha256(content).digest() for content in contents)).hexdigest()[:16]


def tables_of(study: Study, results: Sequence[store.Result]) -> dict[str, Any]:
    """Return, by name, the tables that the study's `tabulate` makes of some cells.

    `tabulate` returns one table or a map from names to tables. A table is a DataFrame or rows (maps from column to
    value). Raises ValueError if the names of tables differ from the names that the study declares.
    """
    import pandas as pd

    tables = study.module().tabulate(results)
    if not isinstance(tables, dict):
        tables = {study.tables[0]: tables}
    if sorted(tables) != sorted(study.tables):
        raise ValueError(f"{study.name}: tabulate gave {sorted(tables)}, but the study declares {sorted(study.tables)}")
    return {
        name: table if isinstance(table, pd.DataFrame) else pd.DataFrame(list(table)) for name, table in tables.items()
    }


def read_tables(study: Study) -> dict[str, Any]:
    """Return the study's tables as DataFrames, by name. Numbers are exactly as they were written.

    Raises FileNotFoundError, naming the command to run, for a missing table, and SettingError for an altered table.
    """
    made = f"privpost reproduce {study.name}" + f" --scale {study.scale}" * (study.scale != "paper")
    for name in study.tables:
        check_there(study.table_path(name), made)
    return {name: _parsed(study.table_path(name)) for name in study.tables}


def read_table(path: Path):
    """Return one table as a DataFrame. Raises the errors of `read_tables`."""
    check_there(path)
    return _parsed(path)


def as_read(frame):
    """Return a table as it would be read back from its CSV file."""
    return _parsed(io.StringIO(frame.to_csv(index=False)))


def _parsed(source: Path | io.StringIO):
    import pandas as pd

    try:
        # A copy stores all columns of a type in one block; choosing rows then takes half the time.
        return pd.read_csv(source, keep_default_na=False, na_values=[""]).copy()
    except pd.errors.EmptyDataError:
        return pd.DataFrame()


def check_there(path: Path, made: str = "make reproduce") -> None:
    """Raise FileNotFoundError, naming the command `made`, for a missing file, and SettingError for an altered file."""
    if not path.is_file():
        raise FileNotFoundError(f"{path} does not exist; make it with: {made}")
    published.check(path)


def error_of(column: str) -> str:
    """Return the name of a column's standard error: `x_sem` for `x` and `x_mean`, `sem` for `mean`."""
    return "sem" if column == "mean" else f"{column.removesuffix('_mean')}_sem"


class Points(NamedTuple):
    """The tables of some points, the columns of settings in each table, and the errors of failed points by digest."""

    tables: dict[str, Any]
    columns: dict[str, list[str]]
    failed: dict[str, str]


def of_points(study: Study, cells: Sequence[Cell], results: Iterable[store.Result], asked: Iterable[str]) -> Points:
    """Return the joined tables of some points, with a column for each setting that tells points apart.

    A setting gets a column if it is in `asked`, or if it differs between the cells and has a value at a point of the
    table. If the table already has a column with this name but other entries, the new column is `<setting>_setting`.
    """
    asked, known = set(asked), [*study.schema.fields, *cells[0].sizes]
    keys = [key for key in known if key in asked or len({canonical(value_of(cell, key)) for cell in cells}) > 1]
    # Arrow would keep the joined text columns in pieces, a kilobyte per point.
    import pandas as pd

    rows: dict[str, list] = {name: [] for name in study.tables}
    failed: dict[str, str] = {}
    for cell, result in zip(cells, results, strict=True):
        try:
            with pd.option_context("mode.string_storage", "python"):
                frames = tables_of(study, [result])
        except Exception as error:
            # Other points get their tables despite an error at this point. The run ends with the error and its line.
            place = traceback.extract_tb(error.__traceback__)[-1]
            failed[cell.digest] = f"{type(error).__name__}: {error} ({place.filename}:{place.lineno})"
            continue
        for name, frame in frames.items():
            if not frame.empty:
                settings = {f"{key}_setting": _word(value_of(cell, key)) for key in keys}
                rows[name].append(frame.assign(**settings))
            if len(rows[name]) > JOINED:
                rows[name] = [_concat(rows[name])]
    joined = {name: _joined(frames, keys, asked) for name, frames in rows.items() if frames}
    return Points(
        {name: frame for name, (frame, _) in joined.items()}, {name: columns for name, (_, columns) in joined.items()},
        failed,
    )  # fmt: skip


def value_of(cell: Cell, key: str) -> Any:
    """Return a cell's value of a setting, a size or a within axis. An axis with several values gives a list."""
    if key in cell.within:
        values = cell.within[key]
        return values[0] if len(values) == 1 else values
    return cell.settings[key] if key in cell.settings else cell.sizes[key]


def _word(value: Any) -> Any:
    """Return a setting's value in the form that tables have, with lists as text."""
    return " ".join(map(str, value)) if isinstance(value, list) else value


def _concat(frames: Sequence):
    import pandas as pd

    return pd.concat([frame.dropna(axis="columns", how="all") for frame in frames], ignore_index=True)


def _joined(frames: Sequence, keys: Sequence[str], asked: Container[str]) -> tuple[Any, list[str]]:
    """Return one DataFrame with the rows of all points, settings first, and the names of its setting columns."""
    frame, columns = _concat(frames), []
    for place, key in enumerate(keys):
        column = frame.pop(f"{key}_setting") if f"{key}_setting" in frame else None
        if column is None and key not in asked:
            continue
        if key in frame and column is not None and (frame[key].astype(str) == column.astype(str)).all():
            columns.append(key)
            continue
        columns.append(f"{key}_setting" if key in frame else key)
        frame.insert(min(place, frame.shape[1]), columns[-1], column)
    return frame, columns
