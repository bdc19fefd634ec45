"""Distance of private posteriors from the true one (Bernstein and Sheldon 2018, figure 1c).

MMD² between draws of a method's posterior and draws from the non-private one, of the probability (the first category's)
or the rate, kernel exp(−(p − q)²/2), the unbiased estimate, averaged over trials. `exact` draws without a chain.
"""

from __future__ import annotations

import numpy as np

from privpost.evaluation.mmd import TERMS, Bins, diagonal_sum, embedding_sum, mmd2_from_sums
from privpost.evaluation.summaries import mean_columns
from privpost.pipeline.schema import Choice, Integer, Real, Schema, Vector
from privpost.samplers.noise_aware_gibbs import run
from privpost.studies.bernstein2018.trials import VARIANTS, experiment

SETTINGS = Schema(
    model=Choice("binomial", "multinomial", "exponential"),
    prior=Vector(Real(above=0)),
    variant=Choice(*VARIANTS),
    burn_in=Integer(at_least=0),
    draws=Integer(at_least=2),
    n=Integer(at_least=1),
    epsilon=Real(above=0),
)
METHODS = ("gibbs", "exact", "naive")
# Of rates: sharing changes an MMD² by less than 1e-3 of itself.
BINS = Bins(0.04, 2048)
# Draws of each trial that are held before they are counted: the grid is long.
HELD = 500


class Sums:
    """What the unbiased estimate needs of draws that come in parts, which are never stored."""

    def __init__(self, trials: int, unit_interval: bool):
        self._unit = unit_interval
        self._shape = (TERMS, trials) if unit_interval else (trials, BINS.size)
        self.sums: dict[str, np.ndarray] = {}
        self.diagonals: dict[str, np.ndarray] = {}

    def add(self, name: str, draws, reference=None) -> None:
        """Add draws (m, trials) of a law, paired with the reference's."""
        total = self.sums.setdefault(name, np.zeros(self._shape))
        total += embedding_sum(draws) if self._unit else BINS.counts(draws)
        if reference is not None:
            self.diagonals[name] = self.diagonals.get(name, 0.0) + diagonal_sum(draws, reference)

    def mmd2(self, name: str, reference: str, size: int) -> np.ndarray:
        """The estimate between two laws of `size` draws each, shape (trials,)."""
        estimate = mmd2_from_sums if self._unit else BINS.mmd2
        return estimate(self.sums[name], self.sums[reference], self.diagonals[name], size)


def simulate(config, streams, ledger) -> dict:
    """Return `mmd2` (method, n, trials), each trial's unbiased estimate, and `rejected` (method, n).

    Negative estimates are kept. `rejected` is nan for the method that proposes nothing.
    """
    trial = experiment(config.model, config.prior, config.variant)
    mmd2 = np.empty((len(METHODS), len(config.n), config.trials))
    rejected = np.full((len(METHODS), len(config.n)), np.nan)
    shares: dict[int, list] = {}
    for i, n in enumerate(config.n):
        trial.open(ledger, f"n={n}", n, config.epsilon)
        if np.isinf(trial.naive_cost(config.epsilon).epsilon):
            # The naive method reads the release shifted by private records, which no finite ε covers.
            ledger.open(f"naive/n={n}", trial.naive_cost(config.epsilon))
            ledger.charge(f"naive/n={n}", trial.naive_cost(config.epsilon))
        for block in streams.blocks():
            data = trial.data(n, block.size, streams("data", block.index, n=n))
            rng = streams("mechanism", block.index, n=n)
            release = trial.release(ledger, f"n={n}", data, n, config.epsilon, rng, block.trials)
            mmd2[:, i, block.trials], share = _estimates(config, trial, data, release, n, streams, block)
            shares.setdefault(i, []).append(share)
    for i, values in shares.items():
        rejected[[METHODS.index("gibbs"), METHODS.index("naive")], i] = np.mean(values, axis=0)
    return {"mmd2": mmd2, "rejected": rejected}


def _estimates(config, trial, data, release, n: int, streams, block):
    """Return MMD² of each method, shape (methods, trials), and the shares rejected by Gibbs and projected by naive."""
    statistics, projected = trial.naive(data, release, n)
    laws = {"exact": trial.exact_draws(data, release, n), "naive": trial.draws(statistics)}
    true = trial.draws(data.statistics)
    # The stream of the true posterior's draws is common to all ε, so that methods and ε are compared on one sample.
    true_rng = streams("sampler", block.index, method="non_private", n=n)
    rngs = {name: streams("sampler", block.index, n=n, of=k + 1) for k, name in enumerate(("naive", "exact"))}
    sums = Sums(block.size, trial.model.support == (0.0, 1.0))

    held: list[np.ndarray] = []

    def consume(theta):
        held.append(theta.reshape(len(theta), -1, block.size)[:, 0])
        if sum(map(len, held)) >= HELD:
            count()

    def count():
        gibbs = np.concatenate(held)
        held.clear()
        reference = true(len(gibbs), true_rng)
        sums.add("non_private", reference)
        sums.add("gibbs", gibbs, reference)
        for name, draw in laws.items():
            sums.add(name, draw(len(gibbs), rngs[name]), reference)

    kernel = trial.kernel(data, release, n)
    proposals = run(kernel, streams("sampler", block.index, n=n), config.burn_in, config.draws, consume)
    if held:
        count()
    estimates = [sums.mmd2(method, "non_private", config.draws) for method in METHODS]
    return np.stack(estimates), (proposals.rejected_share, projected)


def tabulate(cells):
    """Return the means over trials with their standard errors; `mmd` is the root of the mean, 0 if that is negative.

    `sampling` tells whether a method's draws are independent (`exact`) or those of a chain (`mcmc`).
    """
    import pandas as pd

    rows = []
    for cell in cells:
        config, arrays = cell.config, cell.arrays
        for m, method in enumerate(METHODS):
            for i, n in enumerate(config.n):
                values = arrays["mmd2"][m, i]
                other = arrays["mmd2"][METHODS.index("naive"), i]
                found, below = mean_columns("mmd2", values), mean_columns("below_naive", other - values)
                rows.append(
                    {
                        "variant": config.variant,
                        "model": config.model,
                        "n": n,
                        "epsilon": config.epsilon,
                        "method": method,
                        "sampling": "mcmc" if method == "gibbs" else "exact",
                        "mmd": np.sqrt(max(found["mmd2_mean"], 0.0)),
                        **found,
                        **(below if method != "naive" else dict.fromkeys(below)),
                        "negative_share": float((values < 0).mean()),
                        "n_trials": config.trials,
                        "n_draws": config.draws,
                        "rejected_share": float(arrays["rejected"][m, i]),
                    }
                )
    return pd.DataFrame(rows)
