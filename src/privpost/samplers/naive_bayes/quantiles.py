"""Compiled distribution functions of the posterior of `naive_bayes.exact`."""

import numpy as np
from scipy.special import betainc, gammaln, xlog1py, xlogy

from privpost.samplers.compiled import outer


def quantiles(law, parameter: tuple[int, int], prior: tuple[float, float], theta) -> np.ndarray:
    """Return P(Θ ≤ θ | z), shape (releases, trials), for the probability Θ of one attribute given the class.

    Args:
        law: the posterior of `naive_bayes.exact.posterior`, leading axes (releases, trials).
        parameter: (attribute from 0, class).
        prior: parameters (α, β) of the beta prior.
        theta: values θ in (0, 1), shape (trials,).
    """
    attribute, value = parameter
    ones, zeros, sums = (np.ascontiguousarray(part[..., attribute, value, :]) for part in law.leaves[:3])
    sizes = law.weights if value else law.weights[..., ::-1]
    share = np.divide(sizes, sums, out=np.zeros(sizes.shape), where=sums > 0)
    alpha, beta = prior
    theta = np.asarray(theta, float)[:, None]
    # I_θ(α + K, β + T − K) and its next step in T, at T = K.
    a = alpha + np.arange(sums.shape[-1])
    log_step = xlogy(a, theta) + xlog1py(beta, -theta) + gammaln(a + beta) - gammaln(a) - gammaln(beta + 1)
    return np.clip(_mixed(ones, zeros, share, betainc(a, beta, theta), np.exp(log_step), theta[:, 0], *prior), 0.0, 1.0)


@outer()
def _mixed(ones, zeros, share, cdf, step, theta, alpha, beta):
    """Return Σ_T share(T) Σ_K ones(K) zeros(T − K) I_θ(α + K, β + T − K) for each release and trial.

    T is the size of the class, K the number of ones, and I_θ(a, b) the distribution function of Beta(a, b).

    Args:
        ones, zeros: factors of a `naive_bayes.exact.Leaf`, shape (releases, trials, n + 1).
        share: p(T | z) divided by the sum over K of ones(K) zeros(T − K), shape (releases, trials, n + 1).
        cdf, step: I_θ at T = K, and the increase of I_θ to T = K + 1, shape (trials, n + 1); overwritten.
    """
    releases, trials, size = ones.shape
    result = np.zeros((releases, trials))
    for trial in range(trials):
        for total in range(size):
            # I_θ(a, b + 1) is I_θ(a, b) plus the positive step θ^a (1−θ)^b / (b B(a, b)).
            for k in range(total):
                b = beta + (total - 1 - k)
                cdf[trial, k] += step[trial, k]
                step[trial, k] *= (1 - theta[trial]) * (alpha + k + b) / (b + 1)
            for release in range(releases):
                if share[release, trial, total] > 0:
                    terms = 0.0
                    for k in range(total + 1):
                        terms += ones[release, trial, k] * zeros[release, trial, total - k] * cdf[trial, k]
                    result[release, trial] += share[release, trial, total] * terms
    return result
