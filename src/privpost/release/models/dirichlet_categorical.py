"""The model `dirichlet_categorical` of private releases."""

from typing import ClassVar

from privpost.lab.schema import Real, Schema
from privpost.mechanisms.draws.posterior import PosteriorDraw
from privpost.mechanisms.noise.gaussian import GaussianMechanism
from privpost.mechanisms.noise.laplace import LaplaceMechanism
from privpost.models.conjugate.dirichlet_categorical import DirichletCategorical
from privpost.release.models.base import EXACT, Posterior, Predictive, Sampled, by_name, levels_of, whole


class Categories(Predictive, Sampled):
    """A column of several levels with an exact posterior. The counts of all levels are released."""

    name = "dirichlet_categorical"
    law = "Dirichlet"
    prior = Schema(concentration=Real(above=0))
    mechanisms = ("laplace", "gaussian", "direct", "diffused", "concentrated")
    coordinates: ClassVar[str] = "all"

    def family(self, spec):
        """Return the model with its prior."""
        return DirichletCategorical((spec.prior["concentration"],) * len(spec.only[1]["levels"]))

    def counted_levels(self, spec) -> list[str]:
        """Return the levels whose counts are released."""
        return spec.only[1]["levels"]

    def sampler(self, spec, setting):
        return PosteriorDraw(self.family(spec), spec.n, 2.0, setting, weighting=spec.mechanism)

    def parameters(self, spec):
        return [f"P({spec.only[0]} = {level})" for level in self.counted_levels(spec)]

    def mechanism(self, spec, setting):
        model = self.family(spec)
        if spec.mechanism == "gaussian":
            return GaussianMechanism(model, spec.n, setting, order=2.0, coordinates=self.coordinates)
        return LaplaceMechanism(model, spec.n, setting, coordinates=self.coordinates)

    def statistics(self, spec, release):
        return {"counts": {spec.only[0]: dict(zip(self.counted_levels(spec), map(whole, release), strict=True))}}

    def tables(self, spec):
        # One level's table depends on the noise of all levels. With 100 levels or more, it counts as several tables.
        levels = len(self.counted_levels(spec))
        return levels * max(1, levels // 50)

    def predicted(self, spec, theta, size, rng):
        return [levels_of(spec.only[1]["levels"], theta, size, rng)]

    def posterior(self, spec, mechanism, release, rng):
        draws = mechanism.posterior(release, spec.draws, rng).reshape(spec.draws, -1)
        return Posterior(by_name(self.parameters(spec), draws), True, EXACT, ())
