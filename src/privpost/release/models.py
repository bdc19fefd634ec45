"""The models that a release can serve: what their columns need, which mechanism serves them, and their posteriors.

Statistics are whole numbers throughout, so that discrete noise hides all of a record: counts, or a sum in steps of a
column's resolution.
"""

from __future__ import annotations

import itertools
import math
import re
from abc import ABC, abstractmethod
from decimal import Decimal
from typing import Any, ClassVar, NamedTuple

import numpy as np
from scipy.special import logsumexp

from privpost.evaluation import diagnostics
from privpost.mechanisms.base import AdditiveNoiseMechanism
from privpost.mechanisms.event_counts import EventCountsLaplace
from privpost.mechanisms.gaussian import GaussianMechanism
from privpost.mechanisms.laplace import LaplaceMechanism
from privpost.mechanisms.network_laplace import NetworkLaplace
from privpost.mechanisms.redacted_laplace import RedactedLaplace, RedactedSum
from privpost.models.bayesian_network import BayesianNetwork
from privpost.models.beta_bernoulli import BetaBernoulli
from privpost.models.dirichlet_categorical import DirichletCategorical
from privpost.models.event_counts import EventCounts
from privpost.models.gamma_exponential import GammaExponential
from privpost.models.normal_known_variance import NormalKnownVariance
from privpost.pipeline.schema import Choice, Real, Schema, SettingError, suggest
from privpost.release.spec import Levels, Names, Specification
from privpost.samplers import hidden_markov_gibbs as gibbs
from privpost.samplers import noise_aware_events, noise_aware_exact, noise_aware_gibbs, noise_aware_table

# Chains of the noise-aware Gibbs samplers, and their sweeps before and between the draws that are kept.
# Sweeps of the Gibbs sampler are handed over in chunks whose length is a multiple of THIN.
CHAINS, BURN_IN, THIN = 8, 2000, 25
# Those of the chains on counts, which mix faster and cost more.
COUNT_BURN_IN, COUNT_THIN = 800, 10
# Parents of a column.
LARGEST_FAMILY = 12
# Networks of more nodes or records have too large a latent table.
LARGEST_NETWORK, LARGEST_TABLE = 5, 100_000
# Posteriors of counts have tables of n + 1 entries.
LARGEST_SUM = 10_000_000
# Sums stay whole numbers that floats hold exactly.
LARGEST_TOTAL = 2**50

_UNCUT = "the records' law is not cut off at the bounds"
# What the draws of analysts who ignore the noise take for granted.
_NAIVE = ("noisy counts are taken for the true ones",)
# Rounding may bias a posterior by this share of the standard deviation that it would have without noise.
LARGEST_BIAS = 0.1
_NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d{1,4})?", re.ASCII)


class Posterior(NamedTuple):
    """Draws from a posterior given a release.

    Attributes:
        draws: by name, each of shape (draws, ...).
        noise_aware: whether the posterior accounts for the noise, or takes noisy statistics for exact ones.
        method: how the draws were made.
        approximations: what about them is not exact.
        rhat, ess: largest R-hat and smallest effective sample size of Markov chains; None for independent draws.
    """

    draws: dict[str, np.ndarray]
    noise_aware: bool
    method: str
    approximations: tuple[str, ...]
    rhat: float | None = None
    ess: float | None = None


class Kind(ABC):
    """One model that can be released.

    Class attributes:
        name: as in `model:`.
        columns: how many it has; None for any number.
        column, required: settings of a column, and those that it needs.
        prior: settings of the prior.
        prior_defaults: those that need not be given.
        mechanisms: what can serve it.
        has_posterior: whether draws can be asked for.
    """

    name: ClassVar[str]
    column: ClassVar[Schema] = Schema(levels=Levels())
    required: ClassVar[tuple[str, ...]] = ("levels",)
    prior: ClassVar[Schema]
    prior_defaults: ClassVar[dict[str, Any]] = {}
    mechanisms: ClassVar[tuple[str, ...]] = ("laplace",)
    has_posterior: ClassVar[bool] = True
    columns: ClassVar[int | None] = 1

    def check(self, spec: Specification) -> None:
        """Raises a SettingError unless the columns are what the model needs."""
        if self.columns is not None and len(spec.columns) != self.columns:
            raise SettingError(
                f"{spec.where}: columns has {len(spec.columns)} entries, but {self.name} has exactly {self.columns}."
            )
        for name, settings in spec.columns.items():
            for key in self.required:
                if key not in settings:
                    raise SettingError(f"{spec.where}: columns: {name}: {key} is missing.")
        if spec.draws and spec.n > LARGEST_SUM:
            raise SettingError(f"{spec.where}: n is {spec.n}; posterior draws need n <= {LARGEST_SUM}.")

    @abstractmethod
    def mechanism(self, spec: Specification, setting: float) -> AdditiveNoiseMechanism:
        """The mechanism at a value of ε (Laplace) or σ (Gaussian)."""

    def encode(self, spec: Specification, column: str, text: str) -> int | None:
        """The whole number that stands for a cell's text; None for a text that is no record."""
        try:
            return spec.columns[column]["levels"].index(text)
        except ValueError:
            return None

    def allowed(self, spec: Specification, column: str) -> str:
        """What a column's cells may hold, for error messages."""
        return "one of its levels " + ", ".join(map(repr, spec.columns[column]["levels"]))

    def order(self, spec: Specification) -> list[str]:
        """The columns in the order in which `records` takes them."""
        return list(spec.columns)

    def records(self, data: np.ndarray) -> np.ndarray:
        """The model's records from encoded columns (n, columns)."""
        return data[:, 0]

    def unit(self, spec: Specification) -> float:
        """What a step of 1 in the mechanism's whole numbers stands for."""
        return 1.0

    @abstractmethod
    def statistics(self, spec: Specification, release: np.ndarray) -> dict[str, Any]:
        """The release as named numbers."""

    @abstractmethod
    def posterior(self, spec, mechanism, release: np.ndarray, rng: np.random.Generator) -> Posterior:
        """Draws given a release; post-processing."""


class _Bits(Kind):
    """A column of two levels, the second of which is counted; exact posterior."""

    name = "beta_bernoulli"
    prior = Schema(alpha=Real(above=0), beta=Real(above=0))
    mechanisms = ("laplace", "gaussian")

    def check(self, spec):
        super().check(spec)
        _check_two_levels(spec)

    def mechanism(self, spec, setting):
        model = BetaBernoulli(**spec.prior)
        if spec.mechanism == "gaussian":
            return GaussianMechanism(model, spec.n, setting, order=2.0)
        return LaplaceMechanism(model, spec.n, setting, coordinates="free")

    def statistics(self, spec, release):
        ((column, settings),) = spec.columns.items()
        return {"counts": {column: {settings["levels"][1]: _whole(release[0])}}}

    def posterior(self, spec, mechanism, release, rng):
        counts = np.arange(spec.n + 1.0)
        likelihood = mechanism.log_density(release, np.stack([counts, spec.n - counts], axis=-1))
        prior = spec.prior["alpha"], spec.prior["beta"]
        draws = noise_aware_exact.sample(prior, likelihood, spec.draws, rng)
        ((column, settings),) = spec.columns.items()
        return Posterior(
            {f"P({column} = {settings['levels'][1]})": draws},
            True,
            "independent draws from the exact posterior, summed over all true counts",
            (),
        )


class _Categories(Kind):
    """A column of several levels, all of them counted."""

    name = "dirichlet_categorical"
    prior = Schema(concentration=Real(above=0))
    mechanisms = ("laplace", "gaussian")

    def mechanism(self, spec, setting):
        ((_, settings),) = spec.columns.items()
        model = DirichletCategorical((spec.prior["concentration"],) * len(settings["levels"]))
        if spec.mechanism == "gaussian":
            return GaussianMechanism(model, spec.n, setting, order=2.0, coordinates="all")
        return LaplaceMechanism(model, spec.n, setting)

    def statistics(self, spec, release):
        ((column, settings),) = spec.columns.items()
        return {"counts": {column: dict(zip(settings["levels"], map(_whole, release), strict=True))}}

    def posterior(self, spec, mechanism, release, rng):
        ((column, settings),) = spec.columns.items()
        names = [f"P({column} = {level})" for level in settings["levels"]]
        if spec.mechanism == "gaussian":
            draws = mechanism.model.sample(mechanism.posterior(release), rng, spec.draws)
            return Posterior(
                _by_name(names, draws), False, "conjugate update with the noisy counts, clipped at 0", _NAIVE
            )
        probabilities, _ = _latent_counts(release[None], (len(names),), spec, mechanism.scale, rng)
        return _latent_posterior(names, probabilities[:, :, 0], spec.draws)


class _Network(Kind):
    """Columns of two levels in a directed acyclic graph, counted per configuration of the parents."""

    name = "bayesian_network"
    column = Schema(levels=Levels(), parents=Names())
    prior = Schema(alpha=Real(above=0), beta=Real(above=0))
    prior_defaults: ClassVar[dict[str, Any]] = {"alpha": 1.0, "beta": 1.0}
    columns = None

    def check(self, spec):
        super().check(spec)
        _check_two_levels(spec)
        for name, settings in spec.columns.items():
            for parent in settings.get("parents", []):
                if parent not in spec.columns:
                    raise SettingError(
                        f"{spec.where}: columns: {name}: parents: there is no column {parent!r}."
                        f"{suggest(parent, spec.columns)} Columns: {', '.join(spec.columns)}."
                    )
            if len(settings.get("parents", [])) > LARGEST_FAMILY:
                raise SettingError(
                    f"{spec.where}: columns: {name}: parents has {len(settings['parents'])} entries; at most "
                    f"{LARGEST_FAMILY} are supported, as each doubles the number of counts."
                )
        try:
            self._model(spec)
        except ValueError as error:
            raise SettingError(f"{spec.where}: columns: {error}") from None

    def _model(self, spec) -> BayesianNetwork:
        parents = {name: settings.get("parents", []) for name, settings in spec.columns.items()}
        return BayesianNetwork(parents, **spec.prior)

    def mechanism(self, spec, setting):
        return NetworkLaplace(self._model(spec), spec.n, setting)

    def records(self, data):
        return data

    def _cells(self, spec) -> list[tuple[str, str]]:
        """The node and, as text, the parents' levels of every θ, in the model's order."""
        levels = {name: settings["levels"] for name, settings in spec.columns.items()}
        return [
            (node, ", ".join(f"{parent} = {levels[parent][bit]}" for parent, bit in zip(parents, bits, strict=True)))
            for node, parents in self._model(spec).parents
            for bits in itertools.product((0, 1), repeat=len(parents))
        ]

    def statistics(self, spec, release):
        counts: dict[str, Any] = {}
        for (node, given), (one, zero) in zip(self._cells(spec), release.reshape(-1, 2), strict=True):
            low, high = spec.columns[node]["levels"]
            counts.setdefault(node, {})[given or "all"] = {low: _whole(zero), high: _whole(one)}
        return {"counts": counts}

    def posterior(self, spec, mechanism, release, rng):
        model = mechanism.model
        names = [
            f"P({node} = {spec.columns[node]['levels'][1]}{' | ' * bool(given)}{given})"
            for node, given in self._cells(spec)
        ]
        if len(model.nodes) > LARGEST_NETWORK or spec.n > LARGEST_TABLE:
            draws = model.sample(mechanism.posterior(release), rng, spec.draws)
            method = "conjugate update with the noisy counts, clipped to [0, n]"
            return Posterior(_by_name(names, draws), False, method, _NAIVE)
        tables = noise_aware_table.Tables(model, np.tile(release, (CHAINS, 1)), spec.n, mechanism.scale, rng)
        kept: list[np.ndarray] = []
        tables.run(COUNT_BURN_IN, _sweeps(spec.draws), COUNT_THIN, lambda counts: kept.append(counts.T.copy()))
        return _latent_posterior(names, model.sample(model.posterior(np.stack(kept)), rng), spec.draws)


class _NaiveBayes(Kind):
    """A class and attributes, each counted per level of the class; a flat prior on the shares of the classes."""

    name = "naive_bayes"
    column = Schema(levels=Levels(), role=Choice("class", "attribute"))
    prior = Schema(concentration=Real(above=0))
    prior_defaults: ClassVar[dict[str, Any]] = {"concentration": 1.0}
    columns = None

    def check(self, spec):
        super().check(spec)
        classes = [name for name, settings in spec.columns.items() if settings.get("role") == "class"]
        if len(classes) != 1 or len(spec.columns) < 2:
            raise SettingError(
                f"{spec.where}: columns: {self.name} needs one column with role: class and at least one other; "
                f"{len(classes)} of {len(spec.columns)} columns have role: class."
            )

    def _split(self, spec) -> tuple[str, list[str]]:
        (label,) = (name for name, settings in spec.columns.items() if settings.get("role") == "class")
        return label, [name for name in spec.columns if name != label]

    def mechanism(self, spec, setting):
        label, attributes = self._split(spec)
        sizes = tuple(len(spec.columns[name]["levels"]) for name in attributes)
        # A cell is a class: without months or hidden states the events' model is naive Bayes.
        return EventCountsLaplace(
            EventCounts(tuple(range(len(spec.columns[label]["levels"]))), sizes, 1), spec.n, setting
        )

    def order(self, spec):
        """The class first."""
        label, attributes = self._split(spec)
        return [label, *attributes]

    def records(self, data):
        return data

    def statistics(self, spec, release):
        label, attributes = self._split(spec)
        tables: dict[str, Any] = {}
        rows = release.reshape(len(spec.columns[label]["levels"]), -1)
        for level, row in zip(spec.columns[label]["levels"], rows, strict=True):
            start = 0
            for name in attributes:
                levels = spec.columns[name]["levels"]
                counts = map(_whole, row[start : start + len(levels)])
                tables.setdefault(name, {})[f"{label} = {level}"] = dict(zip(levels, counts, strict=True))
                start += len(levels)
        return {"counts": tables}

    def posterior(self, spec, mechanism, release, rng):
        label, attributes = self._split(spec)
        classes = spec.columns[label]["levels"]
        rows = release.reshape(len(classes), -1)
        probabilities, totals = _latent_counts(rows, mechanism.model.sizes, spec, mechanism.scale, rng)
        # All ways to spread the records over the classes are equally likely: a flat prior on the classes' shares.
        shares = _log_dirichlet(1.0 + totals, [slice(None)], rng)
        names = [f"P({label} = {level})" for level in classes]
        names += [
            f"P({name} = {value} | {label} = {level})"
            for level in classes
            for name in attributes
            for value in spec.columns[name]["levels"]
        ]
        flat = probabilities.reshape(*probabilities.shape[:2], -1)
        return _latent_posterior(names, np.concatenate([np.exp(shares), flat], axis=-1), spec.draws)


class _Numeric(Kind):
    """A numeric column whose values in [low, high], rounded to a resolution, are summed."""

    column = Schema(low=Real(), high=Real(), resolution=Real(above=0), outside=Choice("refuse", "redact"))
    required = ("low", "high", "resolution")

    def check(self, spec):
        super().check(spec)
        ((name, settings),) = spec.columns.items()
        where = f"{spec.where}: columns: {name}"
        low, high, resolution = self._bounds(spec)
        if not low < high:
            raise SettingError(
                f"{where}: low is {settings['low']:g} and high is {settings['high']:g}; low must be less."
            )
        if spec.n * max(abs(low), abs(high)) / resolution > LARGEST_TOTAL:
            raise SettingError(
                f"{where}: resolution is {resolution}, too fine: n times the larger bound must be at most 2^50 steps."
            )
        for key, bound in (("low", low), ("high", high)):
            if bound % resolution != 0:
                raise SettingError(
                    f"{where}: {key} is {settings[key]:g}, but must be a multiple of the resolution, {resolution}."
                )
        if spec.draws and resolution > (coarsest := self.coarsest(spec)):
            raise SettingError(
                f"{where}: resolution is {resolution}, too coarse for posterior draws: rounding would bias them. It "
                f"must be at most {coarsest:.3g} with this prior and n. A finer one costs no privacy and no accuracy."
            )

    def coarsest(self, spec) -> float:
        """The largest resolution that hardly biases the posterior, judged by what is public; inf without one."""
        return math.inf

    def rounding(self, resolution: float, theta: np.ndarray) -> str:
        """What rounding to a resolution does where θ has these draws, shape (draws,)."""
        raise NotImplementedError

    def family(self, spec):
        """The family of the records, with its prior; None for a sum without a model."""
        return None

    def redacts(self, spec) -> bool:
        """Whether records outside the bounds are left out of the sum; else there are none."""
        ((_, settings),) = spec.columns.items()
        return settings.get("outside", "refuse") == "redact"

    def _bounds(self, spec) -> tuple[Decimal, Decimal, Decimal]:
        ((_, settings),) = spec.columns.items()
        low, high, resolution = (Decimal(repr(settings[key])) for key in ("low", "high", "resolution"))
        return low, high, resolution

    def _origin(self, spec) -> Decimal:
        """What steps are counted from: within public bounds a record moves the sum by at most high − low."""
        low, _, _ = self._bounds(spec)
        return Decimal(0) if self.redacts(spec) else low

    def mechanism(self, spec, setting):
        low, high, resolution = self._bounds(spec)
        origin = self._origin(spec)
        ends = (float((end - origin) / resolution) for end in (low, high))
        return RedactedLaplace(RedactedSum(self.family(spec), *ends), spec.n, setting)

    def encode(self, spec, column, text):
        low, high, resolution = self._bounds(spec)
        if not _NUMBER.fullmatch(text):
            return None
        value = Decimal(text)
        if not low <= value <= high:
            # One step beyond the upper bound stands for all that is left out.
            return int(high / resolution) + 1 if self.redacts(spec) else None
        return int(((value - self._origin(spec)) / resolution).to_integral_value())

    def allowed(self, spec, column):
        settings = spec.columns[column]
        if self.redacts(spec):
            return "a number"
        return f"a number in [{settings['low']:g}, {settings['high']:g}] (outside: redact leaves others out of the sum)"

    def unit(self, spec):
        return float(self._bounds(spec)[2])

    def _sum(self, spec, release) -> float:
        return float(round(release[0]) * self._bounds(spec)[2] + spec.n * self._origin(spec))

    def statistics(self, spec, release):
        ((name, _),) = spec.columns.items()
        return {"sums": {name: self._sum(spec, release)}}

    def posterior(self, spec, mechanism, release, rng):
        family = self.family(spec)
        low, high = map(float, self._bounds(spec)[:2]) if self.redacts(spec) else family.record_support
        kernel = noise_aware_gibbs.redacted_kernel(
            family, np.full(CHAINS, self._sum(spec, release)), spec.n, mechanism.scale * self.unit(spec), low, high
        )
        chains = _chains(kernel, spec.draws, rng)[..., None]
        approximations = self.rounding(self.unit(spec), chains.ravel()), *(() if self.redacts(spec) else (_UNCUT,))
        return _gibbs_posterior([self.parameter], chains, spec.draws, approximations)


class _Sum(_Numeric):
    """A sum without a model."""

    name = "bounded_sum"
    prior = Schema()
    has_posterior = False


class _Exponential(_Numeric):
    """Exponential records with a gamma prior on their rate."""

    name = "gamma_exponential"
    prior = Schema(shape=Real(above=0), rate=Real(above=0))
    parameter: ClassVar[str] = "rate"

    def check(self, spec):
        super().check(spec)
        ((name, settings),) = spec.columns.items()
        if settings["low"] < 0:
            raise SettingError(f"{spec.where}: columns: {name}: low is {settings['low']:g}, but must be at least 0.")

    def family(self, spec):
        return GammaExponential(**spec.prior)

    def coarsest(self, spec):
        """Where the mean of rounded records is less than the records' by LARGEST_BIAS / √n at the prior's mean rate.

        Rounding to multiples of h turns the mean 1/θ into (h/2) / sinh(θh/2), less by at most a share (θh)²/24.
        """
        return math.sqrt(24 * LARGEST_BIAS / math.sqrt(spec.n)) * spec.prior["rate"] / spec.prior["shape"]

    def rounding(self, resolution, theta):
        # The rate φ of rounded values stands for θ = (2/h) asinh(φh/2).
        half = float(np.mean(theta)) * resolution / 2
        raised = half / math.asinh(half) - 1
        return (
            f"values are rounded to multiples of {resolution:g}, unknown to the model, which raises the rate by about "
            f"{100 * raised:.2g} % at its posterior mean"
        )


class _Normal(_Numeric):
    """Normal records of known variance with a normal prior on their mean."""

    name = "normal_known_variance"
    prior = Schema(prior_mean=Real(), prior_variance=Real(above=0), record_variance=Real(above=0))
    parameter: ClassVar[str] = "mean"

    def family(self, spec):
        return NormalKnownVariance(**spec.prior)

    def coarsest(self, spec):
        """Half the records' standard deviation: rounding then adds 2 % to their variance and no bias to speak of."""
        return math.sqrt(spec.prior["record_variance"]) / 2

    def rounding(self, resolution, theta):
        return f"values are rounded to multiples of {resolution:g}, unknown to the model"


def _leaves(kind: type[Kind]) -> list[type[Kind]]:
    """Classes without subclasses, in the order of this file."""
    below = kind.__subclasses__()
    return [leaf for subclass in below for leaf in _leaves(subclass)] if below else [kind]


KINDS = {leaf.name: leaf() for leaf in _leaves(Kind)}


def named(name: str, where: str) -> Kind:
    """Return a model by its name; raises SettingError with the nearest one."""
    if name not in KINDS:
        raise SettingError(f"{where}: model is {name!r}, but must be one of {', '.join(KINDS)}.{suggest(name, KINDS)}")
    return KINDS[name]


def _check_two_levels(spec: Specification) -> None:
    for name, settings in spec.columns.items():
        if len(settings["levels"]) != 2:
            raise SettingError(
                f"{spec.where}: columns: {name}: levels has {len(settings['levels'])} entries; {spec.model} needs 2."
            )


def _whole(value: float) -> int:
    return round(float(value)) if float(value).is_integer() else float(value)


def _by_name(names, draws) -> dict[str, np.ndarray]:
    return dict(zip(names, np.moveaxis(draws, -1, 0), strict=True))


def _sweeps(draws: int) -> int:
    """Sweeps of each chain that are kept: enough for the draws that are asked for, and for diagnostics."""
    return max(math.ceil(draws / CHAINS), diagnostics.MINIMUM_DRAWS)


def _chains(kernel, draws: int, rng) -> np.ndarray:
    """Every `THIN`-th sweep of the chains after the burn-in, shape (sweeps, *theta.shape)."""
    kept: list[np.ndarray] = []
    noise_aware_gibbs.run(kernel, rng, BURN_IN, THIN * _sweeps(draws), lambda chunk: kept.append(chunk[::THIN].copy()))
    return np.concatenate(kept)


def _latent_counts(noisy, sizes, spec: Specification, scale: float, rng) -> tuple[np.ndarray, np.ndarray]:
    """Chains on the counts of records behind their noisy release, each row of counts with probabilities of its own.

    Args:
        noisy: the release, (rows, levels), the fields' levels one after the other.
        sizes: number of levels of each field.

    Returns:
        Probabilities (sweeps, chains, rows, levels), and totals of the rows (sweeps, chains, rows).
    """
    n_rows = len(noisy)
    prior = gibbs.Prior(n_rows, tuple(sizes), emission=spec.prior["concentration"])
    release, every = np.tile(noisy, (CHAINS, 1, 1)), np.ones((CHAINS, n_rows), bool)
    latent = noise_aware_events.LatentCounts(release, every, prior, scale, np.full(CHAINS, spec.n), rng)
    own_row = np.tile(np.arange(n_rows)[:, None], CHAINS)
    probabilities, totals = [], []
    for sweep in range(COUNT_BURN_IN + COUNT_THIN * _sweeps(spec.draws)):
        logs = _log_dirichlet(prior.emission + latent.counts, prior.fields, rng)
        if sweep >= COUNT_BURN_IN and (sweep - COUNT_BURN_IN) % COUNT_THIN == 0:
            probabilities.append(np.exp(logs))
            totals.append(latent.totals.reshape(CHAINS, n_rows).copy())
        latent.update(own_row, logs)
    return np.stack(probabilities), np.stack(totals)


def _log_dirichlet(parameters, fields: list[slice], rng) -> np.ndarray:
    """Logarithms of Dirichlet draws, field by field along the last axis; they stay finite where draws underflow."""
    # Gamma(α) = Gamma(α + 1) U^(1/α).
    logs = np.log(rng.standard_gamma(parameters + 1)) - rng.standard_exponential(parameters.shape) / parameters
    for field in fields:
        logs[..., field] -= logsumexp(logs[..., field], axis=-1, keepdims=True)
    return logs


def _latent_posterior(names, chains: np.ndarray, draws: int) -> Posterior:
    """Draws from chains (sweeps, chains, quantities) on whole-numbered counts."""
    return _assessed(names, chains, draws, "Markov chains on the true counts, with the noise's own law", ())


def _gibbs_posterior(names, chains: np.ndarray, draws: int, approximations: tuple[str, ...] = ()) -> Posterior:
    """Draws from the Gibbs sampler of Bernstein and Sheldon (2018), chains (sweeps, chains, quantities)."""
    method = "noise-aware Gibbs sampler of Bernstein and Sheldon (2018)"
    normal = "normal law of the latent sum", "continuous Laplace law of the noise"
    return _assessed(names, chains, draws, method, (*normal, *approximations))


def _assessed(names, chains: np.ndarray, draws: int, method: str, approximations: tuple[str, ...]) -> Posterior:
    """The last draws of all chains, with diagnostics of all that were kept."""
    assessed = diagnostics.assess(chains)
    pooled = chains.reshape(-1, chains.shape[-1])[-draws:]
    return Posterior(
        _by_name(names, pooled),
        True,
        f"{method}, {CHAINS} chains",
        (*approximations, "Markov chain Monte Carlo"),
        None if math.isnan(assessed.rhat_max) else assessed.rhat_max,
        None if math.isnan(assessed.ess_min) else assessed.ess_min,
    )
