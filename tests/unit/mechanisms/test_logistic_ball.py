"""OPS of a logistic regression on a ball as it is released on real data: its cost by enumeration, and refusals."""

from __future__ import annotations

import itertools
import math
from dataclasses import replace

import numpy as np
import pytest

from privpost.mechanisms.draws.logistic_ball import BallDraw
from privpost.mechanisms.noise.logistic_lattice import SHIFT, design
from privpost.privacy.divergences import certified
from privpost.privacy.divergences.glm import KAPPA, ops_power_at
from privpost.samplers.logistic import lattice_ball as logistic_lattice_ball
from privpost.samplers.logistic.lattice_ball import LatticeBall


def law(mechanism: BallDraw, records, spacing: float) -> np.ndarray:
    """Probabilities at the points of a coarse lattice on a cube twice as wide as the ball: proposed times accepted."""
    public = replace(mechanism.public, spacing=spacing)
    prepared = logistic_lattice_ball.proposals(*design(np.array(records)), public)
    table, reach = public.table, math.isqrt(public.squared)
    places = np.array(list(itertools.product(range(-2 * reach, 2 * reach + 1), repeat=public.dimension)))
    found = np.zeros(len(places))
    for i in np.flatnonzero(logistic_lattice_ball._within(places, public.squared)):
        moves = places[i] - prepared.centre
        cells = np.clip(moves // table.length + table.cells, 0, 2 * table.cells - 1)
        found[i] = float(prepared.chance(moves, cells)) * math.prod(float(table.weights[cell]) for cell in cells)
    return found / found.sum()


def worst_loss(mechanism: BallDraw, spacing: float) -> float:
    """The largest |ln P(w)/Q(w)| over all w and neighbours, of records at the bounds or in the middle."""
    values = [(*xs, y) for xs in itertools.product((-1, 0, 1), repeat=mechanism.dimension - 1) for y in (0, 1)]
    single = [tuple(x * 2**SHIFT for x in record[:-1]) + record[-1:] for record in values]
    laws = {
        records: law(mechanism, records, spacing)
        for records in itertools.combinations_with_replacement(single, mechanism.n)
    }
    worst = 0.0
    for one, other in itertools.combinations(laws, 2):
        rest = list(other)
        if sum(rest.remove(record) is None for record in one if record in rest) == mechanism.n - 1:
            p, q = laws[one], laws[other]
            assert np.array_equal(p > 0, q > 0)
            worst = max(worst, np.abs(np.log(p[p > 0] / q[p > 0])).max())
    return worst


@pytest.mark.parametrize(
    ("n", "d", "precision", "epsilon", "spacing"),
    [(2, 1, 0.5, 1.0, 0.125), (2, 2, 1.0, 2.0, 0.25), (1, 2, 0.2, 0.7, 0.5)],
)
def test_no_neighbour_makes_any_point_more_likely_than_epsilon_says(n, d, precision, epsilon, spacing):
    """By enumeration of points, and of all data sets of the longest records; 30 % of ε is used at least."""
    mechanism = BallDraw(n, d, precision, epsilon)
    worst = worst_loss(mechanism, spacing)
    assert worst <= mechanism.certified_epsilon() <= epsilon * (1 + 1e-12)
    assert worst >= 0.3 * epsilon


def test_twice_the_power_would_cost_more_than_epsilon(monkeypatch):
    """The enumeration can fail: one record, whose loss varies by all of cR."""
    mechanism = BallDraw(1, 2, 0.2, 0.7)
    monkeypatch.setitem(mechanism.__dict__, "public", replace(mechanism.public, power=4 * mechanism.power))
    assert worst_loss(mechanism, 0.5) > 0.7


@pytest.mark.parametrize(
    ("n", "d", "precision", "epsilon"), [(500, 3, 5.0, 1.0), (10_000, 10, 300.0, 0.5), (50, 2, 1, 9.0)]
)
def test_power_radius_and_certified_cost_are_the_formula_s(n, d, precision, epsilon):
    """2√d ρR is ε or, at ρ = 1, less; R² is (ρκn + d)/P but for a thousandth, and as n grows ρ the smallest ball's."""
    mechanism = BallDraw(n, d, precision, epsilon)
    assert mechanism.radius**2 == pytest.approx((mechanism.power * KAPPA * n + d) / precision, rel=0.003)
    cost = 2 * math.sqrt(d) * mechanism.power * mechanism.radius
    assert cost <= mechanism.certified_epsilon() <= cost * (1 + 1e-12)
    assert mechanism.power == 1 or cost == pytest.approx(epsilon, rel=1e-12)
    many = BallDraw(10**8, d, 10**8 * precision / n, epsilon)
    assert many.power == pytest.approx(
        float(ops_power_at(epsilon, precision / n, math.sqrt(d), "smallest_ball")), rel=0.01
    )


def test_the_certified_cost_is_not_below_that_of_exact_arithmetic():
    """Here the exact cost is 2 · 3 · ¼ · 2 = 3."""
    assert 3 <= certified.ball_epsilon(9, 0.25, 2.0) <= 3 + 1e-15


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            (1000, 20, 1.0, 1.0),
            r"n 1000 and 20 weights some data would take 1e[0-9.]+ proposals on average, of at most 10000",
        ),
        ((1000, 2, 1e-6, 5.0), "steps, of at most 100000"),
        ((1000, 2, 1.0, 1e-40), "epsilon is 1e-40: too small"),
    ],
)
def test_what_takes_too_long_for_some_data_is_refused_by_public_numbers(arguments, message):
    with pytest.raises(ValueError, match=message):
        BallDraw(*arguments)


@pytest.mark.parametrize("n", [10, 10_000])
@pytest.mark.parametrize("d", [2, 20])
def test_the_lattice_is_finer_than_anything_that_is_said_of_the_time(n, d):
    """γ√d is at most a thousandth of R and of the narrowest law's deviation, and moves the gradient by .001 at most."""
    public = BallDraw(n, d, n * 0.1, 1.0).public
    assert isinstance(public, LatticeBall)
    width, most = public.step * math.sqrt(d), public.n * public.precision + public.power * n * d / 4
    assert width <= 1.001e-3 * public.ball
    assert public.step <= 1e-3 / math.sqrt(most)
    assert 2 * public.ball * most * width <= 0.002
    assert math.log2(public.step) % 1 == 0
