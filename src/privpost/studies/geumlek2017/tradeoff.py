"""Privacy against utility of the beta-Bernoulli mechanisms under RDP (Geumlek et al. 2017, figure 2).

Panels (a, b) of the paper: KL divergence from the true posterior to each mechanism's output. Panels (c, d): negative
log-likelihood of held-out data under one released parameter.
"""

from __future__ import annotations

import math

import numpy as np
from scipy.special import log_ndtr, logsumexp

from privpost.evaluation.claims import Claim, from_checks
from privpost.mechanisms.gaussian import GaussianMechanism
from privpost.mechanisms.posterior_sampling import ConcentratedPosterior, DiffusedPosterior
from privpost.models.beta_bernoulli import BetaBernoulli
from privpost.pipeline.schema import Choice, Integer, Real, Schema
from privpost.privacy.accounting import Cost
from privpost.privacy.renyi import beta_divergence

SETTINGS = Schema(
    alpha=Real(above=0),
    beta=Real(above=0),
    n=Integer(at_least=1),
    successes=Integer(at_least=0),
    held_out_probability=Real(above=0, below=1),
    quadrature_nodes=Integer(at_least=50),
    variant=Choice("paper", "corrected"),
    order=Real(above=1),
    method=Choice("diffused", "concentrated", "gaussian", "non_private"),
    log_epsilon=Real(),
)
METHODS = {"diffused": DiffusedPosterior, "concentrated": ConcentratedPosterior, "gaussian": GaussianMechanism}
LIMIT_POINTS = 241
# Where a density or a weight is cut off: the normal mass beyond 12 standard deviations is below 1e-32.
WIDTHS = 12


def _calibrated(method: str, config, log_epsilon: float):
    """Return the mechanism with the smallest noise (largest coefficient) that (order, epsilon)-RDP allows."""
    model = BetaBernoulli(config.alpha, config.beta)
    budget = Cost("rdp", math.exp(log_epsilon), order=config.order)
    if method == "gaussian":
        return GaussianMechanism.calibrate(model, config.n, budget, variant=config.variant)
    supremum = "exact" if config.variant == "corrected" else "paper"
    return METHODS[method].calibrate(model, config.n, budget, supremum=supremum)


def released_log_density(theta, mechanism: GaussianMechanism, successes: float, nodes: int) -> np.ndarray:
    """Return the log-density of a draw from the posterior that the Gaussian mechanism releases, shape of `theta`.

    The noisy count, projected to [0, n], has two atoms and a continuum between them; the continuum is integrated
    by Gauss-Legendre quadrature with `nodes` nodes over the counts that the noise can reach.
    """
    model, n, sd = mechanism.model, mechanism.n, mechanism.sigma
    low, high = max(0.0, successes - WIDTHS * sd), min(float(n), successes + WIDTHS * sd)
    node, weight = np.polynomial.legendre.leggauss(nodes)
    counts = low + (high - low) * (node + 1) / 2
    standardised = (counts - successes) / sd
    log_weights = np.log(weight * (high - low) / 2) - standardised**2 / 2 - math.log(sd * math.sqrt(2 * math.pi))
    counts = np.concatenate([counts, [0.0, float(n)]])
    atoms = log_ndtr(np.array([-successes / sd, (successes - n) / sd]))
    log_weights = np.concatenate([log_weights, atoms])
    parameters = model.posterior(np.stack([counts, n - counts], axis=-1))
    return logsumexp(log_weights + model.log_density(np.asarray(theta)[..., None], parameters), axis=-1)


def gaussian_kl(mechanism: GaussianMechanism, successes: float, nodes: int) -> float:
    """Return KL(true posterior || output of the Gaussian mechanism) by quadrature over the parameter."""
    model = mechanism.model
    posterior = model.posterior(np.array([successes, mechanism.n - successes]))
    mean, sd = float(model.mean(posterior)), math.sqrt(model.variance(posterior))
    low, high = max(0.0, mean - WIDTHS * sd), min(1.0, mean + WIDTHS * sd)
    node, weight = np.polynomial.legendre.leggauss(nodes)
    theta = low + (high - low) * (node + 1) / 2
    log_p = model.log_density(theta, posterior)
    log_q = released_log_density(theta, mechanism, successes, nodes)
    return float(np.sum(weight * (high - low) / 2 * np.exp(log_p) * (log_p - log_q)))


def _kl(method: str, mechanism, config) -> tuple[float, float]:
    """Return KL(true posterior || output) and a bound on its numerical error."""
    if method == "gaussian":
        fine = gaussian_kl(mechanism, config.successes, config.quadrature_nodes)
        coarse = gaussian_kl(mechanism, config.successes, config.quadrature_nodes // 2)
        return fine, abs(fine - coarse)
    model, statistics = mechanism.model, np.array([config.successes, config.n - config.successes], dtype=float)
    output = mechanism.posterior(statistics)
    return float(beta_divergence(model.posterior(statistics), output, 1.0)), 0.0


def simulate(config, streams, ledger) -> dict:
    """Return arrays over (method, log epsilon): `kl`, `error`, `coefficient`, and `nll` with a last axis of trials.

    `coefficient` is r, m, or the standard deviation of the Gaussian noise. The row of `non_private` does not depend
    on epsilon. Also `theta` and `density` (method, points): the output's density at the smallest epsilon.
    """
    model = BetaBernoulli(config.alpha, config.beta)
    shape = (len(config.method), len(config.log_epsilon))
    kl, error, coefficient = (np.full(shape, np.nan) for _ in range(3))
    nll = np.empty((*shape, config.trials))
    theta, density = np.full((2, len(config.method), LIMIT_POINTS), np.nan)
    data = [_data(config, streams, block) for block in streams.blocks()]
    for i, method in enumerate(config.method):
        for j, log_epsilon in enumerate(config.log_epsilon):
            if method == "non_private":
                kl[i, j], error[i, j] = 0.0, 0.0
            else:
                mechanism = _calibrated(method, config, log_epsilon)
                account = f"{method}/log_epsilon={log_epsilon:g}"
                ledger.open(account, Cost("rdp", math.exp(log_epsilon), order=config.order))
                ledger.charge(account, mechanism.cost())
                kl[i, j], error[i, j] = _kl(method, mechanism, config)
                coefficient[i, j] = mechanism.sigma if method == "gaussian" else mechanism.coefficient
                if log_epsilon == min(config.log_epsilon):
                    theta[i], density[i] = _limit(method, mechanism, config)
            for block, (statistics, held_out) in zip(streams.blocks(), data, strict=True):
                rng = streams("mechanism", block.index, method=method, log_epsilon=log_epsilon)
                if method == "non_private":
                    draws = model.sample(model.posterior(statistics), rng)
                else:
                    draws = mechanism.posterior_sample(statistics, rng)
                nll[i, j, block.trials] = -model.log_likelihood(draws, held_out)
    return {
        "kl": kl,
        "error": error,
        "coefficient": coefficient,
        "nll_mean": nll.mean(axis=-1),
        "nll_sd": nll.std(axis=-1, ddof=1),
        "theta": theta,
        "density": density,
    }


def _data(config, streams, block) -> tuple[np.ndarray, np.ndarray]:
    """Return the statistics (size, 2) of the data and of the held-out data of a block of trials."""
    rng = streams("data", block.index)
    counts = rng.binomial(config.n, config.held_out_probability, size=(2, block.size)).astype(float)
    statistics = np.stack([counts, config.n - counts], axis=-1)
    return statistics[0], statistics[1]


def _limit(method: str, mechanism, config) -> tuple[np.ndarray, np.ndarray]:
    """Return a grid over the bulk of the output's law, and the density there."""
    if method == "gaussian":
        theta = np.linspace(0, 1, LIMIT_POINTS)[1:-1]
        theta = np.concatenate([[theta[0] / 2], theta, [1 - theta[0] / 2]])
        return theta, np.exp(released_log_density(theta, mechanism, config.successes, config.quadrature_nodes))
    model, statistics = mechanism.model, np.array([config.successes, config.n - config.successes], dtype=float)
    output = mechanism.posterior(statistics)
    mean, sd = float(model.mean(output)), math.sqrt(model.variance(output))
    theta = np.linspace(max(1e-6, mean - 6 * sd), min(1 - 1e-6, mean + 6 * sd), LIMIT_POINTS)
    return theta, np.exp(model.log_density(theta, output))


def tabulate(cells):
    """Return the curves (`tradeoff`) and each output's density at the smallest epsilon (`limits`)."""
    import pandas as pd

    curves, limits = [], []
    for cell in cells:
        config, arrays = cell.config, cell.arrays
        for i, method in enumerate(config.method):
            fixed = {"variant": config.variant, "method": method, "order": config.order}
            rows = range(len(config.log_epsilon))
            if method == "non_private":
                # The true posterior has neither order nor epsilon, and its draws are the same in every cell.
                fixed, rows = {"variant": None, "method": method, "order": None}, rows[:1]
            for j in rows:
                log_epsilon = None if method == "non_private" else config.log_epsilon[j]
                row = {**fixed, "log_epsilon": log_epsilon, "coefficient": arrays["coefficient"][i, j]}
                sd = arrays["nll_sd"][i, j]
                curves.append({**row, "metric": "kl", "mean": arrays["kl"][i, j], "error": arrays["error"][i, j]})
                curves.append(
                    {
                        **row,
                        "metric": "neg_log_likelihood",
                        "mean": arrays["nll_mean"][i, j],
                        "sd": sd,
                        "sem": sd / math.sqrt(config.trials),
                        "n_repeats": config.trials,
                    }
                )
            if method != "non_private":
                smallest = {**fixed, "log_epsilon": min(config.log_epsilon)}
                limits.append(pd.DataFrame({**smallest, "theta": arrays["theta"][i], "density": arrays["density"][i]}))
    columns = ["variant", "method", "order", "log_epsilon", "coefficient", "metric"]
    columns += ["mean", "sd", "sem", "n_repeats", "error"]
    curves = pd.DataFrame(curves)[columns].drop_duplicates().reset_index(drop=True)
    curves["n_repeats"] = curves["n_repeats"].astype("Int64")
    return {"tradeoff": curves, "limits": pd.concat(limits, ignore_index=True)}


def claims(tables) -> list[Claim]:
    """Score G3 to G6 in both variants; a claim holds when it holds in each."""
    table, limits = tables["tradeoff"], tables["limits"]
    low, high = table.order.min(), table.order.max()
    kl = table[(table.metric == "kl") & (table.method != "non_private")]
    nll = table[table.metric == "neg_log_likelihood"]
    return [_reach(kl, low), _floors(kl, high), _limits(kl, limits), _held_out(kl, nll)]


def _curves(rows, order):
    """Yield (variant, method) and the curve of KL against log epsilon at an order."""
    return rows[rows.order == order].sort_values("log_epsilon").groupby(["variant", "method"])


def _reach(kl, order) -> Claim:
    checks, evidence = {}, {}
    for (variant, method), curve in _curves(kl, order):
        least = float(curve["mean"].min())
        evidence[f"smallest KL, {method}, {variant}"] = least
        if method == "gaussian":
            checks[f"gaussian stays above 0 ({variant})"] = least > float(curve.error.max())
        else:
            # At coefficient 1 the output is the true posterior; the closed form leaves rounding of 1e-12.
            checks[f"{method} reaches 0 ({variant})"] = least < 1e-12
            reached = curve[curve["mean"] < 1e-12].log_epsilon
            evidence[f"epsilon of first zero, {method}, {variant}"] = float(np.exp(reached.min()))
    return from_checks(
        "G3",
        "section 5.1, figure 2 (a)",
        "Below the critical order diffused and concentrated reach KL 0 at a finite epsilon, the Gaussian never does.",
        "smallest KL over the epsilon axis: below 1e-12, or above the quadrature's error",
        checks,
        evidence,
        variant="paper, corrected",
    )


def _floors(kl, order) -> Claim:
    checks, evidence = {}, {}
    floors = {}
    for (variant, method), curve in _curves(kl, order):
        last = float(curve["mean"].iloc[-1])
        evidence[f"KL at the largest epsilon, {method}, {variant}"] = last
        floors[variant, method] = last
        if method != "gaussian":
            flat = abs(last - float(curve["mean"].iloc[-2])) < 1e-9
            checks[f"{method} levels off above 0 ({variant})"] = last > 1e-6 and flat
    for variant in sorted({variant for variant, _ in floors}):
        lowest = min(floors[variant, "diffused"], floors[variant, "concentrated"])
        checks[f"gaussian falls below 1 % of both floors ({variant})"] = floors[variant, "gaussian"] < 0.01 * lowest
    return from_checks(
        "G4",
        "section 5.1, figure 2 (b)",
        "Above the critical order both samplers stay bounded away from the true posterior; the Gaussian tends to it.",
        "KL at the largest epsilon: constant and positive for the samplers, below 1 % of their floors for the Gaussian",
        checks,
        evidence,
        variant="paper, corrected",
    )


def _modes(curve) -> int:
    """Return the number of local maxima of a density on its grid that reach 5 % of the highest, ends included."""
    density = np.concatenate([[0.0], curve.sort_values("theta").density.to_numpy(), [0.0]])
    middle = density[1:-1]
    return int(np.sum((middle > density[:-2]) & (middle > density[2:]) & (middle > 0.05 * middle.max())))


def _limits(kl, limits) -> Claim:
    checks, evidence = {}, {}
    for (variant, order, method), curve in limits.groupby(["variant", "order", "method"]):
        name = f"order {order:g}, {variant}"
        rows = kl[(kl.variant == variant) & (kl.order == order) & (kl.method == method)].sort_values("log_epsilon")
        if method == "gaussian":
            modes = _modes(curve)
            evidence[f"modes, gaussian, {name}"] = modes
            checks[f"gaussian is bimodal ({name})"] = modes == 2
        elif method == "concentrated":
            width = float(curve.theta.max() - curve.theta.min()) / 12
            evidence[f"sd of the output, concentrated, {name}"] = width
            first, second = rows["mean"].iloc[:2]
            growth = float(first / second) if second > 0 else 0.0
            # The KL divergence to a point mass grows like 1/epsilon: a step of h in ln epsilon multiplies it by e^h.
            step = float(rows.log_epsilon.iloc[1] - rows.log_epsilon.iloc[0])
            evidence[f"growth of KL per step, concentrated, {name}"] = growth
            checks[f"concentrated narrows to a point ({name})"] = width < 0.01 and growth > 1 + 0.8 * math.expm1(step)
        else:
            low, next_low = rows.coefficient.iloc[:2]
            step = float(rows.log_epsilon.iloc[1] - rows.log_epsilon.iloc[0])
            kl_low, kl_next = rows["mean"].iloc[:2]
            evidence[f"weight of the data, diffused, {name}"] = float(low)
            evidence[f"fall of that weight per step, diffused, {name}"] = float(low / next_low)
            evidence[f"growth of KL per step, diffused, {name}"] = float(kl_low / kl_next)
            # A small divergence is quadratic in r, so r falls like the root of epsilon while the KL to the prior is
            # bounded: its growth per step dies out.
            checks[f"diffused forgets the data ({name})"] = abs(low / next_low - math.exp(-step / 2)) < 0.02
            checks[f"diffused stays near the posterior ({name})"] = bool(1 <= kl_low / kl_next < 1.02)
    return from_checks(
        "G5",
        "section 5.1, figure 2",
        "As epsilon tends to 0: diffused degrades to the prior, concentrated to a point mass, the Gaussian is bimodal.",
        "at the smallest epsilon: diffused's coefficient falls like the root of epsilon and its KL grows by less than "
        "2 % a step; concentrated's sd < 0.01 with KL growing like 1/epsilon; the Gaussian's density has two local "
        "maxima (of at least 5 % of the highest)",
        checks,
        evidence,
        variant="paper, corrected",
    )


def _held_out(kl, nll) -> Claim:
    checks, evidence = {}, {}
    truth = float(nll[nll.method == "non_private"]["mean"].iloc[0])
    smallest = nll.log_epsilon.min()
    for (variant, order), rows in nll[nll.method != "non_private"].groupby(["variant", "order"]):
        name = f"order {order:g}, {variant}"
        at = rows[rows.log_epsilon == smallest].set_index("method")
        kl_at = kl[(kl.variant == variant) & (kl.order == order) & (kl.log_epsilon == smallest)].set_index("method")
        difference = float(at.loc["diffused", "mean"] - at.loc["concentrated", "mean"])
        error = math.hypot(at.loc["diffused", "sem"], at.loc["concentrated", "sem"])
        evidence[f"nll of diffused minus concentrated, {name}"] = difference
        evidence[f"its standard error, {name}"] = error
        checks[f"concentrated is ahead of diffused held out, behind in KL ({name})"] = (
            difference > 4 * error and kl_at.loc["concentrated", "mean"] > kl_at.loc["diffused", "mean"]
        )
        checks[f"gaussian is worst held out ({name})"] = at["mean"].idxmax() == "gaussian"
        last = rows[rows.log_epsilon == rows.log_epsilon.max()].set_index("method")
        for method, row in last.iterrows():
            excess = float(row["mean"]) - truth
            evidence[f"excess over the true posterior at the largest epsilon, {method}, {name}"] = excess
            kl_last = kl[(kl.variant == variant) & (kl.order == order) & (kl.method == method)]
            floor = float(kl_last.sort_values("log_epsilon")["mean"].iloc[-1])
            # Where the KL vanishes so does the excess, and where it has a floor so has the excess (4 sem).
            small = abs(excess) < 4 * math.sqrt(2) * row["sem"]
            checks[f"limits agree for {method} ({name})"] = small if floor < 1e-3 else not small
    return from_checks(
        "G6",
        "section 5.1, figure 2 (c, d)",
        "Held-out likelihood has the limits of the KL test, and is kinder to concentrated than the KL test.",
        "smallest epsilon: concentrated's mean below diffused's by 4 standard errors though its KL is larger; largest "
        "epsilon: excess over the true posterior is within 4 standard errors of 0 exactly where the KL vanishes "
        "(16 comparisons, a false alarm in 2000 runs; the standard errors are those of unpaired means, larger than "
        "the differences' own, as the methods share their random numbers)",
        checks,
        evidence,
        variant="paper, corrected",
    )
