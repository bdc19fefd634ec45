"""Draws from the posterior given one noisy release, by Markov chains that run side by side."""

import math
import sys
import time
import warnings
from collections.abc import Iterator, Sequence

import numpy as np

from privpost.evaluation import diagnostics, inference_data
from privpost.progress import Progress
from privpost.samplers import chain
from privpost.samplers.noise_aware import moments as noise_aware_moments
from privpost.samplers.noise_aware import table as noise_aware_table

# Number of chains on counts.
CHAINS = 8
# Seconds after which a run shows its progress.
PATIENCE = 3.0
# Sweeps of chains on counts before the first stored draw, and between two stored draws.
COUNT_BURN_IN = 800
COUNT_THIN = 10
# Sweeps of walkers on second moments before the first stored draw, and between two stored draws.
REGRESSION_BURN_IN = 1000
REGRESSION_THIN = 4
# Largest network, in nodes, for which the chain runs on the table of all records.
LARGEST_TABLE = 5


def sweeps(draws: int, chains: int = CHAINS) -> int:
    """Return the number of stored sweeps per chain that the requested draws and the diagnostics need."""
    return max(math.ceil(draws / chains), diagnostics.MINIMUM_DRAWS)


class NotConverged(UserWarning):
    """Warning that draws may not follow the posterior, because chains disagree or R-hat is unknown.

    >>> import warnings
    >>> warnings.simplefilter("error", NotConverged)  # a chain that has not converged ends the script
    """


class Draws(np.ndarray):
    """Draws of θ, with the diagnostics of their chains.

    Attributes:
        diagnostics: `Assessment` of the chains, with R-hat and effective sample size; None for independent draws.
        chains: number of chains; 1 for independent draws and for slices. Draws of the chains alternate, and the last
            draw is from the last chain.
        names: names of the coordinates of θ; None if θ is a scalar or the model gives no names.
    """

    diagnostics: diagnostics.Assessment | None
    chains: int
    names: tuple[str, ...] | None

    def __array_finalize__(self, source):
        self.diagnostics = getattr(source, "diagnostics", None)
        self.names = getattr(source, "names", None) if np.shape(source)[1:] == self.shape[1:] else None
        self.chains = getattr(source, "chains", 1) if np.shape(source)[:1] == self.shape[:1] else 1

    def __array_wrap__(self, array, context=None, return_scalar=False):
        """Return the result of a numpy function on draws as a plain array or number."""
        plain = np.asarray(array)
        return plain if plain.ndim else plain[()]

    def inference_data(self, names: Sequence[str] | None = None, release=None):
        """Return the draws as an `arviz.InferenceData`, chain by chain, with `names` in place of the model's names.

        Raises:
            ValueError: the optional package ArviZ is not installed, or `names` does not fit draws of shape (draws, p).
        """
        return inference_data.inference_data(self, self.chains, self.names if names is None else names, release)


def named(draws: np.ndarray, model) -> Draws:
    """Return draws of θ as `Draws`, with the model's parameter names."""
    result = draws.view(Draws)
    result.names = getattr(model, "parameter_names", None)
    return result


def shown(states: Iterator, total: int, before: float) -> Iterator:
    """Yield the states of a run of `total` stored sweeps, and show the progress of long runs on standard error.

    `before` is the length of the burn-in, in units of stored sweeps.
    """
    start, progress = time.perf_counter(), Progress(sys.stderr, "draws of each chain")
    for done, state in enumerate(states, start=1):
        if time.perf_counter() - start > PATIENCE:
            progress.update(done, total, (before + done) / (before + total))
        yield state
    progress.clear()


def pooled(chains: np.ndarray, draws: int) -> np.ndarray:
    """Pool the draws (sweeps, chains, ...) of all chains, and return the last `draws` of them, shape (draws, ...)."""
    return chains.reshape(-1, *chains.shape[2:])[-draws:]


def diagnosed(chains: np.ndarray, draws: int, assessed: np.ndarray) -> Draws:
    """Return the last draws of all chains with diagnostics, and warn unless the chains are known to agree."""
    result = pooled(chains, draws).view(Draws)
    result.diagnostics, result.chains = diagnostics.assess(assessed), chains.shape[1]
    rhat, reason = result.diagnostics.rhat_max, result.diagnostics.reason
    if not result.diagnostics.agree:
        message = (
            f"R-hat is not known ({reason}): the draws may not be the posterior's"
            if math.isnan(rhat)
            else f"R-hat is {rhat:.3g}: the chains disagree, and their draws are not the posterior's"
        )
        warnings.warn(message, NotConverged, stacklevel=3)
    return result


def regression_sweeps(draws: int) -> int:
    """Return the number of all sweeps that `regression` takes, stored or not."""
    return REGRESSION_BURN_IN + REGRESSION_THIN * sweeps(draws, noise_aware_moments.ENSEMBLES)


def regression(model, moments, n: int, noise, draws: int, rng, constant: bool = False) -> np.ndarray:
    """Return draws (sweeps, ensembles, d + 1) of a linear regression's weights and variance given noisy second moments.

    Arguments are as for `moments.Moments`. In each stored sweep, one walker of each ensemble gives a draw.
    """
    sampler = noise_aware_moments.Moments(model, moments, n, noise, constant)
    total = sweeps(draws, noise_aware_moments.ENSEMBLES)
    run = chain.run(sampler, rng, draws=total, burn_in=REGRESSION_BURN_IN, thin=REGRESSION_THIN)
    states = enumerate(shown(run, total, REGRESSION_BURN_IN / REGRESSION_THIN))
    return np.stack([sampler.theta(state, place % sampler.walkers, rng) for place, (state, _) in states])


def network_sweeps(draws: int) -> int:
    """Return the number of all sweeps that `network` takes, stored or not."""
    return COUNT_BURN_IN + COUNT_THIN * sweeps(draws)


def network(model, release, n: int, scale: float, draws: int, rng) -> np.ndarray:
    """Return draws (sweeps, chains, m) of a Bayesian network's probabilities given noisy counts (2m,)."""
    arguments = model, np.tile(np.asarray(release, float), (CHAINS, 1)), n, scale
    if len(model.nodes) <= LARGEST_TABLE:
        sampler = noise_aware_table.Tables(*arguments)
    else:
        from privpost.samplers.noise_aware.records import Records

        sampler = Records(*arguments)
    run = chain.run(sampler, rng, draws=sweeps(draws), burn_in=COUNT_BURN_IN, thin=COUNT_THIN)
    counts = np.stack(
        [_by_chain(state.counts.copy()) for state, _ in shown(run, sweeps(draws), COUNT_BURN_IN / COUNT_THIN)]
    )
    return model.sample(model.posterior(counts), rng)


def _by_chain(counts) -> np.ndarray:
    """Return the counts of a state of `Tables` or `Records` in the shape (chains, 2m)."""
    return counts.T if counts.ndim == 2 else counts.reshape(len(counts), -1)
