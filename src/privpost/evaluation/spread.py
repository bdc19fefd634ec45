"""Is a posterior as wide as it should be? The sum of z² over trials, and the errors of the width that it detects.

z = Φ⁻¹(U) with U the quantile of the true parameter in its posterior, or a randomised rank among draws: standard normal
under calibration, so that Σz² has a χ² law (Cook, Gelman and Rubin 2006). Where the posterior is normal and its
standard deviation r times the right one, z² is 1/r² times as large. The test of Kolmogorov and Smirnov needs many times
as many trials to see that.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from scipy.special import chdtr, chdtrc, chdtri, ndtri

from privpost.evaluation.calibration import LEVEL, checked, randomised_rank

# Probability of detecting an error that counts as seen.
POWER = 0.8
# Smallest distance of a quantile from 0 and 1, about a double's resolution near 1: |z| is at most 8.2.
NEAREST = 1e-16


class Spread(NamedTuple):
    """Mean z² and its test.

    Attributes:
        mean: mean z²; above 1 where posteriors are too narrow.
        values: number of independent values of z² with the same information.
        narrow: p-value of the one-sided half that finds posteriors too narrow.
        wide: p-value of the half that finds them too wide.
    """

    mean: float
    values: float
    narrow: float
    wide: float

    @property
    def p_value(self) -> float:
        """Two-sided p-value: twice the smaller half."""
        return min(1.0, 2 * min(self.narrow, self.wide))


class Seen(NamedTuple):
    """Errors of a posterior's standard deviation, as shares of the right one: how much too narrow, and too wide."""

    narrow: float
    wide: float


def z_squares(quantiles) -> np.ndarray:
    """Return z² = Φ⁻¹(U)² of quantiles U in [0, 1], of the same shape; raises ValueError for others."""
    return ndtri(np.clip(checked(quantiles), NEAREST, 1 - NEAREST)) ** 2


def spread(quantiles) -> Spread:
    """Return the χ² test of Σz², over all parameters of all trials together.

    Parameters of one trial depend on each other. With c the mean correlation of their z² over all pairs, the mean z² of
    k parameters and M trials varies like the mean of values = M k / (1 + (k − 1) c) independent z². The test uses the
    χ² law with this many degrees of freedom (Satterthwaite's approximation; exact for one parameter). The correlation
    is estimated from these trials by the variance of the sum over parameters, and does not change with the width.

    Args:
        quantiles: U of one parameter (M,), or of parameters that count together (k, M).

    Raises:
        ValueError: no values, or one outside [0, 1].
    """
    squares = np.atleast_2d(z_squares(quantiles))
    parameters, trials = squares.shape
    mean, values = float(squares.mean()), float(trials)
    if parameters > 1 and trials > 1:
        separate, joint = squares.var(axis=1).mean(), squares.mean(axis=0).var()
        values *= min(parameters, separate / joint) if joint > 0 else 1
    return Spread(mean, values, *halves(mean, values))


def halves(mean, values) -> tuple[float, float]:
    """Return the p-values of the mean of independent z²: against too narrow and against too wide posteriors."""
    return float(chdtrc(values, values * mean)), float(chdtr(values, values * mean))


def seen(values: float, level: float = LEVEL, power: float = POWER) -> Seen:
    """Return the smallest errors of a normal posterior's standard deviation that the two-sided test detects.

    With r times the right standard deviation Σz² is χ²/r²: narrow = 1 − r where the quantile at 1 − power of χ²/r² is
    the upper limit, wide = r − 1 where the quantile at power is the lower limit.

    Args:
        values: independent values of z², the degrees of freedom.
        level: of the two-sided test.
        power: probability of detection.
    """
    low, high = chdtri(values, 1 - level / 2), chdtri(values, level / 2)
    narrow, wide = (chdtri(values, share) for share in (power, 1 - power))
    return Seen(float(1 - np.sqrt(narrow / high)), float(np.sqrt(wide / low) - 1))


def spread_columns(quantiles, of: str) -> dict[str, str | float]:
    """Columns about quantiles (M,) or (k, M): `z2`, `z2_p`, `z2_values`, `sd_seen_narrow`, `sd_seen_wide`, `z2_of`.

    `of` names the parameters that are tested together; `sd_seen_*` are the errors that this one test detects at 5 %.
    """
    result = spread(quantiles)
    narrow, wide = seen(result.values)
    test = {"z2": result.mean, "z2_p": result.p_value, "z2_values": result.values}
    return {**test, "sd_seen_narrow": narrow, "sd_seen_wide": wide, "z2_of": of}


def among(names: Sequence[str]) -> str:
    """Return the words for parameters that count together: the only one, or the first and the last."""
    return names[0] if len(names) == 1 else f"{names[0]} to {names[-1]}"


def ranks_of_shares(shares, draws: int) -> np.ndarray:
    """Return randomised ranks of shares of draws, any shape: a share of a finite number of draws can be 0 or 1.

    The random parts come from a fixed stream, so that a table's row depends only on its own shares.
    """
    return randomised_rank(np.rint(np.asarray(shares) * draws), draws, np.random.default_rng(2006))
