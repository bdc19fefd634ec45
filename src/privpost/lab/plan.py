"""Plans a rebuild, with its studies, data sets and files, from the studies' YAML files."""

import functools
import hashlib
import json
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import yaml

from privpost import configurations, lookup
from privpost.datasets import catalogue, fetch
from privpost.lab import grid, provenance
from privpost.lab.project import PREPARED, built
from privpost.lab.published import expected_seconds
from privpost.lab.schema import SettingError
from privpost.lab.study import Study, findable
from privpost.lab.tables import WRITING, times_path
from privpost.progress import some

TEMPLATES, REPORT = Path("docs/templates"), provenance.PACKAGE / "report"
# A rebuild starts with some studies of a few seconds each, to learn how fast the machine is.
SAMPLES, SHORTEST, LONGEST, SAMPLED = 6, 3, 15, 10**5


def datasets(*studies: Study) -> list[str]:
    """Return the data sets that some studies name and that are available."""
    return sorted({name for study in studies for name in study.datasets}.difference(missing(*studies)))


def missing(*studies: Study) -> list[str]:
    """Return the data sets that some studies name and that are not available."""
    return sorted({name for study in studies for name in study.lacking})


def bring(*studies: Study) -> None:
    """Download the missing data sets of some studies from their publishers, and print a line for each failure."""
    names = [name for name in missing(*studies) if any(file.urls for file in catalogue.load(name).files)]
    for name in names:
        try:
            fetch.fetch(catalogue.load(name))
        except fetch.FetchError as error:
            print(str(error).splitlines()[0], file=sys.stderr)
    findable.cache_clear()


def lacking(*studies: Study) -> list[str]:
    """Return a line for each missing data set, with its files, their folders, and the studies that lack cells."""
    lines = []
    for name in missing(*studies):
        dataset = catalogue.load(name)
        files = ", ".join(file.name for file in dataset.files)
        without = [study.name for study in studies if name in study.datasets]
        again = f"privpost fetch {name} says more"
        lines.append(
            f"{name}: left out, since {files} is neither in {catalogue.ORIGINAL}/{dataset.place}/ nor in "
            f"{catalogue.OWN}/{dataset.place}/ ({again}); its cells are missing in {some(without)}"
        )
    return lines


def possible(studies: Iterable[Study]) -> list[Study]:
    """Return the studies that need no data set, and the studies with at least one available data set."""
    return [study for study in studies if datasets(study) or not study.datasets]


def prepared_files(*studies: Study) -> list[str]:
    """Return the paths of prepared data, one for each available data set of some studies."""
    return [str(PREPARED / f"{name}.npz") for name in datasets(*studies)]


@functools.cache
def find(name: str, scale: str) -> Study:
    """Return a study whose tables and figures are in the folder of the build."""
    return grid.load_study(name, scale, built(scale))


def chosen(names: Sequence[str] | str | None, scale: str, refusal: type[Exception] = SettingError) -> list[Study]:
    """Return the studies that a rebuild can build. `names` is a list or a text with commas; None means all studies.

    Raises `refusal` for an unknown study or scale, and for a study whose file cannot be read.
    """
    words = names.split(",") if isinstance(names, str) else names
    try:
        return possible(find(study.name, scale) for study in grid.load_studies(words, scale, built(scale)))
    except SettingError as error:
        raise refusal(str(error)) from None


@functools.cache
def read_by(name: str, scale: str) -> list[Study]:
    """Of the studies whose ledgers the named study reads, return those that can be built."""
    return possible(find(other, scale) for other in grid.names_read(find(name, scale)))


def parts(name: str, scale: str) -> list[str]:
    """Return the marker files of a study's parts. One job computes each part."""
    study = find(name, scale)
    return [str(parts_folder(study) / str(number)) for number in range(1, study.shards + 1)]


def parts_folder(study: Study) -> Path:
    """Return the folder of the marker files of a study's parts."""
    return study.home / "parts" / study.name


@functools.cache
def _ranks() -> dict[str, int]:
    seconds = {name: sum(map(sum, cells.values())) for name, cells in expected_seconds().items()}
    short = sorted((seconds[name], name) for name in seconds if SHORTEST < seconds[name] < LONGEST)
    samples = dict.fromkeys((name for _, name in short[:SAMPLES]), SAMPLED + 1)
    return {name: min(int(of_study), SAMPLED) for name, of_study in seconds.items()} | samples


def priority(name: str) -> int:
    """Return a study's priority. Short studies that show the machine's speed come first, then the longest studies."""
    return _ranks().get(name, 0)


def settings_digest(name: str, scale: str) -> str:
    """Return a digest of a study's settings that does not depend on the layout of the YAML files."""
    folder = configurations.folder()
    shared = [folder / f"{configurations.PRIMARY}.yaml", folder / "scale" / f"{scale}.yaml"]
    texts = [find(name, scale).text, *map(_settings, [*shared, *sorted((folder / "network").glob("*.yaml"))])]
    return _digest(texts)


def dataset_digest(name: str) -> str:
    """Return a digest of a data set's YAML file and of the code that parses the data."""
    return _digest([_settings(configurations.folder() / "dataset" / f"{name}.yaml"), provenance.loader_digest(name)])


@functools.cache
def _settings(path: Path) -> Any:
    return yaml.load(path.read_text(encoding="utf-8"), getattr(yaml, "CSafeLoader", yaml.SafeLoader))


def _digest(value: Any) -> str:
    # The order of keys counts, as it determines the order of a table's rows.
    return hashlib.sha256(json.dumps(value, default=str).encode()).hexdigest()[:16]


def table_files(study: Study) -> list[str]:
    """Return the files that tabulating a study writes: its tables, its ledger and the times of its cells."""
    paths = [*map(study.table_path, study.tables), study.ledger_path, times_path(study)]
    return [str(path) for path in paths]


def figure_files(study: Study) -> list[str]:
    """Return the files of a study's figures."""
    return [str(study.figure_path(stem)) for stem in study.figures]


def code_of(study: Study) -> str:
    """Return a digest of the code that a study's cells and tables depend on."""
    named = [f"privpost.datasets.{name}" for name in study.datasets]
    modules = [f"{study.package}.study", f"{study.package}.documents", *provenance.ALWAYS, *WRITING, *named]
    # A study that searches for mechanisms would also find a new mechanism.
    if provenance.PACKAGE / "discovery.py" in provenance.files(modules):
        modules += [f"privpost.mechanisms.{name}" for name in lookup.modules(provenance.PACKAGE / "mechanisms")]
    return provenance.text_digest(modules)


def figure_code_of(study: Study) -> str:
    """Return a digest of the code that a study's figures depend on."""
    return provenance.text_digest([f"{study.package}.figures", "privpost.drawing.style"])


def overall_digest(studies: list[Study]) -> str:
    """Return a digest of what scorecard, documents and report depend on: claims, code, reasons and templates."""
    claims = [f"{study.package}.claims" for study in studies]
    claims += [f"privpost.experiments.{study.paper}.claims" for study in studies]
    scoring = ["privpost.lab.claims", "privpost.report.scorecard", "privpost.report.reasons"]
    modules = (path.relative_to(provenance.PACKAGE).with_suffix("").parts for path in REPORT.rglob("*.py"))
    report = [".".join(("privpost", *parts)) for parts in modules]
    texts = [path.read_text(encoding="utf-8") for path in sorted(TEMPLATES.rglob("*.*")) if path.is_file()]
    return _digest([provenance.text_digest([*claims, *scoring]), provenance.text_digest(report), texts])
