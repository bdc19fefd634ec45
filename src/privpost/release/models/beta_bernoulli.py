"""The model `beta_bernoulli` of private releases."""

import numpy as np

from privpost.lab.schema import Real, Schema
from privpost.mechanisms.choices.exponential import ExponentialMechanism
from privpost.models.conjugate.beta_bernoulli import BetaBernoulli
from privpost.release.models.dirichlet_categorical import Categories
from privpost.release.specification import SAMPLING


class Bits(Categories):
    """A column of two levels with an exact posterior. The count of the second level is released."""

    name = "beta_bernoulli"
    law = "Beta"
    binary = True
    prior = Schema(alpha=Real(above=0), beta=Real(above=0))
    mechanisms = ("laplace", "gaussian", *SAMPLING)
    coordinates = "free"

    def family(self, spec):
        return BetaBernoulli(**spec.prior)

    def counted_levels(self, spec):
        return spec.only[1]["levels"][1:]

    def predicted(self, spec, theta, size, rng):
        return super().predicted(spec, np.array([1 - theta[0], theta[0]]), size, rng)

    def sampler(self, spec, setting):
        if spec.mechanism == "ops":
            return ExponentialMechanism(self.family(spec), spec.n, setting, a0=spec.a0)
        return super().sampler(spec, setting)
