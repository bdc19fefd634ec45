"""All mechanisms for bits at the same (ε, δ): divergence, error of one draw, and calibration."""

from __future__ import annotations

import itertools
import math
from collections import Counter, defaultdict
from typing import NamedTuple

import numpy as np
from scipy.special import betainc, betaln, ndtr

from privpost.evaluation.calibration import ks_limit
from privpost.evaluation.claims import Claim, Why, from_checks
from privpost.evaluation.multiplicity import FALSE_ALARM, critical_value
from privpost.mechanisms.base import AdditiveNoiseMechanism, Mechanism
from privpost.mechanisms.exponential import ExponentialMechanism
from privpost.mechanisms.gaussian import GaussianMechanism
from privpost.mechanisms.laplace import LaplaceMechanism
from privpost.mechanisms.posterior_sampling import PosteriorSampling
from privpost.models.beta_bernoulli import BetaBernoulli
from privpost.pipeline.schema import Integer, Real, Schema
from privpost.privacy.accounting import Cost
from privpost.studies.discovered import Discovered
from privpost.studies.fair_axis import calibration

SETTINGS = Schema(
    methods=Discovered(lambda: calibration.methods(BetaBernoulli(6, 12), a0=0.05)),
    alpha=Real(above=0),
    beta=Real(above=0),
    a0=Real(above=0, below=0.5),
    n=Integer(at_least=1),
    epsilon=Real(above=0),
    delta=Real(above=0, below=1),
)
NODES = 600
CELLS = 1000


class Scores(NamedTuple):
    """Per repeat: |draw − θ|, |posterior mean − θ|, KL from the true posterior, quantile of θ; nan where undefined."""

    sample: np.ndarray
    mean: np.ndarray
    kl: np.ndarray
    quantile: np.ndarray


class Trials(NamedTuple):
    """θ ~ prior, successes ~ Binomial(n, θ), each (repeats,)."""

    theta: np.ndarray
    successes: np.ndarray


class Divergence:
    """KL from the true posterior to the law of one released draw, both restricted to [a0, 1−a0], by Gauss-Legendre.

    The law of a draw from noisy counts is a mixture over the projected count, taken at 1001 values in [0, n].
    """

    def __init__(self, model: BetaBernoulli, n: int, a0: float):
        self.model, self.n = model, n
        x, w = np.polynomial.legendre.leggauss(NODES)
        self.nodes, self.log_weights = 0.5 + (0.5 - a0) * x, np.log((0.5 - a0) * w)
        self.counts = np.linspace(0, n, CELLS + 1)
        self._kernel = np.exp(self._law(model.posterior(np.stack([self.counts, n - self.counts], axis=-1))))

    def _law(self, parameters) -> np.ndarray:
        a, b = parameters[..., :1], parameters[..., 1:]
        return (a - 1) * np.log(self.nodes) + (b - 1) * np.log1p(-self.nodes) - betaln(a, b)

    def __call__(self, mechanism: Mechanism | None, successes) -> np.ndarray:
        """KL for each of the successes (k,); nan where the law is not known."""
        statistics = np.stack([successes, self.n - successes], axis=-1)
        true = self._law(self.model.posterior(statistics))
        if isinstance(mechanism, LaplaceMechanism | GaussianMechanism):
            with np.errstate(divide="ignore"):
                law = np.log(self._mixture(mechanism, successes) @ self._kernel)
        elif isinstance(mechanism, PosteriorSampling | ExponentialMechanism):
            law = self._law(mechanism.posterior(statistics))
        else:
            return np.full(len(successes), np.nan)
        logs = [log - np.logaddexp.reduce(log + self.log_weights, axis=1, keepdims=True) for log in (true, law)]
        weight = np.exp(logs[0] + self.log_weights)
        return np.where(weight > 0, weight * (logs[0] - np.maximum(logs[1], -1e4)), 0.0).sum(axis=1)

    def _mixture(self, mechanism, successes) -> np.ndarray:
        """Probabilities (k, 1001) of the projected count, each cell reaching half way to its neighbours."""
        edges = (self.counts[1:] + self.counts[:-1]) / 2
        z = edges - np.asarray(successes, float)[:, None]
        if isinstance(mechanism, LaplaceMechanism):
            z = z / mechanism.scale
            cdf = np.where(z < 0, 0.5 * np.exp(-np.abs(z)), 1 - 0.5 * np.exp(-np.abs(z)))
        else:
            cdf = ndtr(z / mechanism.sigma)
        ends = np.zeros((len(z), 1)), np.ones((len(z), 1))
        return np.diff(np.concatenate([ends[0], cdf, ends[1]], axis=1), axis=1)


def score(mechanism: Mechanism | None, model: BetaBernoulli, n: int, trials: Trials, divergence, rng) -> Scores:
    """Scores of one mechanism (None: the true posterior) on all trials.

    The quantile of θ is taken in the posterior that the analyst holds: for noisy statistics the conjugate posterior
    of the release; for a released sample the law that the sample was drawn from, as one draw has no posterior.
    """
    statistics = np.stack([trials.successes, n - trials.successes], axis=-1)
    theta = trials.theta
    empty = np.full(len(theta), np.nan)
    if mechanism is None or isinstance(mechanism, AdditiveNoiseMechanism):
        law = (
            model.posterior(statistics)
            if mechanism is None
            else mechanism.posterior(mechanism.perturb(statistics, rng))
        )
        draw, mean = model.sample(law, rng), np.abs(model.mean(law) - theta)
    else:
        draw, mean = mechanism.posterior_sample(statistics, rng), empty
        law = mechanism.posterior(statistics) if hasattr(mechanism, "posterior") else None
    quantile = empty
    if law is not None:
        quantile = betainc(law[:, 0], law[:, 1], theta)
        if isinstance(mechanism, ExponentialMechanism):
            low, high = (betainc(law[:, 0], law[:, 1], end) for end in (mechanism.a0, 1 - mechanism.a0))
            quantile = np.clip((quantile - low) / (high - low), 0.0, 1.0)
    values, index = np.unique(trials.successes, return_inverse=True)
    kl = np.zeros(len(theta)) if mechanism is None else divergence(mechanism, values)[index]
    return Scores(np.abs(draw - theta), mean, kl, quantile)


def simulate(config, streams, ledger) -> dict:
    """Return scores of every method: `scores` (rows, 4, repeats), and the names and settings of the rows.

    All methods see the same data, and the same random numbers of the mechanism role.
    """
    model, n = BetaBernoulli(config.alpha, config.beta), config.n
    divergence = Divergence(model, n, config.a0)
    listed = [("non_private", "", math.nan, math.nan, None)]
    for epsilon, delta in itertools.product(config.epsilon, config.delta):
        found = calibration.converted(model, n, epsilon, delta, config.a0)
        for method, mechanism in found.items():
            if method not in config.methods:
                continue
            for accounting in calibration.ACCOUNTINGS:
                used = mechanism if accounting == "converted" else calibration.exact(mechanism, epsilon, delta)
                if used is None:
                    continue
                listed.append((method, accounting, epsilon, delta, used))
                account = f"{method}/{accounting}/epsilon={epsilon:g}/delta={delta:g}"
                ledger.open(account, Cost("approximate", epsilon, delta=delta))
                ledger.charge(account, Cost("approximate", epsilon, delta=delta))
    scores = np.empty((len(listed), len(Scores._fields), config.trials))
    for block in streams.blocks():
        rng = streams("data", block.index)
        theta = rng.beta(config.alpha, config.beta, block.size)
        trials = Trials(theta, rng.binomial(n, theta).astype(float))
        for i, (_, _, _, _, mechanism) in enumerate(listed):
            rng = streams("mechanism", block.index)
            scores[i, :, block.trials] = np.stack(score(mechanism, model, n, trials, divergence, rng))
    return {
        "scores": scores,
        "method": np.array([row[0] for row in listed]),
        "accounting": np.array([row[1] for row in listed]),
        "epsilon": np.array([row[2] for row in listed]),
        "delta": np.array([row[3] for row in listed]),
        "releases": np.array(["statistics" if row[4] is None else row[4].releases for row in listed]),
        "setting": np.array([_setting(row[4]) for row in listed]),
    }


def _setting(mechanism: Mechanism | None) -> float:
    """The calibrated setting: ε of pure mechanisms, σ, or the coefficient; 1 for the direct posterior."""
    if mechanism is None:
        return math.nan
    return 1.0 if mechanism.calibrated is None else float(getattr(mechanism, mechanism.calibrated))


def ks_with_error(quantiles) -> tuple[float, float]:
    """KS distance from uniformity and its standard error √(F(1−F)/M), F the empirical CDF at the largest distance."""
    ordered = np.sort(quantiles)
    size = len(ordered)
    above, below = np.arange(1, size + 1) / size - ordered, ordered - np.arange(size) / size
    place = int(np.argmax(np.maximum(above, below)))
    share = (place + (above[place] >= below[place])) / size
    return float(max(above[place], below[place])), math.sqrt(share * (1 - share) / size)


def tabulate(cells):
    """Return the metrics, and paired differences of the error and the KL between methods at the same (ε, δ)."""
    import pandas as pd

    rows, pairs = [], []
    for cell in cells:
        arrays, n = cell.arrays, cell.config.n
        keys = list(zip(arrays["accounting"], arrays["epsilon"], arrays["delta"], strict=True))
        for i, method in enumerate(arrays["method"]):
            accounting, epsilon, delta = keys[i]
            named = {
                "accounting": accounting,
                "n": n,
                "epsilon": None if math.isnan(epsilon) else epsilon,
                "delta": None if math.isnan(delta) else delta,
            }
            scores = Scores(*arrays["scores"][i])
            posterior = "posterior" if arrays["releases"][i] == "statistics" else "sample"
            found = [
                ("sample", "l1_error", *_mean(scores.sample)),
                ("mean", "l1_error", *_mean(scores.mean)),
                ("sample", "kl", *_mean(scores.kl)),
            ]
            if not np.isnan(scores.quantile).any():
                found.append((posterior, "ks", *ks_with_error(scores.quantile)))
            rows += [
                {
                    "method": method,
                    "statistic": statistic,
                    **named,
                    "metric": metric,
                    "mean": mean,
                    "sem": sem,
                    "n_repeats": cell.config.trials,
                    "setting": arrays["setting"][i],
                }
                for statistic, metric, mean, sem in found
                if not math.isnan(mean)
            ]
        for key in dict.fromkeys(k for k in keys if k[0]):
            members = sorted((i for i, k in enumerate(keys) if k == key), key=lambda i: arrays["method"][i])
            for (i, j), (place, metric) in itertools.product(
                itertools.combinations(members, 2), ((0, "l1_error"), (2, "kl"))
            ):
                mean, sem = _mean(arrays["scores"][i, place] - arrays["scores"][j, place])
                if math.isnan(mean):
                    continue
                pairs.append(
                    {
                        "first": arrays["method"][i],
                        "second": arrays["method"][j],
                        "accounting": key[0],
                        "n": n,
                        "epsilon": key[1],
                        "delta": key[2],
                        "metric": metric,
                        "difference_mean": mean,
                        "difference_sem": sem,
                        "n_repeats": cell.config.trials,
                    }
                )
    return {"beta_bernoulli": pd.DataFrame(rows), "beta_bernoulli_pairs": pd.DataFrame(pairs)}


def _mean(values) -> tuple[float, float]:
    return float(values.mean()), float(values.std(ddof=1) / math.sqrt(len(values)))


def winners(pairs) -> dict[tuple, str | None]:
    """The method ahead of every other at each setting by paired differences beyond joint chance; None where undecided.

    Keys are (accounting, n, epsilon, delta).
    """
    z = critical_value(len(pairs))
    keys = zip(*(pairs[name].tolist() for name in ("accounting", "n", "epsilon", "delta")), strict=True)
    differences = zip(pairs.difference_mean.tolist(), pairs.difference_sem.tolist(), strict=True)
    ahead: dict[tuple, Counter] = defaultdict(Counter)
    for key, first, second, (mean, sem) in zip(keys, pairs["first"], pairs["second"], differences, strict=True):
        # Equal ones count as well: their number is that of the methods.
        ahead[key].update({first: 0, second: 0})
        if abs(mean) > z * sem:
            ahead[key][first if mean < 0 else second] += 1
    best = {key: ahead[key].most_common(1)[0] for key in sorted(ahead)}
    return {key: method if wins == len(ahead[key]) - 1 else None for key, (method, wins) in best.items()}


WEIGHTED = ("diffused", "concentrated", "direct")
BITS_DOC = "docs/audit.md#same-ε-δ-for-bits-resultsfair_axisbeta_bernoullicsv"


def _weighted_ahead(pairs, z: float) -> dict[tuple, bool]:
    """Return whether some weighted posterior is ahead of, or the same as, each of the others, by (epsilon, delta).

    Where the budget affords the true posterior, OPS and the weighted posteriors are all it: they differ by exactly 0.
    """
    found = {}
    for key, part in pairs.groupby(["epsilon", "delta"]):
        methods = {*part["first"], *part["second"]}
        # Two equal laws differ by 0 with an error of 0.
        error = part.difference_sem.where(part.difference_sem > 0, np.finfo(float).tiny)
        lead = dict(zip(zip(part["first"], part["second"], strict=True), -part.difference_mean / error, strict=True))
        lead |= {(second, first): -value for (first, second), value in lead.items()}
        others = methods - set(WEIGHTED)
        found[key] = any(
            all(lead[method, other] > z or lead[method, other] == 0 for other in others)
            for method in methods & set(WEIGHTED)
        )
    return found


def _at(table, n: int):
    """Return the rows of the KL divergence under exact accounting at one n."""
    return table[(table.metric == "kl") & (table.accounting == "exact") & (table.n == n)]


def _best_of_each(table, n: int) -> dict:
    """Return, by setting, the smallest KL of the weighted posteriors and of the others, with standard errors."""
    evidence = {}
    for (epsilon, delta), part in _at(table, n).groupby(["epsilon", "delta"]):
        for kind, chosen in (("weighted", part.method.isin(WEIGHTED)), ("other", ~part.method.isin(WEIGHTED))):
            if chosen.any():
                best = part[chosen].loc[part[chosen]["mean"].idxmin()]
                name = f"smallest KL, {kind}, epsilon = {epsilon:g}, delta = {delta:g}"
                evidence[name] = {
                    "method": best.method,
                    "KL": float(best["mean"]),
                    "standard error": float(best["sem"]),
                }
    return evidence


def _whys_not_weighted(table, kl, small: dict[tuple, bool]) -> list[Why]:
    """Explain where no weighted posterior is ahead; `kl` are the pairs, `small` whether one is ahead, at the same n."""
    rows = table.set_index(["epsilon", "delta", "method"])
    between = kl[(kl["first"] == "diffused") & (kl["second"] == "laplace")].set_index(["epsilon", "delta"])
    behind, undecided = [], []
    for key in (key for key, ahead in small.items() if not ahead):
        if {(*key, "laplace"), (*key, "diffused")} <= set(rows.index):
            laplace, diffused = rows.loc[(*key, "laplace")], rows.loc[(*key, "diffused")]
            (behind if diffused["mean"] > laplace["mean"] else undecided).append((*key, laplace, diffused))

    def names(found) -> tuple[str, ...]:
        return tuple(f"epsilon = {each[0]:g}, delta = {each[1]:g}" for each in found)

    whys = []
    if behind:
        epsilon, delta, laplace, diffused = max(behind, key=lambda found: found[3]["mean"] - found[2]["mean"])
        whys.append(
            Why(
                "In between: noise of scale 1/epsilon on one count soon is narrower than the posterior, while a "
                "weighted posterior keeps a share of the data until the budget affords all of it; at epsilon = "
                f"{epsilon:g}, delta = {delta:g} that share is {diffused.setting:.2f}, and KL {diffused['mean']:.3f} "
                f"against {laplace['mean']:.3f} of Laplace.",
                names(behind),
                BITS_DOC,
                # Where the whole posterior is affordable, or nothing is, this is not the cause.
                when=all(0 < found[3].setting < 1 for found in behind),
            )
        )
    for epsilon, delta, *_ in undecided:
        row = between.loc[(epsilon, delta)]
        whys.append(
            Why(
                f"Undecided at epsilon = {epsilon:g}, delta = {delta:g}: the diffused posterior's KL is smaller than "
                f"Laplace's, by {abs(row.difference_mean):.3f} ± {row.difference_sem:.3f}, but not by enough standard "
                "errors.",
                names([(epsilon, delta)]),
                BITS_DOC,
                when=bool(row.difference_mean < 0),
            )
        )
    return whys


def _why_laplace(table, loose, z: float) -> Why:
    """Explain where the Gaussian is not ahead at the largest delta, though its noise has the smaller deviation."""
    behind = loose[loose.difference_mean >= -z * loose.difference_sem]
    setting = {
        method: float(
            table[
                (table.method == method)
                & (table.accounting == "exact")
                & (table.delta == table.delta.max())
                & (table.epsilon == table.epsilon.min())
            ].setting.iloc[0]
        )
        for method in ("gaussian", "laplace")
    }
    gaussian, scale = setting["gaussian"], 1 / setting["laplace"]
    return Why(
        f"The Gaussian has the smaller standard deviation ({gaussian:.1f} against {math.sqrt(2) * scale:.1f} records), "
        f"Laplace the smaller median error ({scale * math.log(2):.1f} against {gaussian * 0.6745:.1f}). The deviation "
        "counts where noise is narrower than the posterior, that is with many records; with few the peak does.",
        tuple(
            f"Gaussian ahead: n = {row.n}, epsilon = {row.epsilon:g}, delta = {row.delta:g}"
            for row in behind.itertuples()
        ),
        BITS_DOC,
        when=bool(
            gaussian < math.sqrt(2) * scale
            and gaussian * 0.6745 > scale * math.log(2)
            and behind.n.max() < loose.n.max()
        ),
    )


def _whys_calibrated(smallest, limit: float) -> list[Why]:
    near = smallest[(smallest["mean"] <= limit) & (smallest["mean"] > limit - smallest["sem"])]
    few = smallest[(smallest.method == "diffused") & (smallest.n < smallest.n.max()) & (smallest["mean"] <= limit)]
    single = ks_limit(int(smallest.n_repeats.min()), 0.05)
    beyond = sorted(few[few["mean"] > single].n.unique())
    joint = (
        f" At n = {', '.join(f'{n:g}' for n in beyond)} only the limit for all tests jointly passes it: KS up to "
        f"{few['mean'].max():.3f} is beyond {single:.3f}, the 5 % limit of a single test."
        if beyond
        else ""
    )
    return [
        Why(
            f"The diffused posterior keeps the weight of at most {(few.setting * few.n).max():.2g} records, and stays "
            f"near the prior, from which θ is drawn in this experiment: it passes because it says little.{joint}",
            tuple(f"diffused, {row.accounting}, n = {row.n}, delta = {row.delta:g}" for row in few.itertuples()),
            BITS_DOC,
            when=len(few) > 0,
        ),
        Why(
            f"{' and '.join(sorted(set(near.method)))}: within one standard error of the limit {limit:.4f}, undecided "
            "rather than calibrated.",
            tuple(f"{row.method}, {row.accounting}, n = {row.n}, delta = {row.delta:g}" for row in near.itertuples()),
            BITS_DOC,
        ),
    ]


def _many_winners(pairs, z: float, paired: str) -> Claim:
    by_metric = {metric: winners(pairs[pairs.metric == metric]) for metric in ("l1_error", "kl")}
    evidence = {
        metric: {
            "/".join(map(str, (key[0], f"n={key[1]}", f"eps={key[2]:g}", f"delta={key[3]:g}"))): winner
            for key, winner in found.items()
        }
        for metric, found in by_metric.items()
    }
    decided = {metric: {w for w in found.values() if w} for metric, found in by_metric.items()}
    return from_checks(
        "X1",
        "ours",
        "No mechanism for bits is the best at every n, epsilon and delta.",
        f"the method ahead of all others in KL, and in the error of one sample; {paired}",
        {f"{metric}: several methods win somewhere": len(names) > 1 for metric, names in decided.items()},
        {
            "winners": evidence,
            "settings with a winner": {metric: sum(map(bool, found.values())) for metric, found in by_metric.items()},
            "standard errors that decide": z,
        },
        variant="converted, exact",
    )


def _weighted_closest(table, kl, z: float, paired: str) -> Claim:
    smallest = int(table.n.min())
    small = _weighted_ahead(kl[kl.n == smallest], z)
    return from_checks(
        "X2",
        "ours",
        f"At n = {smallest} a draw from a weighted posterior is closest to the true posterior, at every epsilon.",
        "KL under exact accounting: some weighted posterior is ahead of every mechanism of another kind, or the "
        f"same law; {paired}",
        {f"epsilon = {epsilon:g}, delta = {delta:g}": ahead for (epsilon, delta), ahead in small.items()},
        _best_of_each(table, smallest),
        whys=_whys_not_weighted(_at(table, smallest), kl[kl.n == smallest], small),
        variant="exact",
    )


def _laplace_or_gaussian(table, kl, z: float, paired: str) -> Claim:
    noise = kl[(kl["first"] == "gaussian") & (kl["second"] == "laplace")]
    strict = noise[noise.delta == noise.delta.min()]
    loose = noise[(noise.delta == noise.delta.max()) & (noise.epsilon == noise.epsilon.min())]
    return from_checks(
        "X3",
        "ours",
        "Laplace noise beats Gaussian noise on a single count at the smallest delta; at the largest delta and the "
        "smallest epsilon the Gaussian is ahead.",
        f"KL, exact accounting; {paired}",
        {
            **{
                f"Laplace ahead: n = {row.n}, epsilon = {row.epsilon:g}, delta = {row.delta:g}": bool(
                    row.difference_mean > z * row.difference_sem
                )
                for row in strict.itertuples()
            },
            **{
                f"Gaussian ahead: n = {row.n}, epsilon = {row.epsilon:g}, delta = {row.delta:g}": bool(
                    row.difference_mean < -z * row.difference_sem
                )
                for row in loose.itertuples()
            },
        },
        {
            f"KL, Gaussian minus Laplace, n = {row.n}, epsilon = {row.epsilon:g}, delta = {row.delta:g}": {
                "difference": float(row.difference_mean),
                "standard error": float(row.difference_sem),
            }
            for row in [*strict.itertuples(), *loose.itertuples()]
        },
        whys=[_why_laplace(table, loose, z)],
        variant="exact",
    )


def _calibrated_nowhere(table) -> Claim:
    ks = table[(table.metric == "ks") & (table.method != "non_private")]
    limit = ks_limit(int(table.n_repeats.min()), FALSE_ALARM / max(len(ks), 1))
    smallest_ks = ks[ks.epsilon == ks.epsilon.min()]
    return from_checks(
        "X4",
        "ours",
        "Taken as a posterior, no release is calibrated at the smallest epsilon.",
        f"KS distance of the quantile of theta above {limit:.4f} (joint false-alarm rate {FALSE_ALARM}, {len(ks)} "
        "tests)",
        {
            f"{row.method}, {row.accounting}, n = {row.n}, delta = {row.delta:g}": bool(row.mean > limit)
            for row in smallest_ks.itertuples()
        },
        {
            "share of all settings that are rejected": {
                method: float((part["mean"] > limit).mean()) for method, part in ks.groupby("method")
            },
            "not rejected at the smallest epsilon": {
                f"{row.method}, {row.accounting}, n = {row.n}, delta = {row.delta:g}": {
                    "KS": float(row.mean),
                    "standard error": float(row.sem),
                }
                for row in smallest_ks[smallest_ks["mean"] <= limit].itertuples()
            },
        },
        whys=_whys_calibrated(smallest_ks, limit),
        variant="converted, exact",
    )


def _exact_curves_pay(table) -> Claim:
    sampling = table[table.method.isin(["ops", "diffused", "concentrated"]) & (table.metric == "kl")]
    wide = sampling.pivot_table(index=["method", "n", "epsilon", "delta"], columns="accounting", values="mean").dropna()
    return from_checks(
        "X5",
        "ours",
        "By exact privacy curves posterior samples come closer to the true posterior than by converted guarantees.",
        "mean KL under exact accounting at most that under conversion, at every setting, and below it somewhere",
        {
            "never larger": bool((wide["exact"] <= wide["converted"] * (1 + 1e-6) + 1e-9).all()),
            "smaller somewhere": bool((wide["exact"] < 0.9 * wide["converted"]).any()),
        },
        {
            "median of exact / converted": {
                method: float((part["exact"] / part["converted"]).median()) for method, part in wide.groupby("method")
            }
        },
        variant="converted, exact",
    )


def claims(tables) -> list[Claim]:
    """Score X1 to X5."""
    table, pairs = tables["beta_bernoulli"], tables["beta_bernoulli_pairs"]
    z = critical_value(len(pairs))
    paired = f"paired differences beyond {z:.2f} standard errors (joint false-alarm rate {FALSE_ALARM}, {len(pairs)})"
    kl = pairs[(pairs.metric == "kl") & (pairs.accounting == "exact")]
    return [
        _many_winners(pairs, z, paired),
        _weighted_closest(table, kl, z, paired),
        _laplace_or_gaussian(table, kl, z, paired),
        _calibrated_nowhere(table),
        _exact_curves_pay(table),
    ]
