"""Binary regression with a logistic, probit or complementary log-log link, on a ball of weights."""

import functools
from dataclasses import dataclass

import numpy as np
from scipy.special import log_ndtr

from privpost.models.base import check_range
from privpost.models.regression.binary import BinaryRegression

LINKS = ("logistic", "probit", "cloglog")


def probit_slope(z):
    """Derivative −φ(z)/Φ(z) of −ln Φ(z)."""
    return -np.exp(-(z**2) / 2 - 0.5 * np.log(2 * np.pi) - log_ndtr(z))


def cloglog_slope(z):
    """Derivative −t/(e^t − 1) of −ln(1 − exp(−t)) with respect to z, for t = exp(z)."""
    t = np.exp(np.minimum(z, 6.0))
    return -t / np.expm1(t)


def steepest(link: str, reach: float) -> tuple[float, float]:
    """Return the Lipschitz constants L₀ and L₁ of −ln p(y | z) for y = 0 and y = 1, on |z| ≤ reach.

    Raises:
        ValueError: an unknown link, or a reach that is not positive.
    """
    if link not in LINKS:
        raise ValueError(f"link is {link!r}; allowed: {', '.join(LINKS)}")
    check_range("(0, inf)", reach=reach)
    if link == "cloglog":
        return float(np.exp(reach)), float(-cloglog_slope(np.array(-reach)))
    one = 1 / (1 + np.exp(-reach)) if link == "logistic" else float(-probit_slope(np.array(-reach)))
    return one, one


@functools.cache
def largest_change(link: str, reach: float) -> float:
    """Return the largest norm of the difference between two records' loss gradients, in units of the feature bound.

    With different labels, the norm is at most L₀ + L₁ (`steepest`). Two records x and x' with equal labels have
    gradients s(x·w) x and s(x'·w) x' with the same slope function s. These gradients differ most if w lies between x
    and x' in the plane of x and x'. The norm is then a function of five numbers and is maximised. For a symmetric link
    the norm is at most L₀ + L₁.

    Args:
        link: one of `LINKS`.
        reach: product of the feature bound and the radius of the ball of weights.

    Raises:
        ValueError: as `steepest`.
    """
    mixed = sum(steepest(link, reach))
    if link != "cloglog":
        return mixed
    from scipy.optimize import minimize

    def difference(numbers, slope):
        """Return the norm for two records. `numbers` in [0, 1] are both angles to w, both lengths and w's length."""
        first, second, *lengths, w = numbers
        across = [np.pi * first, -np.pi * second]
        sizes = [t * slope(t * reach * w * np.cos(angle)) for t, angle in zip(lengths, across, strict=True)]
        parts = [
            np.array([size * np.cos(angle), size * np.sin(angle)]) for size, angle in zip(sizes, across, strict=True)
        ]
        return np.hypot(*(parts[0] - parts[1]))

    grid = np.stack(
        [axis.ravel() for axis in np.meshgrid(*[np.linspace(0, 1, 17)] * 2, [1.0], np.linspace(0, 1, 9), [1.0])]
    )
    maxima = []
    for slope in (np.exp, lambda z: -cloglog_slope(-z)):
        start = grid[:, np.argmax(difference(grid, slope))]
        exactly = {"bounds": [(0, 1)] * 5, "options": {"ftol": 1e-14, "gtol": 1e-9}}
        maxima.append(-minimize(lambda numbers, slope=slope: -difference(numbers, slope), start, **exactly).fun)
    # A numerical maximum may be below the true maximum by the optimiser's tolerance.
    return float(max(mixed, (1 + 1e-4) * max(maxima)))


@dataclass(frozen=True)
class LinkRegression(BinaryRegression):
    """Binary regression with a link, for weights w in a ball ‖w‖₂ ≤ R.

    A record is (x, y) with y in {0, 1}. The prior is that of `BinaryRegression`, restricted to the ball.

    Attributes:
        link: one of `LINKS`.
        radius: radius R > 0 of the ball.

    >>> round(LinkRegression(2, link="probit", radius=2.0).slope_bound, 3)
    2.373
    """

    link: str = "probit"
    radius: float = 2.0

    def __post_init__(self):
        super().__post_init__()
        _ = self.slope_bound

    @property
    def slope_bound(self) -> float:
        """Half of the largest difference between two records' loss gradients, in units of c (`largest_change`)."""
        return largest_change(self.link, self.feature_bound * self.radius) / 2

    @property
    def width(self) -> int:
        """Number of entries of a record, which are the features and the label."""
        return self.dimension + 1

    @property
    def records(self) -> np.ndarray:
        """The records (±c e_i, y) with y = 0 and y = 1, shape (4d, d + 1)."""
        x = super().records
        return np.concatenate([np.column_stack([x, np.full(len(x), y)]) for y in (0.0, 1.0)])

    def sufficient_statistics(self, data) -> np.ndarray:
        """The records, flattened one after the other, shape (..., n (d + 1)).

        Raises:
            ValueError: a record that is not finite or longer than c, or a label other than 0 and 1.
        """
        data = np.asarray(data, float)
        super().sufficient_statistics(data[..., :-1])
        if not np.isin(data[..., -1], (0.0, 1.0)).all():
            raise ValueError("data has labels other than 0 and 1")
        return data.reshape(*data.shape[:-2], -1)

    def statistics_of(self, features, labels) -> np.ndarray:
        """Statistics (n (d + 1),) of examples with features (n, d) and labels (n,) in {0, 1}."""
        return self.sufficient_statistics(np.column_stack([features, labels]))

    def log_likelihood(self, theta, statistics) -> np.ndarray:
        """Log-likelihoods (...) of one data set, Σ ln p(y | x·w), for weights (..., d)."""
        records = np.asarray(statistics, float).reshape(-1, self.width)
        z, positive = np.asarray(theta, float) @ records[:, :-1].T, records[:, -1] == 1
        if self.link == "cloglog":
            rate = np.exp(z)
            with np.errstate(divide="ignore"):
                one = np.where(z < -30, z, np.log(-np.expm1(-rate)))
            return np.where(positive, one, -rate).sum(axis=-1)
        signed = np.where(positive, z, -z)
        return (log_ndtr(signed) if self.link == "probit" else -np.logaddexp(0.0, -signed)).sum(axis=-1)
