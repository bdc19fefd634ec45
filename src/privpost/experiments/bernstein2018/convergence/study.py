"""Convergence of the noise-aware Gibbs sampler (Bernstein and Sheldon 2018, supplement).

Several chains per release start from draws of the prior. The chains' draws after burn-in give rank-normalised split
R-hat and effective sample sizes. Redacted sums have a second sampler, which integrates the sum out of the update of θ.
The posterior mean is also computed without MCMC, to show chains that are stuck.
"""

import itertools

import numpy as np

from privpost.evaluation.diagnostics import LARGEST_RHAT, diagnose
from privpost.evaluation.rows import columns, places
from privpost.experiments.bernstein2018.trials import CHAINS, experiment, many_chains
from privpost.experiments.ranges import DRAWS, EPSILON
from privpost.lab.schema import Integer, Schema
from privpost.samplers.noise_aware.gibbs import run

SETTINGS = Schema(
    **CHAINS | {"draws": Integer(at_least=4, says=DRAWS.says)},
    chains=Integer(at_least=2, says="chains per release"),
    collapsed_draws=Integer(at_least=4, says="draws kept from a chain of the collapsed sampler"),
    trace_n=Integer(at_least=1, says="n of the traces", unit="records"),
    trace_epsilon=EPSILON.means("ε of the traces", "nats"),
    trace_every=Integer(at_least=1, says="sweeps between two points of a trace"),
)
TABLES = {
    "convergence": {
        "rhat": "largest R-hat over releases (rank-normalised, split)",
        "ess_bulk": "median effective sample size of the bulk [draws]",
        "ess_tail": "median effective sample size of the tails [draws]",
        "ess_per_sweep": "effective draws per sweep [share]",
        "ess_bulk_min": "smallest effective sample size of the bulk [draws]",
        "ess_tail_min": "smallest effective sample size of the tails [draws]",
        "stuck_share": "share of releases whose chains have an R-hat above 1.1 [share]",
        "biased_share": "share of releases with a chain's mean off by half a posterior sd or more [share]",
    },
    "traces": {
        "chain": "number of the chain, from 1",
        "sweep": "number of the sweep",
    },
}
SAMPLERS = ("gibbs", "collapsed")
DIAGNOSTICS = ("rhat", "ess_bulk", "ess_tail", "distance")
# A chain is biased if its mean is off by at least this many posterior standard deviations.
BIASED = 0.5
# Burn-in of the collapsed sampler, in sweeps.
BURN_IN = 50


def simulate(config, streams, ledger) -> dict:
    """Return `diagnostics` (sampler, diagnostic, n, epsilon, trials) of the first parameter, and one `trace`.

    The last diagnostic is the largest distance between a chain's mean and the exact posterior mean, in posterior
    standard deviations. Diagnostics of the collapsed sampler are nan for counts. `trace` (chains, burn_in + draws) is
    from the first trial at trace_n and trace_epsilon.
    """
    trial = experiment(config.model, config.prior, config.variant)
    shape = (len(SAMPLERS), len(DIAGNOSTICS), len(config.n), len(config.epsilon), config.trials)
    diagnostics = np.full(shape, np.nan)
    trace = np.full((config.chains, config.burn_in + config.draws), np.nan)
    for (i, n), (j, epsilon) in itertools.product(enumerate(config.n), enumerate(config.epsilon)):
        trial.open(ledger, f"n={n}/epsilon={epsilon:g}", n, epsilon)
        for block in streams.blocks():
            data = trial.data(n, block.size, streams("data", block.index, n=n))
            rng = streams("mechanism", block.index, n=n)
            release = trial.release(ledger, f"n={n}/epsilon={epsilon:g}", data, n, epsilon, rng, block.trials)
            mean, sd = trial.exact_moments(data, release, n)
            chains, releases = many_chains(data, release, config.chains)
            for k, name in enumerate(SAMPLERS[: 1 + trial.collapses]):
                kernel = trial.kernel(chains, releases, n, **({"collapsed": True} if k else {}))
                burn_in, draws = (BURN_IN, config.collapsed_draws) if k else (config.burn_in, config.draws)
                rng = streams("sampler", block.index, n=n, **({"method": name} if k else {}))
                theta = _first_parameter(kernel, burn_in + draws, rng).reshape(-1, block.size, config.chains)
                drawn = theta[burn_in:].transpose(0, 2, 1)
                diagnostics[k, :3, i, j, block.trials] = diagnose(drawn)
                diagnostics[k, 3, i, j, block.trials] = (np.abs(drawn.mean(axis=0) - mean) / sd).max(axis=0)
                if k == 0 and (n, epsilon) == (config.trace_n, config.trace_epsilon) and block.index == 0:
                    trace = theta[:, 0].T
    return {"diagnostics": diagnostics, "trace": trace}


def _first_parameter(kernel, sweeps: int, rng):
    """Return all draws (sweeps, chains) of the first parameter."""
    parts = []

    def consume(theta):
        parts.append((theta if theta.ndim == 2 else theta[:, 0]).copy())

    run(kernel, rng, 0, sweeps, consume)
    return np.concatenate(parts)


def tabulate(cells):
    """Return two tables: the diagnostics of each sampler, summarised over trials, and the thinned traces."""
    return {"convergence": _diagnostics(cells), "traces": _traces(cells)}


def _diagnostics(cells):
    for cell in cells:
        for (k, i, j), point in places(cell.config, "sampler", "n", "epsilon", sampler=SAMPLERS):
            hat, bulk, tail, distance = cell.arrays["diagnostics"][k, :, i, j]
            if np.isnan(hat).all():
                continue
            draws = point.collapsed_draws if k else point.draws
            yield {
                **columns(point, "model", "variant", "n", "epsilon", "sampler"),
                "rhat": float(hat.max()),
                "ess_bulk": float(np.median(bulk)),
                "ess_tail": float(np.median(tail)),
                "ess_per_sweep": float(np.median(bulk) / (point.chains * draws)),
                "rhat_median": float(np.median(hat)),
                "ess_bulk_min": float(bulk.min()),
                "ess_tail_min": float(tail.min()),
                "stuck_share": float((hat > LARGEST_RHAT).mean()),
                "biased_share": float((distance > BIASED).mean()),
                "n_chains": point.chains,
                "n_draws": draws,
                "n_trials": point.trials,
            }


def _traces(cells):
    for cell in cells:
        config = cell.config
        place = {**columns(config, "model", "variant"), "n": config.trace_n, "epsilon": config.trace_epsilon}
        place["burn_in"] = config.burn_in
        for chain, values in enumerate(cell.arrays["trace"]):
            for sweep in range(0, config.burn_in + config.draws, config.trace_every):
                yield {**place, "chain": chain + 1, "sweep": sweep, "theta": values[sweep].round(6)}
