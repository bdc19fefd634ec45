"""The scorecard: all claims of all studies, with verdicts that are computed from tables."""

import importlib
import importlib.util
import json
import math
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from privpost.lab import claims, grid, store, tables
from privpost.lab.claims import SEEN, VERDICTS, Claim
from privpost.lab.study import Study
from privpost.report import reasons

COLUMNS = (
    "id", "paper", "whose", "study", "place", "statement", "test", "verdict", "by", "reason", "checks", "failed",
    "why", "unexplained", "see", "evidence", "variant", "stand_in", "seen",
)  # fmt: skip
# Verdict in the row of a study without tables.
NOT_SCORED = "not scored"
# Verdicts, and outcomes on data that stand in for the paper's own, from the worst to the best.
SEVERITY = ("does not hold", "holds in part", "not seen", "not testable", NOT_SCORED, "holds", "seen")
PAPERS = {
    "foulds2016": "Foulds, Geumlek, Welling and Chaudhuri (2016), On the Theory and Practice of Privacy-Preserving "
    "Bayesian Data Analysis, UAI, arXiv:1603.07294",
    "zhang2016": "Zhang, Rubinstein and Dimitrakakis (2016), On the Differential Privacy of Bayesian Inference, AAAI, "
    "arXiv:1512.06992",
    "geumlek2017": "Geumlek, Song and Chaudhuri (2017), Rényi Differential Privacy Mechanisms for Posterior Sampling, "
    "NIPS, arXiv:1710.00892",
    "bernstein2018": "Bernstein and Sheldon (2018), Differentially Private Bayesian Inference for Exponential "
    "Families, NeurIPS, arXiv:1809.02188",
    "audit": "Beyond the papers: claimed against proved privacy loss, every mechanism",
    "fair_axis": "Beyond the papers: every mechanism at the same (ε, δ)",
    "noise_aware": "Beyond the papers: noise-aware inference for the other papers' models",
}
# The name of a standard error in evidence.
_ERROR = re.compile(r"(^|: )(its standard error|standard error|sem)(,|$)")
# Names of papers in headings and links.
NAMES = {
    "foulds2016": "Foulds et al. 2016",
    "zhang2016": "Zhang et al. 2016",
    "geumlek2017": "Geumlek et al. 2017",
    "bernstein2018": "Bernstein and Sheldon 2018",
    "audit": "Privacy audit",
    "fair_axis": "All mechanisms at the same (ε, δ)",
    "noise_aware": "Noise-aware inference",
}
# Chapter of a claim by the first letter of the claim's id.
CHAPTERS = {
    "F": "foulds2016", "Z": "zhang2016", "G": "geumlek2017", "B": "bernstein2018",
    "A": "audit", "N": "noise_aware", "X": "fair_axis",
}  # fmt: skip
# Number of digits of evidence. Six digits are the same on all types of CPU.
DIGITS = 6


class Scored(NamedTuple):
    """The claims of a study. If tables are missing, `claims` is None and `lacking` is the reason."""

    study: str
    claims: Sequence[Claim] | None
    lacking: str = ""

    @property
    def paper(self) -> str:
        return self.study.split("/")[0]


def score(studies: Iterable[Study]) -> list[Scored]:
    """Score the claims of each study, and then each paper's claims over several studies.

    Claims over several studies are in `experiments/<paper>/claims.py`. They read the tables of the paper's studies and
    of the studies that `READS` names. Claims on tables of removed studies are left out. Raises SettingError if
    a claim's function fails.
    """
    scored, frames = [], {}
    studies = sorted(studies, key=lambda study: paper_order(study.name))
    for study in studies:
        try:
            frames[study.name] = tables.read_tables(study)
        except FileNotFoundError as error:
            scored.append(Scored(study.name, None, str(error)))
            continue
        scored.append(Scored(study.name, claims_of(study, frames[study.name])))
    for paper in sorted({study.paper for study in studies}, key=paper_order):
        module = f"privpost.experiments.{paper}.claims"
        if importlib.util.find_spec(module) is None:
            continue
        declared = importlib.import_module(module)
        known = grid.study_names()
        read = [name for name in known if name.startswith(f"{paper}/") or name in getattr(declared, "READS", ())]
        # A rebuild of only some studies does not score claims over several studies.
        if {*read} - {study.name for study in studies}:
            continue
        if lacking := [name for name in read if name not in frames]:
            scored.append(Scored(f"{paper}/claims", None, f"the tables of {', '.join(lacking)} are missing"))
        else:
            joined = {table: frame for name in read for table, frame in frames[name].items()}
            scored.append(Scored(f"{paper}/claims", claims.score(declared, joined, f"{paper}/claims", partly=True)))
    return scored


def claims_of(study: Study, frames: Mapping[str, Any], unscored: dict[str, str] | None = None) -> list[Claim]:
    """Return a study's claims, scored on given tables. Reasons why claims cannot be scored are added to `unscored`."""
    return claims.score(study.module("claims"), frames, study.name, unscored=unscored) if study.has("claims") else []


def table(scored: Iterable[Scored]):
    """Return the scorecard as a DataFrame of strings with columns `COLUMNS` and one row per claim.

    `whose` is "paper" for a claim of a paper and "ours" for a claim of this project. `paper` is the claim's chapter,
    and `checks` the number of checks. The columns `by`, `evidence`, `failed` and `unexplained` are JSON. A study
    without tables has one row, without id, with the verdict `NOT_SCORED`. Raises ValueError if two ids are equal.
    """
    import pandas as pd

    rows, owner = [], {}
    for study, of_study, lacking in scored:
        fixed = {"paper": study.split("/")[0], "study": study}
        if of_study is None:
            rows.append({**dict.fromkeys(COLUMNS, ""), **fixed, "verdict": NOT_SCORED, "reason": lacking})
            continue
        for claim in of_study:
            if claim.id in owner:
                raise ValueError(
                    f"the claim {claim.id} is scored by {owner[claim.id]} and by {study}; every claim has one study"
                )
            owner[claim.id] = study
            known = reasons.of(claim.id, reasons.read(fixed["paper"]))
            texts, unexplained, idle = reasons.explain(claim, known)
            sees = dict.fromkeys(reason.see for reason in known if reason.see and reason not in idle)
            rows.append(
                {
                    **{name: getattr(claim, name, "") for name in COLUMNS},
                    **fixed,
                    "paper": chapter(claim.id, study),
                    "whose": "ours" if claim.place.startswith("ours") else "paper",
                    "why": " ".join(texts),
                    "see": " ".join(sees),
                    "unexplained": json.dumps(unexplained, ensure_ascii=False),
                    "checks": str(len(claim.checks)),
                    "by": json.dumps(claim.by, ensure_ascii=False) if claim.by else "",
                    "failed": json.dumps(claim.failed, ensure_ascii=False),
                    "evidence": json.dumps(plain(claim.evidence), ensure_ascii=False, allow_nan=False),
                    "stand_in": "yes" if claim.stand_in else "in part" if claim.seen else "no",
                }
            )
    rows.sort(key=lambda row: (paper_order(row["paper"]), _natural(row["id"]) if row["id"] else ("~", 0, "")))
    return pd.DataFrame(rows, columns=list(COLUMNS), dtype=object)


def chapter(id: str, study: str) -> str:
    """Return a claim's chapter, given the claim's id and its study."""
    paper = study.split("/", maxsplit=1)[0]
    return CHAPTERS.get(id[:1], paper) if paper in CHAPTERS.values() else paper


def paper_order(name: str) -> tuple:
    """Return a sort key that puts papers in the order of their years, and other studies last."""
    paper = name.split("/", maxsplit=1)[0]
    year = re.search(r"(\d{4})$", paper)
    # Two papers are of the same year.
    first = {"foulds2016": 0, "zhang2016": 1}.get(paper, 2)
    return (int(year[1]) if year else 9999, first, name)


def _natural(id: str) -> tuple:
    match = re.fullmatch(r"(\D*)(\d+)(.*)", id)
    return (match[1], int(match[2]), match[3]) if match else (id, 0, "")


def plain(value: Any) -> Any:
    """Return evidence in a form for JSON, where numbers are rounded, and infinite numbers and NaN are words."""
    value = claims.plain(value)
    if isinstance(value, Mapping):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, list):
        return [plain(item) for item in value]
    if isinstance(value, bool | int | str) or value is None:
        return value
    if isinstance(value, float):
        if math.isnan(value):
            return "not a number"
        return float(f"{value:.{DIGITS}g}") if math.isfinite(value) else str(value)
    raise ValueError(f"evidence holds {value!r} of type {type(value).__name__}, which is not JSON-able")


def write(scored: Iterable[Scored], path: Path) -> Path:
    """Write the scorecard of some studies as a CSV file, and return the path of this file."""
    store.write_text(path, table(scored).to_csv(index=False, lineterminator="\n"))
    return path


def read(path: Path):
    """Return a scorecard from its CSV file, with strings in all columns. Raise FileNotFoundError without the file."""
    import pandas as pd

    tables.check_there(path)
    return pd.read_csv(path, dtype=str, keep_default_na=False)


def explanation(row) -> str:
    """Return a text on why a claim does not hold, given the claim's row of the scorecard."""
    if not row.why:
        return row.reason
    unexplained = json.loads(row.unexplained)
    return row.why + (f" No cause is known for: {'; '.join(unexplained)}." if unexplained else "")


def tally(row) -> str:
    """Return words on how many of a claim's checks fail, or "" if no check fails."""
    failed = json.loads(row.failed or "[]")
    return f"{len(failed)} of {row.checks} checks fail" if failed else ""


def evidence_rows(evidence: Mapping[str, Any] | str) -> list[tuple[str, str]]:
    """Return a claim's evidence (a map or JSON) as rows. Each has a name and "value ± standard error"."""
    # In the evidence, a standard error follows its value. Nested names are joined by a colon.
    numbers = json.loads(evidence or "{}") if isinstance(evidence, str) else plain(evidence)
    rows: list[tuple[str, Any, Any]] = []
    for name, value in leaves(numbers):
        if rows and _ERROR.search(name) and isinstance(value, float) and isinstance(rows[-1][1], float | int):
            rows[-1] = (*rows[-1][:2], value)
        else:
            rows.append((name, value, None))
    return [_listed(name, value) if isinstance(value, list) else (name, _with_error(value, error))
            for name, value, error in rows]  # fmt: skip


def leaves(value: Mapping[str, Any], between: str = ": ", prefix: str = "") -> Iterator[tuple[str, Any]]:
    """Yield a name and a value for each value in nested maps. The name joins all names that lead to the value."""
    for name, item in value.items():
        if isinstance(item, Mapping):
            yield from leaves(item, between, f"{prefix}{name}{between}")
        else:
            yield f"{prefix}{name}", item


def _listed(name: str, values: list) -> tuple[str, str]:
    """Return the name and the text of a list in the evidence."""
    # A name such as "behind at (epsilon, delta)" labels the parts of each entry of the list. A name that ends in
    # ": rows, margin" labels the entries. If the name contains "smallest and largest", the text is a range.
    inside, last = re.search(r" ?\(([^()]+)\)$", name), name.rpartition(": ")[2].split(", ")
    if inside and "," in inside[1]:
        labels, name = inside[1].split(", "), name[: inside.start()]
        return name, "; ".join(_entry(labels, value) for value in values) or "none"
    if len(last) == len(values) and ": " in name:
        return name.rpartition(": ")[0], _entry(last, values)
    between = " to " if "smallest and largest" in name or "largest and smallest" in name else ", "
    return name, between.join(_with_error(value, None) for value in values) or "none"


def _entry(labels: Sequence[str], values: Sequence) -> str:
    """Return labels and values as one text, such as "order 100, log epsilon −5: 0.0151 ± 0.0013"."""
    error = values[-1] if labels[-1] == "standard error" else None
    if error is None:
        return ", ".join(f"{label} {_with_error(value, None)}" for label, value in zip(labels, values, strict=True))
    return f"{_entry(labels[:-2], values[:-2])}: {_with_error(values[-2], error)}"


def _with_error(value: Any, error: float | None) -> str:
    """Return a value as text to four digits or, with a standard error, to the second digit of this error."""
    if error and not isinstance(value, str) and math.isfinite(error):
        places = max(0, 1 - math.floor(math.log10(error)))
        if places <= DIGITS:
            return f"{value:.{places}f} ± {error:.{places}f}".replace("-", "−")
        return f"{value:.4g} ± {error:.2g}".replace("-", "−")
    return f"{value:.4g}".replace("-", "−") if isinstance(value, float) else str(value)


def changes(before, after, partial=frozenset(), scored=frozenset()) -> list[str]:
    """Return a line for each claim whose verdict changed between two scorecards, which are DataFrames.

    A study is compared if it is in `scored` or has claims in `after`. Studies in `partial`, which were built although
    data sets were missing, are left out.
    """
    after = after[~after.study.isin(partial)]
    before = before[before.study.isin({*after.study, *scored} - {*partial})]
    old, new = ({row.id: outcome(row) for row in card.itertuples()} for card in (before, after))
    lines = []
    for id in sorted({*old, *new} - {""}, key=_natural):
        if id not in old:
            lines.append(f"{id}: new, {new[id]}")
        elif id not in new:
            lines.append(f"{id}: was {old[id]}, is not scored any more")
        elif old[id] != new[id]:
            lines.append(f"{id}: was {old[id]}, now {new[id]}")
    return lines


def outcome(claim) -> str:
    """Return the verdict on a claim, and any different outcome on data that stand in for the paper's own."""
    return ", ".join(dict.fromkeys(word for word in (claim.verdict, getattr(claim, "seen", "")) if word))


def of_papers(card):
    """Return the rows of a scorecard with the claims that papers make."""
    return card[card.whose == "paper"]


def counts(card) -> dict[str, int]:
    """Return the number of claims with each verdict, and with each outcome on stand-in data."""
    claims = card[card.id != ""]
    verdicts = {verdict: int((claims.verdict == verdict).sum()) for verdict in VERDICTS}
    return verdicts | {seen: int((claims.seen == seen).sum()) for seen in SEEN}


def in_words(counts: Mapping[str, int]) -> str:
    """Return the number of claims with each verdict as text, such as "1 holds, 2 do not hold"."""
    many = {"holds": "hold", "holds in part": "hold in part", "does not hold": "do not hold"}
    shown = ((count, verdict if count == 1 else many.get(verdict, verdict)) for verdict, count in counts.items())
    said = (f"{count} {words}" for count, words in shown if count)
    return ", ".join(said) or "none scored"
