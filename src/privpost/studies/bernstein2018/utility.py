"""Distance of private posteriors from the true one (Bernstein and Sheldon 2018, figure 1c).

MMD² between a method's posterior draws and draws from the non-private posterior, on one probability (the first
category's), kernel exp(−(p − q)²/2), the unbiased estimate, averaged over trials.
"""

from __future__ import annotations

import numpy as np

from privpost.evaluation.claims import Claim, from_checks
from privpost.evaluation.mmd import TERMS, diagonal_sum, embedding_sum, mmd2_from_sums
from privpost.pipeline.schema import Choice, Integer, Real, Schema, Vector
from privpost.privacy.accounting import Cost
from privpost.samplers.noise_aware_gibbs import run
from privpost.studies.bernstein2018.trials import experiment

SETTINGS = Schema(
    model=Choice("binomial", "multinomial"),
    prior=Vector(Real(above=0)),
    burn_in=Integer(at_least=0),
    draws=Integer(at_least=2),
    n=Integer(at_least=1),
    epsilon=Real(above=0),
)
METHODS = ("gibbs", "naive")
VARIANT = "paper"


def simulate(config, streams, ledger) -> dict:
    """Return `mmd2` (method, n, trials), each trial's unbiased estimate, and `rejected` (method, n).

    Negative estimates are kept. Draws are never stored: samples enter through sums of the features and of k(p_i, q_i).
    """
    trial = experiment(config.model, config.prior, VARIANT)
    mmd2 = np.empty((len(METHODS), len(config.n), config.trials))
    rejected = np.zeros((len(METHODS), len(config.n)))
    blocks = list(streams.blocks())
    for i, n in enumerate(config.n):
        ledger.open(f"n={n}", Cost("pure", config.epsilon))
        ledger.charge(f"n={n}", Cost("pure", config.epsilon))
        for block in blocks:
            data = trial.data(n, block.size, streams("data", block.index, n=n))
            release = trial.release(data, n, config.epsilon, streams("mechanism", block.index, n=n))
            statistics, projected = trial.naive(data, release, n)
            estimates, share = _estimates(
                config, trial, trial.kernel(data, release, n), data.statistics, statistics, streams, block.index, n
            )
            mmd2[:, i, block.trials] = estimates
            rejected[:, i] += np.array([share, projected]) / len(blocks)
    return {"mmd2": mmd2, "rejected": rejected}


def _estimates(config, trial, kernel, true_statistics, naive_statistics, streams, block: int, n: int):
    """Return MMD² of Gibbs and naive, shape (2, trials), and the Gibbs sampler's share of rejected proposals."""
    true, naive = (trial.marginals(statistics)[:, 0] for statistics in (true_statistics, naive_statistics))
    # The stream of the true posterior's draws is common to all ε, so that methods and ε are compared on one sample.
    true_rng, naive_rng = streams("sampler", block, method="non_private", n=n), streams("sampler", block, n=n, of=1)
    size = true.shape[-1]
    sums = np.zeros((3, TERMS, size))
    diagonals = np.zeros((2, size))

    def consume(theta):
        gibbs = theta.reshape(len(theta), -1, size)[:, 0]
        q = true_rng.beta(*true, size=gibbs.shape)
        p = naive_rng.beta(*naive, size=gibbs.shape)
        for i, sample in enumerate((gibbs, p, q)):
            sums[i] += embedding_sum(sample)
        for i, sample in enumerate((gibbs, p)):
            diagonals[i] += diagonal_sum(sample, q)

    proposals = run(kernel, streams("sampler", block, n=n), config.burn_in, config.draws, consume)
    estimates = [mmd2_from_sums(sums[m], sums[2], diagonals[m], config.draws) for m in range(2)]
    return np.stack(estimates), proposals.rejected_share


def tabulate(cells):
    """Return the means over trials with their standard errors; `mmd` is the root of the mean, 0 if that is negative.

    `sampling` tells whether a method's draws are independent (`exact`) or those of a chain (`mcmc`).
    """
    import pandas as pd

    rows = []
    for cell in cells:
        config, arrays = cell.config, cell.arrays
        for m, method in enumerate(METHODS):
            for i, n in enumerate(config.n):
                values = arrays["mmd2"][m, i]
                other = arrays["mmd2"][METHODS.index("naive"), i]
                mean = float(values.mean())
                rows.append(
                    {
                        "variant": VARIANT,
                        "model": config.model,
                        "n": n,
                        "epsilon": config.epsilon,
                        "method": method,
                        "sampling": "mcmc" if method == "gibbs" else "exact",
                        "mmd": np.sqrt(max(mean, 0.0)),
                        "mmd2_mean": mean,
                        "mmd2_sem": _sem(values),
                        "below_naive_mean": float((other - values).mean()) if method != "naive" else None,
                        "below_naive_sem": _sem(other - values) if method != "naive" else None,
                        "negative_share": float((values < 0).mean()),
                        "n_trials": config.trials,
                        "n_draws": config.draws,
                        "rejected_share": float(arrays["rejected"][m, i]),
                    }
                )
    return pd.DataFrame(rows)


def _sem(values) -> float:
    return float(values.std(ddof=1) / np.sqrt(len(values)))


def claims(tables) -> list[Claim]:
    """Score B5, B6 and B12."""
    table = tables["utility"]
    return [_at_least_as_good(table), _naive_converges(table), _gain_vanishes(table)]


# Of the naive method's MMD², what Gibbs saves: more than half where noise dominates, a fifth where it is negligible.
MUCH, LITTLE = 0.5, 0.2


def _gain_vanishes(table) -> Claim:
    """B12: the noise that naive inference ignores matters at moderate n only."""
    checks, evidence = {}, {}
    gibbs, naive = (table[table.method == method].set_index(["n", "epsilon"]) for method in ("gibbs", "naive"))
    for model in sorted(table.model.unique()):
        one, other = gibbs[gibbs.model == model], naive[naive.model == model]
        share = one.below_naive_mean / other.mmd2_mean
        error = (one.below_naive_sem / other.mmd2_mean).abs()
        low, high = min(share.index), max(share.index)
        for corner in (low, high):
            name = f"share of the naive MMD² that Gibbs saves, {model}, n={corner[0]:g}, epsilon={corner[1]:g}"
            evidence[name] = float(share[corner])
            evidence[f"its standard error, {name}"] = float(error[corner])
        checks[f"more than half at the smallest n and epsilon ({model})"] = bool(share[low] - 4 * error[low] > MUCH)
        checks[f"less than a fifth at the largest ({model})"] = bool(share[high] - 4 * error[high] < LITTLE)
        checks[f"less at the largest than at the smallest ({model})"] = bool(
            share[low] - share[high] > 4 * np.hypot(error[low], error[high])
        )
    return from_checks(
        "B12",
        "section 4, methods and figure 1c",
        "The noise that the naive method ignores matters at moderate n, and becomes negligible as n and epsilon grow.",
        "share of the naive MMD² that Gibbs saves, paired over trials: above 1/2 at the smallest n and epsilon, below "
        "1/5 at the largest, and smaller there, each with 4 standard errors (by the naive mean as if it were known)",
        checks,
        evidence,
    )


def _at_least_as_good(table) -> Claim:
    rows = table[table.method == "gibbs"]
    checks, evidence = {}, {}
    for row in rows.itertuples():
        name = f"{row.model}, n={row.n:g}, epsilon={row.epsilon:g}"
        z = row.below_naive_mean / row.below_naive_sem
        evidence[f"(naive − gibbs)/standard error, {name}"] = float(z)
        evidence[f"MMD² of naive less that of Gibbs, {name}"] = float(row.below_naive_mean)
        evidence[f"its standard error, {name}"] = float(row.below_naive_sem)
        # One-sided 5 % over the number of cells.
        checks[name] = bool(z > -_normal_quantile(1 - 0.05 / len(rows)))
    return from_checks(
        "B5",
        "section 4, figure 1c",
        "Gibbs's MMD to the true posterior is at most the naive method's in every cell.",
        "paired over trials: mean of MMD²(naive) − MMD²(gibbs) not below 0 by more than the one-sided Bonferroni limit "
        "(5 % over all cells)",
        checks,
        evidence,
    )


def _normal_quantile(probability: float) -> float:
    from scipy.special import ndtri

    return float(ndtri(probability))


def _naive_converges(table) -> Claim:
    checks, evidence = {}, {}
    naive = table[table.method == "naive"].sort_values("n")
    for (model, epsilon), rows in naive.groupby(["model", "epsilon"]):
        first, last = rows.iloc[0], rows.iloc[-1]
        name = f"{model}, epsilon={epsilon:g}"
        slope = np.log(max(last.mmd, 1e-300) / first.mmd) / np.log(last.n / first.n)
        evidence[f"MMD at the smallest and largest n, {name}"] = [float(first.mmd), float(last.mmd)]
        # By the delta method: the MMD is the root of the mean of MMD².
        errors = [0.5 * float(r.mmd2_sem / max(r.mmd, 1e-300)) for r in (first, last)]
        evidence[f"standard errors of MMD at the smallest and largest n, {name}"] = errors
        evidence[f"log-log slope of MMD in n, {name}"] = float(slope)
        relative = np.hypot(errors[0] / first.mmd, errors[1] / max(last.mmd, 1e-300))
        evidence[f"standard error of the slope, {name}"] = float(relative / np.log(last.n / first.n))
        decreases = bool((np.diff(rows.mmd2_mean) < 4 * np.hypot(rows.mmd2_sem[1:], rows.mmd2_sem[:-1].values)).all())
        # The noise moves the posterior mean by O(1/(nε)): the slope tends to −1; half of it is asked for.
        checks[f"MMD decreases in n ({name})"] = decreases and slope < -0.5
    return from_checks(
        "B6",
        "section 4",
        "The naive method converges to the true posterior as n grows.",
        "per model and epsilon: no increase of the mean of MMD² in n by more than 4 standard errors, and a log-log "
        "slope of the MMD over the whole range below −0.5",
        checks,
        evidence,
    )
