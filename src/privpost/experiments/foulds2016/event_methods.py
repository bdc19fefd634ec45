"""Methods for counts of events in cells, shared by the studies of war logs and of simulated events."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any, NamedTuple

import numpy as np

from privpost.datasets import catalogue
from privpost.distributions.noise import Common
from privpost.experiments.ranges import DATASET
from privpost.lab.schema import Choice, DatasetName, Integer
from privpost.mechanisms.draws.event_states import HiddenMarkovSampler
from privpost.mechanisms.draws.private_gibbs import PrivateGibbs
from privpost.mechanisms.noise.event_counts import EventCountsLaplace, prior_of
from privpost.models.events import EventCounts
from privpost.privacy import count_tables
from privpost.privacy.accounting.costs import Cost
from privpost.privacy.ledger.gate import Ledger
from privpost.samplers.hidden_markov import gibbs
from privpost.samplers.hidden_markov.seeds import Seeding
from privpost.samplers.noise_aware import event_counts

# Methods that release draws from a posterior given the exact events. OPS releases the last draw of its chain.
SAMPLED = ("ops", "private_gibbs")
# Variants of the Laplace mechanism, which differ in how they turn noisy counts into valid counts (see `processed`).
VARIANTS = {"paper": "clipped", "corrected": "projected", "sums": "sums clipped"}
COUNTS = DatasetName(task="counts", says=DATASET)
START = Choice(
    "random", "seeded",
    says="start of the chains: states at `random` (as in the paper), or `seeded`, the best of several by log joint; "
    "empty where no chain runs",
)  # fmt: skip
# Settings of chains, which are the same for all data sets.
CHAINS = {
    "iterations": Integer(at_least=2, says="Gibbs iterations of a chain"),
    "burn_in": Integer(at_least=1, under="iterations", says="first iterations, which are left out"),
    "aware_iterations": Integer(at_least=2, says="sweeps of a noise-aware chain"),
    "aware_burn_in": Integer(at_least=1, under="aware_iterations", says="first sweeps, which are left out"),
    "starts": Integer(at_least=1, says="seeded starts of a chain, of which the one with the best log joint goes on"),
    "start_iterations": Integer(at_least=1, says="iterations of each start"),
    "private_iterations": Integer(at_least=1, says="Gibbs iterations that share the budget where every update is paid"),
    "chains": Integer(at_least=1, says="chains on the first release, each from its own start, for R-hat and ESS"),
}


class Row(NamedTuple):
    """One method at one setting. A field is None if it does not apply to the method.

    `start` is `random` (as in the paper) or `seeded`. `variant` is a variant of the Laplace mechanism. `truncation` is
    the bound M of OPS. `prior` says whether OPS also tempers the prior.
    """

    n_states: int
    method: str
    start: str | None = None
    variant: str | None = None
    truncation: float | None = None
    prior: str | None = None
    epsilon: float | None = None

    @property
    def model(self) -> str:
        """The name of the model: `naive_bayes` for one state, else `hmm`."""
        return "naive_bayes" if self.n_states == 1 else "hmm"

    @property
    def account(self) -> str:
        """The name of the row's account in the ledger."""
        given = {name: value for name, value in self._asdict().items() if value is not None and name != "method"}
        words = (value if isinstance(value, str) else f"{name}={value:g}" for name, value in given.items())
        return "/".join([self.method, *words])


def rows(
    n_states: int, start: str, epsilon: Iterable, method: Iterable[str], variant=("paper",), truncation=(10.0,),
    prior=("tempered",),
) -> list[Row]:  # fmt: skip
    """Return one row for each method at each of its settings."""
    result = []
    # With one state no chain runs, so there is no start and no `private_gibbs`. The variant `sums` would equal `paper`.
    for name in method:
        if name == "private_gibbs" and n_states == 1:
            continue
        started = None if n_states == 1 or name == "private_gibbs" else start
        variants = [v for v in variant if n_states > 1 or v != "sums"] if name == "laplace" else [None]
        truncations = truncation if name in SAMPLED else [None]
        priors = prior if name == "ops" else ["tempered"] if name == "private_gibbs" else [None]
        for at in [None] if name == "non_private" else epsilon:
            result += [Row(n_states, name, started, v, t, p, at) for v in variants for t in truncations for p in priors]
    return result


class Run(NamedTuple):
    """A row, its mechanism, the law of its chains, and the share `clipped` of observed counts that were set to 0."""

    row: Row
    mechanism: Any
    law: gibbs.Law | event_counts.NoisyCounts
    clipped: float = np.nan

    @property
    def traced(self) -> gibbs.Law:
        """The law whose log joint is traced. For noise-aware chains, it has the projected counts."""
        if isinstance(self.law, gibbs.Law):
            return self.law
        noisy, sizes = self.law.noisy, self.mechanism.model.sizes
        return gibbs.Law(count_tables.project(noisy, sizes), self.law.observed)


@dataclass(frozen=True)
class Setup:
    """A model of events, on which rows (methods at their settings) make releases and run chains.

    Every row has its own account, and every repeat its own budget. A repeat is a split of one data set, a simulated
    data set, or a release.

    Attributes:
        model: cells, fields, states and prior.
        n: public number of events.
        seeding: the search for seeded starts.
        iterations, burn_in, aware_iterations, aware_burn_in, private_iterations: lengths of chains, as in `CHAINS`.
    """

    model: EventCounts
    n: int
    seeding: Seeding | None = None
    iterations: int = 1
    burn_in: int = 0
    aware_iterations: int = 2
    aware_burn_in: int = 1
    private_iterations: int = 2

    @classmethod
    def of(cls, model: EventCounts, n: int, settings) -> Setup:
        """Return the setup for a model and n events, with the settings `CHAINS` of a study."""
        names = ("iterations", "burn_in", "aware_iterations", "aware_burn_in", "private_iterations")
        lengths = {name: getattr(settings, name) for name in names if hasattr(settings, name)}
        return cls(model, n, Seeding(settings.starts, settings.start_iterations), **lengths)

    @cached_property
    def prior(self) -> gibbs.Prior:
        """The model's prior in the form that the samplers take."""
        return prior_of(self.model)

    @cached_property
    def layout(self) -> gibbs.Layout:
        """Marks of the first and of the last cell of each region."""
        return gibbs.Layout.of(self.model.regions)

    def length(self, row: Row) -> tuple[int, int]:
        """Return the number of iterations of a row's chains, and the number of burn-in iterations."""
        if row.method == "private_gibbs":
            return self.private_iterations, 0
        return (self.aware_iterations, self.aware_burn_in) if row.method == "gibbs" else (self.iterations, self.burn_in)

    def start(self, row: Row) -> Seeding | None:
        """Return the search for a row's seeded start, or None if the start is random."""
        return self.seeding if row.start == "seeded" else None

    def mechanism(self, row: Row) -> EventCountsLaplace | HiddenMarkovSampler | None:
        """Return the mechanism of a row, or None for the non-private reference."""
        if row.method == "non_private":
            return None
        given = self.model, self.n, row.epsilon
        if row.method not in SAMPLED:
            return EventCountsLaplace(*given)
        settings = {"truncation": row.truncation, "iterations": self.length(row)[0]}
        if row.method == "private_gibbs":
            return PrivateGibbs(*given, **settings)
        seeding = self.start(row)
        return HiddenMarkovSampler(*given, **settings, tempered_prior=row.prior == "tempered", seeding=seeding)

    def open(self, ledger: Ledger, all_rows: Iterable[Row]) -> None:
        """Open a ledger account for each private row, with the row's ε."""
        for row in all_rows:
            if row.method != "non_private":
                ledger.open(row.account, Cost("pure", row.epsilon), partial(self.mechanism, row))

    def noisy(self, ledger: Ledger, row: Row, counts, noise: Common, repeats: slice) -> np.ndarray:
        """Return noisy counts (repeats, cells, levels). All repeats may share one data set `counts` (cells, levels)."""
        mechanism, size = self.mechanism(row), repeats.stop - repeats.start if np.ndim(counts) == 2 else None
        statistics = counts.reshape(-1) if size else counts.reshape(len(counts), -1)
        release = ledger.release(row.account, mechanism, statistics, noise, size=size, repeats=repeats)
        return self.model.tables(release.values)

    def given(self, ledger: Ledger, row: Row, counts, noise: Common, repeats: slice, observed, split) -> Run:
        """Return the `Run` of a row. If the row's chains read noisy counts, these counts are released.

        Args:
            counts, repeats: as in `noisy`.
            noise: noise that all rows share, so that their releases at one ε are equal.
            observed: mask (chains, cells) of the cells that are not held out.
            split: index (chains,) of the repeat whose data set a chain reads.
        """
        mechanism = self.mechanism(row)
        if row.method in ("non_private", *SAMPLED):
            own = counts if np.ndim(counts) == 2 else counts[split]
            law = mechanism.law(own, observed) if mechanism else gibbs.Law(own, observed)
            return Run(row, mechanism, law)
        noisy = self.noisy(ledger, row, counts, noise, repeats)
        if row.method == "gibbs":
            return Run(row, mechanism, event_counts.NoisyCounts(noisy[split], observed, mechanism.scale, self.n))
        valid, own = count_tables.processed(noisy, self.model.sizes, row.variant), observed[: len(noisy)]
        clipped = np.mean(((valid <= 0) & (noisy != 0))[own]) if row.variant != "sums" else np.nan
        return Run(row, mechanism, gibbs.Law(valid[split], observed), float(clipped))

    def follow(self, ledger: Ledger, run: Run, rng, repeats: slice, watch: Callable | None) -> gibbs.End:
        """Run a row's chains to their end. The ledger charges the draws of methods that release draws (`SAMPLED`).

        The first chains are released, one per repeat. The other chains are for diagnosis. `watch` is None or a function
        that gets the number of each iteration and the chains' `State`.
        """
        row, size, iterations = run.row, repeats.stop - repeats.start, self.length(run.row)[0]
        if row.method in SAMPLED:
            # The counts are one data set for all repeats, or one data set for each repeat.
            counts = run.law.counts.reshape((-1,) if run.law.counts.ndim == 2 else (size, -1))
            watched = {"observed": run.law.observed, "watch": watch}
            given = {"size": size if counts.ndim == 1 else None, "repeats": repeats, **watched}
            return ledger.release(row.account, run.mechanism, counts, rng, **given).info
        kind = event_counts.Chains if row.method == "gibbs" else gibbs.Chains
        sampler = kind(run.law, self.layout, self.prior, self.start(row))
        return gibbs.follow(sampler, rng, iterations, watch)


def guarantee(setup: Setup, row: Row, converged: bool) -> dict:
    """Return the condition under which a row's ε holds, the temperature, and the ε if the condition fails."""
    if row.method == "non_private":
        return {"guarantee": None, "temperature": None, "worst_case_epsilon": None}
    mechanism = setup.mechanism(row)
    condition, worst = "unconditional", mechanism.cost().epsilon
    if row.method == "ops" and row.n_states > 1:
        condition, worst = "if_converged", mechanism.unconverged_cost()
        if row.start == "seeded" and not converged:
            # A seeded start depends on the events, so there is no guarantee without convergence.
            condition, worst = "none", None
    temperature = getattr(mechanism, "temperature", None)
    return {"guarantee": condition, "temperature": temperature, "worst_case_epsilon": worst}


def without_level(logs, level: str):
    """Return the logs without one level of a field and without cells that become empty. `none` keeps all levels."""
    if level == "none":
        return logs
    columns = np.array([word != level for levels in logs.levels.values() for word in levels])
    counts = logs.counts[:, columns]
    full = counts.sum(axis=1) > 0
    levels = {field: [word for word in levels if word != level] for field, levels in logs.levels.items()}
    parts = {name: getattr(logs, name)[full] for name in ("region", "month")}
    return logs._replace(counts=counts[full], levels=levels, truth=None, **parts)


def setup_of(config, logs, n_states: int) -> Setup:
    """Return the setup of a model with `n_states` states for war logs. Naive Bayes (one state) has a single cell."""
    concentrations = {"transition": config.transition_concentration, "emission": config.emission_concentration}
    region = logs.region if n_states > 1 else [0]
    model = EventCounts.of(region, tuple(logs.sizes), n_states, **concentrations)
    return Setup.of(model, int(logs.counts[:, : logs.sizes[0]].sum()), config)


def uses_private_metadata(dataset: str) -> bool:
    """Return whether private records determine the cells, regions or levels of a data set."""
    # As in the paper, real data sets leave out empty cells. Simulated data sets do not.
    return catalogue.load(dataset).access != "generated"
