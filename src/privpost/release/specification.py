"""The specification of a release: what is public about the data, and what the release may cost."""

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from privpost.lab.schema import Vector
from privpost.release.columns import Missing, MissingText

# Mechanisms that release one posterior draw, by their names in a specification.
SAMPLING = ("ops", "direct", "diffused", "concentrated")
# Level of cells without a value, if the column has `missing: level`.
MISSING = "missing"
# Settings that columns of every model have.
COLUMN = {"missing": Missing(), "missing_texts": Vector(MissingText(), empty=True)}


@dataclass(frozen=True)
class Specification:
    """A checked specification of a release, whose settings are explained in docs/release.md."""

    path: Path
    sha256: str
    model: str
    columns: dict[str, dict[str, Any]]
    prior: dict[str, Any]
    # Number of posterior draws, and the budget. Without a budget, the map is empty.
    draws: int
    budget: dict[str, Any]
    n: int
    epsilon: float
    delta: float | None = None
    allow_large_epsilon: bool = False
    allow_large_delta: bool = False
    mechanism: str = "laplace"
    bits: int = 16
    a0: float | None = None
    noise: str = "secure"
    seed: int | None = None
    sigma: str | None = None
    data: str | None = None
    delimiter: str = ","
    # Number of synthetic data sets.
    synthetic: int = 0

    @property
    def sampling(self) -> bool:
        """Whether the release is one posterior draw."""
        return self.mechanism in SAMPLING

    @property
    def ledger(self) -> Path | None:
        """Path of the ledger, a record of what releases cost. It is None without a budget."""
        return self.path.parent / self.budget["ledger"] if self.budget else None

    @cached_property
    def codes(self) -> dict[str, dict[str, int]]:
        """Whole number that stands for each level, by column and level."""
        return {
            name: {level: code for code, level in enumerate(settings.get("levels", ()))}
            for name, settings in self.columns.items()
        }

    @property
    def only(self) -> tuple[str, dict[str, Any]]:
        """Name and settings of the column, if there is only one."""
        (column,) = self.columns.items()
        return column

    def counts_as(self, column: str) -> str | None:
        """Return the value that empty cells of a column count as, or None if they are refused."""
        policy = self.columns[column].get("missing", "refuse")
        return policy["impute"] if isinstance(policy, dict) else MISSING if policy == "level" else None
