"""All mechanisms for binary data at the same (ε, δ): divergence, error of one draw, and calibration."""

import itertools
import math
from typing import NamedTuple

import numpy as np
from scipy.special import betainc, betaln, digamma

from privpost.evaluation.summaries import mean_and_sem, mean_columns, share_error
from privpost.experiments.discovered import Discovered, Failed
from privpost.experiments.fair_axis import calibration
from privpost.experiments.ranges import A0, ALPHA, BETA, DELTA, EPSILON, N
from privpost.lab.schema import Schema
from privpost.mechanisms.base import Mechanism
from privpost.models.conjugate.beta_bernoulli import BetaBernoulli
from privpost.privacy.accounting.costs import Cost

SETTINGS = Schema(
    methods=Discovered(lambda: calibration.methods(BetaBernoulli(6, 12), a0=0.05), says="methods that take part"),
    alpha=ALPHA,
    beta=BETA,
    a0=A0,
    n=N,
    epsilon=EPSILON,
    delta=DELTA,
)
TABLES = {
    "beta_bernoulli": {
        "accounting": "how (ε, δ) is computed: `converted` from the stated guarantee, or `exact`, by the privacy curve",
        "setting": "calibrated setting: ε of pure mechanisms, σ of Gaussian noise, or the coefficient",
    },
    "beta_bernoulli_pairs": {},
}
# Gauss-Legendre nodes of an integral over θ.
NODES = 600
# Nodes of an integral over the noisy count.
COUNT_NODES = 2000
# Fewest and most nodes over the noisy count between two whole numbers.
FEWEST_NODES = 4
MOST_NODES = 24
TINY = 1e-300
# How mechanisms are calibrated to (ε, δ) and charged: by conversion of the stated guarantee, or by the exact privacy
# curve. The values are the ledger's names for these two accountings.
ACCOUNTINGS = {"converted": "stated", "exact": "exact"}


class Scores(NamedTuple):
    """Errors |draw − θ| and |posterior mean − θ|, KL from the true posterior, and quantile of θ, for each repeat."""

    sample: np.ndarray
    mean: np.ndarray
    kl: np.ndarray
    quantile: np.ndarray


class Row(NamedTuple):
    """A method at one (ε, δ), with its accounting and mechanism. The row of the true posterior has only `method`."""

    method: str
    accounting: str = ""
    epsilon: float = math.nan
    delta: float = math.nan
    mechanism: Mechanism | None = None

    @property
    def account(self) -> str:
        """The name of the row's account in the ledger."""
        return f"{self.method}/{self.accounting}/epsilon={self.epsilon:g}/delta={self.delta:g}"

    @property
    def setting(self) -> float:
        """The calibrated setting: ε of a pure mechanism, σ of noise, or coefficient (1 for the direct posterior)."""
        if self.mechanism is None:
            return math.nan
        return 1.0 if self.mechanism.calibrated is None else float(getattr(self.mechanism, self.mechanism.calibrated))


class Divergence:
    """Computes KL from the true posterior to the law of one released draw, both restricted to [a0, 1−a0].

    The law of a draw from noisy counts is a mixture of the posteriors K_c over the projected count c. If the noise has
    distribution function F and the true count is s, integration by parts gives the mixture as K_s + ∫_s^n K'_c
    (1 − F(c−s)) dc − ∫_0^s K'_c F(c−s) dc.
    """

    def __init__(self, model: BetaBernoulli, n: int, a0: float):
        self.model, self.n = model, n
        x, w = np.polynomial.legendre.leggauss(NODES)
        self.nodes, self.log_weights = 0.5 + (0.5 - a0) * x, np.log((0.5 - a0) * w)
        x, w = np.polynomial.legendre.leggauss(min(MOST_NODES, max(FEWEST_NODES, COUNT_NODES // n)))
        self.counts = (np.arange(n)[:, None] + (1 + x) / 2).ravel()
        parameters = model.posterior(np.stack([self.counts, n - self.counts], axis=-1))
        slope = np.log(self.nodes) - np.log1p(-self.nodes) + digamma(parameters[:, 1:]) - digamma(parameters[:, :1])
        self._slope = np.tile(w / 2, n)[:, None] * np.exp(self._law(parameters)) * slope

    def _law(self, parameters) -> np.ndarray:
        a, b = parameters[..., :1], parameters[..., 1:]
        return (a - 1) * np.log(self.nodes) + (b - 1) * np.log1p(-self.nodes) - betaln(a, b)

    def __call__(self, mechanism: Mechanism, successes) -> np.ndarray:
        """Return the KL at each number of successes (k,), or nan if the law of the draw is not known."""
        statistics = np.stack([successes, self.n - successes], axis=-1)
        true = self._law(self.model.posterior(statistics))
        if mechanism.releases == "statistics":
            beyond = self._beyond(mechanism, successes)
            law = None if beyond is None else np.log(np.maximum(np.exp(true) + beyond @ self._slope, TINY))
        elif (parameters := mechanism.release_law(statistics)) is not None:
            law = self._law(parameters)
        else:
            law = mechanism.log_density(self.nodes, statistics[:, None])
        if law is None:
            return np.full(len(successes), np.nan)
        logs = [log - np.logaddexp.reduce(log + self.log_weights, axis=1, keepdims=True) for log in (true, law)]
        weight = np.exp(logs[0] + self.log_weights)
        return np.where(weight > 0, weight * (logs[0] - np.maximum(logs[1], -1e4)), 0.0).sum(axis=1)

    def _beyond(self, mechanism, successes) -> np.ndarray | None:
        """Return P(noisy count > c) at nodes c above the true count, and −P(noisy count ≤ c) at other nodes."""
        away = self.counts - np.asarray(successes, float)[:, None]
        below = mechanism.noise_cdf(away)
        return None if below is None else np.where(away > 0, 1.0, 0.0) - below


def score(mechanism: Mechanism | None, release, model: BetaBernoulli, theta, successes, n, divergence, rng) -> Scores:
    """Return the scores of a mechanism's releases on all trials, or of the true posterior if `mechanism` is None."""
    statistics = np.stack([successes, n - successes], axis=-1)
    mean = quantile = np.full(len(theta), np.nan)
    if mechanism is None or mechanism.releases == "statistics":
        law = model.posterior(statistics) if mechanism is None else mechanism.naive_posterior(release)
        draw, mean = model.sample(law, rng), np.abs(model.mean(law) - theta)
    else:
        draw, law = release, mechanism.release_law(statistics)
    # The analyst's posterior: the conjugate posterior given noisy statistics, or the law of a released draw.
    if law is not None:
        low, high = (betainc(law[:, 0], law[:, 1], end) for end in getattr(mechanism, "ends", model.support))
        quantile = np.clip((betainc(law[:, 0], law[:, 1], theta) - low) / (high - low), 0.0, 1.0)
    values, index = np.unique(successes, return_inverse=True)
    kl = np.zeros(len(theta)) if mechanism is None else divergence(mechanism, values)[index]
    return Scores(np.abs(draw - theta), mean, kl, quantile)


def calibrated(config, model: BetaBernoulli, failed: Failed) -> list[Row]:
    """Return rows: the true posterior, and then each method at each (ε, δ) by both accountings."""
    rows = [Row("non_private")]
    for epsilon, delta in itertools.product(config.epsilon, config.delta):
        mechanisms = calibration.converted(model, config.n, epsilon, delta, a0=config.a0, coordinates="free")
        for method, mechanism in mechanisms.items():
            if method in config.methods and method not in failed:
                with failed.alone(method):
                    exact = mechanism.recalibrated(Cost("approximate", epsilon, delta=delta))
                    rows.append(Row(method, "converted", epsilon, delta, mechanism))
                    rows += [] if exact is None else [Row(method, "exact", epsilon, delta, exact)]
    return rows


def simulate(config, streams, ledger) -> dict:
    """Return `scores` (rows, 4, repeats), and the rows' names and settings. Rows share data and random numbers."""
    model, n, failed = BetaBernoulli(config.alpha, config.beta), config.n, Failed()
    divergence, rows = Divergence(model, n, config.a0), calibrated(config, model, failed)
    for row in rows[1:]:
        with failed.alone(row.method):
            budget = Cost("approximate", row.epsilon, delta=row.delta)
            ledger.open(row.account, budget, row.mechanism, accounting=ACCOUNTINGS[row.accounting])
    scores = np.empty((len(rows), len(Scores._fields), config.trials))
    for block in streams.blocks():
        rng = streams("data", block.index)
        theta = rng.beta(config.alpha, config.beta, block.size)
        successes = rng.binomial(n, theta).astype(float)
        statistics = np.stack([successes, n - successes], axis=-1)
        for i, row in enumerate(rows):
            if row.method in failed:
                continue
            rng, release = streams("mechanism", block.index), None
            with failed.alone(row.method):
                if row.mechanism is not None:
                    release = ledger.release(row.account, row.mechanism, statistics, rng, repeats=block.trials).values
                scored = score(row.mechanism, release, model, theta, successes, n, divergence, rng)
                scores[i, :, block.trials] = np.stack(scored)
    complete = [i for i, row in enumerate(rows) if row.method not in failed]
    scores, rows = scores[complete], [rows[i] for i in complete]
    return {
        "scores": scores,
        **{name: np.array([getattr(row, name) for row in rows]) for name in ("method", "accounting")},
        **{name: np.array([getattr(row, name) for row in rows]) for name in ("epsilon", "delta", "setting")},
        "releases": np.array(["statistics" if row.mechanism is None else row.mechanism.releases for row in rows]),
    }


def ks_with_error(quantiles) -> tuple[float, float]:
    """Return the KS distance of quantiles from uniform, and the empirical CDF's standard error at the largest gap."""
    ordered = np.sort(quantiles)
    size = len(ordered)
    above, below = np.arange(1, size + 1) / size - ordered, ordered - np.arange(size) / size
    place = int(np.argmax(np.maximum(above, below)))
    share = (place + (above[place] >= below[place])) / size
    return float(max(above[place], below[place])), float(share_error(share, size))


def tabulate(cells):
    """Return two tables: the metrics, and paired differences of error and KL between methods at the same (ε, δ)."""
    rows, pairs = [], []
    for cell in cells:
        arrays, n = cell.arrays, cell.config.n
        keys = list(zip(arrays["accounting"], arrays["epsilon"], arrays["delta"], strict=True))
        for i, method in enumerate(arrays["method"]):
            accounting, epsilon, delta = keys[i]
            point = {"accounting": accounting, "n": n, "epsilon": epsilon, "delta": delta}
            scores = Scores(*arrays["scores"][i])
            posterior = "posterior" if arrays["releases"][i] == "statistics" else "sample"
            metrics = [
                ("sample", "l1_error", *mean_and_sem(scores.sample)),
                ("mean", "l1_error", *mean_and_sem(scores.mean)),
                ("sample", "kl", *mean_and_sem(scores.kl)),
            ]
            if not np.isnan(scores.quantile).any():
                metrics.append((posterior, "ks", *ks_with_error(scores.quantile)))
            more = {"n_repeats": cell.config.trials, "setting": arrays["setting"][i]}
            rows += [
                {"method": method, "statistic": statistic, **point, "metric": metric, "mean": mean, "sem": sem, **more}
                for statistic, metric, mean, sem in metrics
                if not math.isnan(mean)
            ]
        pairs += _pairs(arrays, keys, n, cell.config.trials)
    return {"beta_bernoulli": rows, "beta_bernoulli_pairs": pairs}


def _pairs(arrays, keys, n: int, trials: int):
    """Yield paired differences between any two methods with the same accounting, ε and δ."""
    for accounting, epsilon, delta in dict.fromkeys(key for key in keys if key[0]):
        members = [i for i, key in enumerate(keys) if key == (accounting, epsilon, delta)]
        couples = itertools.combinations(sorted(members, key=lambda i: arrays["method"][i]), 2)
        for (i, j), (place, metric) in itertools.product(couples, ((0, "l1_error"), (2, "kl"))):
            difference = mean_columns("difference", arrays["scores"][i, place] - arrays["scores"][j, place])
            if not math.isnan(difference["difference_mean"]):
                yield {
                    "first": arrays["method"][i],
                    "second": arrays["method"][j],
                    "accounting": accounting,
                    "n": n,
                    "epsilon": epsilon,
                    "delta": delta,
                    "metric": metric,
                    **difference,
                    "n_repeats": trials,
                }
