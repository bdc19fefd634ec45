"""Asymptotic relative efficiency of private estimates of a Bernoulli parameter (Foulds et al. 2016, section 3.3).

The relative efficiency of an estimate θ̂ of p is n E[(θ̂−p)²] I(p) with the Fisher information I(p) = 1/(p(1−p)). By
theorems 3.1 and 3.2 and remark 1, it tends to 2 for a sample from the true or the Laplace posterior, to 1 for the mean
of either posterior, and to 1+T for an OPS sample at temperature T.
"""

import itertools
import math

import numpy as np

from privpost.discovery import serving
from privpost.distributions import truncated_beta
from privpost.evaluation.rows import columns, private_places
from privpost.evaluation.summaries import mean_and_sem
from privpost.experiments.discovered import Discovered, Failed
from privpost.experiments.foulds2016.bits import limit
from privpost.experiments.ranges import A0, ALPHA, BETA, EPSILON, N, P
from privpost.lab.schema import Schema, SettingError
from privpost.mechanisms.base import Mechanism
from privpost.mechanisms.choices.exponential import ExponentialMechanism
from privpost.mechanisms.noise.additive import AdditiveNoiseMechanism
from privpost.mechanisms.noise.laplace import LaplaceMechanism
from privpost.models.conjugate.beta_bernoulli import BetaBernoulli
from privpost.privacy.accounting.costs import Cost
from privpost.privacy.ledger.gate import Release, Request

STATISTICS = ("sample", "mean")


def known() -> set[str]:
    """Return the names of the true posterior and of all pure-DP mechanisms for binary data."""
    return {"non_private", *serving(BetaBernoulli(1, 1), 10, Cost("pure", 1.0), a0=0.25)}


SETTINGS = Schema(
    alpha=ALPHA,
    beta=BETA,
    a0=A0,
    methods=Discovered(known, says="methods that take part"),
    p=P,
    epsilon=EPSILON,
    n=N,
)
TABLES = {
    "efficiency": {
        "are": "asymptotic relative efficiency: n times the mean squared error times the Fisher information",
        "are_limit": "limit of the asymptotic relative efficiency for many records",
        "are_first_order": "asymptotic relative efficiency to first order in 1/n",
        "released": "whether the estimate can be released within ε",
    },
}


def mechanisms(config, n: int, epsilon: float) -> dict[str, Mechanism]:
    """Return mechanisms for the study's methods under ε-DP. Raises SettingError if one does not serve binary data."""
    model = BetaBernoulli(config.alpha, config.beta)
    served = serving(model, n, Cost("pure", epsilon), a0=config.a0, coordinates="all")
    missing = set(config.methods) - {"non_private", *served}
    if missing:
        raise SettingError(
            f"methods has {', '.join(sorted(missing))}; only {', '.join(served)} serve {model} at n = {n}"
        )
    return {method: served[method] for method in config.methods if method in served}


def first_order(mechanism: Mechanism | None, statistic: str, model: BetaBernoulli, p: float, n: int) -> float:
    """Return the relative efficiency to order 1/n, or nan if it is not known.

    With s successes, the posterior at temperature T is Beta((u+s)/T, (w−u+n−s)/T) for u = T+α−1 and w = 2T+α+β−2. The
    true and the Laplace posterior have T = 1. With d = u − wp and q = 1−p, the efficiency of each statistic is

        mean    1 + [d²/(pq) − 2w + v] / n,
        sample  1 + T + [d²/(pq) − 2w + v + T(d(1−2p)/(pq) − 1 − w − T)] / n,

    where v = 2b²(p² + q²)/(pq) for Laplace noise of scale b on both counts, else 0. Effects of truncation and clipping
    are exponentially small in n and left out.
    """
    temperature, noise = 1.0, 0.0
    if isinstance(mechanism, ExponentialMechanism):
        temperature = mechanism.temperature
    elif isinstance(mechanism, LaplaceMechanism) and mechanism.coordinates == "all":
        noise = 2 * mechanism.scale**2 * (p**2 + (1 - p) ** 2) / (p * (1 - p))
    elif mechanism is not None:
        return math.nan
    u, w = temperature + model.alpha - 1, 2 * temperature + model.alpha + model.beta - 2
    shift, variance = u - w * p, p * (1 - p)
    coefficient = shift**2 / variance - 2 * w + noise
    if statistic == "sample":
        coefficient += temperature * (shift * (1 - 2 * p) / variance - 1 - w - temperature)
    return limit(mechanism, statistic) + coefficient / n


def estimates(mechanism: Mechanism | None, release, model, statistics, rng) -> dict[str, np.ndarray]:
    """Return by name a posterior sample (trials,) and, if it is known, the posterior mean (trials,)."""
    if mechanism is None or isinstance(mechanism, AdditiveNoiseMechanism):
        posterior = model.posterior(statistics) if mechanism is None else mechanism.naive_posterior(release)
        return {"sample": model.sample(posterior, rng), "mean": model.mean(posterior)}
    estimated = {"sample": mechanism.posterior_draw(release, rng)}
    if isinstance(mechanism, ExponentialMechanism):
        # This mean is computed from the data and cannot be released.
        estimated["mean"] = truncated_beta.mean(mechanism.release_law(statistics), *mechanism.ends)
    return estimated


def simulate(config, streams, ledger) -> dict:
    """Return arrays over (method, statistic, epsilon, n), and two facts about each method.

    `are` has a last axis for mean and standard error of the efficiency. `limit` and `first_order` are theoretical
    values. `released` says whether a method releases the mean, and `truncated` whether it uses a0. The true posterior
    fills only the first entry of the epsilon axis.
    """
    model, p = BetaBernoulli(config.alpha, config.beta), config.p
    shape = (len(config.methods), len(STATISTICS), len(config.epsilon), len(config.n))
    are, limits, firsts = np.full((*shape, 2), np.nan), np.full(shape, np.nan), np.full(shape, np.nan)
    failed = Failed()
    served = {(j, k): mechanisms(config, n, e) for j, e in enumerate(config.epsilon) for k, n in enumerate(config.n)}
    for (j, k), by_method in served.items():
        for method, mechanism in by_method.items():
            with failed.alone(method):
                budget = Cost("pure", config.epsilon[j])
                ledger.open(_account(method, config.epsilon[j], config.n[k]), budget, mechanism)
    for ((j, k), by_method), (i, method) in itertools.product(served.items(), enumerate(config.methods)):
        if method in failed or (method not in by_method and j > 0):
            continue
        with failed.alone(method):
            errors = _squared_errors(method, by_method.get(method), config, j, k, streams, ledger)
            for s, statistic in enumerate(STATISTICS):
                efficiency = errors[s] * config.n[k] / (p * (1 - p))
                are[i, s, j, k] = mean_and_sem(efficiency)
                limits[i, s, j, k] = limit(by_method.get(method), statistic)
                firsts[i, s, j, k] = first_order(by_method.get(method), statistic, model, p, config.n[k])
    are[[i for i, method in enumerate(config.methods) if method in failed]] = np.nan
    largest = [served[len(config.epsilon) - 1, len(config.n) - 1].get(method) for method in config.methods]
    return {
        "are": are,
        "limit": limits,
        "first_order": firsts,
        "released": np.array([mechanism is not None and mechanism.releases == "statistics" for mechanism in largest]),
        "truncated": np.array([mechanism is not None and "a0" in mechanism.options for mechanism in largest]),
    }


def _account(method: str, epsilon: float, n: int) -> str:
    return f"{method}/epsilon={epsilon:g}/n={n}"


def _squared_errors(method, mechanism, config, j: int, k: int, streams, ledger) -> np.ndarray:
    """Return the squared errors (statistics, trials) of sample and mean at one ε and n."""
    model, epsilon, n = BetaBernoulli(config.alpha, config.beta), config.epsilon[j], config.n[k]
    errors, requests = np.empty((len(STATISTICS), config.trials)), []
    for block in streams.blocks():
        successes = streams("data", block.index, n=n).binomial(n, config.p, block.size).astype(float)
        statistics = np.stack([successes, n - successes], axis=-1)
        rng = streams("mechanism", block.index, method=method, n=n)
        requests.append(Request(_account(method, epsilon, n), mechanism, statistics, rng, repeats=block.trials))
    releases = [Release(None)] * len(requests) if mechanism is None else ledger.release_all(requests)
    for asked, release in zip(requests, releases, strict=True):
        estimated = estimates(mechanism, release.values, model, asked.statistics, asked.rng)
        for s, statistic in enumerate(STATISTICS):
            errors[s, asked.repeats] = (estimated.get(statistic, np.nan) - config.p) ** 2
    return errors


def tabulate(cells):
    """Yield one row per method, statistic, p, epsilon and n: the relative efficiency, and its theoretical values."""
    for cell in cells:
        arrays, axes = cell.arrays, {"method": cell.config.methods, "statistic": STATISTICS}
        for at, point in private_places(cell.config, "method", "statistic", "epsilon", "n", **axes):
            if not np.isnan(arrays["are"][at][0]):
                yield {
                    **columns(point, "method", "statistic", "p", "epsilon"),
                    "a0": point.a0 if arrays["truncated"][at[0]] else None,
                    "n": point.n,
                    "are": arrays["are"][at][0],
                    "are_limit": arrays["limit"][at],
                    "sem": arrays["are"][at][1],
                    "are_first_order": arrays["first_order"][at],
                    "released": point.statistic == "sample" or bool(arrays["released"][at[0]]),
                    "n_repeats": point.trials,
                }
