"""What a rebuild consists of: studies, data sets and files, read from the studies' own YAML without composing it."""

import functools
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from privpost import configurations
from privpost.datasets import catalogue, fetch
from privpost.lab import provenance
from privpost.lab.project import PREPARED, RAW
from privpost.lab.study import Study
from privpost.lab.tables import WRITING, times_path
from privpost.progress import some

TEMPLATES = Path("docs/templates")


@functools.cache
def _findable(name: str) -> bool:
    return fetch.findable(catalogue.load(name))


def datasets_of(study: Study) -> list[str]:
    """Return the names of the data sets that a study's YAML names for its scale."""
    text = study.text
    if study.scale == "smoke" and "sweep" in (text.get("smoke") or {}):
        text = {**text, "sweep": text["smoke"]["sweep"]}
    full = {key: value for key, value in text.items() if key != "smoke"}
    named = {name for value in _values(full, "dataset") for name in (value if isinstance(value, list) else [value])}
    swept = {name for value in _values(text.get("sweep"), "dataset") for name in value}
    names = swept or named | set(_defaults(text))
    return sorted(name for name in names if name in catalogue.names())


def _values(value: Any, key: str) -> Iterator[Any]:
    if isinstance(value, dict):
        if key in value:
            yield value[key]
        value = list(value.values())
    if isinstance(value, list):
        for item in value:
            yield from _values(item, key)


def _defaults(text: dict[str, Any]) -> list[str]:
    entries = (entry for entry in text.get("defaults") or [] if isinstance(entry, dict))
    return [entry["override /dataset"] for entry in entries if "override /dataset" in entry]


def datasets(*studies: Study) -> list[str]:
    """Return the data sets that some studies name and that can be had."""
    return sorted({name for study in studies for name in datasets_of(study) if _findable(name)})


def missing(*studies: Study) -> list[str]:
    """Return the data sets of some studies that cannot be had."""
    return sorted({name for study in studies for name in datasets_of(study) if not _findable(name)})


def bring(*studies: Study) -> None:
    """Ask the publishers for the data sets of some studies that are not here; a line tells of each in vain."""
    names = [name for name in missing(*studies) if any(file.urls for file in catalogue.load(name).files)]
    for name in names:
        try:
            fetch.fetch(catalogue.load(name))
        except fetch.FetchError as error:
            print(str(error).splitlines()[0], file=sys.stderr)
    _findable.cache_clear()


def lacking(*studies: Study) -> list[str]:
    """Return a line for each data set that cannot be had: its files, where they belong, and what is left out."""
    lines = []
    for name in missing(*studies):
        dataset = catalogue.load(name)
        files = ", ".join(file.name for file in dataset.files)
        without = [study.name for study in studies if name in datasets_of(study)]
        again = f"privpost fetch {name} says more"
        lines.append(
            f"{name}: left out, since {files} is neither in {catalogue.ORIGINAL}/{dataset.place}/ nor in "
            f"{catalogue.OWN}/{dataset.place}/ ({again}); its cells are missing in {some(without)}"
        )
    return lines


def possible(studies: Iterable[Study]) -> list[Study]:
    """Return the studies that have a data set, or need none."""
    return [study for study in studies if datasets(study) or not datasets_of(study)]


def raw_files(dataset: str) -> list[str]:
    """Return the raw files of a data set."""
    return list(map(str, fetch.raw_paths(catalogue.load(dataset), RAW)))


def prepared_files(study: Study) -> list[str]:
    """Return the prepared data of a study's data sets that can be had."""
    return [str(PREPARED / f"{name}.npz") for name in datasets(study)]


def networks() -> list[str]:
    """Return the settings of the networks that studies may name."""
    return sorted(map(str, (configurations.folder() / "network").glob("*.yaml")))


def table_files(study: Study) -> list[str]:
    """Return what tabulating a study makes: its tables, its ledger and the times of its cells."""
    paths = [*map(study.table_path, study.tables), study.ledger_path, times_path(study)]
    return [str(path) for path in paths]


def figure_files(study: Study) -> list[str]:
    """Return the figures of a study."""
    return [str(study.figure_path(stem)) for stem in study.figures]


def code_of(study: Study) -> str:
    """Return a digest of the code that a study's cells and tables depend on."""
    named = [f"privpost.datasets.{name}" for name in datasets_of(study)]
    modules = [f"{study.package}.study", f"{study.package}.documents", *provenance.ALWAYS, *WRITING, *named]
    if provenance.discovers(modules):
        modules += [f"privpost.mechanisms.{path.stem}" for path in (provenance.PACKAGE / "mechanisms").glob("*.py")]
    return provenance.text_digest(modules)


def figure_code_of(study: Study) -> str:
    """Return a digest of the code that a study's figures depend on."""
    return provenance.text_digest([f"{study.package}.figures", "privpost.drawing.style"])


def score_code_of(studies: list[Study]) -> str:
    """Return a digest of the code that scores the claims of some studies."""
    modules = [f"{study.package}.claims" for study in studies] + [
        f"privpost.experiments.{s.paper}.claims" for s in studies
    ]
    scoring = ["privpost.lab.claims", "privpost.report.scorecard", "privpost.report.reasons"]
    return provenance.text_digest([*modules, *scoring])


def report_code() -> str:
    """Return a digest of the code of documents and report."""
    folder = provenance.PACKAGE / "report"
    return provenance.text_digest(
        ".".join(("privpost", *path.relative_to(provenance.PACKAGE).with_suffix("").parts))
        for path in folder.rglob("*.py")
    )


def templates(pattern: str) -> list[str]:
    """Return the files of docs/templates that fit a pattern."""
    return sorted(str(path) for path in TEMPLATES.glob(pattern) if path.is_file())


def document_files(home: Path) -> list[str]:
    """Return README.md and the documents that are rendered below a folder."""
    names = [path.name.removesuffix(".md.in") for path in sorted(TEMPLATES.glob("*.md.in"))]
    return [f"{home}/documents/README.md" if name == "README" else f"{home}/documents/docs/{name}.md" for name in names]
