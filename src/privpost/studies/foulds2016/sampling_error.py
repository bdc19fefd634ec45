"""L1 error of one sample from the true, the Laplace and the OPS posterior (Foulds et al. 2016, figure 2)."""

from __future__ import annotations

import itertools
import math

import numpy as np

from privpost.evaluation.claims import Claim, from_checks
from privpost.evaluation.multiplicity import FALSE_ALARM, critical_value
from privpost.mechanisms.exponential import ExponentialMechanism
from privpost.mechanisms.laplace import LaplaceMechanism
from privpost.models.beta_bernoulli import BetaBernoulli
from privpost.pipeline.schema import Choice, Integer, Real, Schema
from privpost.privacy.accounting import Cost

SETTINGS = Schema(
    alpha=Real(above=0),
    beta=Real(above=0),
    p=Real(above=0, below=1),
    a0=Real(above=0, below=0.5),
    epsilon=Real(above=0),
    method=Choice("non_private", "laplace", "ops"),
    n=Integer(at_least=1),
)


def _mechanism(method: str, config, n: int):
    model, budget = BetaBernoulli(config.alpha, config.beta), Cost("pure", config.epsilon)
    if method == "laplace":
        return LaplaceMechanism.calibrate(model, n, budget)
    return ExponentialMechanism.calibrate(model, n, budget, a0=config.a0)


def simulate(config, streams, ledger) -> dict:
    """Return means and standard errors over trials of |θ − p|, and of its excess over other methods'.

    Arrays over (method, n): `l1`, `over_true` and `over_laplace`, each with a last axis (mean, standard error), and
    `temperature` (method,). All methods see the same data, so that the differences are paired.
    """
    model = BetaBernoulli(config.alpha, config.beta)
    methods = list(config.method)
    errors = np.empty((len(methods), len(config.n), config.trials))
    temperature = np.full(len(methods), np.nan)
    for i, method in enumerate(methods):
        for j, n in enumerate(config.n):
            if method != "non_private":
                mechanism = _mechanism(method, config, n)
                account = f"{method}/n={n}"
                ledger.open(account, Cost("pure", config.epsilon))
                ledger.charge(account, mechanism.cost())
                temperature[i] = mechanism.temperature if method == "ops" else np.nan
            for block in streams.blocks():
                successes = streams("data", block.index, n=n).binomial(n, config.p, block.size).astype(float)
                statistics = np.stack([successes, n - successes], axis=-1)
                if method == "non_private":
                    rng = streams("sampler", block.index, n=n)
                    draws = model.sample(model.posterior(statistics), rng)
                else:
                    rng = streams("mechanism", block.index, method=method, n=n)
                    draws = mechanism.posterior_sample(statistics, rng)
                errors[i, j, block.trials] = np.abs(draws - config.p)
    return {
        "l1": _summary(errors),
        "over_true": _summary(errors - errors[methods.index("non_private")]),
        "over_laplace": _summary(errors - errors[methods.index("laplace")]),
        "temperature": temperature,
    }


def _summary(values) -> np.ndarray:
    """Return mean and standard error over the last axis, stacked last."""
    return np.stack([values.mean(axis=-1), values.std(axis=-1, ddof=1) / math.sqrt(values.shape[-1])], axis=-1)


def tabulate(cells):
    """Return one row per method and n; `over_true` and `over_laplace` are paired differences of the L1 error."""
    import pandas as pd

    rows = []
    for cell in cells:
        config, arrays = cell.config, cell.arrays
        for i, method in enumerate(config.method):
            for j, n in enumerate(config.n):
                row = {
                    "method": method,
                    "p": config.p,
                    "epsilon": None if method == "non_private" else config.epsilon,
                    "a0": config.a0 if method == "ops" else None,
                    "temperature": arrays["temperature"][i],
                    "n": n,
                    "l1_mean": arrays["l1"][i, j, 0],
                    "l1_sem": arrays["l1"][i, j, 1],
                    "n_repeats": config.trials,
                }
                for name in ("over_true", "over_laplace"):
                    if name != f"over_{'true' if method == 'non_private' else method}":
                        row[f"{name}_mean"], row[f"{name}_sem"] = arrays[name][i, j]
                rows.append(row)
    columns = ["method", "p", "epsilon", "a0", "temperature", "n", "l1_mean", "l1_sem", "n_repeats"]
    columns += ["over_true_mean", "over_true_sem", "over_laplace_mean", "over_laplace_sem"]
    return pd.DataFrame(rows)[columns]


def claims(tables) -> list[Claim]:
    """Score F1 to F3."""
    table = tables["sampling_error"]
    by = {method: table[table.method == method].set_index("n").sort_index() for method in table.method.unique()}
    return [_crossing(by), _convergence(by), _fewer_observations(by)]


SMALL = 10


def _crossing(by) -> Claim:
    rows = by["ops"]
    z = critical_value(len(rows))
    ahead = rows.index[rows.over_laplace_mean < -z * rows.over_laplace_sem]
    behind = rows.index[rows.over_laplace_mean > z * rows.over_laplace_sem]
    beyond = rows.index[rows.index > SMALL]
    checks = {
        f"OPS is ahead at some n <= {SMALL}": bool((ahead <= SMALL).any()),
        f"OPS is behind at every n > {SMALL}": bool(beyond.isin(behind).all() and len(beyond)),
    }
    evidence = {f"OPS minus Laplace at n = {n}": float(rows.over_laplace_mean[n]) for n in rows.index if n <= 2 * SMALL}
    evidence |= {
        "largest standard error of these": float(rows.over_laplace_sem[rows.index <= 2 * SMALL].max()),
        "largest n with OPS ahead": int(ahead.max()) if len(ahead) else None,
        "smallest n with OPS behind": int(behind.min()) if len(behind) else None,
    }
    return from_checks(
        "F1",
        "section 3.2, figure 2",
        "One OPS sample is more accurate than one from the Laplace posterior only at very small n (about 10 or less).",
        f"paired difference of the mean L1 errors at each n, beyond {z:.2f} standard errors (two-sided, joint "
        f"false-alarm rate {FALSE_ALARM} over {len(rows)} comparisons): negative at some n <= {SMALL}, positive at all "
        f"n > {SMALL}",
        checks,
        evidence,
    )


def _convergence(by) -> Claim:
    laplace, truth = by["laplace"], by["non_private"]
    ratio = laplace.l1_mean / truth.l1_mean
    sem = laplace.over_true_sem / truth.l1_mean
    decades = [n for n in ratio.index if n >= 1000 and math.log10(n) % 1 == 0]
    z = critical_value(max(1, len(decades)))
    last = ratio.index[-1]
    falls = all(ratio[b] - ratio[a] < z * math.hypot(sem[a], sem[b]) for a, b in itertools.pairwise(decades))
    checks = {
        f"within 5 % of the true posterior at n = {last}": ratio[last] - 1 < 0.05 + z * sem[last],
        "the ratio falls from decade to decade": falls,
        "the ratio falls overall": ratio.iloc[-1] - 1 < 0.25 * (ratio.max() - 1),
    }
    evidence = {f"Laplace / true posterior at n = {n}": float(ratio[n]) for n in decades}
    evidence["standard error at the largest n"] = float(sem[last])
    return from_checks(
        "F2",
        "section 3.2, figure 2",
        "The error of a sample from the Laplace posterior converges to that of a sample from the true posterior.",
        f"ratio of the mean L1 errors on the same data: at most 1.05 at the largest n, falling from decade to decade "
        f"from n = 1000 on (up to {z:.2f} standard errors), and there at most a quarter of its largest excess",
        checks,
        evidence,
    )


def _fewer_observations(by) -> Claim:
    ops, truth = by["ops"], by["non_private"]
    ratio = ops.l1_mean / truth.l1_mean
    sem = ops.over_true_sem / truth.l1_mean
    last = ratio.index[-1]
    limit = math.sqrt((1 + float(ops.temperature.iloc[-1])) / 2)
    z = critical_value(len(ratio))
    equivalent = _equivalent_size(float(ops.l1_mean[last]), truth)
    large = ratio[ratio.index >= 100]
    checks = {
        "behind the true posterior at every n >= 100": bool((large - z * sem[large.index] > 1).all() and len(large)),
        f"within 5 % of the limit sqrt((1 + T)/2) at n = {last}": abs(ratio[last] - limit)
        < 0.05 * limit + z * sem[last],
    }
    evidence = {
        f"OPS / true posterior at n = {last}": float(ratio[last]),
        "standard error": float(sem[last]),
        "limit sqrt((1 + T)/2)": limit,
        f"records of a true posterior with the error of OPS at n = {last}": equivalent,
        "share of records that count, 2/(1 + T)": 2 / (1 + float(ops.temperature.iloc[-1])),
    }
    return from_checks(
        "F3",
        "section 3.2, figure 2",
        "An OPS sample behaves like one from a posterior with fewer observations, however large n is.",
        "ratio of the mean L1 errors of OPS and the true posterior on the same data: above 1 at every n >= 100 and "
        f"within 5 % of sqrt((1 + T)/2) at the largest n, with {z:.2f} standard errors (joint false-alarm rate "
        f"{FALSE_ALARM})",
        checks,
        evidence,
    )


def _equivalent_size(error: float, truth) -> float:
    """Return the n at which the true posterior's error has a given value, by interpolation of the logarithms."""
    return float(np.exp(np.interp(-math.log(error), -np.log(truth.l1_mean), np.log(truth.index.to_numpy(float)))))
