"""Methods on events counted in cells: their rows, accounts, releases and chains, for all studies of such counts."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import NamedTuple

import numpy as np

from privpost.distributions.noise import Common
from privpost.lab.schema import SettingError
from privpost.mechanisms.event_counts import EventCountsLaplace, HiddenMarkovSampler, chains_of, prior_of
from privpost.mechanisms.private_gibbs import PrivateGibbs
from privpost.models.event_counts import EventCounts
from privpost.privacy import count_tables
from privpost.privacy.accounting import Cost
from privpost.privacy.ledger import Ledger, Release
from privpost.samplers import hidden_markov_gibbs as gibbs
from privpost.samplers import hidden_markov_sets, noise_aware_events
from privpost.samplers.hidden_markov_collapsed import Annealing
from privpost.samplers.hidden_markov_sets import Islands

# Methods that release draws from a posterior given the exact events.
SAMPLED = ("ops", "private_gibbs")
# Methods whose collapsed chains remember weights of sets of cells (`hidden_markov_sets`), by the setting's value.
REMEMBERED = {"none": (), "laplace": ("laplace",), "all": ("laplace", "non_private")}


class Row(NamedTuple):
    """One method at one setting: variant is the Laplace mechanism's, truncation that of OPS.

    `sampler` is `paper` (explicit emissions, one random start) or `collapsed` (annealed starts); None of exact draws.
    """

    model: str
    method: str
    variant: str | None
    truncation: float | None
    epsilon: float | None
    sampler: str | None = "paper"

    @property
    def account(self) -> str:
        """The name of the row in the ledger."""
        named = [value if isinstance(value, str) else f"{key}={value:g}" for key, value in self.key().items() if value]
        return "/".join([self.model, self.method, *named])

    def key(self) -> dict:
        """Return what names the row's random streams, beside the model and the method."""
        named = {"sampler": self.sampler} if self.sampler == "collapsed" else {}
        return {"variant": self.variant, "truncation": self.truncation, "epsilon": self.epsilon, **named}


def rows(config, model: str, epsilons: Iterable[float | None]) -> list[Row]:
    """Return one model's methods at all their settings, from the within axes."""
    result = []
    for method in config.method:
        variants = config.variant if method == "laplace" else [None]
        truncations = config.truncation if method in SAMPLED else [None]
        of_method = [None] if method == "non_private" else epsilons
        samplers = getattr(config, "sampler", ["paper"])
        if model == "naive_bayes":
            if method == "private_gibbs":
                continue
            samplers = [None]
        elif method in ("private_gibbs", "gibbs"):
            samplers = ["paper"]
        result += [
            Row(model, method, v, t, epsilon, sampler)
            for sampler in samplers
            for epsilon in of_method
            for v in variants
            for t in truncations
        ]
    return result


def post_process(noisy, sizes, variant: str) -> np.ndarray:
    """Return valid counts: clipped at 0 (`paper`), or projected with each field's noisy sum kept (`corrected`)."""
    return count_tables.clip(noisy) if variant == "paper" else count_tables.project(noisy, sizes)


class Chains(NamedTuple):
    """What the chains of a row run on.

    Attributes:
        counts: exact counts (OPS, non-private), processed noisy counts, or the start of `latent` counts.
        observed: whether a cell is not held out (chains, cells).
        clipped: share of observed counts that processing set to 0.
    """

    row: Row
    counts: np.ndarray
    observed: np.ndarray
    rng: np.random.Generator
    latent: noise_aware_events.LatentCounts | None = None
    clipped: float = math.nan

    def of_first(self, number: int) -> Chains:
        """Return `number` further chains on the counts of the first one."""
        take = lambda values: np.repeat(values[:1], number, axis=0)  # noqa: E731
        counts = self.counts if self.counts.ndim == 2 else take(self.counts)
        latent = None if self.latent is None else self.latent.of_first(number)
        return self._replace(counts=counts, observed=take(self.observed), latent=latent)


@dataclass(frozen=True)
class Setup:
    """A model of events, and how its rows are released and sampled.

    Every row has its own account, and every repeat (a split of one data set, or a simulated data set) its own budget.
    Rows at one ε that are given the same noise read the same release.

    Attributes:
        model: cells, fields, states and prior.
        n: public number of events.
        iterations, burn_in: Gibbs iterations of a chain, and how many of these are burn-in.
        tempered_prior: whether OPS tempers the prior.
        epsilon: ε of rows that name none.
        rounds, rounds_burn_in, annealing: the same of the collapsed sampler, and its starts.
        remembered, islands: methods whose collapsed chains remember sets of cells, and how they search.
        ops_rounds: rounds of OPS where they are fewer; a quarter of them comes after burn-in.
        search_limit: temperature T above which a chain of OPS is cooled once, without any further search for a start.
        exact_rounds: rounds on the exact counts where they are more; half of them comes after burn-in.
        private_iterations: iterations of a chain that pays for every update.
    """

    model: EventCounts
    n: int
    iterations: int = 1
    tempered_prior: bool = True
    epsilon: float | None = None
    burn_in: int = 0
    rounds: int = 1
    rounds_burn_in: int = 0
    annealing: Annealing | None = None
    remembered: tuple[str, ...] = ()
    islands: Islands | None = None
    ops_rounds: int | None = None
    search_limit: float = math.inf
    exact_rounds: int | None = None
    private_iterations: int = 2

    @classmethod
    def of(cls, config, model: EventCounts, n: int) -> Setup:
        """Return the setup with a study's settings; what the study does not have keeps its default."""
        names = "iterations", "burn_in", "rounds", "rounds_burn_in", "ops_rounds", "search_limit", "exact_rounds"
        names += ("private_iterations",)
        given = {name: getattr(config, name) for name in names if hasattr(config, name)}
        if hasattr(config, "resplits"):
            replicas = getattr(config, "replicas", 1)
            given["annealing"] = Annealing(config.hottest, config.resplits, replicas=replicas)
            given |= {"remembered": REMEMBERED[config.remembered], "islands": Islands(config.agree, config.islands)}
        return cls(model, n, tempered_prior=getattr(config, "prior", "tempered") == "tempered", **given)

    def same_law(self, all_rows: Sequence[Row], row: Row) -> list[int]:
        """Return the places of the rows whose chains have the law of this row's chains, by any sampler."""
        return [index for index, other in enumerate(all_rows) if other._replace(sampler=row.sampler) == row]

    def length(self, row: Row) -> tuple[int, int]:
        """Iterations of a row's chains, and how many are burn-in; an iteration of remembered rows is several rounds."""
        if row.method == "private_gibbs":
            return self.private_iterations, 0
        if row.sampler != "collapsed":
            return self.iterations, self.burn_in
        if row.method == "ops" and self.ops_rounds:
            return self.ops_rounds, self.ops_rounds * 3 // 4
        if row.method in self.remembered:
            burn_in = self.rounds_burn_in // self.islands.rounds
            return max(burn_in + 1, self.rounds // self.islands.rounds), burn_in
        if row.method == "non_private" and (self.exact_rounds or 0) > self.rounds:
            return self.exact_rounds, self.exact_rounds // 2
        return self.rounds, self.rounds_burn_in

    def search(self, row: Row) -> Annealing | Islands | None:
        """How a row's chains search for a start; None of the paper's sampler.

        The variance over the mean of clipped Laplace noise grows like 1/ε, and so do differences of the joint: the
        search starts hotter. A wide law of OPS has its mass away from the best partition: its chains only cool.
        """
        if row.sampler != "collapsed" or self.annealing is None:
            return None
        if row.method in self.remembered:
            return self.islands
        epsilon, annealing = row.epsilon or self.epsilon, self.annealing
        if row.method == "ops":
            wide = count_tables.temperature(self.model.sizes, row.truncation, epsilon) > self.search_limit
            return replace(annealing, resplits=0, members=1) if wide else annealing
        if row.method == "laplace":
            return replace(annealing, hottest=max(1.0, 1 / epsilon) * annealing.hottest)
        return annealing

    @cached_property
    def prior(self) -> gibbs.Prior:
        """The model's prior in the samplers' form."""
        return prior_of(self.model)

    @cached_property
    def layout(self) -> gibbs.Layout:
        """The neighbours of the model's cells."""
        return gibbs.Layout.of(self.model.regions)

    def mechanism(self, row: Row) -> EventCountsLaplace | HiddenMarkovSampler | None:
        """Return the mechanism of a row; None for the non-private reference."""
        if row.method == "non_private":
            return None
        epsilon = row.epsilon or self.epsilon
        if row.method not in SAMPLED:
            return EventCountsLaplace(self.model, self.n, epsilon)
        iterations, burn_in = self.length(row)
        settings = {"truncation": row.truncation, "iterations": iterations, "tempered_prior": self.tempered_prior}
        if row.method == "private_gibbs":
            return PrivateGibbs(self.model, self.n, epsilon, **settings)
        annealing = self.search(row)
        return HiddenMarkovSampler(self.model, self.n, epsilon, **settings, burn_in=burn_in, annealing=annealing)

    def open(self, ledger: Ledger, all_rows: Iterable[Row]) -> None:
        """Open the rows' accounts at their ε."""
        for row in all_rows:
            if row.method != "non_private":
                ledger.open(row.account, Cost("pure", row.epsilon or self.epsilon), partial(self.mechanism, row))

    def noisy(self, ledger: Ledger, row: Row, counts, noise: Common, repeats: slice) -> np.ndarray:
        """Release counts with Laplace noise, shape (repeats, cells, levels).

        Args:
            counts: (repeats, cells, levels), or (cells, levels) for all repeats.
            noise: noise of all rows, whose releases at one ε are equal.
        """
        size = repeats.stop - repeats.start if np.ndim(counts) == 2 else None
        statistics = counts.reshape(-1) if size else counts.reshape(len(counts), -1)
        mechanism = self.mechanism(row)
        release = ledger.release(row.account, mechanism, statistics, noise, size=size, repeats=repeats)
        return self.model.tables(release.values)

    def chains(self, ledger, row, counts, noise, repeats, rng, observed, split, n_held=None) -> Chains:
        """Return what the chains of a row run on, and make the release if it reads noisy counts.

        Args:
            counts, noise, repeats: as in `noisy`.
            observed: (chains, cells).
            split: the repeat of each chain.
            n_held: number of unobserved cells that may hold events of the public n, as in `LatentCounts`.
        """
        if row.method in ("non_private", *SAMPLED):
            return Chains(row, counts, observed, rng)
        noisy = self.noisy(ledger, row, counts, noise, repeats)
        if row.method == "gibbs":
            scale = self.mechanism(row).scale
            latent = noise_aware_events.LatentCounts(noisy[split], observed, self.prior, scale, self.n, n_held)
            return Chains(row, latent.start()[0], observed, rng, latent)
        valid = post_process(noisy, self.model.sizes, row.variant)
        clipped = np.mean(((valid == 0) & (noisy != 0))[observed[: len(noisy)]])
        return Chains(row, valid[split], observed, rng, clipped=float(clipped))

    def law(self, chains: Chains) -> gibbs.Group:
        """Return what a row's chains run on, with the temperatures and truncation of their law."""
        given = chains.counts, chains.observed
        return self.mechanism(chains.row).law(*given) if chains.row.method in SAMPLED else gibbs.Group(*given)

    def sampler(self, chains: Chains):
        """What runs a row's chains, except chains that pay for their updates."""
        burn_in, search = self.length(chains.row)[1], self.search(chains.row)
        if chains.latent is not None:
            return noise_aware_events.Chains([chains.latent], self.layout, self.prior, burn_in)
        try:
            if isinstance(search, Islands):
                given = [self.law(chains)], self.layout, self.prior, search
                return hidden_markov_sets.Chains(*given, *self.length(chains.row))
            return chains_of(self.model, [self.law(chains)], search, burn_in)
        except ValueError as error:
            if chains.row.method != "laplace":
                raise
            # Noise too wide for the collapsed sampler.
            raise SettingError(f"epsilon is {chains.row.epsilon or self.epsilon!r}, but {error}") from error

    def follow(self, chains: Chains, watch: Callable | None) -> gibbs.End:
        """Run to their end chains that release nothing: post-processing, without privacy, or for diagnosis."""
        return gibbs.follow(self.sampler(chains), [chains.rng], self.length(chains.row)[0], [watch])[0]

    def run(
        self, ledger: Ledger, listed: Sequence[Chains], watches: Sequence[Callable | None], repeats: slice
    ) -> list[Release]:
        """Run all chains, and chains on exact events through the ledger.

        OPS releases one final sample per repeat; what a watch sees before that, and further chains, are for diagnosis.
        The other chains are the non-private reference, or post-process noisy counts.

        Args:
            watches: for each row None, or a function of the iteration's number and the row's `State`.

        Returns:
            The emission probabilities (repeats or chains, K, levels) of each row, with the chains' `End` as info.
        """
        size = repeats.stop - repeats.start
        releases = []
        for chains, watch in zip(listed, watches, strict=True):
            row = chains.row
            if row.method in SAMPLED:
                settings = {"observed": chains.observed, "watch": watch}
                # One data set for all repeats, or one for each.
                shape, size_each = ((-1,), size) if chains.counts.ndim == 2 else ((size, -1), None)
                given = self.mechanism(row), chains.counts.reshape(shape), chains.rng
                releases.append(ledger.release(row.account, *given, size=size_each, repeats=repeats, **settings))
            else:
                end = self.follow(chains, watch)
                releases.append(Release(end.state.probabilities, end))
        return releases
