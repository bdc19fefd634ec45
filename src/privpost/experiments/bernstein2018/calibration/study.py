"""Calibration of noise-aware and other posteriors (Bernstein and Sheldon 2018, figures 1a and 1b).

Every trial draws θ from the prior, data from the model and a release from the mechanism. U is the quantile of the true
θ in the posterior. For a Gibbs sampler, U is the share of draws up to θ. For OPS, U is the randomised rank of θ among
the draws. The method `exact` runs no chain. For redacted sums `exact` uses the sampler's normal model of the sum.

Under calibration U is uniform. If Gibbs draws depend on each other, the KS statistic rises by at most about
1 / (2 · effective sample size of one chain). The sum of z² (`evaluation.spread`) tests the posterior's width. `prior_p`
tests whether the draws of θ are wide or narrow by chance. Variants of redacted sums differ in bounds and in covariance
of segments.
"""

import itertools
from dataclasses import replace
from functools import partial
from typing import NamedTuple

import numpy as np

from privpost.distributions.noise import Swapped
from privpost.evaluation.calibration import cdf_band, empirical_cdf, ks_columns, randomised_rank
from privpost.evaluation.rows import columns, private_places
from privpost.evaluation.spread import among, ranks_of_shares, spread, spread_columns
from privpost.experiments.bernstein2018.trials import CHAINS, VARIANTS, Data, Experiment, Release, experiment
from privpost.experiments.ranges import A0, EPSILON
from privpost.lab.schema import Choice, Integer, Schema, SettingError
from privpost.mechanisms.choices.exponential import ExponentialMechanism
from privpost.models.conjugate.beta_bernoulli import BetaBernoulli
from privpost.privacy.accounting.costs import Cost
from privpost.samplers.noise_aware.gibbs import run

# Each part has its own tables.
PARTS = ("figure_1", "families", "segments")
SETTINGS = Schema(
    **CHAINS,
    ops_draws=Integer(at_least=1, says="OPS draws per release"),
    a0=A0,
    ecdf_n=Integer(at_least=1, says="n of the table of empirical distribution functions", unit="records"),
    ecdf_epsilon=EPSILON.means("ε of the table of empirical distribution functions", "nats"),
    ecdf_points=Integer(at_least=2, says="quantiles of the table of empirical distribution functions"),
    part=Choice(*PARTS, says="part of the study: the paper's figure 1, further families, or bounds and segments"),
)
TABLES = {
    "calibration": {
        "tempered": "what OPS tempers: prior and likelihood (`joint`) or the likelihood alone",
    },
    "ecdf": {
        "band_low": "lower end of the band in which a calibrated method's ecdf lies [share]",
        "band_high": "upper end of the band in which a calibrated method's ecdf lies [share]",
    },
    "families": {
        "distance_to_exact": "mean distance of the sampler's quantile from the exact posterior's [probability]",
    },
    "truncation": {
        "bounds": "source of the redaction bounds: `public`, or `true_theta`, the private parameter",
        "segments": "covariance between the segments of a redacted sum: `multinomial`, or `independent` (zero)",
    },
}
# Variants that have rows of the method `exact`, which does not depend on segments: one per source of bounds.
EXACT = ("paper", "corrected")


class Line(NamedTuple):
    """A method of inference. For OPS, `tempered` is `joint` (prior and likelihood) or `likelihood`."""

    method: str
    tempered: str | None = None


OPS = Line("ops", "joint"), Line("ops", "likelihood")
LINES = (Line("non_private"), Line("gibbs"), Line("naive"), *OPS, Line("exact"))


class Chains(NamedTuple):
    """Summaries of one chain per trial.

    Attributes:
        quantiles: share (parameters, trials) of the draws up to the true θ.
        rejected: share of rejected proposals.
        variance: variance (parameters, trials) of the draws.
    """

    quantiles: np.ndarray
    rejected: float
    variance: np.ndarray


def gibbs_quantiles(
    run_experiment: Experiment, data: Data, release: Release, n: int, burn_in: int, draws: int, rng
) -> Chains:
    """Run one Gibbs chain per trial, and return summaries of the draws."""
    below, first, second = np.zeros((3, *data.theta.shape))

    def consume(theta):
        # Subtracting the true θ, which is near the draws, avoids cancellation in the variance.
        off = theta.reshape(len(theta), *data.theta.shape) - data.theta
        below.__iadd__((off <= 0).sum(axis=0))
        first.__iadd__(off.sum(axis=0))
        second.__iadd__(np.einsum("i...,i...->...", off, off))

    proposals = run(run_experiment.kernel(data, release, n), rng, burn_in, draws, consume)
    return Chains(below / draws, proposals.rejected_share, second / draws - (first / draws) ** 2)


def ops(config, n: int, epsilon: float, tempered: str) -> ExponentialMechanism:
    """Return the OPS mechanism for one of `config.ops_draws` draws, which share ε equally.

    To temper the likelihood alone at temperature T, it tempers the likelihood together with the prior
    Beta(1 + T(α − 1), 1 + T(β − 1)). Raises SettingError if a parameter of this prior is not positive.
    """
    mechanism = ExponentialMechanism(BetaBernoulli(*config.prior), n, epsilon / config.ops_draws, a0=config.a0)
    if tempered == "joint":
        return mechanism
    prior = 1 + mechanism.temperature * (np.array(config.prior) - 1)
    if prior.min() <= 0:
        raise SettingError(
            f"prior is {config.prior}, but both numbers must be above {1 - 1 / mechanism.temperature:g}, so that OPS "
            "can temper the likelihood alone"
        )
    return replace(mechanism, model=BetaBernoulli(*prior))


def ops_quantiles(config, data: Data, place, rngs, ledger, trials: slice) -> np.ndarray:
    """Return the randomised rank (1, trials) of θ among the OPS draws."""
    tempered, n, epsilon = place
    size = data.theta.shape[1], config.ops_draws
    statistics = np.broadcast_to(data.statistics.T[:, None], (*size, 2))
    mechanism = ops(config, n, epsilon, tempered)
    draws = ledger.release(_ops_account(*place), mechanism, statistics, Swapped(rngs[0]), repeats=trials).values
    return randomised_rank((draws < data.theta[0][:, None]).sum(axis=1), config.ops_draws, rngs[1])[None]


def _ops_account(tempered: str, n: int, epsilon: float) -> str:
    return f"ops/{tempered}/n={n}/epsilon={epsilon:g}"


def simulate(config, streams, ledger) -> dict:
    """Return the true parameters' quantiles in all posteriors and in the prior, and facts about the methods.

    `quantiles` (line, parameter, n, epsilon, trials) are nan for lines (see `Line`) that do not apply to the model.
    `prior` (parameter, n, trials) has the quantiles in the prior. `rejected` (line, n, epsilon) is the share of
    rejected proposals for Gibbs, and of projected releases for the naive method. `sd_of_prior` (parameter, n, epsilon)
    is the root mean square standard deviation of Gibbs draws over that of the true parameters.
    """
    trial = experiment(config.model, config.prior, config.variant)
    parts = list(streams.blocks())
    shape = (len(LINES), len(trial.parameters), len(config.n), len(config.epsilon), config.trials)
    quantiles, rejected = np.full(shape, np.nan), np.zeros((len(LINES), len(config.n), len(config.epsilon)))
    # Variances of the draws and of the true parameters, summed over blocks.
    within, between = np.zeros((2, *shape[1:4]))
    prior = np.empty((*shape[1:3], shape[4]))
    row = {line: i for i, line in enumerate(LINES)}
    reference, gibbs, naive, exact = (row[method, None] for method in ("non_private", "gibbs", "naive", "exact"))
    _account(config, trial, ledger)
    for (i, n), block in itertools.product(enumerate(config.n), parts):
        data = trial.data(n, block.size, streams("data", block.index, n=n))
        here, releases = quantiles[:, :, i, :, block.trials], []
        prior[:, i, block.trials] = trial.quantiles(data, np.zeros(data.statistics.shape))
        here[reference] = trial.quantiles(data, data.statistics)[:, None]
        for j, epsilon in enumerate(config.epsilon):
            rng = streams("mechanism", block.index, n=n)
            release = trial.release(ledger, f"gibbs/n={n}/epsilon={epsilon:g}", data, n, epsilon, rng, block.trials)
            releases.append(release)
            sampler = streams("sampler", block.index, n=n)
            chains = gibbs_quantiles(trial, data, release, n, config.burn_in, config.draws, sampler)
            here[gibbs, :, j] = chains.quantiles
            within[:, i, j] += chains.variance.mean(axis=1)
            between[:, i, j] += data.theta.var(axis=1)
            statistics, projected = trial.naive(data, release, n)
            here[naive, :, j] = trial.quantiles(data, statistics)
            rejected[[gibbs, naive], i, j] += np.array([chains.rejected, projected]) / len(parts)
            for tempered in ("joint", "likelihood") if config.model == "binomial" else ():
                place, labels = (tempered, n, epsilon), {"method": f"ops_{tempered}", "n": n}
                rngs = [streams(role, block.index, **labels) for role in ("mechanism", "ranks")]
                here[row["ops", tempered], :, j] = ops_quantiles(config, data, place, rngs, ledger, block.trials)
        here[exact] = trial.exact_quantiles(data, releases, n)
    return {"quantiles": quantiles, "rejected": rejected, "sd_of_prior": np.sqrt(within / between), "prior": prior}


def _account(config, trial: Experiment, ledger) -> None:
    """Open the ledger accounts at each (n, ε)."""
    for n, epsilon in itertools.product(config.n, config.epsilon):
        point = f"n={n}/epsilon={epsilon:g}"
        trial.open(ledger, f"gibbs/{point}", n, epsilon)
        if not _is_private("naive", trial):
            # The naive method adds private records to the released sum, which no finite ε covers.
            ledger.open(f"naive/{point}", trial.naive_cost(epsilon))
            ledger.charge(f"naive/{point}", trial.naive_cost(epsilon))
        for tempered in ("joint", "likelihood") if config.model == "binomial" else ():
            make = partial(ops, config, n, epsilon, tempered)
            ledger.open(_ops_account(tempered, n, epsilon), Cost("pure", epsilon), make)


def _is_private(method: str, trial: Experiment) -> bool:
    """Return whether a finite ε covers what a method's posterior reads, not counting redaction bounds from θ."""
    if method == "non_private":
        return False
    return method != "naive" or bool(np.isfinite(trial.naive_cost(1.0).epsilon))


def statistics_rows(cells):
    """Yield a row of calibration tests for every method, parameter, n and ε that was run."""
    for arrays, trial, at, point in _quantiles(cells):
        alike = [j for j, group in enumerate(trial.alike) if group == trial.alike[at[1]]]
        together = arrays["quantiles"][at[0], alike, at[2], at[3]]
        if point.method == "gibbs":
            together = ranks_of_shares(together, point.draws)
        yield {
            **columns(point, "variant", "model", "method", "tempered", "parameter", "n", "epsilon"),
            "sampling": "mcmc" if point.method == "gibbs" else "exact",
            "private": _is_private(point.method, trial),
            **ks_columns(arrays["quantiles"][at]),
            "rejected_share": arrays["rejected"][at[0], *at[2:]] if point.method in ("gibbs", "naive") else None,
            "uses_private_metadata": trial.uses_private_metadata,
            **spread_columns(together, among([trial.parameters[j] for j in alike])),
            "sd_of_prior": arrays["sd_of_prior"][at[1:]] if point.method in ("gibbs", "exact") else None,
            "prior_p": spread(arrays["prior"][alike, at[2]]).p_value,
        }


def _quantiles(cells):
    """Yield arrays, experiment, array index and settings of every line, parameter, n and ε that was run."""
    for cell in cells:
        trial = experiment(cell.config.model, cell.config.prior, cell.config.variant)
        others = {"line": LINES, "parameter": trial.parameters}
        for at, point in private_places(cell.config, "line", "parameter", "n", "epsilon", **others):
            if not np.isnan(cell.arrays["quantiles"][at[:2]]).any():
                yield cell.arrays, trial, at, point


def tabulate(cells):
    """Return four tables: tests for figure 1, distribution functions of U, tests of families, and tests of segments."""
    parts = {part: [cell for cell in cells if cell.config.part == part] for part in PARTS}
    return {
        "calibration": statistics_rows(parts["figure_1"]),
        "ecdf": _ecdf_rows(parts["figure_1"]),
        "families": _family_rows(parts["families"]),
        "truncation": _segment_rows(parts["segments"], parts["figure_1"]),
    }


def _family_rows(cells):
    """Yield a row of calibration tests for every method, parameter, n and ε of the further families."""
    gibbs, exact = (LINES.index(Line(method)) for method in ("gibbs", "exact"))
    for cell in cells:
        distances = np.abs(cell.arrays["quantiles"][gibbs] - cell.arrays["quantiles"][exact]).mean(axis=-1)
        places_of = {(n, e): (i, j) for i, n in enumerate(cell.config.n) for j, e in enumerate(cell.config.epsilon)}
        for row in statistics_rows([cell]):
            # OPS, the only method with this column, is not run on these families.
            del row["tempered"]
            place = int(row["parameter"].rpartition("_")[2]) - 1 if "_" in row["parameter"] else 0
            at = places_of.get((row["n"], row["epsilon"]))
            yield {**row, "distance_to_exact": distances[place, *at] if row["method"] == "gibbs" else None}


def _segment_rows(cells, others):
    """Yield the tests of redacted sums by bounds and segments. `others` are the cells of figure 1."""
    sizes = {(cell.config.model, n) for cell in cells for n in cell.config.n}
    shown = set()
    for row in itertools.chain(statistics_rows(others), statistics_rows(cells)):
        key = tuple(row[name] for name in ("variant", "method", "n", "epsilon"))
        wanted = row["method"] in ("non_private", "gibbs") or (row["method"] == "exact" and row["variant"] in EXACT)
        if wanted and (row["model"], row["n"]) in sizes and key not in shown:
            shown.add(key)
            bounds, segments = VARIANTS[row["variant"]]
            del row["tempered"]
            yield {**row, "bounds": bounds, "segments": segments}


def _ecdf_rows(cells):
    shown = (cell for cell in cells if cell.config.ecdf_epsilon in cell.config.epsilon)
    for arrays, _, at, point in _quantiles(shown):
        if point.n != point.ecdf_n or point.epsilon not in (None, point.ecdf_epsilon):
            continue
        points = np.round(np.linspace(0, 1, point.ecdf_points), 12)
        values = arrays["quantiles"][at]
        low, high = cdf_band(points, len(values))
        place = columns(point, "variant", "model", "method", "tempered", "parameter", "n", "epsilon")
        for u, f, a, b in zip(points, empirical_cdf(values, points), low, high, strict=True):
            yield {**place, "u": u, "ecdf": f, "band_low": a, "band_high": b}
