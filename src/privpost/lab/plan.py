"""What a rebuild consists of: every study's cells, tables, figures and data, as Snakemake's rules need them."""

import contextlib
import functools
import hashlib
import os
import shlex
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from privpost.datasets import catalogue
from privpost.lab import grid, ledgers, manifest, planned, provenance
from privpost.lab.compose import rooted
from privpost.lab.project import STATE
from privpost.lab.schema import Integer, Schema
from privpost.lab.study import Cell, Study, figure_module

RAW = Path("data/raw")
PREPARED = Path("data/prepared")


class Batch(NamedTuple):
    """A shard of a study's cells that one job computes; `number` counts from 1."""

    study: Study
    number: int
    count: int
    cells: Sequence[Cell]

    @property
    def name(self) -> str:
        return f"{self.study.identifier}_{self.number}_of_{self.count}"

    @property
    def paths(self) -> list[str]:
        return [str(cell.path) for cell in self.cells]


class Plan:
    """All studies at one scale, with stamps that tell Snakemake what changed since the last run.

    Stamps live under .snakemake: losing them costs a redraw, never a wrong result.
    """

    def __init__(self, scale: str = "paper", root: str | None = None, studies: list[str] | None = None):
        overrides = rooted(root)
        self.studies: dict[str, Study] = {s.name: s for s in planned.load_studies(studies, scale, overrides)}
        self._overrides = overrides
        self.cells: dict[str, list[Cell]] = {name: grid.expand(study) for name, study in self.studies.items()}
        restricted = {name: grid.without_missing(study, self.cells[name]) for name, study in self.studies.items()}
        # Studies whose data sets can't all be had, as far as they can be built.
        self.partial = {name: study for name, study in restricted.items() if study.left_out}
        self.missing = sorted({dataset for study in self.partial.values() for dataset in study.left_out})
        self._reduced = {name: grid.expand(study) for name, study in self.partial.items()}
        self.by_path: dict[str, Cell] = {
            str(cell.path): cell for study in restricted.values() for cell in self.cells_of(study)
        }
        named = {cell.dataset for cells in self.cells.values() for cell in cells if cell.dataset}
        self.datasets = {name: catalogue.load(name) for name in sorted(named - set(self.missing))}
        # All studies share their scale and the folders of results and figures.
        shared = next(iter(self.studies.values())).config
        self.scale, self.root, self.figure_root = shared["scale"], Path(shared["root"]), Path(shared["figure_root"])

    def arguments(self, path: str) -> str:
        """Return the arguments of `privpost` that compute the cell at a path, ready for a shell.

        Raises KeyError, naming the path, for a cell that no study's grid contains.
        """
        if path not in self.by_path:
            raise KeyError(f"{path} is not a cell of any study's grid")
        cell = self.by_path[path]
        words = [*cell.command(), *self._overrides, f"expect='{cell.digest}'"]
        return " ".join(shlex.quote(word) for word in words)

    def batches(self, size: int) -> list[Batch]:
        """Return every study's cells as shards of at most `size` cells.

        They follow from the grids alone: whatever is in the store, each job of a cluster finds the same ones. Raises
        SettingError for a size that is no whole number of at least 1.
        """
        size = Schema(batch=Integer(at_least=1)).value("batch", size, "--config")
        batches = []
        for study in self.tabulated:
            cells = self.cells_of(study)
            count = -(-len(cells) // size)
            batches += [Batch(study, i, count, grid.shard_of(cells, i, count)) for i in range(1, count + 1)]
        return batches

    def batch_arguments(self, batch: Batch) -> str:
        """Return the arguments of `privpost` that compute a batch, ready for a shell."""
        scale = [f"scale={self.scale}"] * (self.scale != "paper")
        expect = f"expect='{grid.joint_digest(batch.cells)}'"
        words = [f"study={batch.study.name}", *scale, *self._overrides, f"shard={batch.number}/{batch.count}", expect]
        return " ".join(map(shlex.quote, ["-m", *words]))

    def needed(self, *paths: str) -> list[str]:
        """Return the prepared data and the ledgers that computing the cells at some paths takes.

        Cells in the store take none. (`ancient()` would not do: where its producer runs, Snakemake 9 overlooks that the
        cell itself is missing.)
        """
        missing = [path for path in paths if not Path(path).exists()]
        datasets = {self.by_path[path].dataset for path in missing} - {None}
        readers = {self.by_path[path].study for path in missing if self.by_path[path].reads}
        read = {str(path) for name in readers for path in self._read_by(self.partial.get(name, self.studies[name]))}
        return [str(PREPARED / f"{dataset}.npz") for dataset in sorted(datasets)] + sorted(read)

    def _read_by(self, study: Study) -> list[Path]:
        """Return the ledgers that a study's cells read, of the studies that are built."""
        built = {other.name for other in self.tabulated}
        return [ledgers.path_of(other) for other in grid.read_by(study) if other.name in built]

    def raw_files(self, dataset: str) -> list[str]:
        """Return the raw files of a data set."""
        return [str(RAW / dataset / file.name) for file in self.datasets[dataset].files]

    @property
    def tabulated(self) -> list[Study]:
        """The studies whose tables are made: whole where all data can be had, else without the missing ones."""
        studies = [self.partial.get(name, study) for name, study in self.studies.items()]
        return [study for study in studies if self.cells_of(study)]

    @property
    def drawn(self) -> list[Study]:
        """The studies whose figures are drawn: those that are tabulated, and those whose whole tables are shipped."""
        shipped = [self.studies[name] for name in self.partial]
        return self.tabulated + [study for study in shipped if all(map(Path.is_file, table_files(study)))]

    @property
    def standing(self) -> list[Study]:
        """The studies whose whole tables can be relied on: made here, or shipped."""
        return [study for study in self.drawn if not study.left_out]

    def cells_of(self, study: Study) -> list[Cell]:
        """Return the cells of a study, without those on data that it leaves out."""
        return (self._reduced if study.left_out else self.cells)[study.name]

    def cell_paths(self, study: Study) -> list[str]:
        return [str(cell.path) for cell in self.cells_of(study)]

    def table_stamp(self, study: Study) -> str:
        """Return a stamp older than everything while the study's tables are whole and show the current grid, else new.

        On a clone, shipped tables therefore stand without a single cell.
        """
        cells, path = self.cells_of(study), study.grid_path()
        altered = manifest.altered(study) if path.is_file() else []
        shown = manifest.shows(study, cells) and not altered
        # Snakemake looks at the content too: a newer stamp of the same content makes nothing anew.
        other = [] if shown or not path.is_file() else [hashlib.sha256(path.read_bytes()).hexdigest()]
        content = "\n".join([manifest.describe(study, cells), *altered, *other])
        stamp = Path(_content_stamp(STATE / study.table_root / f"{study.name}.grid", content))
        os.utime(stamp, (0, 0) if shown else None)
        if shown and not any(cell.path.exists() for cell in cells):
            self._date_after_inputs(study, cells)
        return str(stamp)

    def _date_after_inputs(self, study: Study, cells: Sequence[Cell]) -> None:
        """Make shipped tables no older than what their cells read: ledgers, which Git writes in any order, and data."""
        datasets = sorted({cell.dataset for cell in cells if cell.dataset} & set(self.datasets))
        data = [path for name in datasets for path in (PREPARED / f"{name}.npz", *map(Path, self.raw_files(name)))]
        read = [path for path in (*self._read_by(study), *data) if path.is_file()]
        newest = max((path.stat().st_mtime_ns for path in read), default=0)
        # Only their owner may date files.
        with contextlib.suppress(OSError):
            for path in [*table_files(study), ledgers.path_of(study)]:
                if path.stat().st_mtime_ns < newest:
                    os.utime(path, ns=(newest, newest))

    def figure_stamp(self, study: Study) -> str:
        """Return a stamp that is renewed when the code of the study's figures changes."""
        modules = [figure_module(study, stem) for stem in study.figures]
        content = provenance.source_digest(*modules) + repr(study.figures)
        return _content_stamp(STATE / study.table_root / f"{study.name}.figures", content)

    def report_stamp(self, name: str, *modules: str) -> str:
        """Return a stamp that is renewed when the code of a part of the report, or a study's own, changes."""
        content = provenance.source_digest(*modules) + self._studies_code
        return _content_stamp(STATE / self.root / f"{name}.report", content)

    @functools.cached_property
    def _studies_code(self) -> str:
        """The digest of all studies' code, which takes as long as the rest of a stamp."""
        return provenance.source_digest(*(study.target for study in self.studies.values()))

    def data_stamp(self, dataset: str) -> str:
        """Return a stamp that is renewed when a data set's identity or its loader's code changes."""
        content, loader = grid.canonical(self.datasets[dataset].identity()), f"privpost.datasets.{dataset}"
        content += provenance.source_digest(loader)
        known = (STATE / "data" / dataset).is_file()
        stamp = _content_stamp(STATE / "data" / dataset, content)
        # A new stamp makes shipped tables look outdated. Where nothing is prepared there is nothing to renew; a first
        # stamp is as old as the loader.
        if not (PREPARED / f"{dataset}.npz").is_file():
            os.utime(stamp, (0, 0))
        elif not known:
            edited = max((provenance.PACKAGE / file).stat().st_mtime_ns for file in provenance.source(loader))
            os.utime(stamp, ns=(edited, edited))
        return stamp


def table_files(study: Study) -> list[Path]:
    """Return the files that tabulating a study makes and other steps read."""
    return [study.grid_path(), *(study.table_path(table) for table in study.tables)]


def _content_stamp(path: Path, content: str) -> str:
    path.parent.mkdir(parents=True, exist_ok=True)
    if not path.is_file() or path.read_text(encoding="utf-8") != content:
        path.write_text(content, encoding="utf-8")
    return str(path)
