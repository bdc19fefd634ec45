"""Laplace noise on counts of events, and the posterior of a hidden Markov model given the noisy counts."""

import math
from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np

from privpost.evaluation import diagnostics
from privpost.mechanisms.noise.laplace import LaplaceMechanism
from privpost.models.events import EventCounts
from privpost.privacy import count_tables
from privpost.privacy.checks import check_given
from privpost.samplers import chain
from privpost.samplers.hidden_markov import gibbs
from privpost.samplers.hidden_markov.seeds import Seeding
from privpost.samplers.noise_aware import draws as noise_aware_draws
from privpost.samplers.noise_aware import event_counts, exact_counts

# `EventCountsLaplace.posterior` runs CHAINS chains, discards the first BURN_IN sweeps, and stores every THIN-th sweep.
CHAINS = 4
BURN_IN = 500
THIN = 5


def prior_of(model: EventCounts) -> gibbs.Prior:
    """Return the model's sizes and prior concentrations in the form that the Gibbs sampler takes."""
    return gibbs.Prior(model.n_states, model.sizes, model.transition, model.emission)


@dataclass(frozen=True)
class EventCountsLaplace(LaplaceMechanism):
    """Counts of every level in every cell plus Laplace noise of scale 2D/ε, for D fields.

    Each field's table of counts costs ε/D (Foulds et al. 2016, section 5).

    Raises:
        ValueError: a setting is outside its range, or the model is not EventCounts.

    >>> EventCountsLaplace(EventCounts((2,), (2, 3)), 100, 0.5).scale
    8.0
    """

    models: ClassVar[tuple[type, ...]] = (EventCounts,)
    # ours: number of Gibbs iterations in `posterior_draw`, which is post-processing.
    iterations: ClassVar[int] = 50

    @property
    def sensitivity(self) -> float:
        """L1 sensitivity 2D, which is attained if an event changes its cell or all of its levels."""
        return count_tables.SENSITIVITY * len(self.model.sizes)

    @property
    def scale(self):
        """Scale 2D/ε of the noise."""
        return count_tables.noise_scale(self.epsilon, len(self.model.sizes))

    def posterior_draw(self, release, rng) -> np.ndarray:
        """Return emission probabilities (..., K, levels) at the end of a Gibbs chain given the clipped release."""
        counts = self.model.tables(self.project(release))
        flat = counts.reshape(-1, *counts.shape[-2:])
        law = gibbs.Law(flat, np.ones(flat.shape[:2], bool))
        sampler = gibbs.Chains(law, gibbs.Layout.of(self.model.regions), prior_of(self.model))
        end: Any = gibbs.follow(sampler, rng, self.iterations)
        return end.state.probabilities.reshape(*counts.shape[:-2], *self.model.theta_shape)

    def posterior(self, release, draws: int, rng: np.random.Generator) -> noise_aware_draws.Draws:
        """Return draws (draws, K, levels) of the emission probabilities given one release and the law of the noise.

        For one state and one cell, the draws are exact. Otherwise they come from four Markov chains, which treat the
        counts of a cell as independent Poisson variables. The law of the chains is a little wider than the posterior.
        The order of the states differs between chains.
        """
        check_given(release, (self.model.statistics_size,), draws, rng)
        noisy, prior = self.model.tables(release), prior_of(self.model)
        if noisy.shape[0] == prior.n_states == 1:
            exact = noisy, self.model.sizes, prior.emission, self.n, self.scale
            return exact_counts.class_posterior(*exact, draws, rng)[1].view(noise_aware_draws.Draws)
        given = event_counts.NoisyCounts(
            np.tile(noisy, (CHAINS, 1, 1)), np.ones((CHAINS, len(noisy)), bool), self.scale, self.n
        )
        sampler = event_counts.Chains(given, gibbs.Layout.of(self.model.regions), prior, Seeding(1))
        sweeps = max(math.ceil(draws / CHAINS), diagnostics.MINIMUM_DRAWS)
        run = chain.run(sampler, rng, draws=sweeps, burn_in=BURN_IN, thin=THIN)
        chains = np.stack([state.probabilities.copy() for state, _ in run])
        # Diagnostics use sorted draws, which do not depend on the order of the states.
        return noise_aware_draws.diagnosed(chains, draws, np.sort(chains, axis=2))

    @classmethod
    def examples(cls) -> list[Self]:
        """One cell, and two months of one region with two fields."""
        return [cls(EventCounts((1,), (2,), 1), 4, 1.0), cls(EventCounts((2,), (2, 2)), 3, 1.0)]
