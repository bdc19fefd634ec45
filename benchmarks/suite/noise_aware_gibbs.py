"""Time of a sweep of noise-aware Gibbs samplers, against scalar loops (Bernstein and Sheldon 2018)."""

from __future__ import annotations

import numpy as np
import scalar_gibbs as scalar
from timing import row, side_by_side

from privpost.experiments.bernstein2018.trials import Release, experiment

NAME = "noise_aware_gibbs"
# Number of trials in a batch, number of records and ε of the study.
TRIALS, N, EPSILON = 1000, 1000, 0.1
PRIORS = {"binomial": [10, 10], "multinomial": [5, 5, 5], "exponential": [8, 2], "normal": [0, 0.1, 1]}
# Microseconds per trial and sweep of the authors' code, on a machine like that of the published table.
AUTHORS = {"binomial": 180, "multinomial": 180, "exponential": 4300}
REPEATS = 25


def stepper(name: str, variant: str, n: int = N, trials: int = TRIALS, prior=None):
    """Return a function that makes one sweep of a batch of chains after burn-in."""
    trial, rng = experiment(name, PRIORS[name] if prior is None else prior, variant), np.random.default_rng(1)
    data = trial.data(n, trials, rng)
    mechanism = trial.mechanism(n, EPSILON, data)
    release = Release(mechanism.perturb(data.exact.T, rng).T, mechanism.scale)
    kernel = trial.kernel(data, release, n)
    states = [kernel.init(rng)]

    def sweep():
        states[0] = kernel.step(states[0], rng)[0]

    for _ in range(100):
        sweep()
    return sweep


def floor(name: str):
    """Return a function that draws the random numbers of one sweep with numpy."""
    rng = np.random.default_rng(2)
    shapes = rng.uniform(200, 800, TRIALS)
    means, scales = rng.uniform(0.01, 1, TRIALS), np.full(TRIALS, 0.01)

    def variates():
        if name == "binomial":
            rng.beta(shapes, N - shapes)
        elif name == "exponential":
            rng.standard_gamma(N + 8.0, TRIALS)
        elif name == "normal":
            rng.standard_normal(TRIALS)
        for _ in range(3 if name == "multinomial" else 1):
            if name == "multinomial":
                rng.standard_gamma(shapes)
            rng.standard_normal(TRIALS)
            rng.wald(means, scales)
        if name in ("exponential", "normal"):
            rng.standard_normal(TRIALS)

    return variates


def loop(name: str, segment=scalar.dual_segment):
    """Return a function that makes one sweep of one trial in the scalar loop."""
    rng = np.random.RandomState(3)
    if name == "binomial":
        return lambda: scalar.binomial_sweep(0.4, 100.0, 405.0, N, 10.0, (10, 10), rng)
    if name == "multinomial":
        theta, y = np.array([0.3, 0.3, 0.4]), np.array([290.0, 310.0, 405.0])
        return lambda: scalar.multinomial_sweep(theta, np.full(3, 400.0), y, N, 20.0, np.full(3, 5.0), rng)
    return lambda: scalar.exponential_sweep(4.0, 137.0, 240.0, N, 11.7, (8, 2), 0.0063, 1.17, rng, segment)


def run() -> list[dict]:
    """Measure a sweep of each model against the scalar loops, and against drawing its random numbers alone."""
    rows = []
    papers = [(name, "paper") for name in AUTHORS]
    for name, variant in [*papers, ("exponential", "corrected"), ("normal", "corrected")]:
        what = f"noise-aware Gibbs, {name}"
        if name not in ("binomial", "multinomial"):
            what += f", {variant} variant"
        peers = _loops(name) if variant == "paper" else []
        functions = [stepper(name, variant), floor(name), *(function for _, function in peers)]
        # Each timed loop takes some ten milliseconds.
        calls = [100, 100] + [2 if "autograd" in words else 50 for words, _ in peers]
        times = [1e6 * seconds for seconds in side_by_side(functions, calls, REPEATS)]
        ours, least = times[0] / TRIALS, times[1] / TRIALS
        common = {"ours": ours, "unit": "µs per trial and sweep"}
        for (words, _), theirs in zip(peers, times[2:], strict=True):
            note = f"the authors' code: {AUTHORS[name]} µs on a like machine, {AUTHORS[name] / ours:.3g} times ours"
            values = {**common, "theirs": theirs, "note": note}
            rows.append(row(what, words, theirs / ours, **values))
        rows.append(row(what, "numpy's variates of a sweep alone", ours / least, theirs=least, **common))
    return rows


def _loops(name: str) -> list[tuple]:
    """Return pairs of a name and a function, one for each scalar loop of a model."""
    if name != "exponential":
        return [("scalar loop with scipy.stats", loop(name))]
    # The authors compute derivatives with a library. This loop uses two dozen lines of ours instead.
    own = ("scalar loop with scipy.stats and our own dual numbers", loop(name))
    try:
        segment = scalar.autograd_segment()
    except ModuleNotFoundError as error:
        print(f"skipped: the scalar loop with autograd ({error}); make environment installs it")
        return [own]
    return [("scalar loop with scipy.stats and autograd", loop(name, segment)), own]
