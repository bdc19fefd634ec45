"""Noise-aware Gibbs samplers as a scalar loop over trials, against which the batched samplers are timed."""

from __future__ import annotations

import math

import numpy as np
from scipy import stats


class Dual:
    """A number with its first and second derivative, for forward-mode automatic differentiation."""

    def __init__(self, value, first=0.0, second=0.0):
        self.value, self.first, self.second = value, first, second

    def __sub__(self, other):
        return Dual(self.value - other.value, self.first - other.first, self.second - other.second)

    def scaled(self, factor):
        return Dual(self.value * factor, self.first * factor, self.second * factor)

    def exp(self):
        value = math.exp(self.value)
        return Dual(value, value * self.first, value * (self.second + self.first**2))

    def log(self):
        ratio = self.first / self.value
        return Dual(math.log(self.value), ratio, self.second / self.value - ratio**2)


def dual_segment(theta, low, high):
    """Return the probability, mean and variance of an exponential record in [low, high], by lemma 1."""
    eta = Dual(-theta, 1.0)
    below, above = ((eta.scaled(x).exp() if math.isfinite(x) else Dual(0.0)) for x in (low, high))
    probability = below - above
    if probability.value <= 0:
        return 0.0, low, 0.0
    log_probability = probability.log()
    return probability.value, 1 / theta + log_probability.first, 1 / theta**2 + log_probability.second


def autograd_segment():
    """Return a function like `dual_segment` that uses autograd. Raise ImportError without autograd."""
    import autograd.numpy as anp
    from autograd import grad

    def log_probability(eta, low, high):
        upper = anp.exp(eta * high) if math.isfinite(high) else 0.0
        return anp.log(anp.exp(eta * low) - upper)

    first = grad(log_probability)
    second = grad(first)

    def segment(theta, low, high):
        eta = -float(theta)
        value = math.exp(log_probability(eta, low, high))
        return value, 1 / theta + first(eta, low, high), 1 / theta**2 + second(eta, low, high)

    return segment


def noise_precision(residual, scale, rng):
    """Return a draw of 1/σ² from InverseGaussian(mean 1/(b|r|), shape 1/b²), given the residual r and the scale b."""
    mean, shape = 1 / (scale * abs(residual)), 1 / scale**2
    return stats.invgauss.rvs(mean / shape, scale=shape, random_state=rng)


def valid_normal(mean, sd, low, high, rng):
    """Return a draw from a normal distribution that is truncated to [low, high]."""
    while True:
        draw = stats.norm.rvs(mean, sd, random_state=rng)
        if low <= draw <= high:
            return draw


def binomial_sweep(theta, variance, y, n, scale, prior, rng):
    """Return the new parameter and noise variance of a binomial trial after one sweep of algorithm 1."""
    mean, spread = n * theta, n * theta * (1 - theta)
    product = 1 / (1 / spread + 1 / variance)
    s = valid_normal(product * (mean / spread + y / variance), math.sqrt(product), 0, n, rng)
    variance = 1 / noise_precision(y - s, scale, rng)
    return stats.beta.rvs(prior[0] + s, prior[1] + n - s, random_state=rng), variance


def multinomial_sweep(theta, variance, y, n, scale, prior, rng):
    """Return the new probabilities and noise variances of a multinomial trial after one sweep of algorithm 1."""
    first = n * (np.diag(theta) - np.outer(theta, theta))
    gain = first @ np.linalg.inv(first + np.diag(variance))
    mean, covariance = n * theta + gain @ (y - n * theta), gain @ np.diag(variance)
    while True:
        s = stats.multivariate_normal.rvs(mean, (covariance + covariance.T) / 2, random_state=rng)
        if s.min() >= 0:
            break
    variance = np.array([1 / noise_precision(residual, scale, rng) for residual in y - s])
    return stats.dirichlet.rvs(prior + s, random_state=rng)[0], variance


def exponential_sweep(theta, variance, y, n, scale, prior, low, high, rng, segment=dual_segment):
    """Return the new rate and noise variance of an exponential trial after one sweep of algorithm 2."""

    def random_sum(*ends):
        probability, mean, spread = segment(theta, *ends)
        return n * probability * mean, n * probability * (spread + (1 - probability) * mean**2)

    def product(mean, spread):
        together = 1 / (1 / spread + 1 / variance)
        return together * (mean / spread + y / variance), together

    centre = product(*random_sum(low, high))
    lower, upper = random_sum(0.0, low), random_sum(high, math.inf)
    means, spreads = (sum(part[i] for part in (lower, centre, upper)) for i in range(2))
    s = valid_normal(means, math.sqrt(spreads), 0, math.inf, rng)
    theta = stats.gamma.rvs(prior[0] + n, scale=1 / (prior[1] + s), random_state=rng)
    mean, spread = product(*random_sum(low, high))
    redacted = stats.norm.rvs(mean, math.sqrt(spread), random_state=rng)
    return theta, 1 / noise_precision(y - redacted, scale, rng)
