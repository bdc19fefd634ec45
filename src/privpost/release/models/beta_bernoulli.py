"""`model: beta_bernoulli` of a specification."""

from privpost.lab.schema import Real, Schema
from privpost.mechanisms.exponential import ExponentialMechanism
from privpost.mechanisms.gaussian import GaussianMechanism
from privpost.mechanisms.laplace import LaplaceMechanism
from privpost.mechanisms.posterior_sampling import PosteriorDraw
from privpost.models.beta_bernoulli import BetaBernoulli
from privpost.release.models.base import Inferred, Sampled, exact_posterior, whole
from privpost.release.specification import SAMPLING


class Bits(Inferred, Sampled):
    """A column of two levels, the second of which is counted; exact posterior."""

    name = "beta_bernoulli"
    law = "Beta"
    binary = True
    prior = Schema(alpha=Real(above=0), beta=Real(above=0))
    mechanisms = ("laplace", "gaussian", *SAMPLING)

    def mechanism(self, spec, setting):
        model = BetaBernoulli(**spec.prior)
        if spec.mechanism == "gaussian":
            return GaussianMechanism(model, spec.n, setting, order=2.0)
        return LaplaceMechanism(model, spec.n, setting, coordinates="free")

    def sampler(self, spec, setting):
        model = BetaBernoulli(**spec.prior)
        if spec.mechanism == "ops":
            return ExponentialMechanism(model, spec.n, setting, a0=spec.a0)
        return PosteriorDraw(model, spec.n, 2.0, setting, weighting=spec.mechanism)

    def parameters(self, spec):
        column, settings = spec.only
        return [f"P({column} = {settings['levels'][1]})"]

    def statistics(self, spec, release):
        column, settings = spec.only
        return {"counts": {column: {settings["levels"][1]: whole(release[0])}}}

    def posterior(self, spec, mechanism, release, rng):
        return exact_posterior(self.parameters(spec), mechanism, release, spec.draws, rng)
