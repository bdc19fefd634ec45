"""Markov chains given event counts with Laplace noise, with the true counts integrated out.

The release is y_cv = C_cv + Lap(s) for every cell c and level v, with s = 2D/ε for D fields (Foulds et al. 2016,
section 5). The true counts are modelled as C_cv ~ Poisson(λ_c φ_{z_c v}), with one rate λ_c for all fields of a cell.
So the density of a release,

    2s p(y | μ) = e^(−y/s) E[e^(C/s); C ≤ y] + e^(y/s) E[e^(−C/s); C > y],   C ~ Poisson(μ),  μ = λ_c φ_{z_c v},

has closed form. In the data, all fields of a cell have the same total, and the number n of all events is public. The
Poisson law agrees with both facts only in the mean. A priori, λ_c is exponential with mean n / cells, and emissions φ
and transitions are Dirichlet. A sweep updates rates, emissions, transitions and states.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from privpost.models.base import check_range
from privpost.privacy import count_tables
from privpost.samplers.hidden_markov import gibbs
from privpost.samplers.hidden_markov.seeds import Seeding


@dataclass(frozen=True)
class NoisyCounts:
    """One release of noisy counts for each chain.

    Attributes:
        noisy: noisy counts (chains, cells, levels), the fields' levels one after the other.
        observed: bool (chains, cells), whether a chain is given the counts of a cell. Other cells are held out.
        scale: scale s > 0 of the Laplace noise.
        n: public number of events in all cells, > 0.

    Raises:
        ValueError: a number out of range, or an observed cell whose noisy counts are not all finite.
    """

    noisy: np.ndarray
    observed: np.ndarray
    scale: float
    n: float

    def __post_init__(self):
        check_range("(0, inf)", scale=self.scale, n=self.n)
        object.__setattr__(self, "noisy", np.where(self.observed[..., None], self.noisy, 0.0))
        if not np.all(np.isfinite(self.noisy)):
            raise ValueError("noisy must be finite")


class Chains:
    """Chains (`chain.Sampler`) with states of type `gibbs.State`, one chain for each release.

    Args:
        seeding: source of the first states, given the projected noisy counts; None for uniform states.
    """

    def __init__(self, given: NoisyCounts, layout: gibbs.Layout, prior: gibbs.Prior, seeding: Seeding | None = None):
        # Imported only to run chains: loading the compiler takes longer than most commands.
        from privpost.samplers.noise_aware.event_kernels import sweeps

        self._sweeps, self.given, self.layout, self.prior = sweeps, given, layout, prior
        law = gibbs.Law(count_tables.project(given.noisy, prior.sizes), given.observed)
        self._start = gibbs.Chains(law, layout, prior, seeding)
        self._bounds = np.concatenate([[0], np.cumsum(prior.sizes)])
        rates, most, c = self._rates(given.noisy), max(given.noisy.max(), 0.0), math.exp(-1 / given.scale)
        self._widths = np.minimum(1.0, 2 * np.sqrt((2 * given.scale**2 + rates) / len(prior.sizes)) / rates)
        per_unit = max(8.0, 4 / math.sqrt(c))
        # Pages that are never filled take no memory.
        table = np.zeros((int(most) + 1, int(per_unit * math.sqrt(1.2 * most + 10)) + 1, 4))
        self._law = given.scale, c, per_unit, table

    def _rates(self, noisy) -> np.ndarray:
        """Return an estimate of each cell's rate (chains, cells), a weighted mean of its fields' noisy totals."""
        weights = 1 / np.array(self.prior.sizes)
        totals = np.add.reduceat(noisy, self._bounds[:-1], axis=-1) @ weights / weights.sum()
        return np.maximum(totals, 0.05 * max(totals[self.given.observed].mean(), 1.0))

    def init(self, rng: np.random.Generator) -> gibbs.State:
        """Return the first states, with emissions and rates estimated from the release plus new noise.

        The new noise starts the chains farther apart than the posterior is wide.
        """
        states, law, prior = self._start.init(rng).states, self._start.law, self.prior
        again = self.given.noisy + rng.laplace(0, self.given.scale, self.given.noisy.shape)
        totals = count_tables.project(again, prior.sizes)
        totals = gibbs.state_totals(totals, states, law.observed, prior.n_states)
        emissions, _ = gibbs.draw_emissions(law, totals, prior, rng)
        moves = gibbs.transition_counts(states, self.layout, prior.n_states)
        return gibbs.State(states, emissions, np.log(emissions), moves, self._rates(again))

    def step(self, state: gibbs.State, rng: np.random.Generator) -> tuple[gibbs.State, int]:
        """Run one sweep of every chain, at cost 0."""
        given, mean = self.given, self.given.n / len(self.layout.first)
        self._sweeps(
            given.noisy, given.observed, self.layout.first, state.states, state.rates, state.probabilities,
            state.transitions, self._bounds, self._widths,
            (mean, float(self.prior.transition), float(self.prior.emission)), self._law, rng,
        )  # fmt: skip
        return state._replace(log_probabilities=np.log(state.probabilities)), 0
