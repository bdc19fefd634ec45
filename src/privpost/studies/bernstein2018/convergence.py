"""Convergence of the noise-aware Gibbs sampler (Bernstein and Sheldon 2018, supplement).

Several chains per release, each from its own draw of the prior; rank-normalised split R-hat and effective sample
sizes of the draws after burn-in.
"""

from __future__ import annotations

import itertools

import numpy as np

from privpost.evaluation.diagnostics import ess_bulk, ess_tail, rhat
from privpost.pipeline.schema import Choice, Integer, Real, Schema, Text, Vector
from privpost.samplers.noise_aware_gibbs import run
from privpost.studies.bernstein2018.trials import VARIANTS, Data, Release, experiment

SETTINGS = Schema(
    model=Text(),
    prior=Vector(Real()),
    variant=Choice(*VARIANTS),
    burn_in=Integer(at_least=0),
    draws=Integer(at_least=4),
    chains=Integer(at_least=2),
    trace_n=Integer(at_least=1),
    trace_epsilon=Real(above=0),
    trace_every=Integer(at_least=1),
    n=Integer(at_least=1),
    epsilon=Real(above=0),
)
DIAGNOSTICS = ("rhat", "ess_bulk", "ess_tail")


def repeated(value, times: int):
    """Return an array with its last axis repeated, trial by trial; a scalar or None as it is."""
    return value if value is None or np.ndim(value) == 0 else np.repeat(value, times, axis=-1)


def simulate(config, streams, ledger) -> dict:
    """Return `diagnostics` (diagnostic, n, epsilon, trials), of the first parameter, and one release's `trace`.

    `trace` has shape (chains, burn_in + draws), of the first trial at trace_n and trace_epsilon.
    """
    trial = experiment(config.model, config.prior, config.variant)
    shape = (len(DIAGNOSTICS), len(config.n), len(config.epsilon), config.trials)
    diagnostics = np.empty(shape)
    trace = np.full((config.chains, config.burn_in + config.draws), np.nan)
    for n, epsilon in itertools.product(config.n, config.epsilon):
        trial.open(ledger, f"n={n}/epsilon={epsilon:g}", n, epsilon)
    for i, n in enumerate(config.n):
        for j, epsilon in enumerate(config.epsilon):
            point = {"n": n, "epsilon": epsilon}
            for block in streams.blocks():
                data = trial.data(n, block.size, streams("data", block.index, n=n))
                rng = streams("mechanism", block.index, **point)
                release = trial.release(ledger, f"n={n}/epsilon={epsilon:g}", data, n, epsilon, rng, block.trials)
                # Many chains of one release are so many trials with the same release.
                chains = Data(*(repeated(entry, config.chains) for entry in data))
                releases = Release(*(repeated(entry, config.chains) for entry in release))
                draws = _first_parameter(
                    trial.kernel(chains, releases, n), config, streams("sampler", block.index, **point)
                ).reshape(-1, block.size, config.chains)
                kept = draws[config.burn_in :].transpose(0, 2, 1)
                for d, diagnostic in enumerate((rhat, ess_bulk, ess_tail)):
                    diagnostics[d, i, j, block.trials] = diagnostic(kept)
                if (n, epsilon) == (config.trace_n, config.trace_epsilon) and block.index == 0:
                    trace = draws[:, 0].T
    return {"diagnostics": diagnostics, "trace": trace}


def _first_parameter(kernel, config, rng):
    """Return all draws of the first parameter, burn-in included, shape (sweeps, chains)."""
    parts = []

    def consume(theta):
        parts.append((theta if theta.ndim == 2 else theta[:, 0]).copy())

    run(kernel, rng, 0, config.burn_in + config.draws, consume)
    return np.concatenate(parts)


def tabulate(cells):
    """Return the worst R-hat and the median effective sample sizes over trials, and the thinned traces."""
    import pandas as pd

    rows, traces = [], []
    for cell in cells:
        config, arrays = cell.config, cell.arrays
        total = config.chains * config.draws
        for i, n in enumerate(config.n):
            for j, epsilon in enumerate(config.epsilon):
                worst, bulk, tail = arrays["diagnostics"][:, i, j]
                rows.append(
                    {
                        "model": config.model,
                        "n": n,
                        "epsilon": epsilon,
                        "rhat": float(worst.max()),
                        "ess_bulk": float(np.median(bulk)),
                        "ess_tail": float(np.median(tail)),
                        "ess_per_sweep": float(np.median(bulk) / total),
                        "rhat_median": float(np.median(worst)),
                        "ess_bulk_min": float(bulk.min()),
                        "ess_tail_min": float(tail.min()),
                        "n_chains": config.chains,
                        "n_draws": config.draws,
                        "n_trials": config.trials,
                        "variant": config.variant,
                    }
                )
        sweeps = np.arange(0, config.burn_in + config.draws, config.trace_every)
        for chain, values in enumerate(arrays["trace"]):
            fixed = {"model": config.model, "n": config.trace_n, "epsilon": config.trace_epsilon, "chain": chain + 1}
            traces.append(
                pd.DataFrame({**fixed, "burn_in": config.burn_in, "sweep": sweeps, "theta": values[sweeps].round(6)})
            )
    return {"convergence": pd.DataFrame(rows), "traces": pd.concat(traces, ignore_index=True)}
