"""Compiled sweeps of the chains on a Bayesian network's table of records.

All chains take the same step at once.
"""

from typing import NamedTuple

import numpy as np

from privpost.samplers.compiled import bare, inner, outer


class Steps(NamedTuple):
    """All moves and shifts as arrays.

    The part of step k in a list begins at `first_…[k]` and ends before `first_…[k + 1]`.

    Attributes:
        theta: index of the probability θ that each step shifts, −1 for a move; shape (steps,).
        source, sink: pairs of cells between which a step carries records.
        counts: the counts that a step changes.
        weighed: for each changed count, where its values begin in the table of ln Γ; −1 for counts of the shifted θ.
        by: how much each changed count changes per record carried in each pair of cells; pairs vary fastest.
        totals, totals_by: as `counts` and `by`, for the numbers of records with each configuration of the parents.
    """

    theta: np.ndarray
    first_pair: np.ndarray
    source: np.ndarray
    sink: np.ndarray
    first_count: np.ndarray
    counts: np.ndarray
    weighed: np.ndarray
    first_by: np.ndarray
    by: np.ndarray
    first_total: np.ndarray
    totals: np.ndarray
    first_totals_by: np.ndarray
    totals_by: np.ndarray

    @classmethod
    def of(cls, steps, cell_counts, n: int) -> "Steps":
        """Return the arrays for a list of steps.

        Each step is given as the index of θ (−1 for a move), the cells that records leave, and the cells that records
        enter. `cell_counts` (2^|I|, 2m) holds the counts of one record in each cell, and n is the number of records.
        """
        rows = []
        for theta, source, sink in steps:
            by = (cell_counts[sink] - cell_counts[source]).T
            totals_by = by.reshape(-1, 2, len(source)).sum(axis=1)
            counts, totals = np.flatnonzero(by.any(axis=1)), np.flatnonzero(totals_by.any(axis=1))
            # The table has the values for ones, then the values for zeros.
            weighed = np.where(counts // 2 == theta, -1, counts % 2 * (n + 1))
            rows.append((source, sink, counts, weighed, by[counts].ravel(), totals, totals_by[totals].ravel()))
        columns = list(zip(*rows, strict=True))
        firsts = [np.cumsum([0, *map(len, column)]) for column in columns]
        source, sink, counts, weighed, by, totals, totals_by = (np.concatenate(c).astype(np.int64) for c in columns)
        return cls(
            np.array([theta for theta, _, _ in steps]), firsts[0], source, sink, firsts[2], counts, weighed,
            firsts[4], by, firsts[5], totals, firsts[6], totals_by,
        )  # fmt: skip


@bare
def _added(by, place, n_pairs, moved, c):
    """Return the change of one count or total if chain c moves records."""
    total = np.int64(0)
    for pair in range(n_pairs):
        total += by[place + pair] * moved[pair, c]
    return total


@bare
def _gain(k, c, moved, counts, release, precision, steps, logs):
    """Return the gain in log(noise density × integrated probabilities) if chain c moves records."""
    log_gamma, log_gamma_total = logs[1], logs[2]
    n_pairs = steps.first_pair[k + 1] - steps.first_pair[k]
    noise, prior, place = 0.0, 0.0, steps.first_by[k]
    for i in range(steps.first_count[k], steps.first_count[k + 1]):
        j = steps.counts[i]
        old = counts[j, c]
        new = old + _added(steps.by, place, n_pairs, moved, c)
        place += n_pairs
        noise += abs(release[j, c] - old) - abs(release[j, c] - new)
        if steps.weighed[i] >= 0:
            prior += log_gamma[steps.weighed[i] + new] - log_gamma[steps.weighed[i] + old]
    place = steps.first_totals_by[k]
    for i in range(steps.first_total[k], steps.first_total[k + 1]):
        j = 2 * steps.totals[i]
        old = counts[j, c] + counts[j + 1, c]
        prior -= log_gamma_total[old + _added(steps.totals_by, place, n_pairs, moved, c)] - log_gamma_total[old]
        place += n_pairs
    return noise * precision[c] + prior


@bare
def _take(k, c, moved, table, counts, steps):
    """Move the records of chain c."""
    first, n_pairs = steps.first_pair[k], steps.first_pair[k + 1] - steps.first_pair[k]
    for pair in range(n_pairs):
        table[steps.source[first + pair], c] -= moved[pair, c]
        table[steps.sink[first + pair], c] += moved[pair, c]
    place = steps.first_by[k]
    for i in range(steps.first_count[k], steps.first_count[k + 1]):
        counts[steps.counts[i], c] += _added(steps.by, place, n_pairs, moved, c)
        place += n_pairs


@inner
def _propose_move(k, moved, gains, table, steps, logs, widths, rng):
    """Write the proposed numbers of moved records to `moved`, and the log-ratios of n!/Π_x h_x! to `gains`."""
    width, log_factorial = widths[rng.integers(0, len(widths))], logs[0]
    for c in range(len(gains)):
        step = rng.integers(-width, width)
        moved[0, c] = step + (step >= 0)
    for c in range(len(gains)):
        one, other = table[steps.source[steps.first_pair[k]], c], table[steps.sink[steps.first_pair[k]], c]
        if moved[0, c] > one or -moved[0, c] > other:
            moved[0, c] = 0
        gains[c] = log_factorial[one] + log_factorial[other]
        gains[c] -= log_factorial[one - moved[0, c]] + log_factorial[other + moved[0, c]]


@inner
def _propose_shift(k, moved, gains, table, counts, steps, prior, rng):
    """Write the flips of records for a new θ to `moved`, and log-ratios prior/proposal to `gains`."""
    chains, (alpha, beta), j = len(gains), prior, 2 * steps.theta[k]
    theta, proposal = np.empty(chains), np.empty(chains)
    for c in range(chains):
        theta[c] = rng.beta(alpha + counts[j, c], beta + counts[j + 1, c])
    for c in range(chains):
        proposal[c] = rng.beta(alpha, beta)
    gains[:] = 0.0
    if rng.random() < 0.5:
        # A local step, reflected at 0 and 1, replaces the proposal from the prior.
        width = 0.5 ** rng.integers(1, 5)
        for c in range(chains):
            new = abs(theta[c] + width * rng.uniform(-1.0, 1.0))
            proposal[c] = 2 - new if new > 1 else new
            if alpha != 1:
                gains[c] += (alpha - 1) * np.log(proposal[c] / theta[c])
            if beta != 1:
                gains[c] += (beta - 1) * (np.log1p(-proposal[c]) - np.log1p(-theta[c]))
    first = steps.first_pair[k]
    for pair in range(steps.first_pair[k + 1] - first):
        for c in range(chains):
            up = proposal[c] > theta[c]
            share = abs(proposal[c] - theta[c]) / (1 - theta[c] if up else theta[c])
            if not 0 <= share <= 1:
                raise ValueError("a probability is no number")
            number = table[(steps.source if up else steps.sink)[first + pair], c]
            flipped = rng.binomial(number, share)
            moved[pair, c] = flipped if up else -flipped


@outer(seconds=5)
def sweep(order, table, counts, release, precision, steps, logs, prior, widths, rng):
    """Try the steps of `order` in all chains, in place.

    Args:
        order: indices of the steps.
        table, counts: as in `noise_aware.table.State`.
        release: noisy counts, shape (2m, chains).
        precision: 1 / scale of the noise, shape (chains,).
        logs: three arrays for j = 0..n: ln j!, then ln Γ(α + j) followed by ln Γ(β + j), then ln Γ(α + β + j).
        prior: (α, β).
        widths: limits of the number of records in a move. Each move draws one limit.
    """
    gains, moved = np.empty(table.shape[1]), np.empty((len(table), table.shape[1]), np.int64)
    for k in order:
        if steps.theta[k] < 0:
            _propose_move(k, moved, gains, table, steps, logs, widths, rng)
        else:
            _propose_shift(k, moved, gains, table, counts, steps, prior, rng)
        for c in range(len(gains)):
            if gains[c] + _gain(k, c, moved, counts, release, precision, steps, logs) > -rng.standard_exponential():
                _take(k, c, moved, table, counts, steps)
