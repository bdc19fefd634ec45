"""Describes studies: their settings with sources, their data sets, and the limits of their results."""

import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from privpost import discovery
from privpost.datasets import catalogue
from privpost.lab import grid, provenance
from privpost.lab.study import SIZES, Study

# Words for the relations between neighbouring data sets that mechanisms declare.
RELATIONS = {"substitution": "one record substituted, n public", "add/remove": "one record added or removed"}
NOTIONS = {"pure": "pure ε-DP", "rdp": "(λ, ε)-RDP", "approximate": "(ε, δ)-DP"}
SOURCES = ("paper", "author code", "reconstructed", "ours")
# Columns of tables that depend only on settings and public numbers.
PUBLIC_COLUMNS = (
    *("stand_in", "n_repeats", "n_splits", "n_train", "metric", "score", "model", "replication", "sampling"),
    *("epsilon", "delta", "order", "radius", "coefficient", "temperature", "worst_case_epsilon"),
    *("guarantee", "uses_private_metadata"),
)
_SOURCE = re.compile(rf"^({'|'.join(SOURCES)})\b")


class Setting(NamedTuple):
    """A setting in a study's YAML file, with the source of its value and a note on the source."""

    section: str
    name: str
    value: str
    source: str
    note: str


def settings(study: Study) -> list[Setting]:
    """Return the settings and axes in a study's YAML file, each with the comment beside or above it.

    A comment begins with one of `SOURCES`. The comment `paper; prior: author code` gives the setting `prior` another
    source. An axis without a comment has the comment above its block, or else the last comment above an earlier block.
    """
    import yaml

    text = Path(study.file).read_text(encoding="utf-8")
    lines = text.splitlines()
    # The base value of an axis is left out, since the grid does not use it as a setting.
    axes = _axes(study)
    left_out = {*grid.DESCRIPTION, "rev", "smoke", "defaults", "common", *axes}
    rows = []
    for key, value in yaml.compose(text).value:
        if key.value in left_out:
            continue
        blocks = value.value if key.value == "sweep" and isinstance(value, yaml.SequenceNode) else [value]
        if key.value in ("sweep", "within"):
            above = ""
            for place, block in enumerate(blocks, start=1):
                section = key.value if len(blocks) == 1 else f"{key.value} {place}"
                above = _above(lines, block.start_mark.line) or above
                for axis, values in block.value:
                    first = axis.start_mark.line
                    source, note = _split(_comment(lines, first, values.end_mark) or _above(lines, first), axis.value)
                    if not source:
                        source, of_block = _split(above, axis.value)
                        note = note or of_block
                    rows.append(Setting(section, axis.value, _source_text(text, values), source, note))
        else:
            note = _comment(lines, key.start_mark.line, value.end_mark) or _above(lines, key.start_mark.line)
            rows.append(Setting("setting", key.value, _source_text(text, value), *_split(note, key.value)))
    return rows


def _axes(study: Study) -> set[str]:
    sweep = study.text.get("sweep") or {}
    blocks = sweep if isinstance(sweep, list) else [sweep]
    return {*(study.text.get("within") or {}), *(axis for block in blocks for axis in block)}


def _source_text(text: str, node) -> str:
    raw = text[node.start_mark.index : node.end_mark.index]
    return " ".join(re.sub(r"\s#.*", "", raw).split())


def _comment(lines: list[str], first: int, end) -> str:
    """Return the comment on the lines of a value, or "" if there is none."""
    # A value that is a block ends before the next key.
    last = end.line if end.column else end.line - 1
    for line in lines[first : max(first, last) + 1]:
        if match := re.search(r"\s#\s*(.*)$", line):
            return match[1]
    return ""


def _above(lines: list[str], first: int) -> str:
    words: list[str] = []
    while first > 0 and lines[first - 1].strip().startswith("#"):
        first -= 1
        words.insert(0, lines[first].strip().lstrip("# "))
    return " ".join(words)


def _split(note: str, name: str) -> tuple[str, str]:
    """Return a setting's source, as a comment states it, and the comment's other text."""
    # A source after the setting's name takes precedence.
    match = _SOURCE.match(note)
    source, text = (match[1], note[match.end() :].lstrip(":,; ")) if match else ("", note)
    of_setting = re.search(rf"(?:^|[;,] ){re.escape(name)}: ({'|'.join(SOURCES)})\b", note)
    return (of_setting[1] if of_setting else source, text)


def data_notes(studies: Iterable[Study]) -> list[dict[str, str]]:
    """Return, for each data set that studies read, a map with title, kind, licence and origin."""
    notes = []
    for name in sorted({name for study in studies for name in study.datasets}):
        data = catalogue.load(name)
        notes.append(
            {
                "name": name,
                "title": data.title,
                "kind": "stands in for the paper's data" if data.stand_in else "the paper's own data",
                "here": _here(data),
                "licence": data.licence,
                "citation": " ".join(data.citation.split()),
                "origin": data.origin,
            }
        )
    return notes


def _here(data: catalogue.Dataset) -> str:
    """Return in words which part of a data set the repository contains."""
    if data.access == "generated":
        return "drawn anew"
    if data.access == "bring-your-own":
        return "nothing: each user obtains it"
    return "counts" if data.instead else "original files"


def validity_notes(study: Study, tables: Mapping[str, Any], data: list[dict[str, str]]) -> list[str]:
    """Return notes on what a reader has to know before trusting the numbers in a study's tables.

    Here `tables` are the study's DataFrames by name, and `data` is the result of `data_notes`. The list `NOTES` in the
    study's module can add notes.
    """
    notes = [
        f"{note['title']} stands in for the paper's own data." for note in data if note["kind"].startswith("stands")
    ]
    columns = {column for table in tables.values() for column in table.columns}
    notes += _sampling_notes(tables, _runs_chains(f"{study.package}.study"))
    private = sorted(_variants_with_private_metadata(tables))
    if private:
        notes.append(f"Uses private metadata (bounds, levels or counts read off the records): {', '.join(private)}.")
    if _column(tables, "guarantee", "if_converged"):
        notes.append("Some releases have their guarantee only if the Markov chain has converged: column `guarantee`.")
    for name, listed in unreleased(study, tables).items():
        notes.append(
            f"Table {name}, computed from the records themselves, to evaluate or diagnose, and covered by no release: "
            f"{', '.join(listed)}."
        )
    if any(column.endswith("sem") for column in columns):
        notes.append("Means carry their Monte Carlo standard error in the table.")
    notes.append("Noise is simulated: numpy's generators, floating-point Laplace and Gaussian draws.")
    return notes + [str(note) for note in getattr(study.module(), "NOTES", ())]


def unreleased(study: Study, tables: Mapping[str, Any]) -> dict[str, list[str]]:
    """Return the columns of each table that are computed from real people's records without a private release."""
    if not study.datasets:
        return {}
    # Settings, axes and `PUBLIC_COLUMNS` follow from public numbers alone.
    public = {*study.schema.fields, *SIZES, *_axes(study), *PUBLIC_COLUMNS}
    return {name: [column for column in table.columns if column not in public] for name, table in tables.items()}


def _text(module: str) -> str:
    """Return the source text of a module, or "" if the module has no file."""
    path = provenance.file_of(module)
    return provenance.text_of(path) if path else ""


def _runs_chains(module: str) -> bool:
    """Return whether a study's module imports a sampler that is not declared `EXACT`."""
    # Imports through other experiments count too.
    waiting, seen = [module], set()
    while waiting:
        if (name := waiting.pop()) not in seen:
            seen.add(name)
            waiting += [other for other in provenance.imports(_text(name)) if other.startswith("privpost.experiments.")]
    samplers = {n for module in seen for n in provenance.imports(_text(module)) if n.startswith("privpost.samplers.")}
    return any(_text(name) and not _declares_exact(name) for name in samplers if not _is_folder(name))


def _is_folder(module: str) -> bool:
    path = provenance.file_of(module)
    return path is not None and path.name == "__init__.py"


def _declares_exact(module: str) -> bool:
    return "\nEXACT = True\n" in _text(module)


def neighbours() -> str:
    """Return words for the neighbouring relations of all mechanisms. Raise ValueError for an unknown relation."""
    methods: dict[str, set[str]] = {}
    for kind in discovery.kinds():
        relation = kind.mechanism.neighbours
        if relation not in RELATIONS:
            raise ValueError(f"{kind.name}: neighbours is {relation!r}; known: {', '.join(RELATIONS)}")
        methods.setdefault(relation, set()).add(kind.method)
    if len(methods) == 1:
        return RELATIONS[next(iter(methods))]
    return "; ".join(f"{RELATIONS[name]} ({', '.join(sorted(methods[name]))})" for name in RELATIONS if name in methods)


def _sampling_notes(tables: Mapping[str, Any], chains: bool) -> list[str]:
    rhats = [_numbers(table[c]) for table in tables.values() for c in table.columns if c.startswith("rhat")]
    sizes = [_numbers(table[c]) for table in tables.values() for c in ("ess_min", "ess_bulk") if c in table]
    sampling = [kind for table in tables.values() if "sampling" in table for kind in table["sampling"].dropna()]
    run = sampling.count("mcmc")
    if not chains and not rhats and not run:
        return ["Draws are exact: no Markov chain is involved."]
    where = f" in {run} of {len(sampling)} rows (column `sampling`)" if 0 < run < len(sampling) else ""
    text = f"Draws come from Markov chains{where}: they follow the stated law only at convergence."
    if any(len(values) for values in rhats):
        text += f" Largest R-hat in the tables: {max(values.max() for values in rhats if len(values)):.3f}."
    if unknown := sum(_not_known(table) for table in tables.values()):
        text += f" R-hat is not known in {unknown} rows, which is no agreement."
    if any(len(values) for values in sizes):
        text += f" Smallest effective sample size: {min(values.min() for values in sizes if len(values)):.0f}."
    return [text]


def _variants_with_private_metadata(tables: Mapping[str, Any]) -> set[str]:
    names: set[str] = set()
    for table in (table for table in tables.values() if "uses_private_metadata" in table):
        rows = table[table.uses_private_metadata.astype(str) == "True"]
        if len(rows):
            names |= {f"variant {name}" for name in rows.variant.dropna()} if "variant" in rows else {"all rows"}
    return names


def _column(tables: Mapping[str, Any], name: str, value: str) -> bool:
    return any(name in table and (table[name] == value).any() for table in tables.values())


def _not_known(table) -> int:
    """Return the number of rows on Markov chains that have no R-hat."""
    columns = [name for name in table.columns if name.startswith("rhat")]
    return int(table.loc[table["sampling"] == "mcmc", columns].isna().sum().sum()) if "sampling" in table else 0


def _numbers(column):
    """Return the numbers in a column that may also contain words."""
    import pandas as pd

    return pd.to_numeric(column, errors="coerce").dropna()
