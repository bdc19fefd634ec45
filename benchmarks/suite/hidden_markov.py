"""Times of site updates and of releases, for the war logs' hidden Markov model (Foulds et al. 2016, section 5)."""

from __future__ import annotations

import numpy as np
from hidden_markov_loop import sweep
from timing import row, side_by_side

from privpost.datasets import war_logs
from privpost.mechanisms.draws.event_states import HiddenMarkovSampler
from privpost.mechanisms.noise.event_counts import EventCountsLaplace, prior_of
from privpost.models.events import EventCounts
from privpost.privacy import count_tables
from privpost.samplers.hidden_markov import gibbs
from privpost.samplers.hidden_markov.kernels import explicit_sweep

NAME = "hidden_markov"
# For Afghanistan: numbers of regions, months, states, and each field's levels. A cell of the study has CHAINS chains.
REGIONS, MONTHS, STATES, SIZES = 5, 71, 10, (13, 151, 2, 2, 2)
CHAINS, EPSILON, ITERATIONS = 377, 5.0, 200


def run() -> list[dict]:
    """Measure a batched sweep against the loop, and each method's release with its chain."""
    rng = np.random.default_rng(4)
    layout = gibbs.Layout.of(np.repeat(np.arange(REGIONS), MONTHS))
    n_cells = REGIONS * MONTHS
    weights, uniforms = rng.random((n_cells, STATES, CHAINS)), rng.random((n_cells, CHAINS))
    states, scores = rng.integers(STATES, size=(n_cells, CHAINS)), weights.transpose(2, 1, 0).copy()
    moves = gibbs.transition_counts(states, layout, STATES)
    one, single = np.ascontiguousarray(weights[:, :, 0]), np.ascontiguousarray(states[:, 0])
    ours, loop = side_by_side(
        [
            lambda: explicit_sweep(states, scores, uniforms, tuple(layout), 1.0, 1.0, moves),
            lambda: sweep(single, one, uniforms[:, 0], layout, 1.0),
        ],
        calls=[1, 5],
        repeats=15,
    )
    per_site, per_site_loop = ours / (n_cells * CHAINS), loop / n_cells

    against = row(
        "HMM site update, 10 states",
        "numpy loop over sites",
        per_site_loop / per_site,
        ours=1e6 * per_site,
        theirs=1e6 * per_site_loop,
        unit="µs per site and chain",
        note=f"{CHAINS} chains",
    )
    try:
        logs = war_logs.load("afghanistan")
    except (FileNotFoundError, ValueError):
        return [against]
    models = [EventCounts.of(logs.region, tuple(logs.sizes), n_states) for n_states in (3, STATES)]
    return [against, *(line for model in models for line in methods(model, logs.counts.astype(float)))]


def methods(model: EventCounts, counts) -> list[dict]:
    """Measure each method's release and chain against a chain without privacy. Chains have the paper's length."""
    n, observed = int(counts[:, : model.sizes[0]].sum()), np.ones((1, len(counts)), bool)
    laplace = EventCountsLaplace(model, n, EPSILON)

    def follow(own, rng):
        sampler = gibbs.Chains(gibbs.Law(own, observed), gibbs.Layout.of(model.regions), prior_of(model))
        gibbs.follow(sampler, rng, ITERATIONS)

    def noisy(rng):
        follow(count_tables.clip(model.tables(laplace.perturb(counts.ravel(), rng))), rng)

    timed = {"non_private": lambda rng: follow(counts, rng), "laplace": noisy}
    for truncation in (10, 100):
        ops = HiddenMarkovSampler(model, n, EPSILON, truncation=truncation, iterations=ITERATIONS)
        timed[f"ops, M = {truncation}"] = lambda rng, ops=ops: ops.draw(counts.ravel(), rng)
    calls = [lambda run=run: run(np.random.default_rng(5)) for run in timed.values()]
    plain, *seconds = side_by_side(calls, calls=[1] * len(calls), repeats=25)
    # The study foulds2016/war_logs_states reads rows with these names.
    words = [f"HMM release and chain, {model.n_states} states: {name}" for name in list(timed)[1:]]
    return [
        row(what, "a chain without privacy", own / plain, ours=own, theirs=plain, unit="s of CPU")
        for what, own in zip(words, seconds, strict=True)
    ]
