"""Growth of computing time with the size of a problem, as one fitted exponent for each axis."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from typing import NamedTuple

import numpy as np
from timing import cpu_seconds, row

from privpost.experiments.bernstein2018.trials import Release, experiment
from privpost.lab import grid
from privpost.mechanisms.noise.fourier import FourierMechanism
from privpost.mechanisms.noise.network import NetworkLaplace
from privpost.models.networks import graphs
from privpost.models.networks.bayesian_network import BayesianNetwork
from privpost.privacy.divergences.renyi import dirichlet_categorical_supremum
from privpost.samplers.hidden_markov import gibbs
from privpost.samplers.hidden_markov.kernels import explicit_sweep

NAME = "growth"
# Least CPU seconds of a measurement, and number of repeated measurements.
LEAST, REPEATS = 0.02, 4


class Curve(NamedTuple):
    """An axis, the name of what is timed, the sizes, and a function that maps a size to the function to be timed.

    The exponent is fitted to sizes of at least `fit_from`, since the overhead of calls matters at smaller sizes.
    """

    axis: str
    what: str
    sizes: tuple[int, ...]
    prepare: Callable[[int], Callable]
    fit_from: int


def _gibbs(model: str, prior, n: int, trials: int) -> Callable:
    trial, rng = experiment(model, prior, "corrected"), np.random.default_rng(1)
    data = trial.data(n, trials, rng)
    mechanism = trial.mechanism(n, 0.1, data)
    release = Release(mechanism.perturb(data.exact.T, rng).T, mechanism.scale)
    kernel = trial.kernel(data, release, n)
    state = kernel.init(rng)
    for _ in range(20):
        state, _ = kernel.step(state, rng)
    return lambda: kernel.step(state, rng)


def _network(mechanism: type, nodes: int, **settings) -> Callable:
    """Return a function that makes a release on a chain of nodes and draws from the posterior."""
    model, rng = BayesianNetwork(graphs.chain(nodes)), np.random.default_rng(2)
    data = model.sample_data(model.sample(model.prior, rng), 1000, rng)
    release = mechanism(model, 1000, 1.0, **settings)

    def once():
        posterior = release.naive_posterior(release.perturb(model.sufficient_statistics(data), rng))
        return model.sample(posterior, rng)

    return once


def _orders(size: int) -> Callable:
    orders = np.linspace(1.05, 6.5, size)
    return lambda: dirichlet_categorical_supremum((6.0, 12.0), 100, orders)


def _cells(size: int) -> Callable:
    """Return a function that validates, serialises and hashes all cells of a grid."""
    study = grid.load_study("geumlek2017/rdp_curves")
    study.config["sweep"] = {"coefficient": np.linspace(0.01, 1, size).tolist()}
    return lambda: [cell.path for cell in grid.make_cells(study, grid.points(study))]


def _hidden_markov(cells: int) -> Callable:
    """Return a function that makes a sweep of 100 chains with 10 states over regions of 71 months."""
    rng, chains, states = np.random.default_rng(3), 100, 10
    layout = gibbs.Layout.of(np.arange(cells) // 71)
    start = rng.integers(states, size=(cells, chains))
    moves = gibbs.transition_counts(start, layout, states)
    scores, uniforms = rng.random((chains, states, cells)), rng.random((cells, chains))
    return lambda: explicit_sweep(start, scores, uniforms, tuple(layout), 1.0, 1.0, moves)


CURVES = (
    Curve("trials", "noise-aware Gibbs, binomial, a sweep", (250, 1000, 4000, 16_000, 64_000),
          lambda size: _gibbs("binomial", [10, 10], 1000, size), 4000),
    Curve("n", "noise-aware Gibbs, binomial, a sweep of 1000 trials", (100, 10_000, 1_000_000, 100_000_000),
          lambda size: _gibbs("binomial", [10, 10], size, 1000), 100),
    Curve("grid (points within a cell)", "Rényi curve of beta-Bernoulli sampling", (100, 1000, 3000, 10_000, 30_000),
          _orders, 1000),
    Curve("grid (cells)", "planning a study: validate, serialise, hash", (100, 300, 1000, 3000), _cells, 100),
    Curve("categories", "noise-aware Gibbs, multinomial, a sweep of 1000 trials", (3, 12, 48, 192),
          lambda size: _gibbs("multinomial", [5.0] * size, 100_000, 1000), 12),
    Curve("network nodes", "Laplace release and posterior draw, chain, 1000 records", (4, 16, 64, 256),
          lambda size: _network(NetworkLaplace, size), 16),
    Curve("network nodes", "Fourier release and posterior draw, chain, 1000 records", (4, 8, 16, 64, 256),
          lambda size: _network(FourierMechanism, size, t=1.0), 16),
    Curve("HMM regions × months", "Gibbs sweep, 10 states, 100 chains", (71, 284, 1136, 4544), _hidden_markov, 71),
)  # fmt: skip


def measure(curve: Curve) -> Iterator[tuple[int, float]]:
    """Yield each size of a curve with the CPU seconds of a call at this size."""
    for size in curve.sizes:
        function = curve.prepare(size)
        start = time.process_time()
        function()
        once = time.process_time() - start
        seconds, _ = cpu_seconds(function, calls=max(1, int(LEAST / max(once, 1e-6))), repeats=REPEATS)
        yield size, seconds


def exponent(sizes, seconds) -> float:
    """Return the slope of the line that fits the points (size, seconds) on logarithmic axes."""
    return float(np.polyfit(np.log(sizes), np.log(seconds), 1)[0])


def run() -> list[dict]:
    """Measure all curves, and return a row per curve."""
    rows = []
    for curve in CURVES:
        timed = list(measure(curve))
        fitted = [(size, seconds) for size, seconds in timed if size >= curve.fit_from]
        slope = exponent(*zip(*fitted, strict=True))
        words = (
            f"exponent of time in {curve.axis}: {curve.what}",
            f"1 is linear ({fitted[0][0]:g} to {fitted[-1][0]:g})",
        )
        rows.append(row(*words, slope))
    return rows
