"""Exact draws from the posterior of a regression with binary outcomes, by rejection from curvature shells.

Let f be the negative log-density, m a point near the minimum of f, Δ = w − m and s_i = x_i·Δ. With any scales s̄_i > 0
and ends 0 = κ_0 < κ_1 < ... < ∞, the shells R_j = {κ_j ≤ max_i |s_i|/s̄_i < κ_{j+1}} divide the space. On R_j, the loss
of record i exceeds the tangent at m by at least ½ c_i s_i² (`curvature_floor`). Let nβ be the prior's precision, ρ the
power of the likelihood, and A_j = nβ I + ρ Σ c_i x_i x_iᵀ, where the last shell has c_i = 0. Then

    exp(−(f − f(m))) ≤ exp(−∇f(m)·Δ − ½ ΔᵀA_jΔ) N_j(Δ),    N_0 = 1, N_j = #{i: |s_i| ≥ κ_j s̄_i}.

Proposals come from the right side, which is a Gaussian or a mixture of Gaussian tails. A proposal in R_j is accepted
with probability left side / right side. In real arithmetic, the draws are exact for every m, s̄ and κ.
"""

import itertools
import math
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import NamedTuple

import numpy as np
from scipy.linalg import cho_solve, solve_triangular
from scipy.special import log_ndtr, logsumexp, ndtri_exp

from privpost.models.regression.logistic import GaussianApproximation, LogisticPosterior

# A log-acceptance above this refutes the bound. Sums of 1e5 terms of size 1 have a smaller rounding error.
_ROUNDING = 1e-7
# Candidates for the shells' ends, in standard deviations of the predictors.
_ENDS = np.geomspace(3.0, 60.0, 30)
# Approximate number of records that the choice of ends uses.
_SOME = 1000
# Largest number of inner shells.
_MOST_SHELLS = 4
# Smallest number of proposals per draw that another shell must save.
_WORTH = 0.1
# The largest logarithm of a number of proposals: floats can hold sums and products of a few such numbers.
_MOST = 600.0
# Largest number of predictors held in memory at once.
_ELEMENTS = 1 << 21
EXACT = True
_MOST_ROUNDS = 100_000


class Tails(NamedTuple):
    """The law of each predictor's change s_i under the Gaussian of a shell, and the two tails of this law.

    All shapes are (n,), except for the log-masses (2n,) of the tails.
    """

    mean: np.ndarray
    deviation: np.ndarray
    start: np.ndarray
    log_mass: np.ndarray


class Shell(NamedTuple):
    """A shell j: start κ_j, lower Cholesky factor of A_j, vector A_j⁻¹∇f(m), log-weight, and tails for j > 0."""

    start: float
    factor: np.ndarray
    pull: np.ndarray
    log_weight: float
    tails: Tails | None


class Info(NamedTuple):
    """The number of evaluated proposals per draw, and the number that Laplace's approximation predicts."""

    proposals: float
    expected: float


@dataclass(frozen=True)
class Envelope:
    """The proposal law for one posterior.

    Attributes:
        posterior: the target.
        law: the posterior or, after `_merged`, the law of r < d combinations of the weights, without a ball.
        basis: these combinations (r, d), orthonormal; they determine the likelihood. None if `law` is `posterior`.
        mode: the Gaussian at the mode of `law`.
        shells: from the inside out.
        scales: 1/s̄_i, shape (n,), 0 for records without features.
        expected: expected number of proposals per accepted proposal, by Laplace's approximation.
    """

    posterior: LogisticPosterior
    law: LogisticPosterior
    basis: np.ndarray | None
    mode: GaussianApproximation
    shells: tuple[Shell, ...]
    scales: np.ndarray
    expected: float

    @property
    def log_least(self) -> float:
        """Lower bound on the logarithm of the expected number of proposals per draw in the ball."""
        radius, d = self.posterior.radius, self.posterior.dimension
        log_expected = math.log(self.expected)
        if radius is None or not math.isfinite(radius):
            return log_expected
        rest = (d - self.law.dimension) * math.log(self.law.prior_precision)
        # The mass of the ball is at most the peak of the Gaussian density times the ball's volume.
        log_density = np.log(np.diag(self.mode.factor)).sum() + (rest - d * math.log(2)) / 2
        return log_expected - min(0.0, log_density + d * math.log(radius) - math.lgamma(d / 2 + 1))

    def propose(self, normals: np.ndarray, uniforms: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return proposals (k, d) and log-acceptances (k,), given standard normals (k, d) and uniforms (k, 3).

        Raises:
            ArithmeticError: a log-acceptance above 0, which refutes the bound.
        """
        if self.basis is None:
            return self._propose(normals, uniforms)
        informed = normals @ self.basis.T
        weights, log_acceptance = self._propose(informed, uniforms)
        # The other combinations of the weights have their prior law.
        rest = (normals - informed @ self.basis) / math.sqrt(self.law.prior_precision)
        weights = rest + weights @ self.basis
        return weights, np.where(np.isneginf(self.posterior.log_prior(weights)), -np.inf, log_acceptance)

    def _propose(self, normals, uniforms):
        steps, exponents, shells = self.steps(normals, uniforms)
        return self.mode.mean + steps, self.log_acceptance(steps, exponents, shells)

    def steps(self, normals, uniforms) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return steps (k, d) from the mode, exponents (k,) of the envelope, and indices (k,) of the drawn shells."""
        shells = self._choose(uniforms[:, 0])
        steps, exponents = np.empty_like(normals), np.empty(len(normals))
        for j in np.unique(shells):
            rows = np.flatnonzero(shells == j)
            steps[rows], exponents[rows] = self._draw(self.shells[j], normals[rows], uniforms[rows, 1:])
        return steps, exponents, shells

    def log_acceptance(self, steps, exponents, shells) -> np.ndarray:
        """Return the log-acceptances (k,) of the results of `steps`.

        Raises:
            ArithmeticError: a log-acceptance above 0, which refutes the bound.
        """
        log_acceptance = exponents + self._log_ratio(steps, shells)
        if (worst := float(np.max(log_acceptance, initial=-np.inf))) > _ROUNDING:
            raise ArithmeticError(f"log-acceptance is {worst}; it must be <= 0, so the envelope is none")
        return log_acceptance

    @cached_property
    def _at_mode(self) -> tuple[np.ndarray, float]:
        """The predictors (n,) at the mode, and the log-density at the mode."""
        return self.law.features @ self.mode.mean, self.law.log_density(self.mode.mean[None])[0]

    def _choose(self, uniforms):
        log_weights = np.array([shell.log_weight for shell in self.shells])
        shares = np.cumsum(np.exp(log_weights - logsumexp(log_weights)))
        return np.minimum(np.searchsorted(shares, uniforms, side="right"), len(shares) - 1)

    def _draw(self, shell: Shell, normals, uniforms):
        """Return steps Δ (k, d) from m, and the exponents ½ ΔᵀAΔ + ∇f(m)·Δ, shape (k,)."""
        steps = solve_triangular(shell.factor, normals.T, lower=True, trans="T", check_finite=False).T - shell.pull
        if shell.tails is not None:
            steps = self._into_tail(shell, steps, uniforms)
            normals = (steps + shell.pull) @ shell.factor
        constant = 0.5 * np.sum((shell.pull @ shell.factor) ** 2)
        return steps, 0.5 * np.einsum("kd,kd->k", normals, normals) - constant

    def _into_tail(self, shell: Shell, steps, uniforms):
        """Return steps (k, d) after moving the predictor of one random record per step into a tail."""
        tails, n = shell.tails, len(self.scales)
        shares = np.cumsum(np.exp(tails.log_mass - logsumexp(tails.log_mass)))
        picked = np.minimum(np.searchsorted(shares, uniforms[:, 0], side="right"), 2 * n - 1)
        record, sign = picked % n, np.where(picked < n, 1.0, -1.0)
        # A quantile of the tail: Φ⁻¹ of a share of the tail's mass.
        beyond = -ndtri_exp(np.log(uniforms[:, 1]) + tails.log_mass[picked])
        values = tails.mean[record] + sign * tails.deviation[record] * beyond
        rows = self.law.features[record]
        change = (values - np.einsum("kd,kd->k", rows, steps)) / tails.deviation[record] ** 2
        # The rest of a step keeps its law given the predictor.
        return steps + change[:, None] * cho_solve((shell.factor, True), rows.T, check_finite=False).T

    def _log_ratio(self, steps, shells):
        """Return the log-ratios −(f − f(m)) − ln N_j of steps inside their shells, and −inf for other steps."""
        result = np.empty(len(steps))
        posterior, mode = self.law, self.mode.mean
        at_mode, lowest = self._at_mode
        starts = np.array([shell.start for shell in self.shells])
        ends = np.append(starts[1:], np.inf)
        rows = max(1, _ELEMENTS // len(at_mode))
        for first in range(0, len(steps), rows):
            part = slice(first, first + rows)
            changes = steps[part] @ posterior.features.T
            weights = mode + steps[part]
            values = posterior.power * posterior.log_likelihood_of_predictors(changes + at_mode)
            result[part] = values + posterior.log_prior(weights) - lowest
            if len(starts) == 1:
                continue
            ratios = np.abs(changes, out=changes)
            ratios *= self.scales
            start, largest = starts[shells[part]], ratios.max(axis=1)
            outer = np.flatnonzero(start > 0)
            crowd = np.ones(len(ratios))
            crowd[outer] = np.maximum(1, (ratios[outer] >= start[outer, None]).sum(axis=1))
            inside = (largest >= start) & (largest < ends[shells[part]])
            result[part] = np.where(inside, result[part] - np.log(crowd), -np.inf)
        return result


def envelope(
    posterior: LogisticPosterior,
    start: Envelope | None = None,
    ends: tuple[float, ...] | None = None,
    draws: int | None = None,
) -> Envelope:
    """Return the envelope of a posterior, with shells that save proposals or time.

    Args:
        start: envelope of a similar posterior, where the search for the mode begins. This envelope is returned if
            the posteriors are equal and `ends` is None.
        ends: ends κ_1 < κ_2 < ... of the shells; None to choose the ends. An empty tuple gives the prior's Gaussian.
        draws: number of draws to make in the shortest time. Equal columns are then merged, and a shell is made only if
            it saves more time than it takes to make. None keeps the number of proposals small.

    Raises:
        RuntimeError: the mode is not found.
        ValueError: the mode lies outside the posterior's ball.
    """
    if start is not None and ends is None and start.posterior.is_law_of(posterior):
        return start
    law, basis = _merged(posterior, start) if draws else (posterior, None)
    mode = law.at_mode(start.mode if start is not None and np.array_equal(start.basis, basis) else None)
    if posterior.radius is not None and np.linalg.norm(mode.mean) > posterior.radius:
        raise ValueError(f"radius is {posterior.radius}; the posterior's mode lies outside the ball")
    log_determinant = 2 * np.log(np.diag(mode.factor)).sum()
    plain = 0.5 * (log_determinant - law.dimension * math.log(law.prior_precision))
    # Making a shell takes as long as this many proposals: two products of n d² operations, and functions of records.
    worth = max(_WORTH, (law.dimension + 40) / (2 * draws)) if draws else _WORTH
    if ends == () or (ends is None and plain <= math.log1p(max(1.0, worth))):
        scales, ends = np.zeros(len(law.features)), ()
    else:
        whitened = solve_triangular(mode.factor, law.features.T, lower=True, check_finite=False)
        spread = np.sqrt(np.einsum("dn,dn->n", whitened, whitened))
        del whitened
        scales = np.divide(1.0, spread, out=np.zeros_like(spread), where=spread > 0)
        ends = _ends(law, mode, spread, plain, worth) if ends is None else ends
    gradient = -law.gradient(mode.mean)
    shells = tuple(
        _shell(law, mode, gradient, scales, begin, end) for begin, end in itertools.pairwise((0.0, *ends, np.inf))
    )
    total = logsumexp([shell.log_weight for shell in shells])
    return Envelope(posterior, law, basis, mode, shells, scales, math.exp(min(total + 0.5 * log_determinant, _MOST)))


def _merged(posterior, start: Envelope | None = None) -> tuple[LogisticPosterior, np.ndarray | None]:
    """Return the `law` and the `basis` of an `Envelope`: with equal columns merged, or else the posterior and None."""
    if start is not None and start.basis is not None and np.array_equal(start.posterior.features, posterior.features):
        return replace(posterior, features=start.law.features, radius=None), start.basis
    # The likelihood depends on the weights of m equal columns x through their sum, as √m x times sum/√m. Weights of
    # zero columns do not enter.
    columns = partial(np.take, posterior.features, axis=1)
    _, first, group, counts = np.unique(posterior.features.sum(axis=0), True, True, True)
    told, twice = np.flatnonzero(posterior.features.any(axis=0)[first]), np.flatnonzero(counts[group] > 1)
    # Columns with the same sum need not be equal.
    if not 0 < len(told) < posterior.dimension or (columns(twice) != columns(first[group[twice]])).any():
        return posterior, None
    merged, lengths = columns(first[told]), np.sqrt(counts[told])
    merged *= lengths
    return replace(posterior, features=merged, radius=None), (group == told[:, None]) / lengths[:, None]


def _shell(posterior, mode, gradient, scales, begin: float, end: float) -> Shell:
    if end == np.inf:
        factor = math.sqrt(posterior.prior_precision) * np.eye(posterior.dimension)
    else:
        factor = np.linalg.cholesky(posterior.precision_of(_floors(posterior, mode, scales, end)))
    pull = cho_solve((factor, True), gradient, check_finite=False)
    log_weight = 0.5 * gradient @ pull - np.log(np.diag(factor)).sum()
    if begin == 0:
        return Shell(begin, factor, pull, log_weight, None)
    if end == np.inf:
        variances = np.einsum("nd,nd->n", posterior.features, posterior.features) / posterior.prior_precision
    else:
        whitened = solve_triangular(factor, posterior.features.T, lower=True, check_finite=False)
        variances = np.einsum("dn,dn->n", whitened, whitened)
    mean, deviation = -posterior.features @ pull, np.sqrt(variances)
    # Records without features have no tails.
    felt = deviation > 0
    where = np.divide(begin, scales, out=np.full_like(scales, np.inf), where=scales > 0)
    deviation = np.where(felt, deviation, 1.0)
    log_mass = np.concatenate([log_ndtr((mean - where) / deviation), log_ndtr((-mean - where) / deviation)])
    return Shell(begin, factor, pull, log_weight + logsumexp(log_mass), Tails(mean, deviation, where, log_mass))


def _floors(posterior, mode, scales, end: float) -> np.ndarray:
    """Return c_i (n,): the loss of record i exceeds its tangent at m by at least ½ c_i s_i² if |s_i| ≤ end · s̄_i."""
    reach = np.divide(end, scales, out=np.zeros_like(scales), where=scales > 0)
    return posterior.curvature_floor(posterior.features @ mode.mean, reach)


def _ends(posterior, mode, spread, plain: float, worth: float) -> tuple[float, ...]:
    """Return the ends of at most four inner shells that each save `worth` expected proposals."""
    # Draws are exact for any ends. Let P be the precision at the mode, h_i the curvature at the mode, and
    # D = I − nβP⁻¹ the data's part of P, in units of P. A_j is approximated by P, less a total loss
    # x = Σ ρ (h_i − c_i) s̄_i². This loss is spread over x/l directions. In each direction A_j is less than P by the
    # share l = (1 − Σcs̄²/Σhs̄²) tr D²/tr D. So |A_j| is |P| (1 − l)^(x/l), and x_iᵀA_j⁻¹x_i is s̄_i²/(1 − l).
    n, d = posterior.features.shape
    some = np.arange(0, n, 1 + n // _SOME)
    sample = replace(posterior, features=posterior.features[some], labels=posterior.labels[some])
    features, spread, times = sample.features, spread[some], n / len(some)
    predictors, squares = features @ mode.mean, posterior.power * times * spread**2
    sums = np.array([squares @ sample.curvature_floor(predictors, end * spread) for end in (0, *_ENDS)])
    part = np.eye(d) - posterior.prior_precision * cho_solve((mode.factor, True), np.eye(d), check_finite=False)
    lost = np.maximum((1 - sums[1:] / sums[0]) * np.sum(part**2) / np.trace(part), 1e-9)
    inner = np.exp(np.minimum(-0.5 * (sums[0] - sums[1:]) * np.log1p(-lost) / lost, _MOST))
    free = np.linalg.norm(features, axis=1) / math.sqrt(posterior.prior_precision)
    share = np.divide(spread, free, out=np.full_like(spread, np.inf), where=free > 0)
    outer = plain + math.log(2 * times) + logsumexp(log_ndtr(-_ENDS[:, None] * share), axis=1)
    outer = np.exp(np.minimum(outer, _MOST))
    # Cost of a shell from one end (row) to a later end (column).
    between = inner * 2 * n * np.exp(log_ndtr(-_ENDS[:, None] * np.sqrt(1 - lost)))
    between[np.tril_indices(len(_ENDS))] = np.inf
    best, ends, costs, paths = math.exp(min(plain, _MOST)), (), inner, [(end,) for end in _ENDS]
    for _ in range(_MOST_SHELLS):
        total = costs + outer
        if total.min() < best - worth:
            best, ends = total.min(), paths[total.argmin()]
        before = (costs[:, None] + between).argmin(axis=0)
        paths = [(*paths[k], end) for k, end in zip(before, _ENDS, strict=True)]
        costs = (costs[:, None] + between).min(axis=0)
    return tuple(map(float, ends))


def sample(around: Envelope, size: int, rng: np.random.Generator) -> tuple[np.ndarray, Info]:
    """Return exact draws (size, d), and the numbers of proposals per draw.

    Raises:
        ValueError: size < 1.
        RuntimeError: 100,000 proposals gave too few draws.
        ArithmeticError: a log-acceptance above 0.
    """
    if size < 1:
        raise ValueError(f"size is {size!r}; it must be >= 1")
    # Separate streams, so that acceptances change no later proposal.
    normals, uniforms = rng.spawn(2)
    weights, pending = np.empty((size, around.posterior.dimension)), np.arange(size)
    left, evaluated = _MOST_ROUNDS, 0
    while left and len(pending):
        # When few draws are left, several rounds share one matrix product.
        at_once = min(left, max(1, min(32 // len(pending), 2048 // size)))
        left -= at_once
        shape = at_once, size
        numbers = normals.standard_normal((*shape, weights.shape[1])), uniforms.random((*shape, 4))
        points, levels = (part[:, pending].reshape(at_once * len(pending), -1) for part in numbers)
        proposed, log_acceptance = around.propose(points, levels[:, 1:])
        accepted = (np.log(levels[:, 0]) < log_acceptance).reshape(at_once, len(pending))
        first, done = accepted.argmax(axis=0), accepted.any(axis=0)
        evaluated += int(np.where(done, first + 1, at_once).sum())
        proposed = proposed.reshape(at_once, len(pending), -1)
        weights[pending[done]] = proposed[first[done], done]
        pending = pending[~done]
    if len(pending):
        raise RuntimeError(f"{size} draws need more than {_MOST_ROUNDS} proposals each")
    return weights, Info(evaluated / size, around.expected)
