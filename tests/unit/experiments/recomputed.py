"""One tiny cell of a study and what its mechanisms released in it, for tests that compute its tables a second time.

The tests know a study by its settings, its streams and its tables alone: they have loops, sums over all data sets and
quadrature of their own, and import nothing that the study uses to compute the quantity in question.
"""

from __future__ import annotations

import math
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest

from privpost.lab import grid, tables
from privpost.lab.streams import Streams
from privpost.privacy.ledger.gate import Ledger
from privpost.samplers.hidden_markov import gibbs


class Remembering(Ledger):
    """A ledger that keeps every request with its release."""

    def __init__(self):
        super().__init__()
        self.seen: list[tuple] = []

    def release_all(self, requests):
        found = super().release_all(requests)
        self.seen += zip(requests, found, strict=True)
        return found

    def of(self, account: str) -> list[tuple]:
        """(request, release) of an account, in the order of its blocks."""
        return [(request, release) for request, release in self.seen if request.account == account]

    def released(self, account: str) -> np.ndarray:
        """All values that an account released, one trial after the other."""
        return np.concatenate([release.values for _, release in self.of(account)])


def run(name: str, trials: int, block: int, **changes) -> SimpleNamespace:
    """The first toy cell of a study with changed settings: config, streams, arrays, ledger and tables."""
    study = grid.load_study(name, "smoke")
    first = grid.expand(study)[0]
    config = SimpleNamespace(**{**vars(first.config), "trials": trials, "block": block, **changes})
    streams, ledger = replace(Streams.of(first), trials=trials, block=block), Remembering()
    arrays = {key: np.asarray(value) for key, value in study.module().simulate(config, streams, ledger).items()}
    cell = SimpleNamespace(config=config, arrays=arrays)
    made = tables.tables_of(study, [cell])
    return SimpleNamespace(config=config, streams=streams, arrays=arrays, ledger=ledger, tables=made)


def row(table, **values):
    """The only row with these values."""
    for name, value in values.items():
        table = table[table[name].isna()] if value is None else table[table[name] == value]
    assert len(table) == 1, f"{len(table)} rows with {values}"
    return table.iloc[0]


def spied(monkeypatch, owner, name: str) -> list[SimpleNamespace]:
    """What a function is called with and returns from here on; what is looked at is its arguments, not its work."""
    calls, original = [], getattr(owner, name)

    def watched(*given, **settings):
        result = original(*given, **settings)
        calls.append(SimpleNamespace(given=given, settings=settings, result=result))
        return result

    monkeypatch.setattr(owner, name, watched)
    return calls


def recorded(monkeypatch, kept) -> list[list]:
    """What is kept of every run of hidden Markov chains after each iteration, in the order of the runs."""
    runs, follow = [], gibbs.follow

    def watched(sampler, rng, iterations, given=None):
        runs.append([])

        def watch(iteration, state):
            runs[-1].append(kept(state))
            if given is not None:
                given(iteration, state)

        return follow(sampler, rng, iterations, watch)

    monkeypatch.setattr(gibbs, "follow", watched)
    return runs


def successes(cell, n: int, p: float, size: int, blocks: int) -> list[float]:
    """The data of a study whose stream `data` draws one number of successes a trial."""
    return [float(s) for block in range(blocks) for s in cell.streams("data", block, n=n).binomial(n, p, size)]


def laplace_pairs(cell, data, n: int, size: int, **point) -> list[tuple[float, float]]:
    """Noisy numbers of ones and zeros at scale 2/ε, none below 0: each from its block's stream."""
    pairs = []
    for place, ones in enumerate(data):
        noise = cell.streams("mechanism", place // size, method="laplace", n=n).laplace(size=(size, 2))
        scale = 2 / (point.get("epsilon") or cell.config.epsilon)
        noisy = [count + scale * value for count, value in zip((ones, n - ones), noise[place % size], strict=True)]
        pairs.append(tuple(max(0.0, value) for value in noisy))
    return pairs


def temperature(a0: float, epsilon: float) -> float:
    return max(1.0, 2 * math.log((1 - a0) / a0) / epsilon)


def tempered(alpha: float, beta: float, ones: float, n: int, t: float) -> tuple[float, float]:
    """OPS tempers the whole log-joint, prior and likelihood."""
    return 1 + (alpha - 1 + ones) / t, 1 + (beta - 1 + n - ones) / t


def mean_and_error(values) -> tuple[float, float]:
    """Mean and standard error by two loops."""
    mean = sum(values) / len(values)
    return mean, math.sqrt(sum((value - mean) ** 2 for value in values) / (len(values) - 1) / len(values))


def check_mean(kept, values):
    """A row's mean and standard error."""
    assert (kept["mean"], kept["sem"]) == pytest.approx(mean_and_error(values))


def two_point(pure: float, order: float) -> float:
    """Rényi divergence of randomised response at a pure ε."""
    p, q = 1 / (1 + math.exp(-pure)), 1 / (1 + math.exp(pure))
    if order == 1:
        return pure * (p - q)
    larger = max(order * math.log(p) + (1 - order) * math.log(q), order * math.log(q) + (1 - order) * math.log(p))
    terms = [math.exp(order * math.log(a) + (1 - order) * math.log(b) - larger) for a, b in ((p, q), (q, p))]
    return (larger + math.log(sum(terms))) / (order - 1)


def solved(function, target: float, low: float, high: float) -> float:
    """Where a rising function has a value, by bisection."""
    for _ in range(100):
        middle = (low + high) / 2
        low, high = (middle, high) if function(middle) < target else (low, middle)
    return low


def normal_delta(mu: float, epsilon: float) -> float:
    """δ of N(μ, 1) against N(0, 1), by a sum over the density."""
    x = np.linspace(-12, 12 + mu, 40_001)
    p, q = (np.exp(-((x - centre) ** 2) / 2) / math.sqrt(2 * math.pi) for centre in (mu, 0.0))
    return float(np.maximum(p - math.exp(epsilon) * q, 0).sum() * (x[1] - x[0]))


def log_beta(a: float, b: float) -> float:
    return math.lgamma(a) + math.lgamma(b) - math.lgamma(a + b)


def log_dirichlet(counts, prior: float = 1.0) -> float:
    """Log-probability of a sequence with these counts, its law from a symmetric Dirichlet prior."""
    total = math.lgamma(prior * len(counts)) - math.lgamma(prior * len(counts) + sum(counts))
    return total + sum(math.lgamma(prior + count) - math.lgamma(prior) for count in counts)


def renyi(p, q, order: float) -> float:
    """Rényi divergence of two Dirichlet laws, by the integral of p^λ q^(1−λ); inf where it has a pole."""

    def log_integral(alpha):
        return sum(math.lgamma(a) for a in alpha) - math.lgamma(sum(alpha))

    mixed = [order * a + (1 - order) * b for a, b in zip(p, q, strict=True)]
    if min(mixed) <= 0:
        return math.inf
    return (log_integral(mixed) - order * log_integral(p) - (1 - order) * log_integral(q)) / (order - 1)


def quantile(values, share: float) -> float:
    """By linear interpolation between ordered values."""
    ordered, place = sorted(values), share * (len(values) - 1)
    low = int(place)
    high = min(low + 1, len(values) - 1)
    return ordered[low] + (place - low) * (ordered[high] - ordered[low])


def beta_density(theta, a: float, b: float):
    return np.exp((a - 1) * np.log(theta) + (b - 1) * np.log1p(-theta) - log_beta(a, b))


def midpoints(low: float = 0.0, high: float = 1.0, number: int = 4000):
    """Midpoints of equal cells and their width."""
    width = (high - low) / number
    return low + width * (np.arange(number) + 0.5), width


def kl(p, q, width: float) -> float:
    """KL(P‖Q) of densities at midpoints, each made to sum to one first."""
    p, q = p / (p.sum() * width), q / (q.sum() * width)
    inside = p > 1e-300
    return float((p[inside] * np.log(p[inside] / q[inside])).sum() * width)


def ks(values) -> float:
    """Largest distance of an empirical distribution function from the uniform one, on either side of every step."""
    ordered, size = sorted(values), len(values)
    return max(max((i + 1) / size - value, value - i / size) for i, value in enumerate(ordered))
