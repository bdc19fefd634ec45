"""The model `normal_known_variance` of private releases."""

import math

from privpost.lab.schema import Real, Schema
from privpost.models.conjugate.normal_known_variance import NormalKnownVariance
from privpost.release.models.numeric import NumericFamily


class Normal(NumericFamily):
    """Normal records of known variance with a normal prior on their mean."""

    name = "normal_known_variance"
    prior = Schema(prior_mean=Real(), prior_variance=Real(above=0), record_variance=Real(above=0))
    parameter = "mean"

    def family(self, spec):
        return NormalKnownVariance(**spec.prior)

    def coarsest(self, spec):
        """Return half the standard deviation of the records."""
        # Rounding then adds 2 % to the variance, and hardly any bias.
        return math.sqrt(spec.prior["record_variance"]) / 2

    def rounding(self, resolution, theta):
        return f"values are rounded to multiples of {resolution:g}, unknown to the model"
