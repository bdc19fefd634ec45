"""Whether the time of an exactly rounded draw reveals its data, by a clock that counts work."""

import random
from fractions import Fraction
from types import SimpleNamespace

import numpy as np
import pytest

from privpost.distributions import exact_draws
from privpost.mechanisms.choices.exponential import ExponentialMechanism
from privpost.mechanisms.draws.gamma import GammaDraw
from privpost.mechanisms.draws.posterior import PosteriorDraw
from privpost.mechanisms.draws.rounded import public_counts
from privpost.models.conjugate.beta_bernoulli import BetaBernoulli
from privpost.models.conjugate.dirichlet_categorical import DirichletCategorical
from privpost.models.conjugate.gamma_exponential import GammaExponential

BITS, N, TIMINGS = 10, 32, 200


class Clock:
    """Time that passes by looking at it, and by what work takes."""

    def __init__(self):
        self.now = 0.0

    def __call__(self) -> float:
        self.now += 1e-5
        return self.now


def of(kind):
    """A mechanism, and the statistics at a number from 0 to N."""
    if kind == "bits":
        # Parameters are whole at odd numbers.
        mechanism = PosteriorDraw(BetaBernoulli(6.5, 12.5), N, 2.0, 0.5, weighting="diffused")
        return mechanism, lambda count: [count, N - count]
    if kind == "categories":
        mechanism = PosteriorDraw(DirichletCategorical((1, 2, 3)), N, 2.0, 1.0, weighting="direct")
        return mechanism, lambda count: [count, N - count, 0]
    if kind == "ops":
        return ExponentialMechanism(BetaBernoulli(1, 1), N, 1.0, a0=0.05), lambda count: [count, N - count]
    mechanism = GammaDraw(GammaExponential(2, 2), N, 2.0, 0.3, weighting="diffused", bounds=(0.0, 5.0))
    return mechanism, lambda count: [Fraction(count), Fraction(N)]


@pytest.fixture
def timed(monkeypatch):
    """A function of a kind with two neighbours' numbers: 200 times of a draw of each, to be told apart.

    A draw takes 1 ms or 2, at random, and 3 if its parameters are whole numbers.
    """
    clock, chance = Clock(), random.Random(5)
    monkeypatch.setattr(exact_draws, "thread_time", clock)

    def worked(*parameters):
        clock.now += 1e-3 * (3 if all(value.denominator == 1 for value in parameters) else 1 + chance.getrandbits(1))
        return SimpleNamespace(refine=lambda bits: 0)

    monkeypatch.setattr(exact_draws, "beta", lambda law, *ends, **source: worked(*law))
    monkeypatch.setattr(exact_draws, "dirichlet", lambda law, *arguments: [worked(*law).refine(0)] * len(law))
    monkeypatch.setattr(exact_draws, "gamma", lambda shape, rate, source: worked(rate))

    def times(kind, *counts):
        mechanism, at = of(kind)
        found = np.empty((TIMINGS, len(counts)))
        for timing in range(TIMINGS):
            for place, count in enumerate(counts):
                start = clock.now
                mechanism.rounded(at(count), BITS, random.Random(timing).getrandbits)
                found[timing, place] = clock.now - start
        return found

    return times


def told_apart(times) -> float:
    """Share of times (timings, 2) that the best threshold gives to the right one of two data sets."""
    levels = np.unique(times)
    right = ((times[:, :1] <= levels).mean(axis=0) + (times[:, 1:] > levels).mean(axis=0)) / 2
    return float(np.maximum(right, 1 - right).max())


@pytest.mark.parametrize("kind", ["bits", "categories", "ops", "gamma"])
@pytest.mark.parametrize("counts", [(19, 20), (0, N)])
def test_times_of_draws_tell_data_apart_no_better_than_chance_does(timed, kind, counts):
    """The best threshold is right in at most 60 % of 400 times, in steps of half a millisecond.

    Chance alone gives 50 % and, of times that differ, up to 58.
    """
    times = np.round(timed(kind, *counts) / 5e-4)
    assert told_apart(times) <= 0.6


def test_the_threshold_tells_times_apart_that_are_not_waited_for(timed, monkeypatch):
    """Parameters are whole at odd numbers, which takes 3 ms, and not at even ones: over 90 % are told."""
    monkeypatch.setattr(exact_draws, "in_units_of_time", lambda unit, draw: draw())
    assert told_apart(timed("bits", 19, 20)) > 0.9


@pytest.mark.parametrize("kind", ["bits", "categories", "ops", "gamma"])
def test_the_unit_of_time_is_public(timed, kind):
    """Mechanisms whose first draws are about other data have one unit, up to looks at the clock."""
    units = []
    for count in (0, 19, 20, N):
        mechanism, at = of(kind)
        mechanism.rounded(at(count), BITS)
        units.append(mechanism._units[BITS])
    assert max(units) - min(units) < 5e-4


@pytest.mark.parametrize("parameters", [(1, 1), (256, 762), (Fraction(1, 2), 7), (Fraction(513, 2), Fraction(1523, 2))])
def test_all_parameters_take_one_path_with_one_number_of_enclosures(monkeypatch, parameters):
    """No parameter is a number without a radius, as FLINT has series of their own for whole and half numbers; and each
    of the bits takes one enclosure.
    """
    seen, made = [], []
    enclosed, law = exact_draws.parameter, exact_draws._truncated_beta
    monkeypatch.setattr(exact_draws, "parameter", lambda value: seen.append(enclosed(value)) or seen[-1])
    monkeypatch.setattr(exact_draws, "_truncated_beta", lambda *arguments: made.append(1) or law(*arguments))
    exact_draws.beta(tuple(map(Fraction, parameters)), randbits=random.Random(1).getrandbits).refine(16)
    assert len(made) == 16 and len(seen) == 32
    assert not any(value.is_exact() for value in seen)
    assert seen[0].contains(exact_draws.ball(Fraction(parameters[0])))


@pytest.mark.parametrize(("n", "levels"), [(1, 2), (1, 5), (7, 2), (1000, 300)])
def test_public_counts_are_counts_of_n_records(n, levels):
    """Every entry is at least 0, and there are n together."""
    counts = np.array(public_counts(n, levels))
    assert (counts >= 0).all() and (counts.sum(axis=1) == n).all()
    assert len(np.unique(counts[:, 0] % 2)) == 2
