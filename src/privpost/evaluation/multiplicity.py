"""Critical values for claims that make many comparisons at once."""

from scipy.special import ndtri

# Joint false-alarm rate of one claim's comparisons.
FALSE_ALARM = 0.001


def critical_value(comparisons: int, false_alarm: float = FALSE_ALARM) -> float:
    """Return the number of standard errors at which a two-sided normal test rejects, with Bonferroni's correction.

    Args:
        comparisons: number of tests, at least 1.
        false_alarm: joint false-alarm rate of all tests, in (0, 1).

    Raises:
        ValueError: an argument is outside its range.
    """
    if comparisons < 1:
        raise ValueError(f"comparisons is {comparisons!r}; it must be at least 1")
    if not 0 < false_alarm < 1:
        raise ValueError(f"false_alarm is {false_alarm!r}; it must lie in (0, 1)")
    tail = false_alarm / (2 * comparisons)
    # Near 1, a floating-point number cannot represent a small distance from 1.
    return float(ndtri(1 - tail) if tail > 1e-8 else -ndtri(tail))
