"""Compiled sweeps of the noise-aware hidden Markov model: states and counts of cells, transfers, exchanges.

`noise_aware_sets` has the moves of several cells' states. Only code that runs chains imports this module.
"""

import math

import numpy as np

from privpost.samplers.compiled import bare, inner, outer
from privpost.samplers.hidden_markov_kernels import choose, count_moves, log_prior, move_site, site_weights
from privpost.samplers.noise_aware_kernels import _add, _copy, _estimate, _remember
from privpost.samplers.noise_aware_parts import Data, Latent, Moments, Slots, Sums, Work
from privpost.samplers.noise_aware_proposals import _draw, _weigh
from privpost.samplers.noise_aware_sets import move_run, resplit

# Rounds of exchanges in a sweep.
EXCHANGES = 4
# With at most this many states a sweep proposes a move of every cell; with K > STATES states, of every open cell and of
# a random share STATES/K of the others.
STATES = 3.0
# Share of the proposals of a cell's present state that draw its counts anew where transfers with held-out cells do too.
AGAIN = 0.25
# Transfers between two cells that a sweep proposes per cell, where states move,
PAIRS = 1.0
# and where they are fixed.
PAIRS_OF_FIXED = 0.5
# Runs that a sweep proposes per uncertain cell: for each state and unit of the noise's scale,
RUNS = 0.006
# and at most this many per uncertain cell.
MOST_RUNS = 1.2
# Logarithm of the probability that a run goes on for one more cell.
LOG_LONGER = -0.6
# Re-splits per state with events that a sweep of the burn-in proposes after the annealing, for more than STATES states.
RESPLITS = 3
# A cell is certain if the burn-in gives the other states less than this probability,
CERTAIN = 1e-6
# and open if it gives them more than this.
OPEN = 0.01
# Share of a certain cell's proposals that may change its state nevertheless.
CERTAIN_MAY = 0.125
# Factor by which each sweep shrinks the probabilities of earlier ones.
FADING = 0.3
# A transfer's law is wider than a Newton step's by up to this much per unit of the noise's scale, as the curvature of
# wide noise lies in its kinks,
WIDER = 0.04
# and at most by this much.
WIDEST = 4.0
# Columns of `rest`: the number of held-out cells, and of their events.
CELLS = 0
EVENTS = 1


@bare
def _move_cell(t, free, data, latent, sums, layout, prior, tables, power, learn, again, work, rng):
    """Propose a state for an observed cell, and new counts if the state differs or if they are to be drawn `again`.

    Only a `free` state can change. With a power below 1 every proposal is accepted. Returns whether counts were
    proposed, whether they were accepted, whether the state changed, and what `_draw` returns for the resulting cell.
    """
    states, counts, totals = latent
    by_state, state_totals, moves, leaving = sums
    first, last = layout
    n_states = len(by_state)
    old, n = states[t], totals[t]
    logs, proposal, site, estimates = work.logs, work.proposal, work.site, work.estimates
    _add(by_state[old], counts[t], -1)
    state_totals[old] -= n
    move_site(t, old, states, first, last, moves, leaving, -1.0)
    site_weights(t, states, first, last, moves, leaving, prior, site)
    for k in range(n_states):
        estimates[k] = 0.0
    _estimate(t, n, old, free, power, data, sums, tables, work, estimates)
    new = choose(logs, rng.random()) if free else old
    if learn and free:
        # `choose` has made `logs` cumulative weights.
        probability = logs[old] - (logs[old - 1] if old > 0 else 0.0)
        data.openness[t] = max(1 - probability / logs[n_states - 1], FADING * data.openness[t])
    # The choice of a state does not depend on the counts, so a cell that keeps its state may keep its counts.
    again = again or new != old or power < 1
    back, gain = (math.nan, 0.0, 0.0), 0.0
    if power == 1:
        back = _draw(t, n, old, old, data, sums, tables, work, counts[t], False, rng)
    forward = back
    if again:
        forward = _draw(t, n, new, new, data, sums, tables, work, proposal, True, rng)
        gain = estimates[old] - estimates[new] + forward[0] - back[0]
    if learn:
        _remember(t, n, new, data, sums, tables, work)
    # A weight is nan if numbers overflowed; such a proposal is not accepted.
    accepted = again and not math.isnan(forward[0]) and (power < 1 or -rng.standard_exponential() < gain)
    if accepted:
        states[t] = new
        _copy(proposal, counts[t])
    new = states[t]
    _add(by_state[new], counts[t], 1)
    state_totals[new] += n
    move_site(t, new, states, first, last, moves, leaving, 1.0)
    return again, accepted, new != old, forward if accepted else back


@bare
def _move_held_out(t, latent, sums, layout, prior, work, rng):
    """Draw the state of a cell without a release, given all other states."""
    states = latent.states
    moves, leaving = sums.moves, sums.leaving
    site, logs = work.site, work.logs
    move_site(t, states[t], states, layout.first, layout.last, moves, leaving, -1.0)
    site_weights(t, states, layout.first, layout.last, moves, leaving, prior, site)
    for k in range(len(site)):
        logs[k] = math.log(site[k])
    states[t] = choose(logs, rng.random())
    move_site(t, states[t], states, layout.first, layout.last, moves, leaving, 1.0)


@bare
def _log_rounded(step, centre, width):
    """Log-probability that a logistic variate about the centre rounds to a step."""
    half = 0.5 / width
    return math.log(math.sinh(half) / (math.cosh((step - centre) / width) + math.cosh(half)))


@bare
def _transfer(t, other, known, data, latent, sums, tables, rest, work, rng):
    """Move events to cell t from another, or from the held-out ones (`other` < 0), and draw both cells' counts anew.

    The number of events is drawn about the value of a Newton step. `rest` has the number of held-out cells and of their
    events; all ways to spread these over the cells are equally likely. `known` is what `_draw` returns for cell t, with
    a weight of nan if that is not known. Returns whether the move was accepted.
    """
    (states, counts, totals), (by_state, state_totals, _, _), (n_held, held) = latent, sums, rest
    cells, signs, number = (t, other), (1, -1), 1 if other < 0 else 2
    drawn = work.drawn
    for j in range(number):
        _add(by_state[states[cells[j]]], counts[cells[j]], -1)
        state_totals[states[cells[j]]] -= totals[cells[j]]
    gain, step = 0.0, np.int64(0)
    wide = 1 + min(WIDER * data.scale, WIDEST) * rng.random()
    # The second cell's counts are proposed given the first one's, in both directions.
    for fresh in (False, True):
        slope, curve, weight = 0.0, 1 / (4 * data.scale) ** 2, 0.0
        if other < 0:
            left = float(held - step)
            weight += math.lgamma(left + n_held) - math.lgamma(left + 1)
            slope -= (n_held - 1) / (left + 1)
        for j in range(number):
            cell = cells[j]
            n, table = totals[cell] + signs[j] * step, drawn[j] if fresh else counts[cell]
            log_weight, up, bend = known
            if fresh or number == 2 or math.isnan(log_weight):
                log_weight, up, bend = _weigh(cell, n, states[cell], data, sums, tables, work, table, fresh, rng)
            weight, slope, curve = weight + log_weight, slope + signs[j] * up, curve + bend
            if j == 0:
                _add(by_state[states[cell]], table, 1)
                state_totals[states[cell]] += n
        _add(by_state[states[t]], drawn[0] if fresh else counts[t], -1)
        state_totals[states[t]] -= totals[t] + step
        width = wide * math.sqrt(1 / curve)
        centre = min(max(slope / curve, -4 * width), 4 * width)
        # A logistic law has a variance of (π width)²/3.
        width *= 0.55
        if fresh:
            gain += weight + _log_rounded(-step, centre, width)
            break
        uniform = rng.random()
        step = np.int64(math.floor(centre + width * math.log((uniform + 1e-300) / (1 - uniform)) + 0.5))
        gain -= weight + _log_rounded(step, centre, width)
        if totals[t] + step < 0 or (held if other < 0 else totals[other]) - step < 0 or not gain < math.inf:
            gain = -math.inf
            break
    accepted = -rng.standard_exponential() < gain
    if accepted:
        for j in range(number):
            _copy(drawn[j], counts[cells[j]])
            totals[cells[j]] += signs[j] * step
        if other < 0:
            rest[EVENTS] -= step
    for j in range(number):
        _add(by_state[states[cells[j]]], counts[cells[j]], 1)
        state_totals[states[cells[j]]] += totals[cells[j]]
    return accepted


@bare
def _thin(n, log_stay, share, rng):
    """Draw from Binomial(n, share), n > 0, by inversion where few are expected; `log_stay` is ln(1 − share)."""
    if n * share > 10 or log_stay < -1:
        return rng.binomial(n, share)
    probability, odds, left, number = math.exp(n * log_stay), share / (1 - share), rng.random(), 0
    while left > probability and number < n:
        left -= probability
        number += 1
        probability *= odds * (n - number + 1) / number
    return number


@bare
def _exchange_levels(i, j, cells, n_cells, state, data, counts, by_state, b, moved, rng):
    """Change the odds of two levels in a state, and with them move events of all its cells from one level to the other.

    The first level's share p of the pair is drawn given the counts, and p′ is proposed. Each event of the level that
    loses moves with probability |p′ − p| over that level's share. This turns Binomial(m, p) counts into Binomial(m, p′)
    ones, and the reverse move turns them back, so only the prior of p and the noise decide on acceptance: the move does
    not stall where noise hides the counts.
    """
    y, scale = data.noisy, data.scale
    both = by_state[state, i] + by_state[state, j]
    if both == 0:
        return
    one, other = rng.standard_gamma(by_state[state, i] + b), rng.standard_gamma(by_state[state, j] + b)
    share = min(max(one / (one + other), 1e-300), 1 - 1e-16)
    # The width of the noise on the pair's share, which does not depend on what the move changes.
    width = scale * math.sqrt(2.0 * n_cells) / both * math.exp(rng.standard_normal())
    folded = (share + width * rng.standard_normal()) % 2.0
    wanted = min(max(2 - folded if folded > 1 else folded, 1e-300), 1 - 1e-16)
    source, sink, lost = (i, j, (share - wanted) / share) if wanted < share else (j, i, (wanted - share) / (1 - share))
    gain = 0.0
    if b != 1:
        gain = (b - 1) * (math.log(wanted) + math.log1p(-wanted) - math.log(share) - math.log1p(-share))
    lost = min(lost, 1 - 1e-16)
    limit, log_stay = -rng.standard_exponential(), math.log1p(-lost)
    for place in range(n_cells):
        t = cells[place]
        step = 0
        if counts[t, source] > 0:
            step = _thin(counts[t, source], log_stay, lost, rng)
        moved[place] = step
        if step > 0:
            gap, spare = y[t, source] - counts[t, source], y[t, sink] - counts[t, sink]
            gain -= (abs(gap + step) - abs(gap) + abs(spare - step) - abs(spare)) / scale
    if limit < gain:
        for place in range(n_cells):
            t, step = cells[place], moved[place]
            counts[t, source] -= step
            counts[t, sink] += step
            by_state[state, source] -= step
            by_state[state, sink] += step


@inner
def _exchange(data, latent, by_state, seen, fewest, b, rng):
    """One round of exchanges: in each state, each level with a pivot level drawn by its share of the noisy counts.

    In a field of many levels most pairs drawn evenly would be two rare levels, and leave the rare levels' sum as it is.
    States with fewer than `fewest` cells are skipped.
    """
    states, counts, _ = latent
    cells, moved = np.empty(len(seen), np.int64), np.empty(len(seen), np.int64)
    for k in range(len(by_state)):
        n_cells = np.int64(0)
        for t in seen:
            if states[t] == k:
                cells[n_cells] = t
                n_cells += 1
        if n_cells < fewest:
            continue
        start = 0
        for size in data.sizes:
            for i in range(start, start + size):
                j = start + np.searchsorted(data.pivots[start : start + size], rng.random(), side="right")
                if j != i:
                    _exchange_levels(i, j, cells, n_cells, k, data, counts, by_state, b, moved, rng)
            start += size


@bare
def _log_joint(data, latent, sums, layout, observed, prior, tables, rest):
    """Collapsed log-density of states, counts and release, up to a constant."""
    y, scale, sizes = data.noisy, data.scale, data.sizes
    _, counts, totals = latent
    by_state, state_totals, moves, _ = sums
    log_gammas, log_factorials, _, b = tables
    total = log_prior(moves, layout.first.sum(), prior)
    for k in range(len(by_state)):
        start = 0
        for size in sizes:
            for i in range(start, start + size):
                total += log_gammas[by_state[k, i]] - log_gammas[0]
            total += math.lgamma(b * size) - math.lgamma(state_totals[k] + b * size)
            start += size
    for t in range(len(counts)):
        if observed[t]:
            total += len(sizes) * log_factorials[totals[t]]
            for i in range(counts.shape[1]):
                total -= log_factorials[counts[t, i]] + abs(y[t, i] - counts[t, i]) / scale
    if rest[CELLS] > 0:
        total += math.lgamma(rest[EVENTS] + float(rest[CELLS])) - math.lgamma(rest[EVENTS] + 1.0)
    return total


@inner
def _memory(n_states, n_levels, n_fields, most):
    """Memory for up to `most` events in a cell."""
    moments = Moments(
        np.empty((n_states, n_levels)), np.empty((n_states, n_levels)), np.empty((n_states, n_levels)),
        np.empty((n_states, n_levels)), np.empty((n_states, n_levels), np.int64),
    )  # fmt: skip
    return Work(
        moments, np.empty((n_states, n_fields)), np.empty(most), np.empty(n_states), np.empty(n_levels, np.int64),
        np.empty(n_states), np.empty(n_states), np.empty((2, n_levels), np.int64), np.empty(n_levels, np.int64),
        np.empty(n_levels), np.empty(n_levels, np.int64), np.empty(most, np.int64),
    )  # fmt: skip


@inner
def _sweep(data, observed, latent, n_states, rest, layout, prior, tables, power, learn, rng):
    states, counts, totals = latent
    (n_cells, n_levels), n_fields, scale, free = counts.shape, len(data.sizes), data.scale, data.free
    by_state, state_totals = np.zeros((n_states, n_levels), np.int64), np.zeros(n_states, np.int64)
    moves, leaving = np.zeros((n_states, n_states)), np.zeros(n_states)
    count_moves(states, layout.last, moves)
    seen = np.flatnonzero(observed)
    for t in seen:
        _add(by_state[states[t]], counts[t], 1)
        state_totals[states[t]] += totals[t]
    for k in range(n_states):
        leaving[k] = moves[k].sum()
    sums = Sums(by_state, state_totals, moves, leaving)
    work = _memory(n_states, n_levels, n_fields, len(tables.log_factorials))
    accepted, changed, transferred, proposed = 0, 0, 0, 0
    for t in range(n_cells):
        known = math.nan, 0.0, 0.0
        if not observed[t]:
            if free:
                _move_held_out(t, latent, sums, layout, prior, work, rng)
            continue
        if power < 1 or rng.random() * n_states <= STATES or data.openness[t] > OPEN:
            again = rest[CELLS] == 0 or rng.random() < AGAIN
            loose = free and (learn or data.openness[t] > CERTAIN or rng.random() < CERTAIN_MAY)
            drawn, moved_counts, moved, known = _move_cell(
                t, loose, data, latent, sums, layout, prior, tables, power, learn, again, work, rng
            )
            proposed += drawn
            accepted += moved_counts
            changed += moved
        other = -1 if rest[CELLS] > 0 else seen[int(rng.random() * len(seen))]
        if other != t and (other < 0 or rng.random() < (PAIRS if free else PAIRS_OF_FIXED)):
            transferred += _transfer(t, other, known, data, latent, sums, tables, rest, work, rng)
    if free and power == 1 and n_states > 1:
        # A run goes from one uncertain cell to another; after the burn-in these cells are the same in all sweeps.
        loose = np.flatnonzero(data.openness > CERTAIN)
        for _ in range(math.ceil(len(loose) * min(RUNS * n_states * scale, MOST_RUNS))):
            t = loose[int(rng.random() * len(loose))]
            end = t + 2 + int(math.log(1 - rng.random()) / LOG_LONGER)
            if end <= n_cells and data.openness[end - 1] > CERTAIN:
                changed += move_run(t, end, data, observed, latent, sums, layout, prior, tables, work, rng)
        if learn and n_states > STATES:
            for _ in range(RESPLITS * np.sum(state_totals > 0)):
                resplit(seen, data, latent, sums, layout, prior, tables, work, rng)
    # Without held-out cells most sweeps draw all of a cell's counts anew: a state's only cell needs no exchanges.
    fewest = 2 if rest[CELLS] == 0 else 1
    for _ in range(EXCHANGES):
        _exchange(data, latent, by_state, seen, fewest, tables.concentration, rng)
    joint = _log_joint(data, latent, sums, layout, observed, prior, tables, rest)
    return accepted / max(proposed, 1), changed, transferred, joint


@outer(seconds=25)
def sweeps(data, observed, latent, n_states, rest, layout, prior, tables, power, rng, tally, learn):
    """One pass of the joint moves and transfers over all cells, then moves of runs and exchanges, in every chain.

    Args:
        data: `Data` of all chains, with a leading axis.
        observed: (chains, cells) bool.
        latent: `Latent` of all chains, with a leading axis; changed in place.
        rest: number of held-out cells that may hold events, and of their events, (chains, 2); changed in place.
        layout: `first`, `last` (cells,).
        prior: concentration a of the transitions.
        tables: `Tables`.
        power: exponent of the states' odds; below 1 every proposal is accepted, and 1 leaves the law invariant.
        tally: (4, chains): overwritten by the share of joint moves accepted, the number of moves that changed a state,
            the transfers accepted and the collapsed log joint.
        learn: whether to store tilts as starts of later searches and to estimate which cells are certain: in the
            burn-in only.
    """
    for c in range(len(observed)):
        of_all = data.slots
        slots = Slots(of_all.levels[c], of_all.near[c], of_all.releases[c], of_all.crossings[c])
        of_chain = Data(
            data.noisy[c], slots, data.scale, data.sizes, data.free, data.offsets[c], data.openness[c], data.pivots[c]
        )
        parts = Latent(latent.states[c], latent.counts[c], latent.totals[c])
        tally[0, c], tally[1, c], tally[2, c], tally[3, c] = _sweep(
            of_chain, observed[c], parts, n_states, rest[c], layout, prior, tables, power, learn, rng
        )
