"""`model: dirichlet_categorical` of a specification."""

from privpost.lab.schema import Real, Schema
from privpost.mechanisms.gaussian import GaussianMechanism
from privpost.mechanisms.laplace import LaplaceMechanism
from privpost.mechanisms.posterior_sampling import PosteriorDraw
from privpost.models.dirichlet_categorical import DirichletCategorical
from privpost.release.models import chains
from privpost.release.models.base import NAIVE, Inferred, Posterior, Sampled, by_name, exact_posterior, whole
from privpost.samplers import hidden_markov_gibbs as gibbs
from privpost.samplers import noise_aware_event_draws

# Records times categories that the sum over all true counts is taken of; chains serve more.
LARGEST_EXACT = 2_000_000


class Categories(Inferred, Sampled):
    """A column of several levels, all of them counted."""

    name = "dirichlet_categorical"
    law = "Dirichlet"
    prior = Schema(concentration=Real(above=0))
    mechanisms = ("laplace", "gaussian", "direct", "diffused", "concentrated")

    def _model(self, spec):
        return DirichletCategorical((spec.prior["concentration"],) * len(spec.only[1]["levels"]))

    def sampler(self, spec, setting):
        return PosteriorDraw(self._model(spec), spec.n, 2.0, setting, weighting=spec.mechanism)

    def parameters(self, spec):
        column, settings = spec.only
        return [f"P({column} = {level})" for level in settings["levels"]]

    def mechanism(self, spec, setting):
        model = self._model(spec)
        if spec.mechanism == "gaussian":
            return GaussianMechanism(model, spec.n, setting, order=2.0, coordinates="all")
        return LaplaceMechanism(model, spec.n, setting, coordinates="all")

    def statistics(self, spec, release):
        column, settings = spec.only
        return {"counts": {column: dict(zip(settings["levels"], map(whole, release), strict=True))}}

    def posterior(self, spec, mechanism, release, rng):
        names = self.parameters(spec)
        if spec.n * len(names) <= LARGEST_EXACT:
            return exact_posterior(names, mechanism, release, spec.draws, rng)
        if spec.mechanism == "gaussian":
            draws = mechanism.model.sample(mechanism.naive_posterior(release), rng, spec.draws)
            method = "conjugate update with the noisy counts, clipped at 0"
            return Posterior(by_name(names, draws), False, method, NAIVE)
        prior = gibbs.Prior(1, (len(names),), emission=spec.prior["concentration"])
        probabilities, _ = noise_aware_event_draws.event_counts(
            release[None], prior, [0], spec.n, mechanism.scale, spec.draws, rng, fixed=True
        )
        return chains.latent_posterior(names, probabilities[:, :, 0], spec.draws)
