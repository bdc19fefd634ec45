"""Calibration of event models that read counts with Laplace noise. The data come from two laws.

The law `poisson` is that of the noise-aware chain: each cell has a rate, and all counts are independent. The law
`multinomial` is that of the hidden Markov model: all fields of a cell share the cell's number of events, and n is
public. Poisson counts do not sum to n, so their noise is taken from a release about n other events.

U is a true probability's quantile in its posterior. The probability is that of the first level in the first cell. For
the first field of this cell, `kl` is KL(true law ‖ posterior mean). The sum of z² over all levels of the first field
tests the width of the posteriors (`evaluation.spread`).
"""

import numpy as np
from scipy.special import betainc, rel_entr

from privpost.distributions.noise import Common
from privpost.evaluation.calibration import ks_limit, ks_p_value, ks_statistic, randomised_rank
from privpost.evaluation.diagnostics import diagnose
from privpost.evaluation.spread import among, spread_columns
from privpost.evaluation.summaries import mean_columns
from privpost.experiments.foulds2016 import event_methods
from privpost.experiments.foulds2016.event_methods import Row, Run, Setup
from privpost.experiments.noise_aware.event_calibration import exact
from privpost.experiments.ranges import BURN_IN, EMISSION, EPSILON, METHOD, THIN, TRANSITION, VARIANT, N
from privpost.lab.schema import Choice, Integer, Schema, SettingError, Vector
from privpost.models.events import EventCounts
from privpost.privacy import count_tables
from privpost.samplers.hidden_markov import gibbs
from privpost.samplers.noise_aware import event_counts, exact_counts

SETTINGS = Schema(
    transition_concentration=TRANSITION,
    emission_concentration=EMISSION,
    iterations=Integer(at_least=5, says="iterations of a chain; one state has as many draws as a chain after burn-in"),
    burn_in=Integer(at_least=1, under="iterations", says=BURN_IN.says),
    thin=THIN,
    law=Choice("poisson", "multinomial", says="law of the counts: independent, or with one total for a cell's fields"),
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
        "law": "law of the counts: `poisson`, independent, or `multinomial`, one total for a cell's fields",
        "oracle_difference": "mean absolute difference of the draws' quantiles from exact ones [probability]",
        "width_ratio": "posterior standard deviation over the exact one, root mean square over trials",
        "kl_mean": "KL divergence of the predictive law from the true one, mean over trials [nats]",
        "ess_median": "median effective sample size of the probability over trials [draws]",
    },
    "event_calibration_pairs": {
        "law": "law of the counts: `poisson`, independent, or `multinomial`, one total for a cell's fields",
        "kl_gain_mean": "KL divergence of the noise-naive predictive law, less the noise-aware one's; paired [nats]",
    },
}
# Noise-aware methods. Each model has one: exact draws for a model with one state and one cell, else a chain.
AWARE = ("gibbs", "exact")


def rows(config) -> list[Row]:
    """Return a row for each method and setting. Raises SettingError if no method serves the model."""
    one = (config.n_states, config.regions, config.months) == (1, 1, 1)
    methods = [name for name in config.method if name != ("gibbs" if one else "exact")]
    if not methods:
        numbers = {name: getattr(config, name) for name in ("n_states", "regions", "months")}
        rule = "gibbs, but exact draws are possible" if one else "exact, which needs one of each"
        raise SettingError(f"method is {rule}: {numbers}")
    return event_methods.rows(config.n_states, "random", config.epsilon, methods, config.variant)


# Settings without a method for the model are refused before anything runs.
check = rows


def draw_data(config, layout, size, rng) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return true emission probabilities, counts from the setting's law, and counts of n events.

    The probabilities (trials, levels) are of the first cell's state. Both arrays of counts are (trials, cells, levels).
    """
    n_states, n_cells = config.n_states, len(layout.first)
    moves = rng.dirichlet(np.full(n_states, config.transition_concentration), (size, n_states))
    states = np.empty((size, n_cells), int)
    for cell, first in enumerate(layout.first):
        law = np.full((size, n_states), 1 / n_states) if first else moves[np.arange(size), states[:, cell - 1]]
        states[:, cell] = np.minimum((law.cumsum(axis=1) <= rng.random((size, 1))).sum(axis=1), n_states - 1)
    # With exponential rates, all ways to divide n events among the cells are equally likely.
    rates = rng.gamma(1.0, config.n / n_cells, (size, n_cells))
    totals = rng.multinomial(config.n, rates / rates.sum(axis=1, keepdims=True))
    emissions, counts, of_events = [], [], []
    for n_levels in config.sizes:
        probabilities = rng.dirichlet(np.full(n_levels, config.emission_concentration), (size, n_states))
        of_cells = np.take_along_axis(probabilities, states[..., None], axis=1)
        emissions.append(of_cells[:, 0])
        of_events.append(rng.multinomial(totals, of_cells))
        counts.append(rng.poisson(rates[..., None] * of_cells) if config.law == "poisson" else of_events[-1])
    return tuple(np.concatenate(parts, axis=-1).astype(float) for parts in (emissions, counts, of_events))


def simulate(config, streams, ledger) -> dict:
    """Return quantiles, divergences and diagnostics of all rows, nan if not known.

    `quantiles` (rows, levels, trials) are of the first field's levels. Three arrays have shape (rows, trials): the
    divergence `kl`, the first level's exact quantile `oracle`, and `averaged`, the share of draws below the true value.
    `variances` (rows, 2, trials) are of the first level: in the method's posterior, and in the exact posterior. `rhat`
    and `ess` (rows,) are medians over the first block's trials.
    """
    listed, setup = rows(config), _setup(config)
    shape = len(listed), config.trials
    result = {name: np.full(shape, np.nan) for name in ("kl", "oracle", "averaged")}
    result["quantiles"], result["variances"] = (np.full((shape[0], n, shape[1]), np.nan) for n in (config.sizes[0], 2))
    result |= {name: np.full(len(listed), np.nan) for name in ("rhat", "ess")}
    setup.open(ledger, listed)
    for block in streams.blocks():
        truth, counts, of_events = draw_data(config, setup.layout, block.size, streams("data", block.index))
        noise = Common(streams("mechanism", block.index))
        for index, row in enumerate(listed):
            rng, ranks = (streams(role, block.index, **row._asdict()) for role in ("sampler", "ranks"))
            noisy = counts
            if row.method != "non_private":
                noisy = counts - of_events + setup.noisy(ledger, row, of_events, noise, block.trials)
            found = _posterior(config, setup, row, noisy, truth[:, setup.prior.fields[0]], rng, ranks)
            for name, values in found.items():
                if name not in ("rhat", "ess"):
                    result[name][index, ..., block.trials] = values
                elif block.index == 0:
                    result[name][index] = values
    return result


def _setup(config) -> Setup:
    given = {"transition": config.transition_concentration, "emission": config.emission_concentration}
    model = EventCounts((config.months,) * config.regions, tuple(config.sizes), config.n_states, **given)
    lengths = {"aware_iterations": config.iterations, "aware_burn_in": config.burn_in}
    return Setup(model, config.n, iterations=config.iterations, burn_in=config.burn_in, **lengths)


def _posterior(config, setup, row, noisy, truth, rng, ranks) -> dict:
    """Return what one row and one block of trials contribute to the arrays of `simulate`."""
    field, found = setup.prior.fields[0], {}
    given = noisy if row.variant is None else count_tables.processed(noisy, config.sizes, row.variant)
    if row.n_states == 1 and row.method not in AWARE:
        alpha = setup.prior.emission + given[..., field].sum(axis=1)
        total = alpha.sum(axis=-1, keepdims=True)
        below = betainc(alpha, total - alpha, truth)
        return {"quantiles": below.T, "kl": rel_entr(truth, alpha / total).sum(axis=-1)}
    kept, scale = slice(None), None if row.method == "non_private" else setup.mechanism(row).scale
    if row.method == "exact":
        draws, mean = _independent_draws(config, setup, noisy, scale, rng)
        found["ess"] = len(draws)
    else:
        draws = _chain_draws(setup, row, noisy if row.method == "gibbs" else given, scale, config.burn_in, rng)
        mean, kept = draws.mean(axis=0), slice(None, None, config.thin)
        found["rhat"], found["ess"] = np.nanmedian(diagnose(draws[:, None, :, 0])[:2], axis=1)
    below = draws < truth
    found |= {"averaged": below[..., 0].mean(axis=0), "kl": rel_entr(truth, mean).sum(axis=-1)}
    found["quantiles"] = randomised_rank(below[kept].sum(axis=0), len(below[kept]), ranks).T
    variance = draws[..., 0].var(axis=0)
    found["variances"] = np.stack([variance, np.full_like(variance, np.nan)])
    known = exact.first_level(config, noisy, scale, truth[:, 0]) if row.method in AWARE else None
    if known is not None:
        found["oracle"], found["variances"][1] = known[0], known[2] - known[1] ** 2
    return found


def _independent_draws(config, setup, noisy, scale, rng):
    """Return independent draws (draws, trials, levels) of the first field's probabilities, and posterior means."""
    field, b, number = setup.prior.fields[0], setup.prior.emission, config.iterations - config.burn_in
    arguments = config.sizes, b, config.n, scale, number, rng
    counts = np.stack([exact_counts.class_counts(release, *arguments)[:, 0, field] for release in noisy], axis=1)
    draws = np.exp(exact_counts.log_dirichlet(b + counts, [slice(None)], rng))
    # Averaging the conditional means given the counts has less noise than averaging the draws.
    return draws, ((b + counts) / (b + counts).sum(axis=-1, keepdims=True)).mean(axis=0)


def _chain_draws(setup, row, counts, scale, burn_in, rng) -> np.ndarray:
    """Return a chain's draws (iterations, trials, levels) of the first field's probabilities in the first cell."""
    observed, draws, field = np.ones(counts.shape[:2], bool), [], setup.prior.fields[0]
    noise_aware = row.method == "gibbs"
    law = event_counts.NoisyCounts(counts, observed, scale, setup.n) if noise_aware else gibbs.Law(counts, observed)

    def watch(iteration, state):
        if iteration >= burn_in:
            draws.append(state.probabilities[np.arange(len(counts)), state.states[0], field])

    setup.follow(None, Run(row, setup.mechanism(row), law), rng, slice(0, len(counts)), watch)
    return np.array(draws)


def tabulate(cells):
    """Return two tables: calibration and divergence by method, and paired differences of divergences."""
    table, pairs = [], []
    for cell in cells:
        config, arrays, listed = cell.config, cell.arrays, rows(cell.config)
        aware = {row.epsilon: index for index, row in enumerate(listed) if row.method in AWARE}
        # Variance of a level's probability under the symmetric Dirichlet prior.
        size, total = config.sizes[0], config.sizes[0] * config.emission_concentration
        prior = (size - 1) / (size**2 * (total + 1))
        for index, row in enumerate(listed):
            point = {"law": config.law, "model": row.model, "n": config.n, "variant": row.variant}
            point |= {"epsilon": row.epsilon}
            quantiles, kl, noise_aware = arrays["quantiles"][index], arrays["kl"][index], row.method in AWARE
            apart = np.abs(arrays["averaged"][index] - arrays["oracle"][index]).mean()
            variance, exactly = arrays["variances"][index].mean(axis=-1)
            statistic = float(ks_statistic(quantiles[0]))
            table.append(
                {
                    **point,
                    "method": row.method,
                    "sampling": "exact" if row.n_states == 1 and row.method != "gibbs" else "mcmc",
                    "ks": statistic,
                    "ks_limit": ks_limit(config.trials),
                    "p_value": float(ks_p_value(statistic, config.trials)),
                    "oracle_difference": float(apart),
                    "width_ratio": float(np.sqrt(variance / exactly)),
                    **mean_columns("kl", kl),
                    "rhat_median": arrays["rhat"][index],
                    "ess_median": arrays["ess"][index],
                    "n_trials": config.trials,
                    **spread_columns(quantiles, among([f"level {k + 1}" for k in range(size)])),
                    "sd_of_prior": float(np.sqrt(variance / prior)) if noise_aware else np.nan,
                }
            )
            if row.method == "laplace" and row.epsilon in aware:
                gain = mean_columns("kl_gain", kl - arrays["kl"][aware[row.epsilon]])
                pairs.append({**point, **gain, "n_trials": config.trials})
    return {"event_calibration": table, "event_calibration_pairs": pairs}
