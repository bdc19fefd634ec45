"""The model `gamma_exponential` of private releases."""

import math
from fractions import Fraction

import numpy as np

from privpost.lab.schema import Real, Schema, SettingError
from privpost.mechanisms.draws.gamma import GammaDraw
from privpost.models.conjugate.gamma_exponential import GammaExponential
from privpost.release.models.base import Sampled
from privpost.release.models.numeric import NumericFamily

# Largest bias from rounding of records, as a share of the standard deviation of the posterior without noise.
LARGEST_BIAS = 0.1


class Exponential(NumericFamily, Sampled):
    """Exponential records with a gamma prior on their rate."""

    name = "gamma_exponential"
    law = "Gamma"
    prior = Schema(shape=Real(above=0), rate=Real(above=0))
    parameter = "rate"
    mechanisms = ("laplace", "direct", "diffused", "concentrated")

    def check_column(self, spec, settings):
        super().check_column(spec, settings)
        if spec.sampling and self.redacts(spec):
            raise SettingError("outside is 'redact', but a draw needs outside: refuse.")
        if settings["low"] < 0:
            raise SettingError(f"low is {settings['low']:g}, but must be at least 0.")

    def family(self, spec):
        return GammaExponential(**spec.prior)

    def sampler(self, spec, setting):
        low, high, _ = self._bounds(spec)
        # A bound that is not a float is moved outward to the next float, so that exact records lie within the bounds.
        below = float(low) if Fraction(float(low)) <= Fraction(low) else math.nextafter(float(low), 0.0)
        above = float(high) if Fraction(float(high)) >= Fraction(high) else math.nextafter(float(high), math.inf)
        return GammaDraw(self.family(spec), spec.n, 2.0, setting, weighting=spec.mechanism, bounds=(below, above))

    def counted(self, spec, mechanism):
        return self.mechanism(spec, 1.0).model if spec.sampling else mechanism.model

    def exact_statistics(self, spec, statistics):
        steps = int(statistics[0])
        return [steps * Fraction(self._bounds(spec)[2]) + spec.n * Fraction(self._origin(spec)), Fraction(spec.n)]

    def coarsest(self, spec):
        """Return the resolution at which rounding lowers the mean of the records by a share of LARGEST_BIAS / √n."""
        # Rounding to multiples of h turns the mean 1/θ into (h/2) / sinh(θh/2), which is lower by a share of at most
        # (θh)²/24. The rate θ is taken to be the prior's mean.
        return math.sqrt(24 * LARGEST_BIAS / math.sqrt(spec.n)) * spec.prior["rate"] / spec.prior["shape"]

    def rounding(self, resolution, theta):
        # Rounding turns the rate θ into φ = (2/h) sinh(θh/2), so θ = (2/h) asinh(φh/2).
        half = float(np.mean(theta)) * resolution / 2
        raised = half / math.asinh(half) - 1
        return (
            f"values are rounded to multiples of {resolution:g}, unknown to the model, which raises the rate by about "
            f"{100 * raised:.2g} % at its posterior mean"
        )
