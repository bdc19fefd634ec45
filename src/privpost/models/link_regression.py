"""Binary regression with other links than the logistic one, on a ball of weights."""

import functools
from dataclasses import dataclass

import numpy as np
from scipy.special import log_ndtr

from privpost.models.base import check_range
from privpost.models.binary_regression import BinaryRegression
from privpost.models.logistic_regression import LogisticPosterior

LINKS = ("logistic", "probit", "cloglog")


def probit_derivatives(z):
    """Slope and curvature of −ln Φ(z): −h and h(h + z), h = φ(z)/Φ(z)."""
    h = np.exp(-(z**2) / 2 - 0.5 * np.log(2 * np.pi) - log_ndtr(z))
    return -h, np.maximum(h * (h + z), 0.0)


def cloglog_derivatives(z):
    """Slope and curvature of −ln(1 − exp(−t)), t = exp(z): −t/(e^t − 1) and t(t e^t − e^t + 1)/(e^t − 1)²."""
    t = np.exp(np.minimum(z, 6.0))
    inverse = 1 / np.expm1(t)
    # Where t is small the difference cancels: t²/2 + t³/3 + ...
    rise = np.where(t < 1e-3, t**2 / 2 + t**3 / 3, 1 + (t - 1) * np.exp(t))
    return -t * inverse, t * rise * inverse**2


@dataclass(frozen=True, eq=False)
class LinkPosterior(LogisticPosterior):
    """Posterior of the weights of a probit or complementary log-log regression; see `LogisticPosterior`.

    Attributes:
        link: "probit", P(y = 1) = Φ(x·w), or "cloglog", P(y = 1) = 1 − exp(−exp(x·w)).
    """

    link: str = "probit"

    def _losses(self, predictors):
        """Negative log-likelihoods (..., n) of the records."""
        if self.link == "probit":
            return -log_ndtr(np.where(self.labels == 1, predictors, -predictors))
        rate = np.exp(predictors)
        with np.errstate(divide="ignore"):
            one = np.where(predictors < -30, -predictors, -np.log(-np.expm1(-rate)))
        return np.where(self.labels == 1, one, rate)

    def _derivatives(self, predictors):
        if self.link == "probit":
            sign = np.where(self.labels == 1, 1.0, -1.0)
            slope, curvature = probit_derivatives(sign * predictors)
            return sign * slope, curvature
        rate = np.exp(predictors)
        slope, curvature = cloglog_derivatives(predictors)
        return np.where(self.labels == 1, slope, rate), np.where(self.labels == 1, curvature, rate)

    def log_likelihood_of_predictors(self, predictors):
        """Log-likelihood (chains,) of linear predictors (chains, n), not tempered."""
        with np.errstate(over="ignore", divide="ignore"):
            return -self._losses(predictors).sum(axis=-1)

    def slopes(self, predictors):
        """Derivatives (n,) of the records' log-likelihoods."""
        return -self._derivatives(predictors)[0]

    def curvatures(self, predictors):
        """Second derivatives (n,) of the records' losses."""
        return self._derivatives(predictors)[1]

    def curvature_floor(self, predictors, reach):
        """The c (n,) with B(s) ≥ c s²/2 for |s| ≤ reach, B the gap between loss and tangent at the predictors (n,).

        2B(s)/s² averages the curvature at z + ts over t with weight 2(1 − t). For both links the curvature
        rises, falls, or rises and then falls. On either side of s = 0 the average does the same, so it is least at
        s = 0 or at one of the ends.
        """
        loss = self._losses(predictors)
        slope, floor = self._derivatives(predictors)
        for s in (reach, -reach):
            with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
                average = 2 * (self._losses(predictors + s) - loss - slope * s) / s**2
                # The difference has lost its digits where the gap is a rounding error of the loss.
                noise = 1e-14 * (1 + np.abs(loss) + np.abs(slope * s)) / s**2
            floor = np.where(reach > 1e-4, np.fmin(floor, np.maximum(average - noise, 0.0)), floor * (1 - 1e-3))
        return floor * (1 - 1e-9)


def steepest(link: str, reach: float) -> tuple[float, float]:
    """The largest slopes of −ln p(y | z) for y = 0 and y = 1 on |z| ≤ reach: Lipschitz constants of the loss.

    Raises:
        ValueError: an unknown link, or a reach that is not positive.
    """
    if link not in LINKS:
        raise ValueError(f"link is {link!r}; allowed: {', '.join(LINKS)}")
    check_range("(0, inf)", reach=reach)
    if link == "cloglog":
        return float(np.exp(reach)), float(-cloglog_derivatives(np.array(-reach))[0])
    one = 1 / (1 + np.exp(-reach)) if link == "logistic" else float(-probit_derivatives(np.array(-reach))[0])
    return one, one


@functools.cache
def largest_change(link: str, reach: float) -> float:
    """The longest difference between two records' gradients of the loss, in units of c, on a ball with cR = reach.

    Gradients of records with different labels differ by at most L₀ + L₁. Two records x and x' with the same label have
    gradients s(x·w) x and s(x'·w) x' with one slope s, which differ most if w lies between them in their plane; the
    norm of the difference, a function of five numbers, is maximised. For a symmetric link it is at most L₀ + L₁.

    Raises:
        ValueError: as `steepest`.
    """
    mixed = sum(steepest(link, reach))
    if link != "cloglog":
        return mixed
    from scipy.optimize import minimize

    def difference(numbers, slope):
        """For two records; `numbers` are their angles to w over π, their lengths and the length of w, as shares."""
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
    for slope in (np.exp, lambda z: -cloglog_derivatives(-z)[0]):
        start = grid[:, np.argmax(difference(grid, slope))]
        exactly = {"bounds": [(0, 1)] * 5, "options": {"ftol": 1e-14, "gtol": 1e-9}}
        maxima.append(-minimize(lambda numbers, slope=slope: -difference(numbers, slope), start, **exactly).fun)
    # A numerical maximum may be below the true one by its tolerance.
    return float(max(mixed, (1 + 1e-4) * max(maxima)))


@dataclass(frozen=True)
class LinkRegression(BinaryRegression):
    """A record is (x, y), y in {0, 1}, and the prior of `BinaryRegression` is restricted to ‖w‖₂ ≤ R.

    Attributes:
        link: one of `LINKS`.
        radius: R > 0.

    Raises:
        ValueError: a setting outside its range.

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
        """B, half of the largest difference of two records' gradients on the ball, in units of c (`largest_change`)."""
        return largest_change(self.link, self.feature_bound * self.radius) / 2

    @property
    def width(self) -> int:
        """Features and label."""
        return self.dimension + 1

    @property
    def records(self) -> np.ndarray:
        """±c e_i with either label, shape (4d, d + 1)."""
        x = super().records
        return np.concatenate([np.column_stack([x, np.full(len(x), y)]) for y in (0.0, 1.0)])

    def sufficient_statistics(self, data) -> np.ndarray:
        """The records one after the other, shape (..., n (d + 1)).

        Raises:
            ValueError: a record that is not finite or longer than c, or a label other than 0 and 1.
        """
        data = np.asarray(data, float)
        super().sufficient_statistics(data[..., :-1])
        if not np.isin(data[..., -1], (0.0, 1.0)).all():
            raise ValueError("data has labels other than 0 and 1")
        return data.reshape(*data.shape[:-2], -1)

    def statistics_of(self, features, labels) -> np.ndarray:
        """Statistics (n (d + 1),) of examples: features (n, d), labels (n,) in {0, 1}."""
        return self.sufficient_statistics(np.column_stack([features, labels]))

    def posterior(self, statistics, precision: float, power: float) -> LogisticPosterior:
        """The law of w given records, its prior's precision and the likelihood's power, on the ball."""
        rows = np.asarray(statistics, float).reshape(-1, self.width)
        settings = {"prior_precision": precision, "power": power, "radius": self.radius}
        x, y = np.ascontiguousarray(rows[:, :-1]), rows[:, -1].copy()
        if self.link == "logistic":
            return LogisticPosterior(x, y, **settings)
        return LinkPosterior(x, y, **settings, link=self.link)
