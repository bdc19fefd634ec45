"""Held-out likelihood of naive Bayes and hidden Markov models on war logs: splits, draws and scores.

All methods see the same held-out cells. Methods that read noisy counts share the noise. More splits leave the first
splits unchanged.
"""

import math
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np
from scipy.special import logsumexp

from privpost.distributions.noise import Common
from privpost.experiments.foulds2016.convergence import ARRAYS, Diagnosis
from privpost.experiments.foulds2016.event_methods import SAMPLED, Row, Setup
from privpost.lab.streams import Block
from privpost.samplers.hidden_markov import gibbs
from privpost.samplers.noise_aware import exact_counts

# Splits that share a stream of random numbers.
BLOCK = 10
# How draws are scored: by the mean likelihood of all held-out cells together (as in the paper), by each cell's mean
# likelihood, or by the last draw alone.
SCORES = ("joint", "predictive", "one_draw")


class Data(NamedTuple):
    """Counts (cells, levels), indices (splits, held) of held-out cells, and mask (splits, cells) of observed cells."""

    counts: np.ndarray
    sites: np.ndarray
    observed: np.ndarray

    @property
    def test(self) -> np.ndarray:
        """Counts (splits, held, levels) of the held-out cells."""
        return self.counts[self.sites]


def split_cells(counts, held_out: float, size: int, rng) -> Data:
    """Return `size` random splits, each of which holds out the share `held_out` of the cells."""
    n_cells = len(counts)
    sites = np.sort([rng.permutation(n_cells)[: max(1, round(held_out * n_cells))] for _ in range(size)], axis=1)
    observed = np.ones((size, n_cells), bool)
    np.put_along_axis(observed, sites, False, axis=1)
    return Data(counts, sites, observed)


def blocks(splits: int) -> Iterator[Block]:
    """Yield blocks of `BLOCK` splits. The last block may be smaller."""
    for index, start in enumerate(range(0, splits, BLOCK)):
        stop = min(splits, start + BLOCK)
        yield Block(index, stop - start, slice(start, stop))


def evaluate(
    setup: Setup, all_rows: Sequence[Row], counts, held_out: float, splits: int, releases: int, chains: int, streams,
    ledger,
) -> dict[str, np.ndarray]:  # fmt: skip
    """Return scores on held-out cells, and convergence checks, for all rows of a model.

    Args:
        counts: counts (cells, levels) of events.
        held_out: share of the cells that a split holds out.
        releases: number of released draws per split. Their scores are averaged. Each draw has its own budget.
        chains: number of chains on the first split's release. Chains beyond the released ones are for diagnosis only.
        streams: random streams of the data set, so that all cells of the grid share its splits and noise.

    Returns:
        `SCORES` (rows, splits) are log-likelihoods without multinomial coefficients. `events` (splits,) is the number
        of held-out events. `clipped` and `convergence.ARRAYS` (rows,) describe the first splits. They are nan for rows
        to which they do not apply.
    """
    setup.open(ledger, all_rows)
    scores = {name: np.empty((len(all_rows), splits)) for name in SCORES}
    checks = {name: np.full(len(all_rows), np.nan) for name in ("clipped", *ARRAYS)}
    events = np.empty(splits)
    draws_of = _exact_draws if setup.model.n_states == 1 else chain_draws
    for block in blocks(splits):
        data = split_cells(counts, held_out, block.size, streams("data", block.index))
        events[block.trials] = data.test[..., : setup.model.sizes[0]].sum(axis=(1, 2))
        noise = Common(streams("mechanism", block.index, model=all_rows[0].model))
        for index, row in enumerate(all_rows):
            rng = streams("sampler", block.index, **row._asdict())
            number = releases if row.method in SAMPLED else 1
            repeats = slice(block.trials.start * number, block.trials.stop * number)
            split = np.repeat(np.arange(block.size), number)
            more = max(0, chains - number) if block.index == 0 else 0
            held, seen = draws_of(setup, row, data, split, more, noise, repeats, rng, ledger)
            for name, values in scored(held).items():
                scores[name][index, block.trials] = values.reshape(block.size, number).mean(axis=1)
            for name, value in seen.items() if block.index == 0 else ():
                checks[name][index] = value
    return {**scores, "events": events, **checks}


def scored(held) -> dict[str, np.ndarray]:
    """Return each of the `SCORES` (chains,), given log-likelihoods (draws, chains, held-out cells)."""
    log_mean = lambda logs: logsumexp(logs, axis=0) - math.log(len(logs))  # noqa: E731
    together = held.sum(axis=-1)
    return dict(zip(SCORES, (log_mean(together), log_mean(held).sum(axis=-1), together[-1]), strict=True))


def _exact_draws(setup: Setup, row: Row, data: Data, split, more: int, noise, repeats, rng, ledger):
    """Return log-likelihoods (draws, releases, held-out cells) of a one-state model's draws, and `clipped`."""
    totals, n_draws, seen = (data.observed @ data.counts)[split, None], setup.iterations - setup.burn_in, {}
    if row.method == "ops":
        law = ledger.release(row.account, setup.mechanism(row), totals[:, 0], rng, repeats=repeats).values
        draws = np.log(law.swapaxes(0, 1))
    elif row.method == "gibbs":
        noisy = setup.noisy(ledger, row, totals, noise, repeats)
        scale, b = setup.mechanism(row).scale, setup.model.emission
        # The held-out cells may hold any part of the public number of events.
        given = (setup.model.sizes, b, setup.n, scale, n_draws, rng)
        drawn = [exact_counts.class_counts(release, *given, elsewhere=True)[:, 0] for release in noisy]
        draws = exact_counts.log_dirichlet(b + np.stack(drawn, axis=1), setup.prior.fields, rng)
    else:
        run = setup.given(ledger, row, totals, noise, repeats, np.ones(totals.shape[:2], bool), np.arange(len(split)))
        given = np.broadcast_to(run.law.counts[:, 0], (n_draws, len(split), totals.shape[-1]))
        draws, seen = np.log(gibbs.draw_emissions(run.law, given, setup.prior, rng)[0]), {"clipped": run.clipped}
    return np.einsum("dcv,csv->dcs", draws, data.test[split]), seen


def chain_draws(setup: Setup, row: Row, data: Data, split, more: int, noise, repeats, rng, ledger):
    """Return log-likelihoods (draws, releases, held-out cells) of a row's chains, and `clipped` with `ARRAYS`."""
    # `more` chains on the first split are for diagnosis only.
    released, split = len(split), np.concatenate([split, np.zeros(more, int)])
    sites, test = data.sites[split], data.test[split]
    run = setup.given(ledger, row, data.counts, noise, repeats, data.observed[split], split)
    held, burn_in = [], setup.length(row)[1]
    # A chain that pays for its updates need not converge.
    watched = np.flatnonzero(split == 0) if row.method != "private_gibbs" else []
    diagnosis = Diagnosis(run.traced, setup.layout, setup.prior, watched, burn_in) if len(watched) > 1 else None

    def watch(iteration, state):
        if iteration >= burn_in:
            held.append(held_out_likelihood(state, sites, test, setup.layout, setup.prior))
            if diagnosis is not None:
                diagnosis(iteration, state)

    setup.follow(ledger, run, rng, repeats, watch)
    logs, seen = np.stack(held), {"clipped": run.clipped}
    if diagnosis is not None:
        seen |= diagnosis.summary(logs[:, watched].sum(axis=-1))
    # A method that releases its last draw is scored by this draw.
    return (logs[-1:] if row.method in SAMPLED else logs)[:, :released], seen


def held_out_likelihood(state: gibbs.State, sites, test, layout: gibbs.Layout, prior: gibbs.Prior) -> np.ndarray:
    """Return the log-likelihood (chains, held) of each held-out cell, given the states of all other cells.

    Args:
        sites: held-out cells (chains, held).
        test: counts (chains, held, levels) of the held-out cells.
    """
    weights = gibbs.site_prior(state.states, state.transitions, sites.T, layout, prior.transition)
    scores = state.log_probabilities @ test.transpose(0, 2, 1)
    return logsumexp(scores + np.log(weights).transpose(2, 1, 0), axis=1)
