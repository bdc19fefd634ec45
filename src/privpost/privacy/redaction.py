"""Sums that leave out records outside a public interval, and the sensitivity of these sums."""

import numpy as np

from privpost.models.base import check_bounds, check_records


def redacted_sum(data, low, high) -> np.ndarray:
    """Return the sum of the records in [low, high] (Bernstein and Sheldon 2018, section 3.3).

    Args:
        data: shape (..., n). The result has shape (...).
        low, high: public bounds, broadcast against the leading axes.

    Raises:
        ValueError: the bounds are not finite or are out of order, or a record is not finite.
    """
    data = check_records(data)
    low, high = _bounds(low, high)
    return np.where((data >= low[..., None]) & (data <= high[..., None]), data, 0.0).sum(axis=-1)


def redacted_sensitivity(low, high) -> np.ndarray:
    """Return the largest change of `redacted_sum` when one record is substituted: max(|low|, |high|, high − low).

    Args:
        low, high: public bounds, any shape.

    Raises:
        ValueError: the bounds are not finite or are out of order.
    """
    low, high = _bounds(low, high)
    # The new record may lie outside the interval. Then the old value disappears from the sum.
    return np.maximum(np.maximum(np.abs(low), np.abs(high)), high - low)


def _bounds(low, high):
    low, high = np.asarray(low, float), np.asarray(high, float)
    check_bounds(low, high)
    return low, high
