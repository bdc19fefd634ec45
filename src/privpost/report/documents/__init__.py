"""README.md and docs/<name>.md from docs/templates/<name>.md.in: prose, measured numbers, tables made from results.

Placeholders are those of `report.quotes`. A module of the document's name in this folder may add more: its
`values(plan)` returns a map from names to texts.
"""

import importlib
import json
import re
from html import escape
from importlib import util
from pathlib import Path

from privpost.evaluation.rows import markdown
from privpost.lab import store
from privpost.lab.plan import Plan
from privpost.report import numbers, templates
from privpost.report.quotes import Quotes, number
from privpost.report.scorecard import read as read_scorecard

TEMPLATES = Path("docs/templates")
FOLDER = Path("docs")
ENDING = ".md.in"
MARKS = {"holds": "●", "holds in part": "◐", "does not hold": "✖", "not testable": "○", "not scored": "–"}


def sources() -> dict[str, Path]:
    """Return the template of each document by its name."""
    return {path.name.removesuffix(ENDING): path for path in sorted(TEMPLATES.glob(f"*{ENDING}"))}


def file(name: str) -> Path:
    """Return where a document stands: README.md above the others."""
    return Path("README.md") if name == "README" else FOLDER / f"{name}.md"


def files() -> list[Path]:
    """Return the files that `write` makes."""
    return [file(name) for name in sources()]


def render(plan: Plan, name: str) -> str:
    """Return a document's text; raises ValueError for a placeholder that names no number and no table."""
    template = sources()[name]
    return templates.render(template.read_text(encoding="utf-8"), quotes(plan, name), str(template))


def quotes(plan: Plan, name: str) -> Quotes:
    """Return all that a document may quote."""
    return Quotes(plan.root, numbers.read(plan.root), _verdicts(plan), _settings(plan), _own_values(plan, name))


def write(plan: Plan) -> list[Path]:
    """Write all documents; returns their paths."""
    for name in sources():
        store.write_text(file(name), render(plan, name))
    return files()


def modules() -> list[str]:
    """Return the modules that documents are made by."""
    own = (f"{__name__}.{name.lower()}" for name in sources())
    return [__name__, *(module for module in own if util.find_spec(module))]


def _own_values(plan: Plan, name: str) -> dict[str, object]:
    module = f"{__name__}.{name.lower()}"
    return dict(importlib.import_module(module).values(plan)) if module in modules() else {}


def _settings(plan: Plan) -> dict[str, int | float]:
    """Return the numbers that studies are set to, `setting/<study>.<key>`, and limits of the code, `limit/<name>`."""
    from privpost.evaluation.diagnostics import LARGEST_RHAT

    found = {f"{name}.{key}": value for name, study in plan.studies.items() for key, value in study.config.items()}
    numbers = {f"setting/{name}": value for name, value in found.items() if isinstance(value, int | float)}
    return {**numbers, "limit/R-hat": LARGEST_RHAT}


def _verdicts(plan: Plan) -> dict[str, str]:
    """Return the claims of each paper and study as a table, `verdicts/<paper>[/<study>]`; `claim/<id>` is a row."""
    card = read_scorecard(plan.root / "scorecard.csv")
    found = {f"verdicts/{name}": verdict_table(rows) for key in ("paper", "study") for name, rows in card.groupby(key)}
    found |= {f"tests/{name}": ks_tests(rows) for name, rows in card.groupby("paper")}
    return found | {f"claim/{id}": verdict_table(row).splitlines()[-1] for id, row in card.groupby("id")}


def ks_tests(card) -> str:
    """Return the KS tests behind the claims of `card` as a table, from their evidence (`claims.shared.ks_evidence`)."""
    lines = []
    for row in card.itertuples():
        evidence = json.loads(row.evidence)
        for name, total in evidence.items():
            if not (match := re.fullmatch(r"tests of (.+?) that reject(, .+)?", name)):
                continue
            what, where = match[1], match[2] or ""
            keys = ("trials", "KS beyond which a test rejects", "miscalibration that a test sees with a chance of 80 %")
            keys += (f"largest KS of {what}", f"smallest p-value of {what}")
            trials, *shown, p_value = (evidence[key + where] for key in keys)
            shown = [number(float(value), ".4f") for value in shown] + [number(float(p_value), ".2g")]
            rejected = f"{total} of {evidence[f'tests of {what}{where}']}"
            lines.append((row.id, what, where.removeprefix(", "), trials, *shown, rejected))
    head = ("claim", "posterior", "of", "trials", "KS limit", "KS seen with 80 %", "largest KS", "smallest p", "reject")
    return markdown(head, lines)


def verdict_table(card) -> str:
    """Return rows of the scorecard as a table; a dagger marks data that stand in for the paper's own."""
    rows = [
        (
            escape(row.id, quote=False),
            escape(row.statement or row.reason, quote=False) + " †" * (row.stand_in == "yes"),
            f"{MARKS[row.verdict]} {row.verdict}",
        )
        for row in card.itertuples()
    ]
    return markdown(("claim", "what it says", "verdict"), rows)
