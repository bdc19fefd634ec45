"""Results of the privacy audit on the mechanisms that each study ran."""

import itertools
import json
import math
from collections.abc import Iterable
from typing import Any

from privpost.experiments.audit.instances import VARIANTS
from privpost.lab import ledgers
from privpost.lab.study import Study
from privpost.lab.tables import read_table

STUDY = "audit/audit"


def by_study(studies: Iterable[Study]) -> dict[str, list[dict[str, Any]]]:
    """Return the rows of `behind` for each study. Without an audit table, the map is empty."""
    known = {study.name: study for study in studies}
    if not (STUDY in known and known[STUDY].table_path("audit").is_file()):
        return {}
    table = read_table(known.pop(STUDY).table_path("audit"))
    recorded = {name: ledgers.read(study, "mechanisms") or [] for name, study in known.items()}
    return {name: behind(table, name, ran(rows)) for name, rows in recorded.items()}


def ran(rows: Iterable[dict[str, Any]]) -> dict[tuple[str, str], int]:
    """Return how many different settings each mechanism has in a ledger's rows, by class and variant."""
    # Rows with an infinite budget are left out, as in the audit.
    settings_of: dict[tuple[str, str], set[str]] = {}
    unfolded = itertools.chain.from_iterable(map(ledgers.unfolded, rows))
    for row in (row for row in unfolded if row["budget"]["epsilon"] != "inf"):
        settings = row["mechanism"]["settings"]
        variant = next((str(settings[name]) for name in VARIANTS if name in settings), "")
        settings_of.setdefault((row["mechanism"]["class"], variant), set()).add(json.dumps(settings, sort_keys=True))
    return {key: len(texts) for key, texts in settings_of.items()}


def behind(table, study: str, ran: dict[tuple[str, str], int]) -> list[dict[str, Any]]:
    """Return one row per mechanism and variant that a study ran, from the audit table.

    `settings` is the number of settings that the study ran, or None without a ledger. `audited` is the number of
    settings that the audit tested. `exact` is the largest share of the claimed ε that the exact divergence reaches.
    `bound` is the largest share that a statistical lower bound reaches. `p` is the smallest p-value of draws under the
    claimed law, or None. `verdict` counts the verdicts other than "within claim".
    """
    runs_it = table.study.map(lambda names: study in names.split(", "))
    used = table[(table.source == "records") & runs_it]
    return [
        {
            "mechanism": f"{mechanism}, {variant}" if variant else mechanism,
            "settings": ran.get((mechanism, variant)),
            "audited": len(rows),
            "exact": _number((rows.exact / rows.claimed_epsilon).max()),
            "bound": _number((rows.lower_bound / rows.claimed_epsilon).max()),
            "p": _number(rows.drawn_p.min()),
            "verdict": _others(rows.verdict) or "within claim",
        }
        for (mechanism, variant), rows in used.fillna({"variant": ""}).groupby(["mechanism", "variant"])
    ]


def _others(verdicts) -> str:
    counts = verdicts[verdicts != "within claim"].value_counts().sort_index()
    return ", ".join(f"{verdict} ({number})" for verdict, number in counts.items())


def _number(value) -> float | None:
    return None if math.isnan(value) else float(value)
