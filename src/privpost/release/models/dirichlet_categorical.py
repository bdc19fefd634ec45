"""`model: dirichlet_categorical` of a specification."""

from privpost.lab.schema import Real, Schema, SettingError
from privpost.mechanisms.gaussian import GaussianMechanism
from privpost.mechanisms.laplace import LaplaceMechanism
from privpost.mechanisms.posterior_sampling import PosteriorDraw
from privpost.models.dirichlet_categorical import DirichletCategorical
from privpost.release.models.base import Inferred, Sampled, exact_posterior, whole

# Levels of one posterior draw, which take some ten seconds.
LARGEST_DRAW = 1000


class Categories(Inferred, Sampled):
    """A column of several levels, all of them counted."""

    name = "dirichlet_categorical"
    law = "Dirichlet"
    prior = Schema(concentration=Real(above=0))
    mechanisms = ("laplace", "gaussian", "direct", "diffused", "concentrated")

    def check_column(self, spec, settings):
        super().check_column(spec, settings)
        if spec.sampling and len(settings["levels"]) > LARGEST_DRAW:
            raise SettingError(
                f"levels has {len(settings['levels'])} entries; a posterior draw has at most {LARGEST_DRAW}."
            )

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

    def tables(self, spec):
        # Each level's table takes the noise on all levels.
        levels = len(spec.only[1]["levels"])
        return levels * max(1, levels // 50)

    def posterior(self, spec, mechanism, release, rng):
        return exact_posterior(self.parameters(spec), mechanism, release, spec.draws, rng)
