"""Privacy against utility of the beta-Bernoulli mechanisms under RDP (Geumlek et al. 2017, figure 2).

Panels (a, b) show the KL divergence from the true posterior to each mechanism's output. Panels (c, d) show the negative
log-likelihood of held-out data under one released parameter. The data are either the ordered records or, as the paper
plots, the count of ones. The two log-likelihoods differ by ln C(n, k).
"""

import itertools
import math
from functools import partial

import numpy as np
from scipy.special import gammaln, log_ndtr, logsumexp

from privpost.evaluation.rows import framed
from privpost.experiments.ranges import ABOVE_ONE, ALPHA, BETA, CONCENTRATION, LOG_EPSILON, METHOD, VARIANT, N, P
from privpost.lab.schema import Choice, Integer, Schema, SettingError, Vector
from privpost.mechanisms.draws.posterior import PosteriorDraw
from privpost.mechanisms.noise.gaussian import GaussianMechanism
from privpost.models.conjugate.beta_bernoulli import BetaBernoulli
from privpost.privacy.accounting.costs import Cost
from privpost.privacy.divergences.renyi import dirichlet_divergence
from privpost.privacy.ledger.gate import Request

SETTINGS = Schema(
    alpha=ALPHA,
    beta=BETA,
    n=N,
    successes=Integer(at_least=0, follows="n", says="ones in the data of panels (a) and (b)", unit="records"),
    held_out_probability=P.means("probability of a one among the held-out bits", "probability"),
    quadrature_nodes=Integer(at_least=50, says="nodes of the quadrature"),
    variant=Choice("paper", "corrected", says=VARIANT),
    order=ABOVE_ONE,
    method=Choice("diffused", "concentrated", "gaussian", "non_private", says=METHOD),
    log_epsilon=LOG_EPSILON,
    reach_alphas=Vector(CONCENTRATION, says="first parameters of the priors in the table reach", unit="records"),
    reach_betas=Vector(CONCENTRATION, says="second parameters of the priors in the table reach", unit="records"),
    reach_log_epsilons=Vector(LOG_EPSILON, says="log ε of the budgets in the table reach", unit="log nats"),
)
TABLES = {
    "tradeoff": {
        "sd": "standard deviation of one trial",
        "error": "bound on the error of the quadrature [nats]",
    },
    "limits": {
        "prior_mean": "mean of the prior, which a mechanism that forgets the data may tend to",
        "prior_kl": "KL divergence of the prior from the true posterior [nats]",
    },
    "reach": {},
}
SAMPLERS = "diffused", "concentrated"
LIMIT_POINTS = 241
LIKELIHOODS = ("neg_log_likelihood", "neg_log_likelihood_count")
# Densities are cut off at this many standard deviations. The normal mass beyond them is below 1e-32.
WIDTHS = 12


def _calibrated(method: str, config, log_epsilon: float, prior=None):
    """Return a method's mechanism, calibrated to (order, epsilon)-RDP."""
    model = BetaBernoulli(*(prior or (config.alpha, config.beta)))
    budget = Cost("rdp", math.exp(log_epsilon), order=config.order)
    if method == "gaussian":
        return GaussianMechanism.calibrate(model, config.n, budget, variant=config.variant)
    supremum = "exact" if config.variant == "corrected" else "paper"
    return PosteriorDraw.calibrate(model, config.n, budget, weighting=method, supremum=supremum)


def released_log_density(theta, mechanism: GaussianMechanism, successes: float, nodes: int) -> np.ndarray:
    """Return the log-density at `theta` of a draw from the posterior given the Gaussian mechanism's noisy count.

    The law averages over noisy counts, projected to [0, n]: over atoms at 0 and n, and over other counts by quadrature
    with `nodes` nodes.
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
    """Return KL(true posterior || output) and a bound on the numerical error of this KL."""
    if method == "gaussian":
        fine = gaussian_kl(mechanism, config.successes, config.quadrature_nodes)
        coarse = gaussian_kl(mechanism, config.successes, config.quadrature_nodes // 2)
        return fine, abs(fine - coarse)
    model, statistics = mechanism.model, np.array([config.successes, config.n - config.successes], dtype=float)
    output = mechanism.release_law(statistics)
    return float(dirichlet_divergence(model.posterior(statistics), output, 1.0)), 0.0


def check(config) -> None:
    """Raise SettingError if settings contradict each other."""
    if config.successes > config.n:
        raise SettingError(f"successes is {config.successes}, but must be at most n, which is {config.n}")
    if len(config.reach_alphas) != len(config.reach_betas):
        raise SettingError(
            f"reach_betas are {config.reach_betas}; there must be as many as reach_alphas has, "
            f"{len(config.reach_alphas)}"
        )
    if set(config.method) <= {"non_private"}:
        raise SettingError("method is non_private alone; another is needed, whose densities `limits` has")


def simulate(config, streams, ledger) -> dict:
    """Return curves over (method, log epsilon), densities at the smallest ε, and coefficients under other priors.

    The curves are `kl`, its numerical `error`, `coefficient` (r, m or the standard deviation of the noise), and the
    mean and standard deviation over trials of each of `LIKELIHOODS`. `theta` and `density` (method, points) are of the
    output at the smallest ε. `reached` (priors, 2, budgets) has the coefficients of `SAMPLERS`.
    """
    model = BetaBernoulli(config.alpha, config.beta)
    shape = (len(config.method), len(config.log_epsilon))
    kl, error, coefficient = (np.full(shape, np.nan) for _ in range(3))
    nll = np.empty((len(LIKELIHOODS), *shape, config.trials))
    theta, density = np.full((2, len(config.method), LIMIT_POINTS), np.nan)
    mechanisms = {}
    for (i, method), (j, log_epsilon) in itertools.product(enumerate(config.method), enumerate(config.log_epsilon)):
        if method != "non_private":
            budget = Cost("rdp", math.exp(log_epsilon), order=config.order)
            make = partial(_calibrated, method, config, log_epsilon)
            mechanisms[i, j] = mechanism = ledger.open(f"{method}/log_epsilon={log_epsilon:g}", budget, make)
            kl[i, j], error[i, j] = _kl(method, mechanism, config)
            coefficient[i, j] = getattr(mechanism, mechanism.calibrated)
            if log_epsilon == min(config.log_epsilon):
                theta[i], density[i] = _limit(method, mechanism, config)
        else:
            kl[i, j], error[i, j] = 0.0, 0.0
    for block in streams.blocks():
        statistics, held_out = _data(config, streams, block)
        ways = gammaln(config.n + 1) - gammaln(held_out + 1).sum(axis=-1)
        for (i, j), draws in _draws(config, mechanisms, statistics, streams, block, ledger):
            records = -model.log_likelihood(draws, held_out)
            nll[:, i, j, block.trials] = records, records - ways
    return {
        "kl": kl,
        "error": error,
        "coefficient": coefficient,
        **{f"{name}_mean": values.mean(axis=-1) for name, values in zip(LIKELIHOODS, nll, strict=True)},
        **{f"{name}_sd": values.std(axis=-1, ddof=1) for name, values in zip(LIKELIHOODS, nll, strict=True)},
        "theta": theta,
        "density": density,
        "reached": _reached(config),
    }


def _reached(config) -> np.ndarray:
    """Return the coefficients (priors, 2, budgets) to which `SAMPLERS` are calibrated under other priors."""
    priors = zip(config.reach_alphas, config.reach_betas, strict=True)
    points = itertools.product(priors, SAMPLERS, config.reach_log_epsilons)
    coefficients = [_calibrated(name, config, level, prior).coefficient for prior, name, level in points]
    return np.reshape(coefficients, (-1, len(SAMPLERS), len(config.reach_log_epsilons)))


def _draws(config, mechanisms, statistics, streams, block, ledger):
    """Yield an array index (method, log epsilon), and one released parameter per trial."""
    requests = {}
    for (i, method), (j, log_epsilon) in itertools.product(enumerate(config.method), enumerate(config.log_epsilon)):
        rng = streams("mechanism", block.index)
        if method == "non_private":
            model = BetaBernoulli(config.alpha, config.beta)
            yield (i, j), model.sample(model.posterior(statistics), rng)
        else:
            account = f"{method}/log_epsilon={log_epsilon:g}"
            requests[i, j] = Request(account, mechanisms[i, j], statistics, rng, repeats=block.trials)
    for place, release in zip(requests, ledger.release_all(list(requests.values())), strict=True):
        yield place, mechanisms[place].posterior_draw(release.values, requests[place].rng)


def _data(config, streams, block) -> tuple[np.ndarray, np.ndarray]:
    """Return the statistics of a block's data and of the held-out data, each of shape (size, 2)."""
    rng = streams("data", block.index)
    counts = rng.binomial(config.n, config.held_out_probability, size=(2, block.size)).astype(float)
    statistics = np.stack([counts, config.n - counts], axis=-1)
    return statistics[0], statistics[1]


def _limit(method: str, mechanism, config) -> tuple[np.ndarray, np.ndarray]:
    """Return a grid of θ, and the density of a mechanism's output on the grid."""
    if method == "gaussian":
        theta = np.linspace(0, 1, LIMIT_POINTS)[1:-1]
        theta = np.concatenate([[theta[0] / 2], theta, [1 - theta[0] / 2]])
        return theta, np.exp(released_log_density(theta, mechanism, config.successes, config.quadrature_nodes))
    model, statistics = mechanism.model, np.array([config.successes, config.n - config.successes], dtype=float)
    output = mechanism.release_law(statistics)
    mean, sd = float(model.mean(output)), math.sqrt(model.variance(output))
    theta = np.linspace(max(1e-6, mean - 6 * sd), min(1 - 1e-6, mean + 6 * sd), LIMIT_POINTS)
    return theta, np.exp(model.log_density(theta, output))


def _prior(config) -> dict[str, float]:
    """Return the prior's mean, and KL(true posterior || prior)."""
    model = BetaBernoulli(config.alpha, config.beta)
    posterior = model.posterior(np.array([config.successes, config.n - config.successes], dtype=float))
    prior = np.array([config.alpha, config.beta], dtype=float)
    return {"prior_mean": float(model.mean(prior)), "prior_kl": float(dirichlet_divergence(posterior, prior, 1.0))}


def tabulate(cells):
    """Return three tables: `tradeoff` has the curves, `limits` the densities, and `reach` the coefficients."""
    import pandas as pd

    curves, limits, reach = [], [], []
    for cell in cells:
        config, arrays = cell.config, cell.arrays
        priors = zip(config.reach_alphas, config.reach_betas, strict=True)
        for (i, (alpha, beta)), (j, method) in itertools.product(enumerate(priors), enumerate(SAMPLERS)):
            where = {"variant": config.variant, "order": config.order, "alpha": alpha, "beta": beta, "method": method}
            reach += [
                {**where, "log_epsilon": level, "coefficient": arrays["reached"][i, j, k]}
                for k, level in enumerate(config.reach_log_epsilons)
            ]
        for i, method in enumerate(config.method):
            fixed = {"variant": config.variant, "method": method, "order": config.order}
            rows = range(len(config.log_epsilon))
            if method == "non_private":
                # The true posterior has neither order nor ε, and the draws from it are equal in every cell.
                fixed, rows = {"variant": None, "method": method, "order": None}, rows[:1]
            for j in rows:
                log_epsilon = None if method == "non_private" else config.log_epsilon[j]
                row = {**fixed, "log_epsilon": log_epsilon, "coefficient": arrays["coefficient"][i, j]}
                curves.append({**row, "metric": "kl", "mean": arrays["kl"][i, j], "error": arrays["error"][i, j]})
                for metric in LIKELIHOODS:
                    mean, sd = arrays[f"{metric}_mean"][i, j], arrays[f"{metric}_sd"][i, j]
                    summary = {"metric": metric, "mean": mean, "sd": sd, "sem": sd / math.sqrt(config.trials)}
                    curves.append({**row, **summary, "n_repeats": config.trials})
            if method != "non_private":
                smallest = {**fixed, "log_epsilon": min(config.log_epsilon)}
                density = {"theta": arrays["theta"][i], "density": arrays["density"][i]}
                limits.append(pd.DataFrame({**smallest, **density, **_prior(config)}))
    names = ["variant", "method", "order", "log_epsilon", "coefficient", "metric", "mean", "sd", "sem", "n_repeats"]
    curves = framed(curves, *names).drop_duplicates().reset_index(drop=True)
    curves["n_repeats"] = curves["n_repeats"].astype("Int64")
    return {"tradeoff": curves, "limits": pd.concat(limits, ignore_index=True), "reach": pd.DataFrame(reach)}
