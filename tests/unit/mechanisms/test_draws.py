"""Draws of every discovered mechanism: one law by every method of drawing, and the law that the ledger charges for.

All seeds are fixed. A two-sample Kolmogorov-Smirnov test per coordinate at 1e-6: with fewer than 1000 coordinates a
false alarm of the file has a probability below 1e-3.
"""

import itertools
from dataclasses import replace

import numpy as np
import pytest
from scipy.special import betaln
from scipy.stats import chisquare, ks_2samp, kstest
from test_mechanisms import every_example, neighbouring_statistics

from privpost.distributions import truncated_beta
from privpost.mechanisms.batches import batches
from privpost.mechanisms.event_states import HiddenMarkovSampler
from privpost.mechanisms.redacted_laplace import RedactedLaplace, RedactedSum
from privpost.models.event_counts import EventCounts

LEVEL = 1e-6
EXACT_DRAWS, CHAIN_DRAWS = 4000, 400


def check_draws_by_row_and_by_number_have_one_law(mechanism):
    """Rows of two neighbours in turn, and rows that are all equal, against `size` releases of each."""
    size = EXACT_DRAWS if mechanism.exact else CHAIN_DRAWS
    pair, rng = neighbouring_statistics(mechanism)[0], np.random.default_rng(21)
    numbered = [mechanism.draw(side, rng, size).values for side in pair]
    mixed = mechanism.draw(np.tile(pair, (size // 2, 1)), rng).values
    equal = mechanism.draw(np.broadcast_to(pair[0], (size, pair[0].size)), rng).values
    for rows, known in ((mixed[::2], numbered[0]), (mixed[1::2], numbered[1]), (equal, numbered[0])):
        assert rows.shape[1:] == known.shape[1:]
        for one, other in zip(rows.reshape(len(rows), -1).T, known.reshape(size, -1).T, strict=True):
            assert ks_2samp(one, other).pvalue > LEVEL, "draws by row and by number differ in law"


@pytest.mark.parametrize("rows", [[[3, 1], [0, 2], [3, 1], [5, 5]], [[3, 1]] * 4])
def test_each_row_gets_the_releases_about_itself(rows):
    rows = np.reshape(rows, (2, 2, 2)).astype(float)
    assert np.array_equal(batches(lambda row, number, rng: np.tile(row, (number, 1)), rows, None), rows)


@every_example
def test_draws_by_row_and_by_number_have_one_law(mechanism):
    check_draws_by_row_and_by_number_have_one_law(mechanism)


@every_example
def test_releases_about_one_data_set_share_no_number(mechanism):
    # The others choose among a few values, or whole numbers.
    if mechanism.method != "map" and mechanism.support == "reals":
        found = mechanism.draw(neighbouring_statistics(mechanism)[0][0], np.random.default_rng(8), 6).values
        assert all(len(np.unique(numbers)) == 6 for numbers in found.reshape(6, -1).T)


def check_arrays_of_equal_bounds_change_nothing(mechanism):
    """A bound per trial draws what one bound for all of them draws, and the same with the same generator."""
    trials = 50
    model = mechanism.model
    each = replace(mechanism, model=RedactedSum(model.family, np.full(trials, model.low), np.full(trials, model.high)))
    statistics = np.linspace(0, 5, trials)[:, None]
    expected, found = (m.draw(statistics, np.random.default_rng(5)).values for m in (mechanism, each))
    assert np.array_equal(expected, found), "bounds per trial change the release"


@pytest.mark.parametrize("mechanism", RedactedLaplace.examples())
def test_arrays_of_equal_bounds_change_nothing(mechanism):
    check_arrays_of_equal_bounds_change_nothing(mechanism)


def check_charge_is_twice_the_range(mechanism):
    """Each update from a tempered log-likelihood costs twice its largest change on the space that is drawn from."""
    if (
        mechanism.releases == "sample"
        and mechanism.norm == "log-likelihood ratio"
        and getattr(mechanism, "charge", "") != "paper"
    ):
        temperature = getattr(mechanism, "temperature", 1.0)
        expected = 2 * mechanism.sensitivity * getattr(mechanism, "updates", 1) / temperature
        assert mechanism.cost().epsilon == pytest.approx(expected, rel=1e-12), "the charge is not twice the range"


@every_example
def test_charge_is_twice_the_range(mechanism):
    check_charge_is_twice_the_range(mechanism)


# Two cells of one region, one field of two levels; T = 2 ln(19)/2.5 = 2.36 in all of it.
TWO_STATES = HiddenMarkovSampler(EventCounts((2,), (2,), 2), 16, 2.5, iterations=20)


def check_states_and_emissions_follow_enumeration(mechanism):
    """The sampled states of both cells, and state 0's probability of level 0, against all four sequences.

    Both cells' sequences have the same prior probability, and the emissions' prior is uniform on [0.05, 0.95].
    """
    size, low, temperature = 20_000, 0.05, 2 * np.log(19) / 2.5
    counts = np.array([[7.0, 1.0], [1.0, 7.0]])
    release = mechanism.draw(counts.ravel(), np.random.default_rng(8), size)
    sequences = np.array(list(itertools.product(range(2), repeat=2)))
    # (sequences, states, 2): parameters of the truncated beta distributions.
    shapes = 1 + np.array([[counts[states == k].sum(axis=0) for k in range(2)] for states in sequences]) / temperature
    logs = betaln(*np.moveaxis(shapes, -1, 0)) + truncated_beta.log_mass(shapes, low, 1 - low)
    weights = np.exp(logs.sum(axis=1))
    weights /= weights.sum()
    states = release.info.state.states[:, :size]
    found = np.bincount(2 * states[0] + states[1], minlength=4)
    assert chisquare(found, size * weights).pvalue > LEVEL, "states do not follow their posterior"

    def cdf(values):
        tops = np.maximum(values, np.nextafter(low, 1))[:, None]
        logs = truncated_beta.log_mass(shapes[:, 0], low, tops) - truncated_beta.log_mass(shapes[:, 0], low, 1 - low)
        return np.exp(logs) @ weights

    assert kstest(release.values[:, 0, 0], cdf).pvalue > LEVEL, "emissions do not follow their posterior"


def test_states_and_emissions_follow_enumeration():
    check_states_and_emissions_follow_enumeration(TWO_STATES)
