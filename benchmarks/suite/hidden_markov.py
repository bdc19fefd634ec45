"""Site updates of the war logs' hidden Markov model (Foulds et al. 2016, section 5)."""

from __future__ import annotations

import numpy as np
from bars import cpu_seconds, row, side_by_side
from hidden_markov_loop import sweep

from privpost.privacy import count_tables
from privpost.samplers import chain
from privpost.samplers.hidden_markov import gibbs
from privpost.samplers.hidden_markov.kernels import explicit_sweep

NAME = "hidden_markov"
# Regions and months, states, fields' levels, and the chains of one cell of the study, as for Afghanistan.
REGIONS, MONTHS, STATES, SIZES = 5, 71, 10, (13, 151, 2, 2, 2)
CHAINS, GROUP = 377, 13
ITERATIONS = 20


def run() -> list[dict]:
    """Measure a batched sweep per site and chain against the loop, and iterations of the three methods."""
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

    counts = rng.poisson(rng.gamma(0.3, size=sum(SIZES)), size=(n_cells, sum(SIZES))).astype(float)
    observed = np.ones((GROUP, n_cells), bool)
    prior = gibbs.Prior(STATES, SIZES)
    settings = {
        "non-private": {},
        "Laplace": {},
        "OPS": {
            "temperature": count_tables.temperature(SIZES, 10.0, 5.0),
            "lows": count_tables.smallest_probabilities(SIZES, 10.0),
        },
    }
    seconds = {}
    for name, keywords in settings.items():
        own = np.tile(counts, (GROUP, 1, 1)) if name == "Laplace" else counts
        group = gibbs.Chains([gibbs.Group(own, observed, **keywords)], layout, prior)
        seconds[name], _ = cpu_seconds(
            lambda chosen=group: list(chain.run(chosen, [np.random.default_rng(5)], draws=ITERATIONS)), repeats=3
        )
    note = f"{CHAINS} chains; an iteration takes " + ", ".join(
        f"{seconds[name] / seconds['non-private']:.1f} times ({name})" for name in ("Laplace", "OPS")
    )
    note += " the CPU of the non-private one"
    return [
        row(
            "HMM site update, 10 states",
            "numpy loop over sites",
            per_site_loop / per_site,
            at_least=100,
            ours=1e6 * per_site,
            theirs=1e6 * per_site_loop,
            unit="µs per site and chain",
            note=note,
        )
    ]
