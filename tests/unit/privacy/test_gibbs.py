"""Accounting of Markov chain Monte Carlo, against kernels enumerated over all neighbouring data sets."""

import itertools
import math

import numpy as np
import pytest
from scipy.special import logsumexp

from privpost.privacy.accounting.costs import Cost
from privpost.privacy.accounting.gibbs import (
    chain_cost,
    metropolis_hastings_cost,
    random_scan_cost,
    scan_cost,
    subsampled_update_cost,
    update_cost,
)

A0 = 0.2
DELTA = math.log((1 - A0) / A0)
GRID = np.linspace(A0, 1 - A0, 7)
# Sums of a few hundred probabilities of order 1.
ROUNDING = 1e-12


def bits(n):
    return list(itertools.product((0, 1), repeat=n))


def largest_loss(log_probability, n):
    """Largest |ln P_X − ln P_X'| over outputs and neighbours; `log_probability` maps a data set to a vector."""
    table = {data: log_probability(data) for data in bits(n)}
    with np.errstate(invalid="ignore"):
        return max(
            float(np.nanmax(np.abs(table[data] - table[(*data[:i], 1 - data[i], *data[i + 1 :])])))
            for data in table
            for i in range(n)
        )


def log_joint(data, temperature=1.0):
    """Tempered log-joint of θ on the grid, uniform prior."""
    successes = sum(data)
    return (successes * np.log(GRID) + (len(data) - successes) * np.log(1 - GRID)) / temperature


# Gibbs updates and scans


@pytest.mark.parametrize("temperature", [1.0, 3.0])
def test_update_is_an_exponential_mechanism(temperature):
    def kernel(data):
        log_weights = log_joint(data, temperature)
        return log_weights - logsumexp(log_weights)

    losses = [largest_loss(kernel, n) for n in range(1, 9)]
    bound = update_cost(DELTA, temperature).epsilon
    assert bound == 2 * DELTA / temperature
    assert max(losses) <= bound
    # The bound is approached as data sets grow (the adversary of figure 8), so that half of it would not do.
    assert max(losses) > 0.5 * bound


# A mixture of two coins with known success probabilities; latent z_i says which coin tossed record i.
COINS = np.array([0.2, 0.8])
MIXTURE = update_cost(math.log(4.0))


def latent_log_probability(bit):
    """ln p(z_i = k | x_i), shape (2,)."""
    weights = COINS if bit else 1 - COINS
    return np.log(weights / weights.sum())


def single_loss():
    return float(np.abs(latent_log_probability(0) - latent_log_probability(1)).max())


def test_latents_compose_in_parallel():
    def scan(data):
        each = [latent_log_probability(bit) for bit in data]
        return np.array([sum(each[i][z] for i, z in enumerate(state)) for state in bits(len(data))])

    bound = scan_cost([], [MIXTURE] * 4).epsilon
    assert bound == MIXTURE.epsilon
    loss = largest_loss(scan, 4)
    assert loss <= bound
    # A whole scan loses what one latent does.
    assert loss == pytest.approx(single_loss(), rel=ROUNDING)


def test_scan_and_chain_compose():
    update = Cost("pure", 0.25)
    assert scan_cost([update, update]).epsilon == 0.5
    assert scan_cost([update], [update] * 100).epsilon == 0.5
    assert scan_cost([update], [update] * 100, changed_latents=2).epsilon == 0.75
    assert chain_cost(update, 3).epsilon == 0.75


def test_worst_case_of_the_case_study_is_four_hundred_epsilon():
    for epsilon in (0.1, 1.0, 5.0):
        update = Cost("pure", epsilon)
        assert chain_cost(scan_cost([update], [update] * 1000), 200).epsilon == pytest.approx(400 * epsilon)


# Random scans


def random_scan_paths(data, steps):
    """ln P of every path of visible states, from the state 0…0; one latent of each step is updated."""
    n = len(data)
    each = [np.exp(latent_log_probability(bit)) for bit in data]

    def step(state, following):
        moved = [i for i in range(n) if state[i] != following[i]]
        if len(moved) > 1:
            return 0.0
        return sum(each[i][following[i]] for i in (moved or range(n))) / n

    paths = []
    for path in itertools.product(bits(n), repeat=steps):
        states = [(0,) * n, *path]
        paths.append(math.prod(step(a, b) for a, b in itertools.pairwise(states)))
    with np.errstate(divide="ignore"):
        return np.log(paths)


def test_visible_random_scan_is_not_amplified():
    # The latent that moved is the one that was updated: the loss is that of its update, not a third of it.
    loss = largest_loss(lambda data: random_scan_paths(data, 1), 3)
    assert loss == pytest.approx(single_loss(), rel=ROUNDING)
    assert loss > subsampled_update_cost(Cost("pure", single_loss()), 1, 3).epsilon * 1.2
    assert random_scan_cost(MIXTURE, 1, 3, steps=1) == MIXTURE


def test_random_scan_over_many_steps():
    update, steps, n = Cost("pure", single_loss()), 2, 3
    pure = random_scan_cost(update, 1, n, steps)
    assert largest_loss(lambda data: random_scan_paths(data, steps), n) <= pure.epsilon * (1 + ROUNDING)
    cost = random_scan_cost(update, 1, n, steps, delta=0.2)
    # P(Binomial(2, 1/3) > 1) = 1/9.
    assert (cost.notion, cost.epsilon) == ("approximate", update.epsilon)
    assert cost.delta == pytest.approx(1 / 9, rel=ROUNDING)
    probabilities = {data: np.exp(random_scan_paths(data, steps)) for data in bits(n)}
    excess = max(
        np.maximum(probabilities[a] - math.exp(cost.epsilon) * probabilities[b], 0).sum()
        for a in probabilities
        for b in probabilities
        if sum(x != y for x, y in zip(a, b, strict=True)) == 1
    )
    assert 0 < excess <= cost.delta


def test_random_scan_gains_over_many_steps():
    # A thousand steps that update a tenth of the latents read each about 100 times.
    update = Cost("pure", 0.01)
    cost = random_scan_cost(update, 10, 100, steps=1000, delta=1e-6)
    assert cost.delta <= 1e-6
    assert 100 < cost.epsilon / update.epsilon < 160
    # One read fewer would leave a tail above δ, by the binomial sum itself.
    reads = round(cost.epsilon / update.epsilon)
    tail = 1 - sum(math.comb(1000, k) * 0.1**k * 0.9 ** (1000 - k) for k in range(reads))
    assert tail > 1e-6
    assert random_scan_cost(update, 10, 100, steps=1000).epsilon == pytest.approx(10.0)


@pytest.mark.parametrize(("sampled", "total"), [(1, 4), (2, 4), (3, 4), (4, 4)])
def test_secret_subsample_is_amplified(sampled, total):
    # The number of successes in a secret subset, released by the exponential mechanism with utility |count − output|.
    scale = 0.7
    outputs = np.arange(sampled + 1)

    def mechanism(data):
        parts = []
        for subset in itertools.combinations(range(total), sampled):
            log_weights = -scale * np.abs(outputs - sum(data[i] for i in subset))
            parts.append(log_weights - logsumexp(log_weights))
        return logsumexp(parts, axis=0) - math.log(len(parts))

    def base(data):
        log_weights = -scale * np.abs(outputs - sum(data))
        return log_weights - logsumexp(log_weights)

    update = Cost("pure", largest_loss(base, sampled))
    bound = subsampled_update_cost(update, sampled, total).epsilon
    loss = largest_loss(mechanism, total)
    assert loss <= bound * (1 + ROUNDING)
    if sampled == 1:
        # Randomised response of one bit attains it.
        assert loss == pytest.approx(bound, rel=ROUNDING)


def test_subsampling_neither_overflows_nor_gains_at_the_ends():
    assert subsampled_update_cost(Cost("pure", 2.0), 7, 7).epsilon == pytest.approx(2.0, rel=ROUNDING)
    assert subsampled_update_cost(Cost("pure", 1e4), 1, 10).epsilon == pytest.approx(1e4 - math.log(10), rel=ROUNDING)
    either_side = [subsampled_update_cost(Cost("pure", 30 + h), 1, 10).epsilon for h in (0.0, 1e-9)]
    assert either_side[1] - either_side[0] == pytest.approx(1e-9, abs=1e-12)


# Metropolis-Hastings


def metropolis_kernel(data, acceptance, hold):
    """ln P of the next state from the first grid value; the proposal is uniform on the other values."""
    ratio = np.exp(log_joint(data) - log_joint(data)[0])[1:]
    accept = ratio / (1 + ratio) if acceptance == "barker" else np.minimum(1, ratio)
    moves = (1 - hold) * accept / len(accept)
    # Summed without 1 − Σ moves, which would leave rounding instead of 0.
    stay = hold + (1 - hold) * ((1 - accept) / len(accept)).sum()
    with np.errstate(divide="ignore"):
        return np.log(np.concatenate([[stay], moves]))


@pytest.mark.parametrize(("acceptance", "hold"), [("barker", 0.0), ("metropolis", 0.5), ("metropolis", 0.1)])
def test_metropolis_hastings_costs_cover_the_kernel(acceptance, hold):
    bound = metropolis_hastings_cost(DELTA, acceptance=acceptance, hold=hold).epsilon
    losses = [largest_loss(lambda data: metropolis_kernel(data, acceptance, hold), n) for n in range(1, 7)]
    # The acceptance ratio reaches e^−c between the ends of the grid, so that equality is possible.
    assert max(losses) <= bound * (1 + ROUNDING)
    assert bound < math.inf


def test_bound_on_staying_is_attained():
    # Two states, acceptance 1 under X and e^−c under X': staying has probabilities h and h + (1−h)(1−e^−c).
    c, hold = 2 * DELTA, 0.05
    expected = math.log((hold + (1 - hold) * (1 - math.exp(-c))) / hold)
    assert metropolis_hastings_cost(DELTA, hold=hold).epsilon == pytest.approx(expected, rel=ROUNDING)
    assert expected > c


def test_a_rejection_of_plain_metropolis_rules_data_out():
    assert metropolis_hastings_cost(DELTA).epsilon == math.inf
    assert largest_loss(lambda data: metropolis_kernel(data, "metropolis", 0.0), 1) == math.inf


def test_from_half_holding_the_cost_is_that_of_an_acceptance():
    for sensitivity in (0.01, 1.0, 5.0):
        cost = metropolis_hastings_cost(sensitivity, temperature=2.0, hold=0.5).epsilon
        assert cost == update_cost(sensitivity, 2.0).epsilon
    assert metropolis_hastings_cost(1.0, hold=0.2).epsilon > update_cost(1.0).epsilon * 0.99


# Errors


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: update_cost(0.0), "sensitivity is 0.0"),
        (lambda: update_cost(1.0, math.inf), "temperature is inf"),
        (lambda: scan_cost([]), "costs is empty"),
        (lambda: scan_cost([], [MIXTURE], changed_latents=3), "changed_parts is 3"),
        (lambda: chain_cost(MIXTURE, 0), "iterations is 0"),
        (lambda: subsampled_update_cost(MIXTURE, 5, 4), "sampled is 5; it must be at most 4"),
        (lambda: subsampled_update_cost(Cost("rdp", 1.0, order=2.0), 1, 4), "must be 'pure'"),
        (lambda: random_scan_cost(MIXTURE, 1, 4, steps=0), "steps is 0"),
        (lambda: random_scan_cost(MIXTURE, 1, 4, steps=2, delta=1.0), "delta is 1.0"),
        (lambda: metropolis_hastings_cost(1.0, acceptance="greedy"), "acceptance is 'greedy'; allowed"),
        (lambda: metropolis_hastings_cost(1.0, hold=1.0), "hold is 1.0"),
        (lambda: metropolis_hastings_cost(1.0, acceptance="barker", hold=0.5), "hold is 0.5"),
    ],
)
def test_errors_name_the_argument(call, message):
    with pytest.raises(ValueError, match=message):
        call()
