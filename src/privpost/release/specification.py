"""The specification of a release: what is public about the data, and what the release may cost."""

import collections
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from privpost.lab.schema import Setting, SettingError, Text, Vector

# Mechanisms that release one posterior draw.
SAMPLING = ("ops", "direct", "diffused", "concentrated")


class Levels(Setting):
    """The public list of at least two different values of a column, as the CSV spells them."""

    def allowed(self) -> str:
        return "a list of at least 2 different texts or whole numbers"

    def checked(self, value: Any) -> list[str]:
        if not isinstance(value, list) or len(value) < 2:
            raise ValueError
        for level in value:
            if isinstance(level, bool):
                raise SettingError(f"YAML reads an unquoted yes, no, true, false, on or off as {level}; quote it")
            if not isinstance(level, str | int):
                raise SettingError(f"level {level!r} is neither a text nor a whole number; quote it if it is a text")
        texts = [str(level) for level in value]
        for text, times in collections.Counter(texts).items():
            if times > 1:
                raise SettingError(f"level {text!r} is given twice")
        return texts


# The level that cells without a value are, with `missing: level`.
MISSING = "missing"


class Missing(Setting):
    """What a cell without a value is: refused, a level of its own, or a public value."""

    def allowed(self) -> str:
        return "refuse, level or {impute: VALUE}"

    def checked(self, value: Any) -> str | dict[str, str]:
        if isinstance(value, dict) and list(value) == ["impute"]:
            imputed = value["impute"]
            if isinstance(imputed, bool) or not isinstance(imputed, str | int | float):
                raise ValueError
            return {"impute": str(imputed)}
        if value not in ("refuse", "level"):
            raise ValueError
        return value


# Settings that a column of every model has.
COLUMN = {"missing": Missing(), "missing_texts": Vector(Text(), empty=True)}


@dataclass(frozen=True)
class Specification:
    """A checked specification.

    Attributes:
        path: the YAML file.
        sha256: of the bytes that were read from it.
        model: name of the model.
        columns: settings of each column, by name.
        n: public number of records.
        epsilon, delta: what the release may cost; delta is None for Laplace noise.
        mechanism: "laplace" or "gaussian" noise, or one posterior draw: a key of `SAMPLING`.
        noise: "secure" or "simulation".
        seed: seed of simulated noise, or None.
        sigma: "secure" for simulated Gaussian noise as wide as secure noise; else the analytic σ.
        data: path of the CSV file that the YAML names, or None.
        prior: the prior's parameters.
        draws: number of posterior draws, 0 for none.
        bits: public precision of a posterior draw, in bits after the binary point.
        a0: distance of the parameters of "ops" from 0 and 1.
        delimiter: what separates the CSV file's cells.
        budget: ledger's path, and the ε and δ that all of its releases may cost; empty for none.
    """

    path: Path
    sha256: str
    model: str
    columns: dict[str, dict[str, Any]]
    n: int
    epsilon: float
    delta: float | None
    mechanism: str
    noise: str
    seed: int | None
    sigma: str | None
    data: Path | None
    prior: dict[str, Any]
    draws: int
    bits: int
    a0: float | None
    delimiter: str
    budget: dict[str, Any]

    @property
    def sampling(self) -> bool:
        """Whether one posterior draw is the release."""
        return self.mechanism in SAMPLING

    @cached_property
    def codes(self) -> dict[str, dict[str, int]]:
        """The number of each level, by column."""
        return {
            name: {level: code for code, level in enumerate(settings.get("levels", ()))}
            for name, settings in self.columns.items()
        }

    @property
    def only(self) -> tuple[str, dict[str, Any]]:
        """Name and settings of the column, where there is one."""
        (column,) = self.columns.items()
        return column

    def counts_as(self, column: str) -> str | None:
        """The value that a column's cells without a value have; None where they are refused."""
        policy = self.columns[column].get("missing", "refuse")
        return policy["impute"] if isinstance(policy, dict) else MISSING if policy == "level" else None

    @property
    def where(self) -> str:
        """The file's name, at which error messages point."""
        return str(self.path)
