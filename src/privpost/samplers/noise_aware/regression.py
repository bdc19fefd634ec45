"""Noise-aware Gibbs sampler of linear regression given noisy second moments (Bernstein and Sheldon 2019).

The second moments S = Σ vvᵀ of n records v = (x, y) are latent. With V the features' covariance, v is N(0, Ω) with
Ω = (V, Vw; wᵀV, σ² + wᵀVw). A sweep draws

    (w, σ², V) | S         by conjugacy,
    S | Ω, z               from N(nΩ, n(Ω_ik Ω_jl + Ω_il Ω_jk)) × N(z, noise), the paper's normal approximation,
    variances | S, z       of Laplace noise, a scale mixture of normals.

With `law="normal"`, every positive definite proposal of S is accepted, as in the paper. Then no joint law has these
conditionals, but for large n, the chain's limit is close to the posterior. With `law="wishart"`, a Metropolis step
corrects the normal approximation, so the limit is the exact posterior.
"""

from typing import Literal, NamedTuple, get_args

import numpy as np

from privpost.models.regression.normal import NormalInverseGamma, NormalRegression, inverse_wishart, log_determinant
from privpost.privacy.checks import check_choice, check_count
from privpost.samplers.noise_aware.gibbs import Kernel, noise_prior, noise_variance, normal_product

Law = Literal["wishart", "normal"]


class Noise(NamedTuple):
    """Law of independent noise on the upper triangle of second moments.

    Attributes:
        kind: "laplace" or "gaussian".
        scale: scale of Laplace noise or standard deviation of Gaussian noise, in the data's units, shape (q,).
    """

    kind: str
    scale: np.ndarray

    def draw(self, trials: int, rng) -> np.ndarray:
        """Return noise variates (trials, q)."""
        draw = rng.laplace if self.kind == "laplace" else rng.normal
        return draw(0.0, self.scale, (trials, len(self.scale)))

    def log_density(self, residual) -> np.ndarray:
        """Return the log-density (trials,) of residuals (q, trials), up to a constant."""
        scaled = residual / self.scale[:, None]
        return -(np.abs(scaled) if self.kind == "laplace" else scaled**2 / 2).sum(axis=0)


class State(NamedTuple):
    """The current state of a batch of chains.

    Attributes:
        theta: weights w and variance σ², shape (trials, d + 1).
        gram: latent second moments, shape (trials, d + 1, d + 1).
        law: law of (w, σ²) given the second moments of the previous sweep.
        variance: variance of each noise variate, shape (q, trials).
    """

    theta: np.ndarray
    gram: np.ndarray
    law: NormalInverseGamma
    variance: np.ndarray


def kernel(model: NormalRegression, moments, n: int, noise: Noise, law: Law = "wishart", jumps: int = 1) -> Kernel:
    """Return the chains for a batch of releases, with the number of rejected proposals of S as cost of a sweep.

    Args:
        moments: noisy second moments z in the data's units, upper triangles, shape (q, trials).
        n: public number of records, ≥ d + 1.
        law: law of S given the parameters, "wishart" or the paper's "normal".
        jumps: number of random-walk steps of S per sweep, for "wishart".

    Raises:
        ValueError: n below d + 1, or an unknown law.
    """
    check_choice("law", law, get_args(Law))
    check_count("n", n)
    p, trials = model.dimension + 1, np.shape(moments)[1]
    if n < p:
        raise ValueError(f"n is {n}; second moments of {p} variables need at least as many records")
    chains = _Chains(model, np.ascontiguousarray(moments, float), n, noise, law, jumps if law == "wishart" else 0)
    return Kernel(lambda rng: chains.init(trials, rng), chains.step)


class _Chains:
    def __init__(self, model, moments, n, noise, law, jumps):
        self.model, self.moments, self.n, self.noise, self.law, self.jumps = model, moments, n, noise, law, jumps
        self.places = np.triu_indices(model.dimension + 1)
        self.scale = noise.scale[:, None]

    def init(self, trials: int, rng) -> State:
        gram = positive(symmetric(self.moments.T), 1e-3 * self.n)
        variance = self._first_variances(rng)
        return State(np.zeros((trials, self.model.dimension + 1)), gram, self.model.given(gram, self.n), variance)

    def _first_variances(self, rng):
        if self.noise.kind == "gaussian":
            return np.broadcast_to(self.scale**2, self.moments.shape)
        return noise_prior(self.moments.shape, self.scale, rng)

    def step(self, state: State, rng) -> tuple[State, int]:
        law = self.model.given(state.gram, self.n)
        theta = self.model.sample(law, rng)
        gram, refused = self._moments(theta, state, rng)
        # Without these steps, a sweep would move S by no more than the sampling error of S.
        for _ in range(self.jumps):
            gram = self._jumps(gram, rng)
        variance = state.variance
        if self.noise.kind == "laplace":
            variance = noise_variance(self.moments - self._upper(gram), self.scale, rng)
        return State(theta, gram, law, variance), refused

    def _upper(self, gram):
        return gram[:, *self.places].T

    def _moments(self, theta, state, rng):
        """Return the second moments after one Metropolis step, and the number of rejected proposals."""
        omega = self._covariance(theta, state.gram, rng)
        (i, j), n = self.places, self.n
        # (q, q, trials)
        o = np.ascontiguousarray(np.moveaxis(omega, 0, -1))
        covariance = n * (o[i[:, None], i] * o[j[:, None], j] + o[i[:, None], j] * o[j[:, None], i])
        mean, factor = normal_product(n * o[i, j], covariance, self.moments, state.variance)
        drawn = mean + np.einsum("ijt,jt->it", factor, rng.standard_normal(mean.shape))
        proposed = symmetric(drawn.T)
        accepted = np.linalg.eigvalsh(proposed)[:, 0] > 0
        if self.law == "wishart":
            ratio = np.full(len(proposed), -np.inf)
            omega, old = omega[accepted], state.gram[accepted]
            ratio[accepted] = self._correction(proposed[accepted], omega) - self._correction(old, omega)
            accepted = np.log(rng.random(len(ratio))) < ratio
        return np.where(accepted[:, None, None], proposed, state.gram), int((~accepted).sum())

    def _covariance(self, theta, gram, rng):
        """Return draws of the joint covariance Ω (trials, d + 1, d + 1) of features and label."""
        d = self.model.dimension
        weights, variance = theta[:, :d], theta[:, d]
        scale = self.model.feature_scale * np.eye(d) + gram[:, :d, :d]
        features = inverse_wishart(self.model.degrees + self.n, scale, rng)
        cross = np.einsum("tij,tj->ti", features, weights)
        label = variance + (weights * cross).sum(axis=-1)
        upper = np.concatenate([features, cross[..., None]], axis=-1)
        lower = np.concatenate([cross, label[:, None]], axis=-1)
        return np.concatenate([upper, lower[:, None]], axis=1)

    def _correction(self, gram, omega):
        """Return ln Wishart(S; Ω, n) minus the log-density of the normal approximation, up to a constant."""
        n, p = self.n, gram.shape[-1]
        relative = np.linalg.solve(omega, gram)
        trace = np.trace(relative, axis1=-2, axis2=-1)
        square = np.einsum("tij,tji->t", relative, relative)
        # The exponent of the normal law is −tr((Ω⁻¹S − nI)²)/(4n).
        wishart = (n - p - 1) / 2 * log_determinant(gram) - trace / 2
        return wishart + (square - 2 * n * trace + n * n * p) / (4 * n)

    def _jumps(self, gram, rng):
        """Return S after a random stretch of all variables and a random shear of one variable by all others."""
        trials, p = gram.shape[:2]
        bounds = np.append(np.full(p - 1, self.model.feature_bound), self.model.label_bound)
        here = self._target(gram)
        # S → ASAᵀ has the Jacobian |A|^(p + 1), and A⁻¹ is as likely as A. Step sizes span a wide range, because the
        # posterior may be as narrow as the noise or as wide as the prior.
        for kind in ("stretch", "shear"):
            moves = rng.standard_normal((trials, p)) * 10 ** rng.uniform(-2.5, 0.0, (trials, 1))
            change = np.zeros((trials, p, p))
            change[:, np.arange(p), np.arange(p)] = np.exp(moves) if kind == "stretch" else 1.0
            if kind == "shear":
                row, trial = rng.integers(p, size=trials), np.arange(trials)
                moves[trial, row] = 0.0
                change[trial, row] += moves * bounds[row, None] / bounds
            proposed = change @ gram @ np.swapaxes(change, -1, -2)
            there, jacobian = self._target(proposed), (p + 1) * moves.sum(axis=1) * (kind == "stretch")
            moved = np.log(rng.random(trials)) < there - here + jacobian
            gram, here = np.where(moved[:, None, None], proposed, gram), np.where(moved, there, here)
        return gram

    def _target(self, gram):
        """Return the log-density of the second moments S given the release, up to a constant."""
        return self.model.log_marginal(gram, self.n) + self.noise.log_density(self.moments - self._upper(gram))


def symmetric(upper) -> np.ndarray:
    """Return the symmetric matrices (..., p, p) with the given upper triangles (..., q), row by row."""
    upper = np.asarray(upper, float)
    p = round((np.sqrt(8 * upper.shape[-1] + 1) - 1) / 2)
    i, j = np.triu_indices(p)
    full = np.empty((*upper.shape[:-1], p, p))
    full[..., i, j] = full[..., j, i] = upper
    return full


def positive(gram, least: float) -> np.ndarray:
    """Return symmetric matrices (..., p, p) in which `least` replaces every smaller eigenvalue."""
    values, vectors = np.linalg.eigh(gram)
    return (vectors * np.maximum(values, least)[..., None, :]) @ np.swapaxes(vectors, -1, -2)
