"""The settings that the studies ran, from their shipped ledgers."""

from __future__ import annotations

import json
from pathlib import Path


def read_records(config) -> dict[str, list[dict]]:
    """Rows of mechanisms by study: of the ledgers that the study is given, else of all under results."""
    ledgers = getattr(config, "ledgers", None)
    if ledgers is None:
        shipped = [json.loads(path.read_text(encoding="utf-8")) for path in Path("results").glob("*/*.ledger.json")]
        ledgers = {one["study"]: one for one in shipped if not one["study"].startswith("audit/")}
    return {name: ledger.get("mechanisms", []) for name, ledger in sorted(ledgers.items())}
