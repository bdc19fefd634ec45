"""`model: logistic_regression` of a specification: a certified optimum plus safe lattice noise."""

import math
from dataclasses import dataclass
from decimal import Decimal
from functools import cached_property
from typing import Any, ClassVar

import numpy as np

from privpost.distributions import noise
from privpost.lab.schema import Choice, Real, Schema, SettingError
from privpost.models.logistic_regression import LogisticPosterior
from privpost.release.models.base import Kind
from privpost.release.models.numeric import parsed
from privpost.release.specification import Levels

# Features are whole multiples of 2^-SHIFT in [-1, 1], the same for every file with the same public bounds.
SHIFT = 40
# Columns that a regression may have: the optimiser's work grows with their square.
LARGEST_COLUMNS = 200
# Shares of a record's influence 2c that the optimiser's gradient and the lattice may add to the sensitivity.
_SLACK = 2.0**-10


@dataclass(frozen=True)
class OutputNoise:
    """The minimiser of Σ ln(1 + exp(−y xᵀw)) + P|w|²/2 on a lattice, plus discrete Gaussian noise on it.

    The objective is P-strongly convex, and a record's gradient is at most c = √d: minimisers of neighbours are at most
    2c/P apart. With a gradient of at most τ at the weights, and these rounded to γZ^d, the released point moves by

        Δ = (2c + 2τ)/P + γ√d,

    so that noise of deviation σ has Rényi DP λΔ²/(2σ²), which is λ(2c + 2τ + Pγ√d)²/(2P) at σ² = 1/P.

    Attributes:
        n: public number of records.
        dimension: d, the intercept included.
        precision: P > 0.
        sigma: deviation of the noise in lattice steps.
    """

    n: int
    dimension: int
    precision: float
    sigma: float

    norm: ClassVar[str] = "l2"
    neighbours: ClassVar[str] = "substitution"

    @property
    def bound(self) -> float:
        """c, rounded up."""
        return math.nextafter(math.sqrt(self.dimension), math.inf)

    @property
    def tolerance(self) -> float:
        """τ."""
        return _SLACK * self.bound

    @cached_property
    def step(self) -> float:
        """γ, a power of 2 with Pγ√d at most a 512th of 2c."""
        return 2.0 ** math.floor(math.log2(_SLACK * 2 * self.bound / (self.precision * self.bound)))

    @property
    def sensitivity(self) -> float:
        """Δ in lattice steps, rounded up."""
        exact = (2 * self.bound + 2 * self.tolerance) / self.precision / self.step + self.bound
        return exact * (1 + 1e-12)

    def query(self, records) -> np.ndarray:
        """Weights in lattice steps, (d,)."""
        return np.zeros(self.dimension) if len(records) == 0 else self.fit(records)

    def fit(self, records: np.ndarray) -> np.ndarray:
        """The certified minimiser in lattice steps (d,), for features with the label 0 or 1 last, whole numbers (n, d).

        Raises:
            SettingError: no minimiser was certified.
        """
        features = np.concatenate([np.ones((len(records), 1)), records[:, :-1] / 2.0**SHIFT], axis=1)
        posterior = LogisticPosterior(features, records[:, -1].astype(float), self.precision)
        try:
            found = posterior.accepted_mode(lambda w: certified_gradient(posterior, w) <= self.tolerance)
        except (RuntimeError, np.linalg.LinAlgError):
            raise SettingError("no minimum could be certified, and nothing was released") from None
        return np.rint(found.mean / self.step)

    def perturb(self, exact, source) -> np.ndarray:
        """Noisy weights in lattice steps."""
        return noise.add(exact, source.normal(0.0, self.sigma, np.shape(exact)), source)


def certified_gradient(posterior: LogisticPosterior, weights: np.ndarray) -> float:
    """An upper bound of the gradient's true norm: the computed one, and what rounding can have done to it.

    A predictor is off by (d + 2) u Σ|x||w|, a residual by a quarter of that and 8u, a sum of n terms by n u times the
    sum of their sizes, u = 2^-53 (Higham 2002, chapter 3), doubled.
    """
    n, d = posterior.features.shape
    unit, size = 2.0**-53, math.sqrt(d)
    length = float(np.linalg.norm(weights))
    residual = (d + 2) * unit * d * length / 4 + 8 * unit
    rounding = 2 * (n * size * residual + (n + 4) * unit * (n * size + posterior.prior_precision * length))
    return float(np.linalg.norm(posterior.gradient(weights))) + rounding


class Logistic(Kind):
    """Features between public bounds and a label of two levels; the weights are released."""

    name = "logistic_regression"
    column = Schema(low=Real(), high=Real(), levels=Levels(), role=Choice("label", "feature"))
    required = ()
    prior = Schema(precision=Real(above=0))
    mechanisms = ("gaussian",)
    columns = None
    binary = True

    def check(self, spec):
        self.check_role(spec, "label", f"1 to {LARGEST_COLUMNS - 1} others", LARGEST_COLUMNS - 1)
        super().check(spec)
        if spec.n * len(spec.columns) > 2**28:
            raise SettingError(f"n is {spec.n}; n times the columns must be at most 2^28.")
        least, most = 1e-9 * spec.n, 1e9 * spec.n
        if not least < (precision := spec.prior["precision"]) < most:
            raise SettingError(
                f"prior: precision is {precision:g}, but must be in ({least:g}, {most:g}), n times 1e-9 to 1e9."
            )

    def check_column(self, spec, settings):
        role = settings.get("role", "feature")
        wanted = ("levels",) if role == "label" else ("low", "high")
        for key in ("low", "high", "levels"):
            if key in wanted and key not in settings:
                raise SettingError(f"{key} is missing. Required: {', '.join(wanted)}.")
            if key in settings and key not in wanted:
                raise SettingError(f"{key} is not for a {role}; leave it out.")
        super().check_column(spec, settings)

    def order(self, spec):
        """The label last."""
        return sorted(spec.columns, key=lambda name: spec.columns[name].get("role") == "label")

    def mechanism(self, spec, setting):
        return OutputNoise(spec.n, len(spec.columns), spec.prior["precision"], setting)

    def counted(self, spec, mechanism):
        return mechanism

    def summed(self, chunks, mechanism):
        """The weights, from all records at once."""
        return mechanism.fit(np.concatenate(list(chunks)))

    def encode(self, spec, column, text):
        settings = spec.columns[column]
        if "levels" in settings:
            return super().encode(spec, column, text)
        value = parsed(text)
        low, high = (Decimal(repr(settings[key])) for key in ("low", "high"))
        if value is None or not low <= value <= high:
            return None
        return int(((2 * (value - low) / (high - low) - 1) * 2**SHIFT).to_integral_value())

    def allowed(self, spec, column):
        settings = spec.columns[column]
        if "levels" in settings:
            return super().allowed(spec, column)
        return f"a number in [{settings['low']:g}, {settings['high']:g}]"

    def unit(self, spec):
        return self.mechanism(spec, 1.0).step

    def statistics(self, spec, release):
        names = ["intercept", *self.order(spec)[:-1]]
        weights: dict[str, Any] = dict(zip(names, (release * self.unit(spec)).tolist(), strict=True))
        return {
            "weights": weights,
            "features": "each between -1 at its low and 1 at its high bound",
            "predicts": spec.columns[self.order(spec)[-1]]["levels"][1],
        }
