"""A user's folder with valid specifications."""

from __future__ import annotations

import json
import os
from pathlib import Path

import numpy as np
import yaml

from privpost.commands import cli
from privpost.release import models, spec

YES_NO = ["no", "yes"]


SPECS = {
    "beta_bernoulli": {"columns": {"smokes": {"levels": YES_NO}}, "prior": {"alpha": 1, "beta": 2}},
    "dirichlet_categorical": {"columns": {"diet": {"levels": ["a", "b", "c"]}}, "prior": {"concentration": 1}},
    "bayesian_network": {
        "columns": {"smokes": {"levels": YES_NO}, "cough": {"levels": YES_NO, "parents": ["smokes"]}},
        "prior": {"alpha": 1, "beta": 1},
    },
    "naive_bayes": {
        "columns": {
            "diet": {"levels": ["a", "b", "c"]},
            "smokes": {"levels": YES_NO, "role": "class"},
            "cough": {"levels": YES_NO},
        }
    },
    "gamma_exponential": {
        "columns": {"minutes": {"low": 0, "high": 4, "resolution": 0.5}},
        "prior": {"shape": 2, "rate": 2},
    },
    "normal_known_variance": {
        "columns": {"minutes": {"low": -2, "high": 4, "resolution": 0.5, "outside": "redact"}},
        "prior": {"prior_mean": 1, "prior_variance": 1, "record_variance": 1},
    },
    "bounded_sum": {"columns": {"minutes": {"low": 1, "high": 3, "resolution": 0.5}}},
}


HEADER = ["smokes", "diet", "cough", "minutes"]


ROWS = [["yes", "a", "no", "1.5"], ["no", "b", "yes", "2.25"], ["no", "c", "yes", "3"], ["yes", "c", "no", "1"]]


def content(model: str, **changes) -> dict:
    """Return a valid specification about ROWS."""
    found = {"model": model, "n": len(ROWS), "epsilon": 1.0, **SPECS[model]}
    if model != "bounded_sum":
        found["posterior"] = {"draws": 3}
    return {**found, **changes}


class Folder:
    """A user's folder, with a specification and a CSV file."""

    def __init__(self, path: Path, capsys):
        self.path, self.capsys = path, capsys
        self.data("\n".join(map(",".join, [HEADER, *ROWS])) + "\n")

    def data(self, text: str) -> None:
        (self.path / "data.csv").write_text(text, encoding="utf-8")

    def specify(self, found) -> None:
        text = found if isinstance(found, str) else yaml.safe_dump(found, sort_keys=False)
        (self.path / "spec.yaml").write_text(text, encoding="utf-8")

    def run(self, *argv: str) -> tuple[int, str, str]:
        status = cli.main(["release", "spec.yaml", "--data", "data.csv", *argv])
        captured = self.capsys.readouterr()
        return status, captured.out, captured.err

    def files(self) -> set[str]:
        return {path.name for path in self.path.iterdir()}


def discrete(law: str, scale: float, size: int) -> np.ndarray:
    """Probabilities of −size..size."""
    k = np.arange(-size, size + 1.0)
    weights = np.exp(-np.abs(k) / scale) if law == "laplace" else np.exp(-(k**2) / (2 * scale**2))
    return weights / weights.sum()


def specification(tmp_path, found: dict):
    path = tmp_path / "spec.yaml"
    path.write_text(yaml.safe_dump(found, sort_keys=False))
    found = spec.read(path)
    return found, models.KINDS[found.model]


BITS = content("beta_bernoulli")
LEDGER = {"ledger": "ledger.jsonl", "epsilon": 2.5}
PAID = {**BITS, "budget": LEDGER}


def exit_with(*argv: str) -> None:
    """Run the command in a forked process and end it, whatever happens: it must never go on as a second pytest."""
    status = 70
    try:
        status = cli.main(["release", "spec.yaml", "--data", "data.csv", *argv])
    finally:
        os._exit(status)


def lines(folder) -> list[dict]:
    return [json.loads(line) for line in (folder.path / "ledger.jsonl").read_text().splitlines()]
