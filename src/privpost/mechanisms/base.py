"""The interface of a private release."""

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

# Models of one category a record, whose statistics are the counts that a Dirichlet prior is updated by.
COUNTED = (BetaBernoulli, DirichletCategorical)


def _checked(calibrate):
    """A `calibrate` that raises a one-line error where an argument is missing or unknown."""

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
    """One configured private release about n records; subclasses are frozen dataclasses.

    Attributes:
        model: its `sufficient_statistics` are the input; contract tests need its `records` and `theta_shape` too.
        n: public number of records.

    Class attributes:
        method: id of the method in tables and in the colour map.
        neighbours: relation between data sets that the guarantee is about.
        norm: how `sensitivity` is measured: "l1" or "l2" of the query; "natural parameters", the l2 norm of the output
            distribution's natural parameters; or "log-likelihood ratio", the largest absolute change over θ.
        notion: notion of differential privacy of `cost`.
        public_inputs: what the mechanism takes to be public.
        releases: "statistics", from which any number of parameters may be drawn, or "sample", one draw.
        support: "reals" where the release's law has a density, or "integers" for whole numbers, which may be equal.
        local: whether everybody perturbs their own record, and no curator is trusted; studies that compare mechanisms
            at one budget are about curators'.
        exact: whether a release has exactly its law, or comes from Markov chain Monte Carlo.
        calibrated: the field that `calibrate` determines, None if there is none.
        tight: whether some pair of neighbours attains `sensitivity`; False for a bound known to be loose.
        models: supported classes of models; () for all models whose statistics it can take.
        weightings: values of the field `weighting`, each a separate method; () without such a field.

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
        """The mechanism configured such that one release costs at most the budget; takes no data.

        Args:
            model: the model of the released data.
            n: public number of records.
            budget: what one release may cost.
            options: the mechanism's other settings (see `options`).

        Raises:
            ValueError: the mechanism cannot guarantee the budget's notion, or cannot meet the budget.
        """

    @property
    @abstractmethod
    def sensitivity(self) -> float:
        """Largest change of `query` between neighbours, measured in `norm`."""

    @abstractmethod
    def query(self, data) -> np.ndarray:
        """The value of a data set (n, *record_shape) whose change between neighbours `sensitivity` bounds.

        Where statistics are released: the release of `perturb` without its noise.
        """

    def perturb(self, statistics, rng: np.random.Generator) -> np.ndarray:
        """The release for sufficient statistics (..., d); leading axes are independent releases.

        Raises:
            ValueError: as `check_statistics`, or rng is no source of randomness.

        Warns:
            SimulationNoise: rng is a numpy generator, outside a study; said once.
        """
        check_source(rng)
        self.check_statistics(statistics)
        noise.tell(rng)
        return self._perturb(statistics, rng)

    @abstractmethod
    def _perturb(self, statistics, rng: np.random.Generator) -> np.ndarray:
        """The release of `perturb`, for checked statistics."""

    def replicate(self, statistics, size: int, rng: np.random.Generator) -> np.ndarray:
        """Independent releases about one data set's statistics (d,), along a new first axis: for audits.

        Overridden where chains run faster as a batch.
        """
        check_count("size", size)
        statistics = np.asarray(statistics, float)
        return self.perturb(np.broadcast_to(statistics, (size, *statistics.shape)), rng)

    def check_statistics(self, statistics) -> None:
        """Raises a ValueError unless statistics (..., d) are numbers and, if they are counts, sum to n."""
        checked = check_numbers("statistics", statistics, getattr(self.model, "statistics_size", None))
        if type(self.model) in COUNTED and checked.size:
            # A product: sums over a short last axis are many times slower.
            totals = checked @ np.ones(checked.shape[-1])
            for total in (totals.min(), totals.max()):
                if not abs(total - self.n) <= 1e-6 * self.n:
                    raise ValueError(f"n is {self.n}, but the statistics are those of {total:g} records")

    def each(self, size: int) -> Self:
        """The mechanism with its settings repeated for each of `size` trials, where settings may differ by trial."""
        return self

    def draw(self, statistics, rng, size: int | None = None) -> Release:
        """The ledger's call: `perturb`, or `replicate` for `size` releases about one data set.

        Mechanisms that run chains override it, take settings of the run, and return its diagnostics.
        """
        return Release(self.perturb(statistics, rng) if size is None else self.replicate(statistics, size, rng))

    @classmethod
    def draw_all(cls, requests) -> list[Release]:
        """The releases of several requests (`ledger.Request`); overridden where samplers run faster together."""
        return [r.mechanism.draw(r.statistics, r.rng, r.size, **r.settings) for r in requests]

    def posterior_draw(self, release, rng: np.random.Generator) -> np.ndarray:
        """One draw of θ per release, by post-processing; the release itself if it is a sample."""
        check_source(rng)
        return release if self.releases == "sample" else self.model.sample(self.naive_posterior(release), rng)

    def naive_posterior(self, release) -> Any:
        """Parameters of θ's conjugate law if the release were the data's statistics; None where this has no meaning."""
        return None

    def release_law(self, statistics) -> Any:
        """Law of the release for statistics (..., d), such as the parameters of a beta law; None if not known."""
        return None

    def posterior_sample(self, statistics, rng: np.random.Generator) -> np.ndarray:
        """One draw of θ per leading index as the analyst gets it, each from a separate release."""
        return self.posterior_draw(self.perturb(statistics, rng), rng)

    @abstractmethod
    def cost(self) -> Cost:
        """What one release costs."""

    def rdp(self, orders) -> np.ndarray | None:
        """Rényi DP parameter of one release at each order ≥ 1, inf beyond an asymptote.

        None for a mechanism that has only an (ε, δ) guarantee. For pure mechanisms by `pure_to_rdp`; for others exact,
        by quadrature, if their release is one number with a known `log_density`.
        """
        if self.notion == "pure":
            return pure_to_rdp(self.cost().epsilon, orders)
        return self._divergences.rdp(self, orders) if self.notion == "rdp" else None

    def privacy_curve(self, epsilon: float) -> float | None:
        """Smallest δ at which one release is (ε, δ)-DP, or an upper bound of it; None where not known.

        By quadrature or summation, if the release is one number with a known `log_density`.
        """
        return self._divergences.curve(self, epsilon)

    @property
    def _divergences(self):
        return masses if self.support == "integers" else densities

    def neighbouring_statistics(self) -> np.ndarray | None:
        """Statistics of neighbours (pairs, 2, d), each pair once; the worst case is among them. None if not known."""
        if type(self.model) not in COUNTED or len(self.model.prior) != 2:
            return None
        ones = np.arange(self.n + 1.0)
        counts = np.stack([ones, self.n - ones], axis=-1)
        return np.stack([counts[1:], counts[:-1]], axis=1)

    def noise_cdf(self, value) -> np.ndarray | None:
        """Distribution function of the noise on one coordinate; None where it is not known or there is none."""
        return None

    def recalibrated(self, budget: Cost) -> Self | None:
        """The mechanism of the same kind whose privacy curve just meets an (ε, δ) budget.

        None if the curve is not known, or if no setting meets the budget.
        """
        epsilon, _ = approximate_budget(budget)
        return None if self.privacy_curve(epsilon) is None else by_curve(self, budget)

    @cached_property
    def stated_cost(self) -> Cost:
        """`cost()`, computed once."""
        return self.cost()

    @cached_property
    def _costs(self) -> dict[tuple[Cost, str], Cost]:
        return {}

    def cost_in(self, budget: Cost, accounting: str = "stated") -> Cost:
        """What one release costs, in the notion (and at the order or δ) of a budget.

        Args:
            budget: of any notion.
            accounting: "stated", by conversion of the mechanism's guarantee; "exact", by its privacy curve.

        Raises:
            ValueError: the guarantee implies nothing in that notion, or no privacy curve is known.
        """
        check_budget(budget)
        check_choice("accounting", accounting, ("stated", "exact"))
        # Curves are computed once for calibration and the ledger's many releases.
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
        """The places where `log_density` jumps, for quadrature: an array, empty for a continuous density.

        Of additive noise differences between the release and its exact value, of a draw values of θ. Those too far away
        to matter may be left out; more than some hundred slow the quadrature down.
        """
        return np.empty(0)

    def log_density(self, release, statistics) -> np.ndarray | None:
        """Log-density of the release given the sufficient statistics; None where it is not known.

        With respect to length or volume, over which the density integrates to one; for a release of whole numbers the
        log-probability, `log_mass`.

        Args:
            release: shape (..., *release_shape).
            statistics: shape (..., d); leading axes broadcast.
        """
        return self.log_mass(release, statistics)

    def log_mass(self, release, statistics) -> np.ndarray | None:
        """Log-probability of a release of whole numbers, −inf of other numbers; None if it is not known or always 0.

        Arguments as of `log_density`.
        """
        return None

    def posterior(self, release: ArrayLike, draws: int, rng: np.random.Generator) -> "Draws":
        """Draws of θ, shape (draws, *theta_shape), from its posterior given one release and the noise's law.

        Post-processing, which costs nothing. The draws' `diagnostics` has R-hat and effective sample size of chains, or
        is None for independent draws.

        Raises:
            ValueError: no such posterior is known for the mechanism and its model.
        """
        raise ValueError(
            f"{type(self).__name__} has no noise-aware posterior for {type(self.model).__name__}; there is one for "
            "noise of a known density on counts of one category a record has, and for Laplace noise on the counts of "
            "networks and events and on redacted sums"
        )

    @property
    def name(self) -> str:
        """The mechanism's name in ledgers and tables: its class, or a name for each of several weightings."""
        return type(self).__name__

    @property
    def recorded(self) -> tuple[str, str, dict[str, Any]]:
        """Name, module and settings that identify the mechanism in ledgers and tables."""
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
        """Small instances for the contract tests, with few enough data sets to enumerate."""
