"""Test of the width of posteriors, by the sum of z² over trials (Cook, Gelman and Rubin 2006).

z is Φ⁻¹(U), where U is the quantile or the randomised rank of the true parameter in its posterior. Under calibration, z
is standard normal and Σz² has a χ² law. If a normal posterior has r times the right standard deviation, z² is 1/r²
times as large. The Kolmogorov-Smirnov test needs far more trials to see a wrong width.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from scipy.special import chdtr, chdtrc, chdtri, ndtri

from privpost.evaluation.calibration import LEVEL, checked, randomised_rank

# An error counts as seen if the test detects it with this probability.
POWER = 0.8
# Quantiles are kept this far from 0 and 1, about the spacing of floats near 1. Then |z| is at most 8.2.
NEAREST = 1e-16


class Spread(NamedTuple):
    """The mean z² and its test.

    Attributes:
        mean: mean z², which tends to exceed 1 if posteriors are too narrow.
        values: number of independent z² whose mean would vary as much as this mean.
        narrow: p-value of the one-sided test for too narrow posteriors.
        wide: p-value of the one-sided test for too wide posteriors.
    """

    mean: float
    values: float
    narrow: float
    wide: float

    @property
    def p_value(self) -> float:
        """Two-sided p-value: twice the smaller one-sided p-value, at most 1."""
        return min(1.0, 2 * min(self.narrow, self.wide))


class Seen(NamedTuple):
    """Smallest detectable errors of standard deviations, too narrow and too wide, as shares of the right value."""

    narrow: float
    wide: float


def z_squares(quantiles) -> np.ndarray:
    """Return z² = Φ⁻¹(U)² of quantiles U. A value outside [0, 1] raises a ValueError."""
    return ndtri(np.clip(checked(quantiles), NEAREST, 1 - NEAREST)) ** 2


def spread(quantiles) -> Spread:
    """Return the χ² test of Σz² over all parameters and trials together.

    For k parameters in M trials, let c be the mean correlation between the z² of two parameters. The test has
    M k / (1 + (k − 1) c) degrees of freedom (Satterthwaite's approximation, exact for one parameter). The trials give
    an estimate of c that does not depend on the width of the posteriors.

    Args:
        quantiles: U of one parameter, shape (M,), or of parameters that are tested together, shape (k, M).

    Raises:
        ValueError: there are no values, or a value is outside [0, 1].
    """
    squares = np.atleast_2d(z_squares(quantiles))
    parameters, trials = squares.shape
    mean, values = float(squares.mean()), float(trials)
    if parameters > 1 and trials > 1:
        separate, joint = squares.var(axis=1).mean(), squares.mean(axis=0).var()
        values *= min(parameters, separate / joint) if joint > 0 else 1
    return Spread(mean, values, *halves(mean, values))


def halves(mean, values) -> tuple[float, float]:
    """Return the one-sided p-values of a mean z², for too narrow and for too wide posteriors."""
    return float(chdtrc(values, values * mean)), float(chdtr(values, values * mean))


def seen(values: float, level: float = LEVEL, power: float = POWER) -> Seen:
    """Return the smallest errors of a normal posterior's standard deviation that the two-sided test detects.

    If the standard deviation is r times the right one, Σz² has the law of χ²/r². The errors are 1 − r and r − 1, for
    the r < 1 and the r > 1 that the test detects with probability `power`.

    Args:
        values: degrees of freedom, which are the number of independent z².
        level: level of the two-sided test.
        power: probability of detection.
    """
    low, high = chdtri(values, 1 - level / 2), chdtri(values, level / 2)
    narrow, wide = (chdtri(values, share) for share in (power, 1 - power))
    return Seen(float(1 - np.sqrt(narrow / high)), float(np.sqrt(wide / low) - 1))


def spread_columns(quantiles, of: str) -> dict[str, str | float]:
    """Return the table columns `z2`, `z2_p`, `z2_values`, `sd_seen_narrow`, `sd_seen_wide` and `z2_of`.

    Quantiles have shape (M,) or (k, M), and `of` names the tested parameters. `sd_seen_*` are the errors in `Seen`.
    """
    result = spread(quantiles)
    narrow, wide = seen(result.values)
    test = {"z2": result.mean, "z2_p": result.p_value, "z2_values": result.values}
    return {**test, "sd_seen_narrow": narrow, "sd_seen_wide": wide, "z2_of": of}


def among(names: Sequence[str]) -> str:
    """Return the only name, or the text "first to last" for several names."""
    return names[0] if len(names) == 1 else f"{names[0]} to {names[-1]}"


def ranks_of_shares(shares, draws: int) -> np.ndarray:
    """Return randomised ranks, given the shares (any shape) of draws below the true parameter.

    The randomisation uses a fixed seed, so each row of a table depends only on the shares of this row.
    """
    return randomised_rank(np.rint(np.asarray(shares) * draws), draws, np.random.default_rng(2006))
