"""Calibration of posteriors of event models under Laplace-released counts, on data drawn from the models' own prior.

Every trial draws emissions, states, totals and counts from the prior, and releases the counts as on war logs. U is the
quantile of an emission probability in its posterior: of the first level in the state of the first cell, which does not
depend on the states' labels. With a chain it is the rank of the true probability among draws that are far enough apart
to be independent, which is uniform for any number of draws. The average of the chain's conditional laws has less noise
but too many values near 0 and 1; it serves only the comparison with the exact quantile. `kl` is the divergence of the
posterior mean of the first field in that cell from the true law; the true posterior has the smallest mean.

The levels of a field are exchangeable: the width of their posteriors is tested by the sum of z² over all levels of the
first field (`evaluation.spread`). `exact` has the first level only.
"""

import math

import numpy as np
from scipy.special import betainc, rel_entr

from privpost.distributions.noise import Common
from privpost.evaluation.calibration import ks_limit, ks_p_value, ks_statistic, randomised_rank
from privpost.evaluation.diagnostics import bulk_sizes, diagnose
from privpost.evaluation.spread import among, spread_columns
from privpost.evaluation.summaries import mean_columns
from privpost.experiments.foulds2016 import event_methods
from privpost.experiments.foulds2016.event_methods import Row, Setup
from privpost.experiments.ranges import BURN_IN, EMISSION, EPSILON, METHOD, THIN, TRANSITION, VARIANT, N
from privpost.lab.schema import Choice, Integer, Schema, SettingError, Vector
from privpost.models.event_counts import EventCounts
from privpost.samplers import noise_aware_events

SETTINGS = Schema(
    transition_concentration=TRANSITION,
    emission_concentration=EMISSION,
    iterations=Integer(at_least=5, says="iterations of a chain"),
    burn_in=Integer(at_least=1, under="iterations", says=BURN_IN.says),
    thin=THIN,
    n=N,
    n_states=Integer(at_least=1, says="states of the hidden Markov model; 1 is naive Bayes"),
    regions=Integer(at_least=1, says="regions of the simulated counts"),
    months=Integer(at_least=1, says="months of the simulated counts"),
    sizes=Vector(Integer(at_least=2), says="levels of each field of the simulated events", unit="count"),
    method=Choice("non_private", "laplace", "gibbs", "exact", says=METHOD),
    variant=Choice("paper", "corrected", says=VARIANT),
    epsilon=EPSILON,
)
TABLES = {
    "event_calibration": {
        "oracle_difference": "mean absolute difference of the chain's quantiles from the exact ones [probability]",
        "kl_mean": "KL divergence of the predictive law from the true one, mean over trials [nats]",
        "ess_median": "median effective sample size of the probability over trials [draws]",
        "total_ess_median": "median effective sample size of the first cell's total over trials [draws]",
    },
    "event_calibration_pairs": {
        "kl_gain_mean": "KL divergence of the noise-naive predictive law, less the noise-aware one's; paired [nats]",
    },
}


def rows(config) -> list[Row]:
    """Return the methods at all their settings; `exact` is possible with one state, cell and field only.

    Raises SettingError when no method remains.
    """
    model = "naive_bayes" if config.n_states == 1 else "hmm"
    numbers = config.n_states, config.regions, config.months, len(config.sizes)
    exact = set(numbers) == {1}
    result = [row for row in event_methods.rows(config, model, config.epsilon) if row.method != "exact" or exact]
    if not result:
        sizes = dict(zip(("n_states", "regions", "months", "fields"), numbers, strict=True))
        raise SettingError(f"method is exact, but has {sizes}; each must be 1")
    return result


def draw_data(config, layout, size, rng) -> tuple[np.ndarray, np.ndarray]:
    """Return true emissions (trials, levels) of the first cell's state, and counts (trials, cells, levels)."""
    n_states, n_cells = config.n_states, len(layout.first)
    moves = rng.dirichlet(np.full(n_states, config.transition_concentration), (size, n_states))
    states = np.empty((size, n_cells), int)
    for cell, first in enumerate(layout.first):
        law = np.full((size, n_states), 1 / n_states) if first else moves[np.arange(size), states[:, cell - 1]]
        states[:, cell] = np.minimum((law.cumsum(axis=1) <= rng.random((size, 1))).sum(axis=1), n_states - 1)
    # All ways to divide the events among the cells are equally likely.
    totals = rng.multinomial(config.n, rng.dirichlet(np.ones(n_cells), size))
    emissions, counts = [], []
    for n_levels in config.sizes:
        probabilities = rng.dirichlet(np.full(n_levels, config.emission_concentration), (size, n_states))
        of_cells = np.take_along_axis(probabilities, states[..., None], axis=1)
        counts.append(rng.multinomial(totals, of_cells))
        emissions.append(of_cells[:, 0])
    return np.concatenate(emissions, axis=-1), np.concatenate(counts, axis=-1).astype(float)


def simulate(config, streams, ledger) -> dict:
    """Return quantiles, divergences and diagnostics of all rows; nan where not known.

    `quantiles`, `averaged` and `kl` are (rows, trials); `rhat`, `ess` and `total_ess` (rows,), medians over trials;
    `levels` (rows, levels − 1, trials), quantiles of the first field's other levels; and `sd_of_prior` (rows,), the
    first one's posterior standard deviation over the prior's, root mean square over trials.

    `averaged` are quantiles averaged over a chain's conditional laws, and equal `quantiles` without a chain. R-hat and
    ESS are of the probability's conditional mean, from the halves of a trial's one chain; nan without a chain, with
    independent draws, or with too few.
    """
    all_rows, setup = rows(config), _setup(config)
    quantiles, averaged, kl = np.empty((3, len(all_rows), config.trials))
    diagnostics = np.full((3, len(all_rows)), np.nan)
    levels = np.full((len(all_rows), config.sizes[0] - 1, config.trials), np.nan)
    variance = np.full((len(all_rows), config.trials), np.nan)
    setup.open(ledger, all_rows)
    chains = [index for index, row in enumerate(all_rows) if row.method != "exact"]
    for block in streams.blocks():
        truth, counts = draw_data(config, setup.layout, block.size, streams("data", block.index))
        noise = Common(streams("mechanism", block.index))
        if chains:
            rest = [all_rows[index] for index in chains]
            results = _run(config, setup, counts, noise, truth, rest, streams, block, ledger)
            quantiles[chains, block.trials], averaged[chains, block.trials], kl[chains, block.trials] = results[:3]
            levels[chains, :, block.trials], variance[chains, block.trials] = results[4:]
            if block.index == 0:
                diagnostics[:, chains] = results[3]
        for index in set(range(len(all_rows))) - set(chains):
            row = all_rows[index]
            noisy = setup.noisy(ledger, row, counts, noise, block.trials)[:, 0]
            law = noise_aware_events.count_probabilities(noisy, config.n, setup.mechanism(row).scale)
            exact = noise_aware_events.probability_cdf(law, truth[:, 0], config.sizes[0])
            quantiles[index, block.trials] = averaged[index, block.trials] = exact
            kl[index, block.trials] = np.nan
    # The variance of a level's probability under the symmetric Dirichlet prior.
    size, total = config.sizes[0], config.sizes[0] * config.emission_concentration
    prior = (size - 1) / (size**2 * (total + 1))
    more = {"levels": levels, "sd_of_prior": np.sqrt(variance.mean(axis=1) / prior)}
    more |= dict(zip(("rhat", "ess", "total_ess"), diagnostics, strict=True))
    return {"quantiles": quantiles, "averaged": averaged, "kl": kl, **more}


def _setup(config) -> Setup:
    concentrations = {"transition": config.transition_concentration, "emission": config.emission_concentration}
    cells = (config.months,) * config.regions
    model = EventCounts(cells, tuple(config.sizes), config.n_states, **concentrations)
    return Setup(model, config.n, config.iterations, burn_in=config.burn_in)


def _run(config, setup, counts, noise, truth, chained, streams, block, ledger):
    """Return quantiles of both kinds and divergences (rows, trials), R-hat and both ESS (3, rows), quantiles of other
    levels (rows, levels − 1, trials) and variances (rows, trials), of the chains."""
    observed = np.ones(counts.shape[:2], bool)
    started, watches = [], []
    for row in chained:
        rng = streams("sampler", block.index, method=row.method, **row.key())
        started.append(setup.chains(ledger, row, counts, noise, block.trials, rng, observed, slice(None)))
        ranks = streams("ranks", block.index, method=row.method, **row.key())
        # Not from `ranks`, whose numbers must not depend on how many levels there are.
        others = streams("levels", block.index, method=row.method, **row.key())
        exact = row.model != "hmm" and row.method != "gibbs"
        watches.append(_Conditional(config, setup.prior, truth[:, setup.prior.fields[0]], ranks, others, exact))
    setup.run(ledger, started, watches, block.trials)
    kl = [rel_entr(truth[:, setup.prior.fields[0]], watch.mean).sum(axis=-1) for watch in watches]
    averaged = np.clip([watch.cdf for watch in watches], 0.0, 1.0)
    quantiles, diagnostics = averaged.copy(), np.full((3, len(chained)), np.nan)
    levels, variance = [watch.levels() for watch in watches], [watch.variance() for watch in watches]
    for index, (row, watch) in enumerate(zip(chained, watches, strict=True)):
        if row.model == "hmm" or row.method == "gibbs":
            quantiles[index] = watch.rank()
            diagnostics[:2, index] = np.nanmedian(diagnose(watch.trace[:, None])[:2], axis=1)
            if row.method == "gibbs" and len(setup.layout.first) > 1:
                diagnostics[2, index] = np.nanmedian(bulk_sizes(watch.totals[:, None]))
    return quantiles, averaged, kl, diagnostics, np.stack(levels), np.stack(variance)


class _Conditional:
    """Watches the first cell's probabilities given its state and counts, in each trial's chain after burn-in.

    `truth` are the first field's true probabilities (trials, levels); `rng` ranks the first level, `others` the rest.
    With `exact` one conditional law is the posterior, and quantiles of other levels come from it without ranks.

    Attributes:
        cdf: average of the first level's distribution function at its true probability (trials,).
        mean: average of the means (trials, levels).
        trace: the first level's means (iterations after burn-in, trials).
        totals: the first cell's numbers of events, of that shape; under wide noise they move more slowly.
    """

    def __init__(self, config, prior, truth, rng, others, exact=False):
        self._burn_in, self._iterations = config.burn_in, config.iterations - config.burn_in
        self._truth, self._rest, self._prior = truth[:, 0], truth[:, 1:], prior
        self._rng, self._others, self._thin, self._exact = rng, others, config.thin, exact
        self._below, self._draws = np.zeros(len(truth), int), 0
        self._below_rest, self._square = np.zeros(self._rest.shape), np.zeros(len(truth))
        self.cdf, self.mean = np.zeros(len(truth)), np.zeros((len(truth), prior.sizes[0]))
        self.trace, self.totals = np.empty((2, self._iterations, len(truth)))

    def __call__(self, iteration, state) -> None:
        if iteration < self._burn_in:
            return
        member = (state.states == state.states[0]).T[:, None].astype(float)
        alpha = self._prior.emission + (member @ state.counts[0])[:, 0, self._prior.fields[0]]
        total = alpha.sum(axis=-1)
        cdf = betainc(alpha[:, 0], total - alpha[:, 0], self._truth)
        self.cdf += cdf / self._iterations
        self.mean += alpha / total[:, None] / self._iterations
        self._square += alpha[:, 0] * (alpha[:, 0] + 1) / (total * (total + 1)) / self._iterations
        self.trace[iteration - self._burn_in] = alpha[:, 0] / total
        self.totals[iteration - self._burn_in] = state.counts[0][:, 0, self._prior.fields[0]].sum(axis=-1)
        if (iteration - self._burn_in) % self._thin == 0:
            # Whether a draw from the conditional law is below the true probability.
            self._below += self._rng.random(len(cdf)) < cdf
            self._draws += 1
            rest = betainc(alpha[:, 1:], total[:, None] - alpha[:, 1:], self._rest)
            self._below_rest += rest if self._exact else self._others.random(rest.shape) < rest

    def rank(self) -> np.ndarray:
        """Return randomised ranks (trials,) of the true probabilities among draws `thin` iterations apart."""
        return randomised_rank(self._below, self._draws, self._rng)

    def levels(self) -> np.ndarray:
        """Return quantiles or randomised ranks (levels − 1, trials) of the other levels' true probabilities."""
        if self._exact:
            return np.clip(self._below_rest / self._draws, 0.0, 1.0).T
        return randomised_rank(self._below_rest, self._draws, self._others).T

    def variance(self) -> np.ndarray:
        """Return the posterior variance (trials,) of the first level's probability."""
        return self._square - self.mean[:, 0] ** 2


def tabulate(cells):
    """Return calibration and divergence by method, and paired differences of the divergence from noise-aware."""
    table, pairs = [], []
    for cell in cells:
        config, arrays = cell.config, cell.arrays
        all_rows = rows(config)
        limit = ks_limit(config.trials)
        places = {(row.method, row.epsilon): index for index, row in enumerate(all_rows)}
        for index, row in enumerate(all_rows):
            point = {"model": row.model, "n": config.n, "variant": row.variant, "epsilon": row.epsilon}
            values, kl = arrays["quantiles"][index], arrays["kl"][index]
            statistic = float(ks_statistic(values))
            rest = arrays["levels"][index]
            together = np.concatenate([values[None], rest[~np.isnan(rest).any(axis=1)]])
            exact = places.get(("exact", row.epsilon)) if row.method == "gibbs" else None
            table.append(
                {
                    **point,
                    "method": row.method,
                    "sampling": "mcmc" if row.model == "hmm" or row.method == "gibbs" else "exact",
                    "ks": statistic,
                    "ks_limit": limit,
                    "p_value": float(ks_p_value(statistic, config.trials)),
                    "oracle_difference": math.nan
                    if exact is None
                    else float(np.abs(arrays["averaged"][index] - arrays["averaged"][exact]).mean()),
                    **mean_columns("kl", kl),
                    "rhat_median": arrays["rhat"][index],
                    "ess_median": arrays["ess"][index],
                    "total_ess_median": arrays["total_ess"][index],
                    "n_trials": config.trials,
                    **spread_columns(together, among([f"level {k + 1}" for k in range(len(together))])),
                    "sd_of_prior": arrays["sd_of_prior"][index] if row.method == "gibbs" else math.nan,
                }
            )
            aware = places.get(("gibbs", row.epsilon))
            if row.method == "laplace" and aware is not None:
                gain = mean_columns("kl_gain", kl - arrays["kl"][aware])
                pairs.append({**point, **gain, "n_trials": config.trials})
    return {"event_calibration": table, "event_calibration_pairs": pairs}
