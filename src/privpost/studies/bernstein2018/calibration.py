"""Calibration of noise-aware and other posteriors (Bernstein and Sheldon 2018, figures 1a and 1b).

In every trial θ is drawn from the prior, data from the model and a release from the mechanism; U is the quantile of
the true θ in the posterior. Where the posterior is known in closed form so is U; for the Gibbs sampler and OPS it is
the share of draws at most θ.

Ranks among independent draws would be exactly uniform. Successive Gibbs draws depend on each other, which moves mass of
U to both ends and adds up to about 1 / (2 · effective sample size of one chain) to the KS statistic. At ε = 0.1 that is
below 0.004. At ε = 0.01 `convergence` finds chains of 14 (exponential), 24 (normal), 49 (multinomial) and 86 (binomial)
effective draws at the worst n, hence up to 0.036, 0.021, 0.010 and 0.006 against a limit of 0.043 at 1000 trials. The
statistic tests the sampler as it is run, its autocorrelation included, not its stationary law alone.
"""

from __future__ import annotations

import itertools

import numpy as np

from privpost.distributions.noise import Swapped
from privpost.evaluation.calibration import cdf_band, empirical_cdf, ks_limit, ks_p_value, ks_statistic
from privpost.mechanisms.exponential import ExponentialMechanism
from privpost.models.beta_bernoulli import BetaBernoulli
from privpost.pipeline.schema import Choice, Integer, Real, Schema, Text, Vector
from privpost.privacy.accounting import Cost
from privpost.samplers.noise_aware_exact import posterior_cdf
from privpost.samplers.noise_aware_gibbs import run
from privpost.studies.bernstein2018.trials import VARIANTS, Data, Experiment, Release, experiment

SETTINGS = Schema(
    model=Text(),
    prior=Vector(Real()),
    variant=Choice(*VARIANTS),
    burn_in=Integer(at_least=0),
    draws=Integer(at_least=1),
    ops_draws=Integer(at_least=1),
    a0=Real(above=0, below=0.5),
    ecdf_n=Integer(at_least=1),
    ecdf_epsilon=Real(above=0),
    ecdf_points=Integer(at_least=2),
    n=Integer(at_least=1),
    epsilon=Real(above=0),
)
METHODS = ("non_private", "gibbs", "naive", "ops", "exact")


def gibbs_quantiles(
    run_experiment: Experiment, data: Data, release: Release, n: int, burn_in: int, draws: int, rng
) -> tuple[np.ndarray, float]:
    """Return the share of Gibbs draws at most θ, shape (parameters, trials), and the share of rejected proposals."""
    below = np.zeros(data.theta.shape)

    def consume(theta):
        below.__iadd__((theta.reshape(len(theta), *data.theta.shape) <= data.theta).sum(axis=0))

    proposals = run(run_experiment.kernel(data, release, n), rng, burn_in, draws, consume)
    return below / draws, proposals.rejected_share


def ops(config, n: int, epsilon: float) -> ExponentialMechanism:
    """Return the mechanism of OPS, each of whose draws may cost an equal part of ε."""
    return ExponentialMechanism(BetaBernoulli(*config.prior), n, epsilon / config.ops_draws, a0=config.a0)


def ops_quantiles(config, data: Data, n: int, epsilon: float, rng, ledger, trials: slice) -> np.ndarray:
    """Return the share of OPS draws at most θ, shape (1, trials)."""
    size = data.theta.shape[1], config.ops_draws
    statistics = np.broadcast_to(data.statistics.T[:, None], (*size, 2))
    account = f"ops/n={n}/epsilon={epsilon:g}"
    draws = ledger.release(account, ops(config, n, epsilon), statistics, Swapped(rng), repeats=trials).values
    return (draws <= data.theta[0][:, None]).mean(axis=1)[None]


def simulate(config, streams, ledger) -> dict:
    """Return `quantiles` (method, parameter, n, epsilon, trials) and `rejected` (method, n, epsilon).

    Methods that do not apply to a model are nan. `rejected` is the share of the Gibbs sampler's proposals that are no
    valid statistics, and of the naive method's releases that had to be projected.
    """
    trial = experiment(config.model, config.prior, config.variant)
    shape = (len(METHODS), len(trial.parameters), len(config.n), len(config.epsilon), config.trials)
    quantiles = np.full(shape, np.nan)
    rejected = np.full((len(METHODS), len(config.n), len(config.epsilon)), np.nan)
    row = {method: i for i, method in enumerate(METHODS)}
    binary = config.model == "binomial"
    _account(config, trial, ledger)
    shares: dict[tuple, list] = {}
    for i, n in enumerate(config.n):
        for block in streams.blocks():
            data = trial.data(n, block.size, streams("data", block.index, n=n))
            quantiles[row["non_private"], :, i, :, block.trials] = trial.quantiles(data, data.statistics)[:, None]
            releases = []
            for j, epsilon in enumerate(config.epsilon):
                point = {"n": n, "epsilon": epsilon}
                rng = streams("mechanism", block.index, **point)
                release = trial.release(ledger, f"gibbs/n={n}/epsilon={epsilon:g}", data, n, epsilon, rng, block.trials)
                releases.append(release)
                sampler = streams("sampler", block.index, **point)
                result = gibbs_quantiles(trial, data, release, n, config.burn_in, config.draws, sampler)
                quantiles[row["gibbs"], :, i, j, block.trials] = result[0]
                shares.setdefault(("gibbs", i, j), []).append(result[1])
                statistics, projected = trial.naive(data, release, n)
                quantiles[row["naive"], :, i, j, block.trials] = trial.quantiles(data, statistics)
                shares.setdefault(("naive", i, j), []).append(projected)
                if binary:
                    rng = streams("mechanism", block.index, method="ops", **point)
                    quantiles[row["ops"], :, i, j, block.trials] = ops_quantiles(
                        config, data, n, epsilon, rng, ledger, block.trials
                    )
            if binary:
                values = np.stack([release.values[0] for release in releases])
                scales = [release.scale for release in releases]
                quantiles[row["exact"], 0, i, :, block.trials] = posterior_cdf(
                    config.prior, values, data.theta[0], n, scales
                )
    for (method, i, j), values in shares.items():
        rejected[row[method], i, j] = np.mean(values)
    return {"quantiles": quantiles, "rejected": rejected}


def _account(config, trial: Experiment, ledger) -> None:
    """Open each point's accounts: Gibbs, naive and exact read one release, OPS makes its own."""
    for n, epsilon in itertools.product(config.n, config.epsilon):
        point = f"n={n}/epsilon={epsilon:g}"
        trial.open(ledger, f"gibbs/{point}", n, epsilon)
        if not _is_private("naive", trial):
            # Not a release of its own: it shifts the released sum by private records, which no finite ε covers.
            ledger.open(f"naive/{point}", trial.naive_cost(epsilon))
            ledger.charge(f"naive/{point}", trial.naive_cost(epsilon))
        if config.model == "binomial":
            ledger.open(f"ops/{point}", Cost("pure", epsilon), ops(config, n, epsilon))


def _is_private(method: str, trial: Experiment) -> bool:
    """Whether a method's posterior costs a finite ε; bounds from the true θ are a matter of their own."""
    if method == "non_private":
        return False
    return method != "naive" or bool(np.isfinite(trial.naive_cost(1.0).epsilon))


def statistics_rows(cells) -> list[dict]:
    """Return one row per (cell, method, parameter, n, ε) that has quantiles: its KS statistic, limit and p-value.

    `sampling` is `mcmc` where U comes from a chain, `exact` where it comes from a distribution function or from
    independent exact draws; `private` is false where a method reads what no finite ε covers.
    """
    rows = []
    for cell in cells:
        config, arrays = cell.config, cell.arrays
        trial = experiment(config.model, config.prior, config.variant)
        limit = ks_limit(config.trials)
        for m, method in enumerate(METHODS):
            for p, parameter in enumerate(trial.parameters):
                for i, n in enumerate(config.n):
                    for j, epsilon in enumerate(config.epsilon):
                        values = arrays["quantiles"][m, p, i, j]
                        if np.isnan(values).any() or (method == "non_private" and j > 0):
                            continue
                        statistic = float(ks_statistic(values))
                        rows.append(
                            {
                                "variant": config.variant,
                                "model": config.model,
                                "parameter": parameter,
                                "n": n,
                                "epsilon": None if method == "non_private" else epsilon,
                                "method": method,
                                "sampling": "mcmc" if method == "gibbs" else "exact",
                                "private": _is_private(method, trial),
                                "ks": statistic,
                                "ks_limit": limit,
                                "p_value": float(ks_p_value(statistic, config.trials)),
                                "n_trials": config.trials,
                                "rejected_share": arrays["rejected"][m, i, j],
                                "uses_private_metadata": trial.uses_private_metadata,
                            }
                        )
    return rows


def tabulate(cells):
    """Return the KS statistics (`calibration`) and the distribution functions of U at one n and ε (`ecdf`)."""
    import pandas as pd

    return {"calibration": pd.DataFrame(statistics_rows(cells)), "ecdf": pd.DataFrame(_ecdf_rows(cells))}


def _ecdf_rows(cells) -> list[dict]:
    rows = []
    for cell in cells:
        config, arrays = cell.config, cell.arrays
        trial = experiment(config.model, config.prior, config.variant)
        points = np.round(np.linspace(0, 1, config.ecdf_points), 12)
        low, high = cdf_band(points, config.trials)
        i, j = config.n.index(config.ecdf_n), config.epsilon.index(config.ecdf_epsilon)
        for m, method in enumerate(METHODS):
            for p, parameter in enumerate(trial.parameters):
                values = arrays["quantiles"][m, p, i, j]
                if np.isnan(values).any():
                    continue
                curve = empirical_cdf(values, points)
                fixed = {"variant": config.variant, "model": config.model, "parameter": parameter, "n": config.ecdf_n}
                fixed |= {"epsilon": None if method == "non_private" else config.ecdf_epsilon, "method": method}
                rows += [
                    {**fixed, "u": u, "ecdf": f, "band_low": a, "band_high": b}
                    for u, f, a, b in zip(points, curve, low, high, strict=True)
                ]
    return rows
