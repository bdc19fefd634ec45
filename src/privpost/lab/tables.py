"""From stored cells to tidy tables."""

import importlib
import importlib.util
from dataclasses import replace
from pathlib import Path

from privpost.lab import grid, ledgers, manifest, provenance, store, times
from privpost.lab.cells import read_or_recompute
from privpost.lab.schema import SettingError
from privpost.lab.study import Study


def tabulate(study: Study) -> list[Path]:
    """Write the study's tables, its grid file and its timings from the store; returns the tables' paths.

    A study's YAML may name a module of `documents(tables)`: other renderings of its tables, a map from file name to
    text.

    Each file replaces the old one only when all have been written, so a failure leaves shipped ones untouched.
    Raises ValueError when the study's tables are not the ones that its YAML names, and RuntimeError when the study
    was edited meanwhile.
    """
    import pandas as pd

    cells = grid.expand(study)
    before = _state(study)
    results = [read_or_recompute(study, cell) for cell in cells]
    tables = tables_of(study, results)
    texts = {study.table_path(name): table.to_csv(index=False, lineterminator="\n") for name, table in tables.items()}
    timings = pd.DataFrame(
        {
            "cell": cell.slug,
            "wall_seconds": round(result.record["wall_seconds"], 3),
            "peak_mib": round(result.record["peak_mib"], 1),
            "started": round(result.record["started"], 2) if "started" in result.record else None,
        }
        for cell, result in zip(cells, results, strict=True)
    )
    texts[ledgers.path_of(study)] = ledgers.describe(study, results)
    if importlib.util.find_spec(f"{study.package}.documents"):
        documents = importlib.import_module(f"{study.package}.documents").documents(tables)
        texts |= {study.grid_path().with_name(name): text for name, text in documents.items()}
    # A job that outlived its run must not put back an older state.
    if _state(replace(grid.load_study(study.name, study.config["scale"]), left_out=study.left_out)) != before:
        raise RuntimeError(
            f"{study.name}: its configuration or source changed while the tables were being made; nothing was written"
        )
    # The manifest is the first, and so the last to be replaced: it says that the others show these cells.
    shown = {study.grid_path(): manifest.describe(study, cells, texts)}
    measured = times.texts(study.timing_path(), timings.to_csv(index=False, lineterminator="\n"))
    store.write_texts(shown | texts | measured)
    return [study.table_path(name) for name in study.tables]


def _state(study: Study) -> tuple:
    return manifest.describe(study, grid.expand(study)), provenance.source_digest(study.target)


def tables_of(study: Study, results: list[store.Result]) -> dict:
    """Return the tables that the study's `tabulate` makes of some cells, by name.

    It gives each as a DataFrame or as rows, maps from column to value; its only one by itself, several by name.
    Raises ValueError when they are not the ones that its YAML names.
    """
    import pandas as pd

    tables = study.module().tabulate(results)
    if not isinstance(tables, dict):
        tables = {study.tables[0]: tables}
    if sorted(tables) != sorted(study.tables):
        raise ValueError(f"{study.name}: tabulate gave {sorted(tables)}, but {study.file} names {sorted(study.tables)}")
    return {
        name: table if isinstance(table, pd.DataFrame) else pd.DataFrame(list(table)) for name, table in tables.items()
    }


def read_tables(study: Study) -> dict:
    """Return the study's tables as DataFrames; numbers come back exactly as they were written.

    Raises FileNotFoundError naming the command that makes a missing table, and SettingError for one that was altered.
    """
    for path in (*map(study.table_path, study.tables), study.grid_path()):
        check_there(path)
    if found := manifest.altered(study):
        raise SettingError(f"{found[0]}: take it back from Git, or make it anew with: privpost reproduce {study.name}")
    return {name: read_table(study.table_path(name)) for name in study.tables}


def read_table(path: Path):
    """Return one table; raises FileNotFoundError naming the command that makes it."""
    import pandas as pd

    check_there(path)
    return pd.read_csv(path, keep_default_na=False, na_values=[""])


def check_there(path: Path, target: str = "") -> None:
    """Raise FileNotFoundError, naming the command that makes it, unless a file is there."""
    if not path.is_file():
        raise FileNotFoundError(f"{path} does not exist; make it with: snakemake {target or path}")
