"""The model `bounded_sum` of private releases, and the base class of families of numeric records."""

import re
from abc import abstractmethod
from decimal import Decimal
from typing import ClassVar

import numpy as np

from privpost.lab.schema import Choice, Real, Schema, SettingError
from privpost.mechanisms.noise.redacted import RedactedLaplace, RedactedSum
from privpost.models.base import check_records
from privpost.release.models.base import Kind, Posterior, Predictive
from privpost.samplers.noise_aware.quadrature import resolved_posterior

# Floats hold whole numbers up to this sum exactly.
LARGEST_TOTAL = 2**50
_METHOD = "independent draws from the posterior by quadrature over its parameter"
_APPROXIMATIONS = "normal law of the latent sum (Bernstein and Sheldon 2018)", "continuous Laplace law of the noise"
_UNCUT = "the records' law is not cut off at the bounds"
_NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d{1,4})?", re.ASCII)


def parsed(text: str) -> Decimal | None:
    """Return the exact number that a text stands for, or None if the text is not a number."""
    return Decimal(text) if _NUMBER.fullmatch(text) else None


class _Nothing:
    """Stands in for a family where records have none: records are summed as they are."""

    lattice = False
    record_support = (-np.inf, np.inf)
    check_records = staticmethod(check_records)

    @staticmethod
    def statistic(x):
        return x


class Sum(Kind):
    """The sum of a numeric column, whose values lie in [low, high] and are rounded to a resolution."""

    name = "bounded_sum"
    prior = Schema()
    column = Schema(low=Real(), high=Real(), resolution=Real(above=0), outside=Choice("refuse", "redact"))
    required = ("low", "high", "resolution")

    def check_column(self, spec, settings):
        super().check_column(spec, settings)
        low, high, resolution = self._bounds(spec)
        if spec.n * max(abs(low), abs(high)) / resolution > LARGEST_TOTAL:
            raise SettingError(
                f"resolution is {resolution}, too fine: n times the larger bound must be at most 2^50 steps."
            )
        for key, bound in (("low", low), ("high", high)):
            if bound % resolution != 0:
                raise SettingError(
                    f"{key} is {settings[key]:g}, but must be a multiple of the resolution, {resolution}."
                )

    def family(self, spec):
        """Return the family of the records, with its prior."""
        return _Nothing()

    def redacts(self, spec) -> bool:
        """Return whether records outside the bounds are left out of the sum."""
        return spec.only[1].get("outside") == "redact"

    def _bounds(self, spec) -> tuple[Decimal, ...]:
        """Return low, high and resolution as exact numbers."""
        return tuple(Decimal(repr(spec.only[1][key])) for key in self.required)

    def _origin(self, spec) -> Decimal:
        """Return the value from which steps are counted: 0 with redaction, otherwise the lower bound."""
        # Counting from the lower bound gives a smaller sensitivity.
        return Decimal(0) if self.redacts(spec) else self._bounds(spec)[0]

    def mechanism(self, spec, setting):
        *bounds, resolution = self._bounds(spec)
        ends = (float((bound - self._origin(spec)) / resolution) for bound in bounds)
        return RedactedLaplace(RedactedSum(self.family(spec), *ends), spec.n, setting)

    def encode(self, spec, column, text):
        low, high, resolution = self._bounds(spec)
        value = parsed(text)
        least, most = self.family(spec).record_support
        if value is None or not least <= value <= most:
            return None
        if not low <= value <= high:
            # A value that is left out of the sum is encoded as one step beyond the upper bound.
            return int(high / resolution) + 1 if self.redacts(spec) else None
        return int(((value - self._origin(spec)) / resolution).to_integral_value())

    def allowed(self, spec, column):
        settings = spec.columns[column]
        if self.redacts(spec):
            least = self.family(spec).record_support[0]
            return "a number" if np.isinf(least) else f"a number of at least {least:g}"
        return f"a number in [{settings['low']:g}, {settings['high']:g}] (outside: redact leaves others out of the sum)"

    def unit(self, spec):
        return float(self._bounds(spec)[2])

    def _sum(self, spec, release) -> float:
        return float(round(release[0]) * self._bounds(spec)[2] + spec.n * self._origin(spec))

    def statistics(self, spec, release):
        return {"sums": {spec.only[0]: self._sum(spec, release)}}


class NumericFamily(Sum, Predictive):
    """A numeric column whose records follow a family with one parameter θ."""

    parameter: ClassVar[str]

    def check_column(self, spec, settings):
        super().check_column(spec, settings)
        if (spec.draws or spec.sampling) and settings["resolution"] > (coarsest := self.coarsest(spec)):
            raise SettingError(
                f"resolution is {settings['resolution']}, too coarse for posterior draws: rounding would bias them. It "
                f"must be at most {coarsest:.3g} with this prior and n. A finer one costs no privacy and no accuracy."
            )

    def parameters(self, spec):
        return [self.parameter]

    def predicted(self, spec, theta, size, rng):
        """Return random records, rounded to the resolution. Records may lie outside the bounds."""
        unit = self._bounds(spec)[2]
        steps = np.rint(self.family(spec).sample_data(theta[0], size, rng) / float(unit)).astype(np.int64)
        return [[str(step * unit) for step in steps.tolist()]]

    @abstractmethod
    def coarsest(self, spec) -> float:
        """Return the largest resolution that hardly biases the posterior."""

    @abstractmethod
    def rounding(self, resolution: float, theta: np.ndarray) -> str:
        """Return a text on what changes if records are rounded to a resolution, given draws (draws,) of θ."""

    def posterior(self, spec, mechanism, release, rng):
        family = self.family(spec)
        low, high = map(float, self._bounds(spec)[:2]) if self.redacts(spec) else family.record_support
        scale = mechanism.scale * self.unit(spec)
        law = resolved_posterior(family, self._sum(spec, release), spec.n, scale, low, high)
        theta = law.sample(spec.draws, rng)
        approximations = self.rounding(self.unit(spec), theta), *(() if self.redacts(spec) else (_UNCUT,))
        return Posterior({self.parameter: theta}, True, _METHOD, (*_APPROXIMATIONS, *approximations))
