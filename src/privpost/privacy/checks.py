"""Checks of budgets, generators and settings, made before anything is drawn."""

import numpy as np

from privpost.models.base import is_number
from privpost.privacy.accounting.costs import Cost, check_cost, rdp_to_pure_epsilon

# For smaller budgets the variance of the noise overflows; for larger budgets the variance underflows.
SMALLEST = 1e-100
LARGEST = 1e100


def pure_epsilon(budget: Cost, method: str) -> float:
    """Return the largest ε of a pure mechanism within a budget. Raises a ValueError if the budget has ε = 0 or inf."""
    check_budget(budget)
    epsilon = budget.epsilon
    if budget.notion == "rdp":
        epsilon = float(rdp_to_pure_epsilon(budget.epsilon, budget.order))
    if not 0 < epsilon < np.inf:
        raise ValueError(f"budget is {budget}; {method} needs an epsilon > 0 and finite")
    return epsilon


def rdp_budget(budget: Cost, method: str) -> tuple[float, float]:
    """Return ε and order of a Rényi DP budget. Raises a ValueError for another notion and for ε = 0 or inf."""
    check_budget(budget)
    if budget.order is None:
        raise ValueError(f"budget is {budget}; {method} has a Rényi guarantee only, so its notion must be 'rdp'")
    if not 0 < budget.epsilon < np.inf:
        raise ValueError(f"budget is {budget}; {method} needs an epsilon > 0 and finite")
    return budget.epsilon, budget.order


def approximate_budget(budget: Cost) -> tuple[float, float]:
    """Return ε and δ of a budget of approximate DP. Raises a ValueError if the budget is of another notion."""
    check_budget(budget)
    if budget.delta is None:
        raise ValueError(
            f"budget is {budget}; a privacy curve needs an (ε, δ) budget, so its notion must be 'approximate'"
        )
    return budget.epsilon, budget.delta


def check_budget(budget) -> None:
    """Raises a ValueError unless a budget is a `Cost` whose ε is 0, infinite or from `SMALLEST` to `LARGEST`."""
    check_cost("budget", budget)
    if budget.epsilon not in (0, np.inf) and not SMALLEST <= budget.epsilon <= LARGEST:
        raise ValueError(f"budget is {budget}; its epsilon must be 0, inf or in [{SMALLEST:g}, {LARGEST:g}]")


def check_model(model, allowed: tuple[type, ...] = ()) -> None:
    """Raises a ValueError unless a model has sufficient statistics and, if `allowed` is given, an allowed class."""
    if isinstance(model, type) or not hasattr(model, "sufficient_statistics"):
        raise ValueError(f"model is {model!r}; it must be a model, for instance BetaBernoulli(1, 1)")
    # A subclass is refused, as its records may differ.
    if allowed and type(model) not in allowed:
        raise ValueError(
            f"model is {model!r}; allowed: {', '.join(kind.__name__ for kind in allowed)}, and no subclass"
        )


def check_source(rng) -> None:
    """Raises a ValueError unless rng is a numpy Generator or a source of noise (`distributions.noise`)."""
    draws = any(hasattr(rng, name) for name in ("random", "laplace", "normal"))
    if not isinstance(rng, np.random.Generator) and (not draws or isinstance(rng, np.random.RandomState)):
        raise ValueError(f"rng is {rng!r}; it must be a numpy Generator, for instance numpy.random.default_rng(1)")


def check_generator(rng) -> None:
    """Raises a ValueError unless a source of randomness is a numpy Generator."""
    if not isinstance(rng, np.random.Generator):
        raise ValueError(f"rng is {rng!r}; it must be a numpy Generator, for instance numpy.random.default_rng(1)")


def check_choice(name: str, value: str, allowed: tuple[str, ...]) -> None:
    """Raises a ValueError unless the setting has one of the allowed values."""
    if value not in allowed:
        raise ValueError(f"{name} is {value!r}; allowed: {', '.join(allowed)}")


def check_coefficient(value: float) -> None:
    """Raises a ValueError unless the coefficient of a prior or likelihood lies in (0, 1]."""
    if not is_number(value) or not 0 < value <= 1:
        raise ValueError(f"coefficient is {value!r}; it must lie in (0, 1]")


def check_count(name: str, value) -> None:
    """Raises a ValueError unless a count is an integer of at least 1."""
    if isinstance(value, bool) or not isinstance(value, int | np.integer) or value < 1:
        raise ValueError(f"{name} is {value!r}; it must be an integer >= 1")


def check_order(order) -> None:
    """Raises a ValueError unless the order of a Rényi divergence is a number of at least 1."""
    if not is_number(order) or not order >= 1:
        raise ValueError(f"order is {order!r}; it must be >= 1")


def check_numbers(name: str, values, size: int | None = None) -> np.ndarray:
    """Return the values (..., size) as an array. Raises a ValueError unless they are finite numbers of this shape."""
    try:
        numbers = np.asarray(values, float)
    except (TypeError, ValueError):
        numbers = np.empty(())
    if not numbers.ndim:
        raise ValueError(f"{name} are {values!r}; they must be numbers, those of one data set on the last axis")
    if size not in (None, numbers.shape[-1]):
        raise ValueError(f"{name} have a last axis of {numbers.shape[-1]}; those of one data set have {size}")
    # The sum of squares is the faster check, but it overflows for huge finite values.
    if not (np.isfinite(np.vdot(numbers, numbers)) or np.isfinite(numbers).all()):
        raise ValueError(f"{name} have entries that are not finite")
    return numbers


def check_given(release, shape: tuple[int, ...], draws: int, rng) -> None:
    """Raises a ValueError unless the release has this shape, draws is an integer ≥ 1, and rng is a generator."""
    if np.shape(release) != shape:
        raise ValueError(f"release has the shape {np.shape(release)}; one release has {shape}")
    if not np.all(np.isfinite(np.asarray(release, float))):
        raise ValueError(f"release is {release!r}; it must be finite")
    check_count("draws", draws)
    check_generator(rng)
