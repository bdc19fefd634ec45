"""Draws from posteriors given one noisy release, by Markov chains that run side by side."""

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
# A run of more seconds than this says how far it is.
PATIENCE = 3.0
# Their sweeps before the first stored draw, and between two stored draws.
COUNT_BURN_IN = 800
COUNT_THIN = 10
# Sweeps of walkers on second moments before the first stored draw, and between two.
REGRESSION_BURN_IN = 1000
REGRESSION_THIN = 4
# The table of records is too large for networks of more nodes.
LARGEST_TABLE = 5


def sweeps(draws: int, chains: int = CHAINS) -> int:
    """Stored sweeps of each chain: enough for the requested draws, and for diagnostics."""
    return max(math.ceil(draws / chains), diagnostics.MINIMUM_DRAWS)


class NotConverged(UserWarning):
    """Chains disagree, or are not known to agree: their draws may not have the posterior's law.

    >>> import warnings
    >>> warnings.simplefilter("error", NotConverged)  # a chain that has not converged ends the script
    """


class Draws(np.ndarray):
    """Draws of θ, with the diagnostics of their chains.

    Attributes:
        diagnostics: R-hat and effective sample size of the Markov chains behind them, an `Assessment`; None for
            independent draws.
        chains: number of chains, whose draws alternate from the last draw backwards; 1 for independent draws and for a
            part of the draws.
        names: of the coordinates of θ, where it has several and the model names them; else None.
    """

    diagnostics: diagnostics.Assessment | None
    chains: int
    names: tuple[str, ...] | None

    def __array_finalize__(self, source):
        self.diagnostics = getattr(source, "diagnostics", None)
        self.names = getattr(source, "names", None) if np.shape(source)[1:] == self.shape[1:] else None
        self.chains = getattr(source, "chains", 1) if np.shape(source)[:1] == self.shape[:1] else 1

    def __array_wrap__(self, array, context=None, return_scalar=False):
        """Return what is computed from draws as a plain array or number."""
        plain = np.asarray(array)
        return plain if plain.ndim else plain[()]

    def inference_data(self, names: Sequence[str] | None = None, release=None):
        """Return the draws as an `arviz.InferenceData`, chain by chain; `names` replace those that the model knows.

        Raises:
            ValueError: ArviZ, an optional package, is not installed, or names that are not those of draws (draws, p).
        """
        return inference_data.inference_data(self, self.chains, self.names if names is None else names, release)


def named(draws: np.ndarray, model) -> Draws:
    """The draws of a model's θ, with the names of its coordinates."""
    result = draws.view(Draws)
    result.names = getattr(model, "parameter_names", None)
    return result


def shown(states: Iterator, total: int, before: float) -> Iterator:
    """The states of a run of `total` stored sweeps; on standard error how far it is, if it takes some seconds.

    `before` is the length of the burn-in, in stored sweeps.
    """
    start, progress = time.perf_counter(), Progress(sys.stderr, "draws of each chain")
    for done, state in enumerate(states, start=1):
        if time.perf_counter() - start > PATIENCE:
            progress.update(done, total, (before + done) / (before + total))
        yield state
    progress.clear()


def pooled(chains: np.ndarray, draws: int) -> np.ndarray:
    """The last draws (draws, ...) of all chains (sweeps, chains, ...)."""
    return chains.reshape(-1, *chains.shape[2:])[-draws:]


def diagnosed(chains: np.ndarray, draws: int, assessed: np.ndarray) -> Draws:
    """The last draws of all chains with the diagnostics of some of their quantities; warns unless the chains agree."""
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
    """Number of sweeps that `regression` takes."""
    return REGRESSION_BURN_IN + REGRESSION_THIN * sweeps(draws, noise_aware_moments.ENSEMBLES)


def regression(model, moments, n: int, noise, draws: int, rng, constant: bool = False) -> np.ndarray:
    """(w, σ²) (sweeps, ensembles, d + 1) of a linear regression given noisy second moments (q,) in the data's units.

    A draw is that of one walker of each ensemble, which take turns. Arguments as of `noise_aware.moments.Moments`.
    """
    sampler = noise_aware_moments.Moments(model, moments, n, noise, constant)
    total = sweeps(draws, noise_aware_moments.ENSEMBLES)
    run = chain.run(sampler, rng, draws=total, burn_in=REGRESSION_BURN_IN, thin=REGRESSION_THIN)
    states = enumerate(shown(run, total, REGRESSION_BURN_IN / REGRESSION_THIN))
    return np.stack([sampler.theta(state, place % sampler.walkers, rng) for place, (state, _) in states])


def network_sweeps(draws: int) -> int:
    """Number of sweeps that `network` takes."""
    return COUNT_BURN_IN + COUNT_THIN * sweeps(draws)


def network(model, release, n: int, scale: float, draws: int, rng) -> np.ndarray:
    """θ (sweeps, chains, m) of a Bayesian network given its noisy counts (2m,), by a table of all records if small."""
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
    """Counts (chains, 2m) of a table's (2m, chains) or of records' (chains, m, 2)."""
    return counts.T if counts.ndim == 2 else counts.reshape(len(counts), -1)
