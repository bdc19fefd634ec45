"""Algorithm 2 of Bernstein and Sheldon (2018): Gibbs sampler given a noisy sum of the records in an interval.

A sweep needs the moments that sums of records have at θ. Trials that share an interval interpolate these moments in a
table over the prior's range. If θ is a rate, trials with proportional intervals share a table too. The family computes
moments outside the table, and all moments if the interpolation error reaches `CLOSE`.
"""

import math
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from privpost.models.conjugate.univariate import UnivariateFamily
from privpost.samplers.compiled import outer
from privpost.samplers.noise_aware.counts import variance_of
from privpost.samplers.noise_aware.gibbs import (
    ROUNDS,
    Kernel,
    State,
    noise_prior,
    random_sum,
    truncated_normal_quantile,
)
from privpost.samplers.noise_aware.quadrature import coordinates, parameter_edges

SEGMENTS = ("independent", "multinomial")
# Nodes of the table.
NODES = 512
# Largest error of an interpolated moment, relative to the sum of the moment's size and the median size in its column.
CLOSE = 1e-6


def redacted_kernel(
    model: UnivariateFamily, release, n: int, scale, low, high, segments: str = "multinomial"
) -> Kernel:
    """Return algorithm 2 for a redacted sum with noise: the sum of the records in [low, high] plus Laplace noise.

    A sweep draws the redacted sum, then the noise variance, then the sum of all records, then θ. The law of the sum
    of all records depends on `segments`. "independent" adds the moments of independent segments, as in the paper.
    "multinomial" accounts for the covariance of the segments.

    Args:
        release: noisy sums y, shape (trials,).
        n: public number of records.
        scale: scale Δ/ε of the noise, scalar or (trials,), with Δ from `redacted_sensitivity`.
        low, high: ends of the interval, scalars or (trials,).
        segments: "independent" or "multinomial".

    Raises:
        ValueError: `segments` has another value.
    """
    if segments not in SEGMENTS:
        raise ValueError(f"segments is {segments!r}; allowed: {', '.join(SEGMENTS)}")
    # Copies, since a compiled loop is compiled again for a read-only array.
    release = np.array(release, float, order="C")
    scale, low, high = (np.array(np.broadcast_to(value, release.shape), float) for value in (scale, low, high))
    smallest, largest = (n * end for end in model.statistic_support)
    table = Table.of(model, n, (low, high), segments)
    # The pair (Σt(x), n) of each trial. The pair lies along the first axis, so Σt(x) and n are each contiguous.
    statistics = np.full((2, len(release)), float(n))
    moments, centre, sd = np.empty((4, len(release))), *np.empty((2, len(release)))

    def init(rng):
        theta = model.sample(np.broadcast_to(model.prior, (*release.shape, len(model.prior))), rng)
        variance = noise_prior(release.shape, scale, rng)
        return State(theta, random_sum(n, model.segment_moments(theta, low, high))[0], variance)

    def step(state, rng):
        if table is None or not table.write(state.theta, moments):
            sum_moments(model, n, (low, high), segments, state.theta, moments)
        redacted, noise, full = np.empty_like(release), state.variance, statistics[0]
        drawn, limits = (redacted, noise, full, centre, sd), (smallest, largest)
        joint = n if segments == "multinomial" else 0
        rejected, left = _sums(moments, release, scale, joint, limits, drawn, rng)
        if left:
            wrong = np.flatnonzero(np.isnan(full))
            full[wrong] = truncated_normal_quantile(centre[wrong], sd[wrong], *limits, rng.random(left))
        return State(model.sample(model.posterior(statistics.T), rng), redacted, noise), rejected

    return Kernel(init, step)


def sum_moments(model: UnivariateFamily, n: int, interval, segments: str, theta, moments) -> None:
    """Write to `moments` (4, trials) the moments of sums of n records given θ (trials,).

    The first two rows are the mean and the variance of the redacted sum. For "multinomial", the last two rows are the
    mean and the variance of the full sum. For "independent", the last two rows are the added means and the added
    variances of the segments below and above the interval.
    """
    low, high = interval
    mean, variance = random_sum(n, model.segment_moments(theta, low, high))
    all_mean, all_variance = (n * value for value in model.record_moments(theta))
    if segments == "independent":
        # The variances V and means m of the segments satisfy n Var x = Σ V − 2 Σ_{r<q} m_r m_q / n.
        above, _ = random_sum(n, model.segment_moments(theta, high, np.asarray(model.record_support[1:])))
        rest = all_mean - mean
        below = rest - above
        all_variance -= variance
        all_variance += (rest * mean + below * above) * (2 / n)
        all_mean = rest
    moments[0], moments[1], moments[2], moments[3] = mean, variance, all_mean, all_variance


class Table(NamedTuple):
    """A table for cubic interpolation: the `sum_moments` of one interval, on an even grid in the coordinate of θ.

    Attributes:
        coordinate: function from θ to the coordinate; see `coordinates`.
        start, step: first place and step of the grid.
        values: moments, shape (nodes, 4).
        multiple: each trial's interval divided by the tabulated interval, or 1. Sums at rate θ are distributed as
            `multiple` times sums at rate θ·multiple in the tabulated interval.
    """

    coordinate: Callable
    start: float
    step: float
    values: np.ndarray
    multiple: np.ndarray | float = 1.0

    @classmethod
    def of(cls, model: UnivariateFamily, n: int, interval, segments: str) -> "Table | None":
        """Return the table over the prior's range, or None if no table serves all trials precisely."""
        low, high = interval
        multiple = 1.0
        if np.any(low != low[0]) or np.any(high != high[0]):
            if not model.theta_is_rate:
                return None
            with np.errstate(invalid="ignore"):
                multiple = high / high[0]
            if not np.allclose(low, low[0] * multiple, rtol=1e-12, atol=0):
                return None
        to_theta, coordinate = coordinates(model)
        ends = parameter_edges(model, 1) * [np.min(multiple), np.max(multiple)]
        nodes, step = np.linspace(*coordinate(ends), NODES, retstep=True)
        between = nodes[8:-8:16] + step / 2
        values, exact, estimate = (np.empty((4, size)) for size in (NODES, len(between), len(between)))
        # Overflow and loss of all digits give values that are not finite; the table is then refused.
        with np.errstate(all="ignore"):
            for at, moments in ((nodes, values), (between, exact)):
                sum_moments(model, n, [end[:1] for end in interval], segments, to_theta(at), moments)
            table = cls(coordinate, float(nodes[0]), float(step), np.ascontiguousarray(values.T), multiple)
            _interpolate(table.values, (between - table.start) / step, estimate)
            error = np.abs(estimate - exact) / (np.abs(exact) + np.median(np.abs(exact), axis=1, keepdims=True))
        return table if np.isfinite(values).all() and error.max() < CLOSE else None

    def write(self, theta, moments) -> bool:
        """Write the moments at θ (trials,) to `moments` (4, trials), and return whether the table covers all θ."""
        place = self.coordinate(theta * self.multiple)
        place -= self.start
        place /= self.step
        if not (place.min() >= 1 and place.max() < NODES - 2):
            return False
        _interpolate(self.values, place, moments)
        if np.ndim(self.multiple):
            moments *= self.multiple
            moments[1::2] *= self.multiple
        return True


@outer()
def _interpolate(values, place, moments):
    """Write the cubic interpolation of `values` (nodes, 4) at each place (trials,) to `moments` (4, trials)."""
    for t in range(len(place)):
        k = int(place[t])
        f = place[t] - k
        before, beyond = -f * (f - 1) * (f - 2) / 6, f * (f - 1) * (f + 1) / 6
        left, right = (f - 1) * (f + 1) * (f - 2) / 2, -f * (f + 1) * (f - 2) / 2
        for i in range(4):
            inside = left * values[k, i] + right * values[k + 1, i]
            moments[i, t] = inside + before * values[k - 1, i] + beyond * values[k + 2, i]


@outer()
def _sums(moments, release, scale, joint, limits, drawn, rng):
    """Draw redacted sums, noise variances and full sums. Return how many full sums were rejected and how many are nan.

    `joint` is n for multinomial segments and 0 for independent segments. `drawn` holds the arrays (trials,) of results:
    redacted sum, noise variance, full sum, and the full sum's mean and standard deviation.
    """
    redacted, variance, full, centre, sd = drawn
    rejected, left = 0, 0
    for t in range(len(release)):
        mean, spread, other_mean, other_spread = moments[0, t], moments[1, t], moments[2, t], moments[3, t]
        # Given θ, the redacted sum has mean m and variance V. Given also y, it has mean m + g(y − m) and variance gσ²
        # with g = V/(V + σ²).
        residual = release[t] - mean
        gain = spread / (spread + variance[t])
        redacted[t] = mean + gain * residual + math.sqrt(gain * variance[t]) * rng.standard_normal()
        noise = variance_of(release[t] - redacted[t], scale[t], rng)
        variance[t] = noise
        # The covariance of two segments is −n q_r q_q μ̂_r μ̂_q. So the covariance of the redacted and the full sum is
        # C = V − m(nEx − m)/n, and given y the full sum has the law N(nEx + C(y − m)/(V + σ²), n Var x − C²/(V + σ²)).
        if joint:
            covariance = spread - mean * (other_mean - mean) / joint
            slope = covariance / (spread + noise)
            centre[t], full_spread = other_mean + slope * residual, other_spread - slope * covariance
        else:
            gain = spread / (spread + noise)
            centre[t], full_spread = other_mean + mean + gain * residual, other_spread + gain * noise
        # Rounding can take the variance below 0 where y fixes the sum.
        sd[t] = math.sqrt(max(full_spread, 0.0))
        full[t] = math.nan
        for _ in range(ROUNDS + 1):
            value = centre[t] + sd[t] * rng.standard_normal()
            if limits[0] <= value <= limits[1]:
                full[t] = value
                break
            rejected += 1
        else:
            left += 1
    return rejected, left
