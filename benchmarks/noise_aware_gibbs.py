"""Time per trial and sweep of the noise-aware Gibbs samplers, against a scalar loop and the random numbers alone.

Run with one BLAS thread: `OPENBLAS_NUM_THREADS=1 python benchmarks/noise_aware_gibbs.py`. CPU times; the best of
several runs. With the package autograd installed the scalar loop of Algorithm 2 is timed with it too.
"""

from __future__ import annotations

import time

import numpy as np
import scalar_gibbs as scalar

from privpost.evaluation.mmd import mmd2
from privpost.studies.bernstein2018.trials import experiment

TRIALS, N, EPSILON = 1000, 1000, 0.1
# Microseconds per trial and sweep of the authors' code, on a machine like the one of the shipped timings.
AUTHOR = {"binomial": 180, "multinomial": 180, "exponential": 4300}
PRIORS = {"binomial": [10, 10], "multinomial": [5, 5, 5], "exponential": [8, 2], "normal": [0, 0.1, 1]}


def best(function, calls: int, repeats: int = 5) -> float:
    """Return the least CPU seconds per call over repeats, after one call to warm up."""
    function()
    times = []
    for _ in range(repeats):
        start = time.process_time()
        for _ in range(calls):
            function()
        times.append((time.process_time() - start) / calls)
    return min(times)


def batched(name: str, variant: str, n: int = N) -> float:
    """Return the seconds per trial and sweep of the batched sampler."""
    trial, rng = experiment(name, PRIORS[name], variant), np.random.default_rng(1)
    data = trial.data(n, TRIALS, rng)
    kernel = trial.kernel(data, trial.release(data, n, EPSILON, rng), n)
    states = [kernel.initial(rng)]

    def sweep():
        states[0] = kernel.sweep(states[0], rng)[0]

    for _ in range(100):
        sweep()
    return best(sweep, 500) / TRIALS


def floor(name: str) -> float:
    """Return the seconds per trial of the variates of one sweep, from numpy's Generator."""
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

    return best(variates, 500) / TRIALS


def loop(name: str, segment=None) -> float:
    """Return the seconds per trial and sweep of the scalar loop."""
    rng = np.random.RandomState(3)
    if name == "binomial":
        return best(lambda: scalar.binomial_sweep(0.4, 100.0, 405.0, N, 10.0, (10, 10), rng), 100)
    if name == "multinomial":
        theta, y = np.array([0.3, 0.3, 0.4]), np.array([290.0, 310.0, 405.0])
        return best(lambda: scalar.multinomial_sweep(theta, np.full(3, 400.0), y, N, 20.0, np.full(3, 5.0), rng), 100)
    arguments = (4.0, 137.0, 240.0, N, 11.7, (8, 2), 0.0063, 1.17, rng)
    return best(lambda: scalar.exponential_sweep(*arguments, segment or scalar.dual_segment), 100)


def mmd_rows() -> dict:
    """Return the times and the difference of MMD² by features and by the double sum, at 5000 draws."""
    rng = np.random.default_rng(4)
    p, q = rng.beta(30, 40, 5000), rng.beta(33, 40, 5000)

    def double_sum():
        kernel = [np.exp(-((a[:, None] - b) ** 2) / 2) for a, b in ((p, p), (q, q), (p, q))]
        within = sum(k.sum() - np.trace(k) for k in kernel[:2])
        return (within - 2 * (kernel[2].sum() - np.trace(kernel[2]))) / (5000 * 4999)

    return {
        "features": best(lambda: mmd2(p, q), 20),
        "double sum": best(double_sum, 1, 2),
        "difference": abs(float(mmd2(p, q)) - double_sum()),
    }


def main() -> None:
    print("Noise-aware Gibbs: microseconds per trial and sweep (1000 trials, n = 1000, epsilon = 0.1)")
    head = ("model", "variant", "batched", "floor", "batched/floor", "loop", "loop/batched", "authors' code")
    print(("{:>14}" * len(head)).format(*head))
    cases = [("binomial", "paper"), ("multinomial", "paper"), ("exponential", "paper"), ("exponential", "corrected")]
    for name, variant in [*cases, ("normal", "corrected")]:
        ours, least = 1e6 * batched(name, variant), 1e6 * floor(name)
        peer = 1e6 * loop(name) if name != "normal" else float("nan")
        row = (name, variant, ours, least, ours / least, peer, peer / ours, AUTHOR.get(name, float("nan")))
        print("{:>14}{:>14}{:>14.3f}{:>14.3f}{:>14.2f}{:>14.0f}{:>14.0f}{:>14.0f}".format(*row))
    try:
        peer = 1e6 * loop("exponential", scalar.autograd_segment())
        ratio = peer / (1e6 * batched("exponential", "paper"))
        print(f"scalar loop of the exponential with autograd: {peer:.0f}, {ratio:.0f} times the batched one")
    except ImportError:
        print("autograd is not installed: the scalar loop of the exponential was timed with dual numbers only")
    for n in (100, 10_000, 1_000_000):
        print(f"batched binomial at n = {n}: {1e6 * batched('binomial', 'paper', n):.3f}")
    times = mmd_rows()
    ratio = times["double sum"] / times["features"]
    print(f"MMD, 5000 draws: {1e3 * times['features']:.2f} ms; double sum: {ratio:.0f} times that")
    print(f"difference of the estimates: {times['difference']:.1e}")


if __name__ == "__main__":
    main()
