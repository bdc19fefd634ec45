"""Sequential Monte Carlo on simulated statistics, where the ABC kernel is the noise. The kernel starts wide and ends as
the true noise, so the method is exact.

Del Moral, Doucet and Jasra (2012), "An adaptive sequential Monte Carlo method for approximate Bayesian computation".
"""

import numpy as np

from privpost.inference_benchmark.base import Inferred, Refused
from privpost.inference_benchmark.tasks.counts import CountsTask
from privpost.inference_benchmark.tasks.networks import NetworkTask
from privpost.inference_benchmark.tasks.private_n import PrivateNTask

# Share of the particles that stay effective in a tempering step.
LEFT = 0.5
# After a tempering step, moves are made until each particle has changed this often on average, but at most `MOVES`.
CHANGES = 3
MOVES = 8
# Bisections in the search for a tempering step.
_HALVINGS = 25


def infer(task, releases, rng, budget):
    """Move populations of statistics from the prior to the posterior, then draw θ given the statistics."""
    populations = Populations(task, np.repeat(releases, budget.chains, axis=0), budget.draws, rng)
    while np.any(populations.power < 1):
        populations.temper()
        changes = 0.0
        for _ in range(MOVES):
            changes += populations.move()
            if changes >= CHANGES:
                break
    theta = task.update(populations.statistics, rng)
    return Inferred(theta.reshape(len(releases), budget.chains, budget.draws, task.size))


class Populations:
    """Populations of simulated statistics (populations, particles, d), one for each release (populations, q).

    The law of the statistics is weighted by the noise's density to the power γ (populations, 1). For Laplace noise,
    this weight is proportional to the density of noise that is 1/γ times as wide.
    """

    def __init__(self, task, releases, particles: int, rng):
        self._task, self._observed, self._rng = task, releases[:, None], rng
        self._simulate = simulator(task)
        self._shape = len(releases), particles, -1
        self.statistics = self._simulated(task.prior(len(releases) * particles, rng))
        self._logs = self._log_density(self.statistics)
        self.power = np.zeros((len(releases), 1))

    def _simulated(self, theta) -> np.ndarray:
        return self._simulate(theta.reshape(-1, self._task.size), self._rng).reshape(self._shape)

    def _log_density(self, statistics) -> np.ndarray:
        return self._task.noise_log_density(self._observed, self._task.mechanism.select(statistics))

    def temper(self) -> None:
        """Raise the power of each population while enough particles stay effective, then resample the particles."""
        rise = step(self._logs, 1 - self.power)
        self.power = np.where(rise < 1 - self.power, self.power + rise, 1.0)
        places = resampled(rise * self._logs, self._rng)
        self.statistics = np.take_along_axis(self.statistics, places[..., None], axis=1)
        self._logs = np.take_along_axis(self._logs, places, axis=1)

    def move(self) -> float:
        """Propose new statistics for each particle, and return the share of accepted proposals."""
        # Proposals are reversible under the prior, so acceptance depends on the noise's density alone.
        proposed = self._simulated(self._task.update(self.statistics, self._rng))
        other = self._log_density(proposed)
        accepted = np.log(self._rng.random(other.shape)) < self.power * (other - self._logs)
        self.statistics = np.where(accepted[..., None], proposed, self.statistics)
        self._logs = np.where(accepted, other, self._logs)
        return float(accepted.mean())


def simulator(task):
    """Return a function that draws statistics (k, d) given θ (k, p), at a cost that does not grow with n."""
    if isinstance(task, CountsTask | PrivateNTask):
        return task.data
    if not isinstance(task, NetworkTask):
        raise Refused("its data sets would be simulated record by record, for each release and each move anew")
    cells = task.cells
    return lambda theta, rng: rng.multinomial(task.n, task.record_law(theta)) @ cells


def step(logs, most) -> np.ndarray:
    """Return the largest rise (populations, 1) of the powers, up to `most`, that leaves enough particles effective."""

    def enough(rise):
        weights = np.exp(rise * (logs - logs.max(axis=1, keepdims=True)))
        effective = np.square(weights.sum(axis=1, keepdims=True)) / np.square(weights).sum(axis=1, keepdims=True)
        return effective >= LEFT * logs.shape[1]

    low, high, all_at_once = np.zeros_like(most), most, enough(most)
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        fits = enough(middle)
        low, high = np.where(fits, middle, low), np.where(fits, high, middle)
    return np.where(all_at_once, most, high)


def resampled(log_weights, rng) -> np.ndarray:
    """Return the indices (populations, particles) of the particles that systematic resampling picks."""
    weights = np.exp(log_weights - log_weights.max(axis=1, keepdims=True))
    ends, count = np.cumsum(weights, axis=1), log_weights.shape[1]
    even = (np.arange(count) + rng.random((len(ends), 1))) / count * ends[:, -1:]
    picked = np.stack([np.searchsorted(row, places, side="right") for row, places in zip(ends, even, strict=True)])
    # Rounding may put the last index beyond the end.
    return np.minimum(picked, count - 1)
