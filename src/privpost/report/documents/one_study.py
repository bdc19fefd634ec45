"""Parts of docs/one_study.md, which shows the files of one study from settings to verdict."""

import inspect
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from privpost.evaluation.rows import markdown
from privpost.lab import claims
from privpost.report import scorecard

STUDY, CLAIM = "foulds2016/sampling_error", "F1"
# The row of the study's table that is shown.
SHOWN = {"method": "ops", "n": 10}
ACCOUNT = ("mechanism", "notion", "accounts", "budget_epsilon", "epsilon", "largest_share_spent")
COLUMNS = ("method", "n", "epsilon", "l1_mean", "l1_sem", "over_laplace_mean", "over_laplace_sem", "n_repeats")


def values(published) -> Mapping[str, Any]:
    """Return the study, its claim and verdict, and functions that quote settings, code, a row and an account."""
    study = published.study(STUDY)
    module = study.module()
    declared = next(one for one in claims.declared(study.module("claims")) if one.id == CLAIM)
    return {
        "study": study,
        "id": CLAIM,
        "card": scorecard.read(published.results / "scorecard.csv").set_index("id").loc[CLAIM],
        "settings": lambda: Path(study.file).read_text(encoding="utf-8").split("\nsmoke:")[0],
        "code": lambda name: inspect.getsource(getattr(module, name)),
        "claim_code": lambda: inspect.getsource(declared.function),
        "row": lambda: _row(published.tables(STUDY)[study.tables[0]]),
        "account": lambda: _account(study),
    }


def _row(table) -> str:
    for column, value in SHOWN.items():
        table = table[table[column] == value]
    (row,) = table.to_dict("records")
    return markdown(COLUMNS, [[f"{row[name]:.4g}" if isinstance(row[name], float) else row[name] for name in COLUMNS]])


def _account(study) -> str:
    accounts = json.loads(study.ledger_path.read_text(encoding="utf-8"))["accounts"]
    row = next(row for row in accounts if row["kind"] == SHOWN["method"])
    return json.dumps({name: row[name] for name in ACCOUNT})
