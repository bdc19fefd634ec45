"""The interface of conjugate models, and checks of their settings and records."""

import inspect
import math
from abc import ABCMeta, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from numbers import Real
from typing import Any, ClassVar, Self

import numpy as np

from privpost.lookup import nearest

# Numbers between these two have squares that are neither 0 nor infinite.
SMALLEST_SCALE, LARGEST_SCALE = 1e-150, 1e150


def check_positive(name: str, value) -> None:
    """Raises a ValueError unless the value is a positive finite number."""
    if not is_number(value) or not 0 < value < np.inf:
        raise ValueError(f"{name} is {value!r}; it must be > 0 and finite")


def check_scale(**values) -> None:
    """Raises a ValueError unless the named numbers are positive, with squares that floats can hold."""
    for name, value in values.items():
        if not is_number(value) or not SMALLEST_SCALE <= value <= LARGEST_SCALE:
            raise ValueError(f"{name} is {value!r}; it must lie in [{SMALLEST_SCALE:g}, {LARGEST_SCALE:g}]")


def check_bounds(low, high) -> None:
    """Raises a ValueError unless low < high and floats can hold the squares of low, of high and of high − low."""
    ends = np.abs([low, high])
    with np.errstate(invalid="ignore", over="ignore"):
        ordered, distance = np.less(low, high), np.subtract(high, low)
    if not np.all(ordered & np.isfinite(ends).all(axis=0)):
        raise ValueError(f"low is {low!r} and high is {high!r}; both must be finite, low < high")
    if not np.all((ends <= LARGEST_SCALE).all(axis=0) & (distance >= SMALLEST_SCALE)):
        raise ValueError(
            f"low is {low!r} and high is {high!r}; both must lie in [-{LARGEST_SCALE:g}, {LARGEST_SCALE:g}], at least "
            f"{SMALLEST_SCALE:g} apart"
        )


def check_range(interval: str, **values) -> None:
    """Raises a ValueError unless all numbers in the named values lie in `interval`, such as "[0, 1)" or "(0, inf]"."""
    low, high = map(float, interval[1:-1].split(","))
    for name, value in values.items():
        array = np.asarray(value)
        if array.dtype.kind not in "iuf":
            raise ValueError(f"{name} is {value!r}; it must be a number in {interval}")
        above = array >= low if interval[0] == "[" else array > low
        below = array <= high if interval[-1] == "]" else array < high
        if not np.all(above & below):
            raise ValueError(f"{name} is {value!r}; it must lie in {interval}")


def is_number(value) -> bool:
    """Whether a value is one real number other than a boolean."""
    return isinstance(value, Real) and not isinstance(value, bool)


def check_records(data, within: tuple[float, float] = (-np.inf, np.inf), whole: bool = False) -> np.ndarray:
    """Return the records as floats, after checking that all are finite, in the interval and, if required, whole."""
    data = np.asarray(data, float)
    low, high = within
    # The sum of squares is the quicker check, but the sum overflows for huge finite values.
    if not (np.isfinite(np.vdot(data, data)) or np.isfinite(data).all()):
        raise ValueError("data has records that are not finite numbers")
    if data.size and not (low <= data.min() and data.max() <= high):
        raise ValueError(f"data has records outside [{low:g}, {high:g}]")
    if whole and np.any(data % 1):
        raise ValueError("data has records that are no integers")
    return data


def check_length(name: str, values, size: int) -> np.ndarray:
    """Return values (..., size) as an array. Raises a ValueError if the last axis has another length."""
    array = np.asarray(values, float)
    if array.shape[-1:] != (size,):
        raise ValueError(f"{name} have the shape {array.shape}; the last axis must be {size}")
    return array


def counts(places: np.ndarray, size: int) -> np.ndarray:
    """Return how often each of 0, …, size − 1 occurs along the last axis of `places` (..., n); shape (..., size)."""
    rows = places.reshape(math.prod(places.shape[:-1]), -1)
    shifted = rows + size * np.arange(len(rows))[:, None]
    occurrences = np.bincount(shifted.ravel(), minlength=size * len(rows))
    return occurrences.reshape(*places.shape[:-1], size).astype(float)


def check_call(what: str, function: Callable, arguments: Sequence, settings: Mapping[str, Any]) -> None:
    """Raises a one-line error if a call lacks an argument (ValueError) or has an unknown setting (TypeError)."""
    known = inspect.signature(function).parameters
    named = [name for name, entry in known.items() if entry.kind in (entry.POSITIONAL_OR_KEYWORD, entry.KEYWORD_ONLY)]
    for name in settings:
        if name not in known and len(named) == len(known):
            raise TypeError(f"{what} has no setting {name!r}{nearest(name, named)}; it has {', '.join(named[1:])}")
    lacking = [name for name in named[len(arguments) :] if known[name].default is inspect.Parameter.empty]
    if lacking := [name for name in lacking if name not in settings]:
        raise ValueError(f"{what} needs {', '.join(lacking)}")


class Checked(ABCMeta):
    """Metaclass of classes whose calls raise a one-line error if an argument is missing or unknown."""

    # Otherwise help and editors would show the signature of `__call__`.
    @property
    def __signature__(cls):
        known = inspect.signature(cls.__init__)
        return known.replace(parameters=[*known.parameters.values()][1:], return_annotation=known.empty)

    def __call__(cls, *arguments, **settings):
        try:
            return super().__call__(*arguments, **settings)
        except TypeError:
            check_call(cls.__name__, cls.__init__, (cls, *arguments), settings)
            raise


class Regression(metaclass=Checked):
    """Base of regressions whose d weights have a spherical normal prior.

    Attributes:
        dimension: number of weights d.
        prior_precision: precision of the prior in every direction.

    Raises:
        ValueError: fewer than one weight, or a precision, a variance or a bound that is not positive and finite.
    """

    dimension: int
    prior_precision: float

    def __post_init__(self):
        check_range("[1, inf)", dimension=self.dimension)
        for name in ("prior_precision", "noise_variance"):
            if hasattr(self, name):
                check_positive(name, getattr(self, name))
        # Second moments contain products of these bounds.
        check_scale(**{name: getattr(self, name) for name in ("feature_bound", "label_bound") if hasattr(self, name)})

    @property
    def prior(self) -> np.ndarray:
        """The prior's precision, shape (1,)."""
        return np.array([self.prior_precision])

    @property
    def theta_shape(self) -> tuple[int, ...]:
        """Shape (d,) of θ, the weights."""
        return (self.dimension,)


class ConjugateModel(metaclass=Checked):
    """Base of models that have an exponential-family likelihood with its conjugate prior.

    Subclasses are frozen dataclasses of prior settings. Shapes are (..., d) for `statistics`, (..., k) for `parameters`
    of the prior and the posterior, and (..., *theta_shape) for `theta`. Leading axes are trials and broadcast.

    Class attributes:
        bounded: whether a record's statistics are bounded. If not, `records` are only examples.
        theta_shape: shape of one parameter value θ; () for a scalar.
    """

    bounded: ClassVar[bool] = True
    theta_shape: ClassVar[tuple[int, ...]] = ()

    @property
    @abstractmethod
    def records(self) -> np.ndarray:
        """Records (number, *record_shape) whose statistics differ most, or all possible records if they are few."""

    @property
    @abstractmethod
    def prior(self) -> np.ndarray:
        """Parameters of the prior, shape (k,)."""

    @property
    def statistics_size(self) -> int:
        """Number of sufficient statistics of one data set."""
        return len(self.prior)

    @property
    @abstractmethod
    def support(self) -> tuple[float, float]:
        """Ends of the interval in which every coordinate of θ lies."""

    @abstractmethod
    def sufficient_statistics(self, data) -> np.ndarray:
        """Sum (..., d) of the sufficient statistics of records (..., n, *record_shape).

        Raises:
            ValueError: a value that is no record.
        """

    def posterior(self, statistics, prior=None) -> np.ndarray:
        """Parameters (..., k) of the posterior: the prior's parameters plus `update(statistics)`.

        Args:
            statistics: shape (..., d); need not be integers.
            prior: parameters of another prior than the model's, shape (..., k).

        Raises:
            ValueError: statistics of another length.
        """
        prior = self.prior if prior is None else np.asarray(prior, float)
        return prior + self.update(check_length("statistics", statistics, prior.shape[-1]))

    def update(self, statistics: np.ndarray) -> np.ndarray:
        """Increment (..., k) that statistics (..., d) add to the parameters. By default, it equals the statistics."""
        return statistics

    def natural_parameters(self, parameters) -> np.ndarray:
        """Natural parameters (..., k) of the prior family. By default, these are the given parameters."""
        return np.asarray(parameters, float)

    @abstractmethod
    def log_partition(self, natural) -> np.ndarray:
        """Log-partition C(η), shape (...), of the prior family exp(T(θ)·η − C(η)). It is inf if undefined."""

    @abstractmethod
    def sample(self, parameters, rng: np.random.Generator, size: int | None = None) -> np.ndarray:
        """Draws of θ from the prior family, shape ([size,] ..., *theta_shape).

        Args:
            parameters: shape (..., k).
            size: None for one draw per leading index, else the length of a new first axis.
        """

    @abstractmethod
    def sample_data(self, theta, n: int, rng: np.random.Generator) -> np.ndarray:
        """Draws of n records per θ, shape (..., n, *record_shape)."""

    @abstractmethod
    def mean(self, parameters) -> np.ndarray:
        """Mean of θ under the prior family, shape (..., *theta_shape)."""

    @abstractmethod
    def variance(self, parameters) -> np.ndarray:
        """Variance of each coordinate of θ under the prior family, shape (..., *theta_shape)."""

    @abstractmethod
    def log_density(self, theta, parameters) -> np.ndarray:
        """Log-density of the prior family at θ, shape (...)."""

    @abstractmethod
    def log_likelihood(self, theta, statistics) -> np.ndarray:
        """Log-likelihood of records with the given sufficient statistics, shape (...)."""

    @classmethod
    @abstractmethod
    def examples(cls) -> list[Self]:
        """Small instances on which the tests of this interface run."""


class BoundedFamily(ConjugateModel):
    """Base of families in which a record's statistics are bounded and have the same sum for every record."""

    @abstractmethod
    def sum_moments(self, theta, n: int, size: int) -> tuple[np.ndarray, np.ndarray]:
        """Mean (q, trials) and covariance (q, q, trials) of the first q statistics, which are sums over n records.

        Here q is `size`. The shape of θ is (trials,), or (entries, trials) if θ is a vector.
        """
