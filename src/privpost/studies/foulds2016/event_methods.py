"""Methods on events counted in cells: their rows, accounts, releases and chains, for all studies on such counts."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np

from privpost.distributions.noise import Common
from privpost.evaluation.diagnostics import ess_bulk, rhat
from privpost.mechanisms.event_counts import EventCountsLaplace, HiddenMarkovSampler, chains_of, prior_of
from privpost.models.event_counts import EventCounts
from privpost.privacy import count_tables
from privpost.privacy.accounting import Cost
from privpost.privacy.ledger import Ledger, Release, Request
from privpost.samplers import hidden_markov_gibbs as gibbs
from privpost.samplers import noise_aware_events


class Row(NamedTuple):
    """One method at one setting: variant is the Laplace mechanism's, truncation that of OPS."""

    model: str
    method: str
    variant: str | None
    truncation: float | None
    epsilon: float | None

    @property
    def account(self) -> str:
        """The name of the row in the ledger."""
        named = [f"{key}={value:g}" if key != "variant" else value for key, value in self.key().items() if value]
        return "/".join([self.model, self.method, *named])

    def key(self) -> dict:
        """What, beside the model and the method, names the row's random streams."""
        return {"variant": self.variant, "truncation": self.truncation, "epsilon": self.epsilon}


def rows(config, model: str, epsilons: Iterable[float | None]) -> list[Row]:
    """The methods of one model at all their settings, from the within axes."""
    listed = []
    for method in config.method:
        variants = config.variant if method == "laplace" else [None]
        truncations = config.truncation if method == "ops" else [None]
        of_method = [None] if method == "non_private" else epsilons
        listed += [Row(model, method, v, t, epsilon) for epsilon in of_method for v in variants for t in truncations]
    return listed


def post_process(noisy, sizes, variant: str) -> np.ndarray:
    """Return valid counts: clipped at 0 (`paper`), or projected with each field's noisy sum kept (`corrected`)."""
    return count_tables.clip(noisy) if variant == "paper" else count_tables.project(noisy, sizes)


def diagnosed(traces) -> tuple[float, float]:
    """Largest R-hat and smallest bulk ESS of traces (draws, chains); nan for fewer than 4 draws."""
    if len(traces[0]) < 4:
        return math.nan, math.nan
    return max(float(rhat(trace)) for trace in traces), min(float(ess_bulk(trace)) for trace in traces)


class Chains(NamedTuple):
    """What the chains of a row run on.

    `counts` are exact for OPS and the non-private reference, else processed noisy ones or the start of `latent` ones;
    `observed` (chains, cells) leaves held-out cells out; `clipped` is the share of observed counts that processing
    set to 0.
    """

    row: Row
    counts: np.ndarray
    observed: np.ndarray
    rng: np.random.Generator
    latent: noise_aware_events.LatentCounts | None = None
    clipped: float = math.nan


@dataclass(frozen=True)
class Setup:
    """A model of events, and how its rows are released and sampled.

    The repeats of a study, be they splits of one data set or simulated data sets, are repeats of a simulation: each is
    an account of its own. Every row has its own account; rows at one ε that are handed the same noise read the same
    release.

    Attributes:
        model: cells, fields, states and prior.
        n: public number of events.
        iterations: Gibbs iterations of each chain.
        tempered_prior: whether OPS tempers the prior.
        epsilon: ε of rows that name none.
    """

    model: EventCounts
    n: int
    iterations: int = 1
    tempered_prior: bool = True
    epsilon: float | None = None

    @cached_property
    def prior(self) -> gibbs.Prior:
        """The model's prior as the samplers take it."""
        return prior_of(self.model)

    @cached_property
    def layout(self) -> gibbs.Layout:
        """Which of the model's cells are neighbours."""
        return gibbs.Layout.of(self.model.regions)

    def mechanism(self, row: Row) -> EventCountsLaplace | HiddenMarkovSampler | None:
        """What releases for a row; None for the non-private reference."""
        if row.method == "non_private":
            return None
        epsilon = row.epsilon or self.epsilon
        if row.method != "ops":
            return EventCountsLaplace(self.model, self.n, epsilon)
        settings = {"iterations": self.iterations, "tempered_prior": self.tempered_prior}
        return HiddenMarkovSampler(self.model, self.n, epsilon, truncation=row.truncation, **settings)

    def open(self, ledger: Ledger, listed: Iterable[Row]) -> None:
        """Open the rows' accounts with the ε of the configuration, before anything is drawn."""
        for row in listed:
            if row.method != "non_private":
                ledger.open(row.account, Cost("pure", row.epsilon or self.epsilon), self.mechanism(row))

    def noisy(self, ledger: Ledger, row: Row, counts, noise: Common, repeats: slice) -> np.ndarray:
        """Release counts with Laplace noise, shape (repeats, cells, levels).

        Args:
            counts: (repeats, cells, levels), or (cells, levels) for all of them.
            noise: of all rows, so that their releases at one ε are the same.
        """
        size = repeats.stop - repeats.start if np.ndim(counts) == 2 else None
        statistics = counts.reshape(-1) if size else counts.reshape(len(counts), -1)
        mechanism = self.mechanism(row)
        found = ledger.release(row.account, mechanism, statistics, noise, size=size, repeats=repeats)
        return self.model.tables(found.values)

    def chains(self, ledger, row, counts, noise, repeats, rng, observed, split, n_held=None) -> Chains:
        """What the chains of a row run on, with the release that it takes if it is one of noisy counts.

        Args:
            counts, noise, repeats: as in `noisy`.
            observed: (chains, cells).
            split: the repeat of each chain.
            n_held: number of cells that may hold events of the public n but are not observed (as in `LatentCounts`).
        """
        if row.method in ("non_private", "ops"):
            return Chains(row, counts, observed, rng)
        noisy = self.noisy(ledger, row, counts, noise, repeats)
        if row.method == "gibbs":
            scale = self.mechanism(row).scale
            latent = noise_aware_events.LatentCounts(noisy[split], observed, self.prior, scale, self.n, n_held)
            return Chains(row, latent.start()[0], observed, rng, latent)
        valid = post_process(noisy, self.model.sizes, row.variant)
        clipped = np.mean(((valid == 0) & (noisy != 0))[observed[: len(noisy)]])
        return Chains(row, valid[split], observed, rng, clipped=float(clipped))

    def run(
        self, ledger: Ledger, listed: Sequence[Chains], watches: Sequence[Callable | None], repeats: slice
    ) -> list[Release]:
        """Run all chains to their end, OPS's through the gate.

        Of OPS's chains one final sample is released for each repeat; what a watch sees of them before that, and further
        chains, are for diagnosis. The others are the non-private reference, and post-processing of noisy counts; they
        run beside, those on known counts in the same batch.

        Args:
            watches: for each row None, or a function of the iteration's number and the row's `State`.

        Returns:
            For each row the emissions' probabilities (repeats or chains, K, levels), and the chains' `End` as info.
        """
        others = {
            index: (gibbs.Group(chains.counts, chains.observed), chains.rng, watches[index])
            for index, chains in enumerate(listed)
            if chains.row.method != "ops"
        }
        found: dict[int, Release] = {}
        private = [index for index in range(len(listed)) if index not in others]
        if private:
            beside = [index for index in others if listed[index].latent is None]
            requests = [self._request(listed[index], watches[index], repeats) for index in private]
            requests[0].settings["beside"] = [others[index] for index in beside]
            found.update(zip(private, ledger.release_all(requests), strict=True))
            found.update(zip(beside, map(_ended, found[private[0]].info.beside), strict=True))
        for latent in (False, True):
            rest = [index for index in others if index not in found and (listed[index].latent is not None) == latent]
            if not rest:
                continue
            groups, rngs, chosen = zip(*(others[index] for index in rest), strict=True)
            if latent:
                latents = [listed[index].latent for index in rest]
                sampler = noise_aware_events.Chains(latents, self.layout, self.prior)
            else:
                sampler = chains_of(self.model, groups)
            found.update(zip(rest, map(_ended, gibbs.follow(sampler, rngs, self.iterations, chosen)), strict=True))
        return [found[index] for index in range(len(listed))]

    def _request(self, chains: Chains, watch, repeats: slice) -> Request:
        settings = {"observed": chains.observed, "watch": watch}
        size = repeats.stop - repeats.start
        mechanism, counts = self.mechanism(chains.row), chains.counts.reshape(-1)
        return Request(chains.row.account, mechanism, counts, chains.rng, size, repeats, settings)


def _ended(end: gibbs.End) -> Release:
    return Release(end.state.probabilities, end)
