"""The interface of all mechanisms that make private releases."""

import functools
import inspect
from abc import abstractmethod
from dataclasses import dataclass, fields
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike

from privpost.distributions import noise
from privpost.models.base import Checked, check_call
from privpost.models.conjugate.beta_bernoulli import BetaBernoulli
from privpost.models.conjugate.dirichlet_categorical import DirichletCategorical
from privpost.privacy.accounting.approximate import by_curve, implied
from privpost.privacy.accounting.costs import Cost, pure_to_rdp
from privpost.privacy.checks import (
    approximate_budget,
    check_budget,
    check_choice,
    check_count,
    check_model,
    check_numbers,
    check_source,
)
from privpost.privacy.divergences import densities, masses
from privpost.privacy.ledger.gate import Release

if TYPE_CHECKING:
    from privpost.samplers.noise_aware.draws import Draws

# Models in which each record is one category; their statistics are counts, which update a Dirichlet prior.
COUNTED = (BetaBernoulli, DirichletCategorical)


def _checked(calibrate):
    """Wrap a class's `calibrate` so that a missing or unknown argument raises a one-line error."""

    @functools.wraps(calibrate)
    def checked(cls, *arguments, **settings):
        if inspect.isabstract(cls):
            raise ValueError(
                f"mechanism is {cls.__name__}; it must be a class that can be made, such as LaplaceMechanism"
            )
        try:
            return calibrate(cls, *arguments, **settings)
        except TypeError:
            check_call(f"{cls.__name__}.calibrate", calibrate, (cls, *arguments), settings)
            raise

    return checked


@dataclass(frozen=True)
class Mechanism(metaclass=Checked):
    """Base class of all mechanisms, which are frozen dataclasses of their settings.

    Attributes:
        model: model of the records. Its `sufficient_statistics` are the input of `perturb`.
        n: public number of records.

    Class attributes:
        method: id of the method in tables and in the colour map.
        neighbours: relation between neighbouring data sets, such as "substitution" of one record.
        norm: measure of the change that `sensitivity` bounds: the "l1" or "l2" norm of the change of `query`; "natural
            parameters", the l2 norm of the change of the output law's natural parameters; or "log-likelihood ratio",
            the largest absolute change of an entry of `query`.
        notion: notion of differential privacy in which `cost` is stated.
        public_inputs: quantities that the mechanism takes as public.
        releases: "sample" if a release is one draw of θ, or "statistics", from which any number of draws can be made.
        support: "reals" if a release has a density, or "integers" if it consists of whole numbers.
        local: whether each person perturbs their own record, so that no curator is trusted.
        exact: whether a release has exactly the stated law; False for Markov chain Monte Carlo.
        calibrated: name of the field that `calibrate` determines; None if there is none.
        tight: whether some pair of neighbours attains `sensitivity`; False if `sensitivity` is only an upper bound.
        models: supported classes of models; () for every model with suitable statistics.
        weightings: values of the field `weighting`, each of which is a separate method; () without this field.

    Raises:
        ValueError: n is not an integer of at least 1, or a setting is outside its range.
    """

    model: Any
    n: int

    method: ClassVar[str]
    neighbours: ClassVar[str] = "substitution"
    norm: ClassVar[str]
    notion: ClassVar[str]
    public_inputs: ClassVar[tuple[str, ...]]
    releases: ClassVar[str]
    support: ClassVar[str] = "reals"
    local: ClassVar[bool] = False
    exact: ClassVar[bool] = True
    calibrated: ClassVar[str | None]
    tight: ClassVar[bool] = True
    models: ClassVar[tuple[type, ...]] = ()
    weightings: ClassVar[tuple[str, ...]] = ()

    def __init_subclass__(cls, **settings):
        super().__init_subclass__(**settings)
        if "calibrate" in vars(cls):
            cls.calibrate = classmethod(_checked(vars(cls)["calibrate"].__func__))

    def __post_init__(self):
        check_model(self.model, self.models)
        check_count("n", self.n)

    @classmethod
    @abstractmethod
    def calibrate(cls, model, n: int, budget: Cost, **options) -> Self:
        """Return the mechanism, calibrated so that one release costs at most the budget. No data are used.

        The `options` are the mechanism's other settings.

        Raises:
            ValueError: the mechanism has no guarantee in the budget's notion, or cannot meet the budget.
        """

    @property
    @abstractmethod
    def sensitivity(self) -> float:
        """Largest change of `query` between neighbours, measured in `norm`."""

    @abstractmethod
    def query(self, data) -> np.ndarray:
        """Value computed from a data set (n, *record_shape). `sensitivity` bounds its change between neighbours.

        If a mechanism releases statistics, this value is a release without noise.
        """

    def perturb(self, statistics, rng: np.random.Generator) -> np.ndarray:
        """Return releases about sufficient statistics (..., d), one independent release per leading index.

        Raises:
            ValueError: `check_statistics` refuses the statistics, or rng is no source of randomness.

        Warns:
            SimulationNoise: rng is a numpy generator and no study is running. The warning appears only once.
        """
        check_source(rng)
        self.check_statistics(statistics)
        noise.tell(rng)
        return self._perturb(statistics, rng)

    @abstractmethod
    def _perturb(self, statistics, rng: np.random.Generator) -> np.ndarray:
        """Return releases about statistics (..., d) that `perturb` has checked."""

    def replicate(self, statistics, size: int, rng: np.random.Generator) -> np.ndarray:
        """Return `size` independent releases about one data set's statistics (d,), along a new first axis."""
        check_count("size", size)
        statistics = np.asarray(statistics, float)
        return self.perturb(np.broadcast_to(statistics, (size, *statistics.shape)), rng)

    def check_statistics(self, statistics) -> None:
        """Raises a ValueError unless statistics (..., d) are numbers. Counts must also sum to n."""
        checked = check_numbers("statistics", statistics, getattr(self.model, "statistics_size", None))
        if type(self.model) in COUNTED and checked.size:
            # A matrix product is many times faster than a sum over a short last axis.
            totals = checked @ np.ones(checked.shape[-1])
            for total in (totals.min(), totals.max()):
                if not abs(total - self.n) <= 1e-6 * self.n:
                    raise ValueError(f"n is {self.n}, but the statistics are those of {total:g} records")

    def each(self, size: int) -> Self:
        """Return the mechanism for `size` trials. A subclass repeats settings that may differ between trials."""
        return self

    def draw(self, statistics, rng, size: int | None = None) -> Release:
        """Return the release that a ledger asks for, made by `perturb`, or by `replicate` if `size` is given."""
        return Release(self.perturb(statistics, rng) if size is None else self.replicate(statistics, size, rng))

    @classmethod
    def draw_all(cls, requests) -> list[Release]:
        """Return the releases for several requests of a ledger. Samplers that run faster together override this."""
        return [r.mechanism.draw(r.statistics, r.rng, r.size, **r.settings) for r in requests]

    def posterior_draw(self, release, rng: np.random.Generator) -> np.ndarray:
        """Return one draw of θ per release by post-processing. A release that is a sample is returned unchanged."""
        check_source(rng)
        return release if self.releases == "sample" else self.model.sample(self.naive_posterior(release), rng)

    def naive_posterior(self, release) -> Any:
        """Parameters of the conjugate posterior that treats the release as exact statistics. None if there is none."""
        return None

    def release_law(self, statistics) -> Any:
        """Law of the release given statistics (..., d), for example the parameters of a beta law. None if unknown."""
        return None

    def posterior_sample(self, statistics, rng: np.random.Generator) -> np.ndarray:
        """Make one release per leading index, and return one draw of θ from each release."""
        return self.posterior_draw(self.perturb(statistics, rng), rng)

    @abstractmethod
    def cost(self) -> Cost:
        """Return the cost of one release, in the mechanism's notion of privacy."""

    def rdp(self, orders) -> np.ndarray | None:
        """Rényi DP parameter of one release at each order ≥ 1. It is inf beyond an asymptote. None if unknown."""
        if self.notion == "pure":
            return pure_to_rdp(self.cost().epsilon, orders)
        return self._divergences.rdp(self, orders) if self.notion == "rdp" else None

    def privacy_curve(self, epsilon: float) -> float | None:
        """Smallest δ at which one release is (ε, δ)-DP, or an upper bound of this δ. None if unknown."""
        return self._divergences.curve(self, epsilon)

    @property
    def _divergences(self):
        return masses if self.support == "integers" else densities

    def neighbouring_statistics(self) -> np.ndarray | None:
        """Statistics (pairs, 2, d) of distinct pairs of neighbours, including the worst pair. None if unknown."""
        if type(self.model) not in COUNTED or len(self.model.prior) != 2:
            return None
        ones = np.arange(self.n + 1.0)
        counts = np.stack([ones, self.n - ones], axis=-1)
        return np.stack([counts[1:], counts[:-1]], axis=1)

    def noise_cdf(self, value) -> np.ndarray | None:
        """Distribution function of the noise on one coordinate. None if it is unknown or no noise is added."""
        return None

    def recalibrated(self, budget: Cost) -> Self | None:
        """Return the mechanism whose privacy curve just meets an (ε, δ) budget, or None if there is none."""
        epsilon, _ = approximate_budget(budget)
        return None if self.privacy_curve(epsilon) is None else by_curve(self, budget)

    @cached_property
    def stated_cost(self) -> Cost:
        """Stored result of `cost()`."""
        return self.cost()

    @cached_property
    def _costs(self) -> dict[tuple[Cost, str], Cost]:
        return {}

    def cost_in(self, budget: Cost, accounting: str = "stated") -> Cost:
        """Return the cost of one release in a budget's notion, at the budget's order or δ.

        Args:
            budget: budget in any notion.
            accounting: "stated" converts the mechanism's guarantee; "exact" uses its privacy curve.

        Raises:
            ValueError: the guarantee implies nothing in the budget's notion, or the privacy curve is unknown.
        """
        check_budget(budget)
        check_choice("accounting", accounting, ("stated", "exact"))
        # Costs are stored, as calibration and the many releases of a ledger ask for the same costs.
        key = (budget, accounting)
        if key not in self._costs:
            self._costs[key] = self._cost_in(budget, accounting)
        return self._costs[key]

    def _cost_in(self, budget: Cost, accounting: str) -> Cost:
        if accounting == "exact":
            delta = self.privacy_curve(budget.epsilon) if budget.notion == "approximate" else None
            if delta is None:
                raise ValueError(f"accounting is 'exact', but {type(self).__name__} has no privacy curve for {budget}")
            return Cost("approximate", budget.epsilon, delta=delta)
        cost = self.stated_cost
        if (cost.notion, cost.order) == (budget.notion, budget.order):
            return cost
        if budget.notion == "rdp" and (epsilon := self.rdp(budget.order)) is not None:
            return Cost("rdp", float(epsilon), order=budget.order)
        if budget.notion == "approximate":
            return implied(cost, self.rdp, budget)
        return cost.to_notion_of(budget)

    @property
    def breaks(self) -> Any:
        """Points where `log_density` jumps, for quadrature. The array is empty for a continuous density.

        For additive noise, the points are differences between a release and its exact value. For a draw, they are
        values of θ. Points too far away to matter may be left out.
        """
        return np.empty(0)

    def log_density(self, release, statistics) -> np.ndarray | None:
        """Log-density of the release (..., *release_shape) given sufficient statistics (..., d). None if unknown.

        For a release of whole numbers, this is the log-probability `log_mass`.
        """
        return self.log_mass(release, statistics)

    def log_mass(self, release, statistics) -> np.ndarray | None:
        """Log-probability of a release of whole numbers. None if it is unknown, or if releases have a density.

        It is −inf for numbers that are not whole.
        """
        return None

    def posterior(self, release: ArrayLike, draws: int, rng: np.random.Generator) -> "Draws":
        """Return draws (draws, *theta_shape) of θ from its posterior given one release and the law of the noise.

        The draws cost no privacy. Their attribute `diagnostics` has R-hat and the effective sample size of the chains,
        or is None for independent draws.

        Raises:
            ValueError: no such posterior is implemented for this mechanism and model.
        """
        raise ValueError(
            f"{type(self).__name__} has no noise-aware posterior for {type(self.model).__name__}; there is one for "
            "noise of a known density on counts of one category a record has, and for Laplace noise on the counts of "
            "networks and events and on redacted sums"
        )

    @property
    def name(self) -> str:
        """The mechanism's name in ledgers and tables: its class name, or a separate name for each weighting."""
        return type(self).__name__

    @property
    def recorded(self) -> tuple[str, str, dict[str, Any]]:
        """Name, module and settings, which identify the mechanism in ledgers and tables."""
        settings = {entry.name: getattr(self, entry.name) for entry in fields(self) if entry.init}
        return self.name, type(self).__module__, settings

    @property
    def options(self) -> dict[str, Any]:
        """The settings that `calibrate` takes besides model, n and budget."""
        determined = {"model", "n", "order", self.calibrated}
        return {entry.name: getattr(self, entry.name) for entry in fields(self) if entry.name not in determined}

    @classmethod
    @abstractmethod
    def examples(cls) -> list[Self]:
        """Small instances for the tests that all mechanisms must pass. All their data sets can be enumerated."""
