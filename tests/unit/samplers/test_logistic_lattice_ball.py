"""Draws of a logistic posterior on the lattice points of a ball: their law, their decisions, and their public work."""

from __future__ import annotations

import itertools
import math
import random
from dataclasses import replace

import numpy as np
import pytest
from scipy.stats import chisquare

from privpost.distributions.exact_draws import flint
from privpost.models.regression.logistic import LogisticPosterior
from privpost.samplers.logistic import lattice_ball as logistic_lattice_ball
from privpost.samplers.logistic.lattice_ball import LatticeBall, Proposals, around, least_radius, proposals

DRAWS = 5000
# A correct sampler fails a test with this probability.
FALSE_ALARM = 1e-4
KINDS = ["random", "separated", "alike", "balanced", "nothing"]
# Lattices so coarse that all points of the ball, and beyond it, can be listed.
COARSE = [
    LatticeBall(4, 1, 0.1, 0.4, 1.0, 1.1, 0.125),
    LatticeBall(3, 1, 0.3, 1.0, 1.0, 4.0, 0.03125),
    LatticeBall(4, 2, 0.1, 0.4, 2**0.5, 1.1, 0.25),
    # Of more than one step in a cell.
    LatticeBall(4, 1, 0.1, 1.0, 1.0, 0.02, 0.0009765625),
]


def records(kind: str, n: int, d: int) -> tuple[np.ndarray, np.ndarray]:
    """Features (n, d) with an intercept, in [-1, 1], and labels (n,)."""
    rng = np.random.default_rng(n + d)
    features = np.ones((n, d))
    labels = np.ones(n)
    if kind == "random":
        features[:, 1:] = np.rint(rng.uniform(-1, 1, (n, d - 1)) * 2**40) / 2**40
        labels = (rng.random(n) < 0.5).astype(float)
    if kind == "separated":
        features[:, 1:] = np.where(np.arange(n) % 2, 1.0, -1.0)[:, None]
        labels = (np.arange(n) % 2).astype(float)
    if kind == "balanced":
        labels = (np.arange(n) % 2).astype(float)
    if kind == "nothing":
        features[:, 1:] = 0
    return features, labels


def points(public: LatticeBall) -> tuple[np.ndarray, np.ndarray]:
    """Lattice points of a cube about the ball, (k, d), and which of them are in the ball."""
    reach = math.isqrt(public.squared) + 1
    found = np.array(list(itertools.product(range(-reach, reach + 1), repeat=public.dimension)))
    return found, np.array([sum(int(k) ** 2 for k in point) * public.step**2 <= public.ball**2 for point in found])


def target(features, labels, public: LatticeBall) -> np.ndarray:
    """The law at `points`, by its definition."""
    places, inside = points(public)
    weights = places * public.step
    margins = (weights @ features.T) * np.where(labels == 1, 1.0, -1.0)
    logs = -public.power * np.logaddexp(0, -margins).sum(axis=1)
    logs -= public.n * public.precision / 2 * (weights**2).sum(axis=1)
    law = np.where(inside, np.exp(logs - logs.max()), 0.0)
    return law / law.sum()


def made(prepared: Proposals) -> np.ndarray:
    """What the sampler proposes times its chance to accept, at `points`, to a factor; interval arithmetic's middles."""
    places, _ = points(prepared.public)
    table = prepared.public.table
    accepted = logistic_lattice_ball._within(places, prepared.public.squared)
    law = np.zeros(len(places))
    for i in np.flatnonzero(accepted):
        moves = places[i] - prepared.centre
        cells = moves // table.length + table.cells
        chance = float(prepared.chance(moves, cells))
        assert 0 <= chance <= 1
        law[i] = chance * math.prod(int(table.weights[cell]) / 2**62 for cell in cells)
    return law


def moved(prepared: Proposals, by: float) -> Proposals:
    """Proposals about another point than the one near the mode."""
    near = prepared.public.step * prepared.centre + by
    return around(prepared.posterior, prepared.public, near)


@pytest.mark.parametrize("by", [0.0, 0.4, -9.0])
@pytest.mark.parametrize("public", COARSE)
def test_proposed_and_accepted_is_the_posterior_at_every_point(public, by):
    """To 1e-12, floats' own error; also about points off the mode, of which one is the ball's edge."""
    features, labels = records("random", public.n, public.dimension)
    law = made(moved(proposals(features, labels, public), by))
    np.testing.assert_allclose(law / law.sum(), target(features, labels, public), rtol=1e-12, atol=1e-300)


@pytest.mark.parametrize(
    ("public", "by"), [(COARSE[0], 0.0), (COARSE[0], 0.2), *((public, 0.0) for public in COARSE[2:])]
)
def test_draws_have_the_enumerated_law(monkeypatch, public, by):
    """χ² over all points of the ball; a right sampler fails once in 10,000 runs."""
    # Of how many are looked at the law is independent.
    monkeypatch.setattr(LatticeBall, "proposals", lambda self, size: 32)
    features, labels = records("random", public.n, public.dimension)
    prepared = moved(proposals(features, labels, public), by)
    bits = random.Random(4).getrandbits
    drawn = np.array([prepared.draw(bits) for _ in range(DRAWS)])
    places, _ = points(public)
    counts = (drawn[:, None] == places[None]).all(axis=-1).sum(axis=0)
    expected = DRAWS * target(features, labels, public)
    assert counts.sum() == DRAWS
    assert counts[expected == 0].sum() == 0
    few = (expected > 0) & (expected < 5)
    merged = [np.append(values[expected >= 5], values[few].sum()) for values in (counts, expected)]
    kept = merged[1] > 0
    assert chisquare(merged[0][kept], merged[1][kept]).pvalue > FALSE_ALARM


def test_floats_decide_as_interval_arithmetic_does(monkeypatch):
    """With the same bits, floats whose error is taken to be 1e-8 of that, and as large as can be, draw the same."""
    public = LatticeBall(60, 3, 0.02, 0.3, 3**0.5, least_radius(60, 3, 60 * 0.02, 0.3))
    prepared = proposals(*records("random", 60, 3), public)
    monkeypatch.setattr(LatticeBall, "proposals", lambda self, size: 16)
    asked = []
    accepts = Proposals._accepts
    monkeypatch.setattr(Proposals, "_accepts", lambda self, *arguments: asked.append(1) or accepts(self, *arguments))
    quick = [prepared.draw(random.Random(seed).getrandbits) for seed in range(40)]
    assert len(asked) == 0
    monkeypatch.setattr(logistic_lattice_ball, "_UNIT", 1.0)
    slow = [prepared.draw(random.Random(seed).getrandbits) for seed in range(40)]
    assert len(asked) >= 40
    np.testing.assert_array_equal(quick, slow)


def test_a_float_of_the_exponent_is_off_by_less_than_is_allowed():
    """Against interval arithmetic, at 50 random points: off by 2^-10 of what is allowed at most."""
    public = LatticeBall(80, 3, 0.02, 0.3, 3**0.5, least_radius(80, 3, 80 * 0.02, 0.3))
    prepared = proposals(*records("random", 80, 3), public)
    rng, table, step = np.random.default_rng(1), public.table, public.step
    at, gained = prepared._at
    for _ in range(50):
        place = np.trunc(rng.uniform(-1, 1, 3) * public.ball / 2 / step).astype(np.int64)
        moves = place - prepared.centre
        cells = moves // table.length + table.cells
        found = public.power * (
            gained
            - prepared.posterior.log_likelihood_of_predictors((prepared.posterior.features @ (place * step))[None])
        )
        found += public.total * (step * moves) @ at + prepared.slack
        found += public.total / 2 * ((step * moves) ** 2).sum() + table.logs[cells].sum()
        with flint().ctx.workprec(200):
            exact = -prepared.chance(moves, cells).log()
        assert abs(float(exact - flint().arb(float(found[0])))) <= public.rounding / 2**10


@pytest.mark.parametrize("public", [*COARSE, LatticeBall(500, 6, 0.05, 0.2, 6**0.5, least_radius(500, 6, 25, 0.2))])
def test_cells_cover_all_moves_in_the_ball_and_weigh_enough(public):
    """Weights are whole numbers that sum to 2^62, each at least the scale times the largest exp(−PΔ²/2) of its cell."""
    table = public.table
    assert table.weights.sum(dtype=object) == 2**62 == table.below[-1]
    assert table.cells * table.length >= 2 * math.isqrt(public.squared) + 1
    first = (np.arange(2 * table.cells) - table.cells) * table.length
    last = first + table.length - 1
    nearest = np.where(first * last <= 0, 0, np.minimum(np.abs(first), np.abs(last)))
    heights = np.exp(-public.total / 2 * (public.step * nearest) ** 2)
    assert (table.weights / table.scale >= heights * (1 - 1e-15)).all()
    ends = np.array([0, table.weights[0] - 1, table.weights[0], 2**62 - 1], np.uint64) << np.uint64(2)
    assert table.chosen(ends + np.uint64(3)).tolist() == [0, 0, 1, 2 * table.cells - 1]
    # No weight is much more than it needs but in the tails, where it is one part in 2^62.
    assert (table.weights / 2**62 <= 1.1 * heights / heights.sum() + 2.0**-60).all()


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(("n", "d", "precision", "power"), [(40, 1, 0.02, 0.3), (400, 2, 0.01, 0.1), (9, 2, 0.05, 1.0)])
def test_no_data_accept_less_than_the_public_share(kind, n, d, precision, power):
    """The share that is accepted as an integral over the ball, by sums over a grid, to 3 %."""
    public = LatticeBall(n, d, precision, power, d**0.5, least_radius(n, d, n * precision, power))
    prepared = proposals(*records(kind, n, d), public)
    assert prepared.slack <= 0.1
    # What a step shortens the longest gradient by, until 2R times it is at most .06.
    narrow = 1 + power * d / (4 * precision)
    assert (1 - 1 / narrow) ** public.steps * power * n * d**0.5 * public.ball <= 0.06 * (1 + 1e-9)
    line = np.linspace(-public.ball, public.ball, 20_001 if d == 1 else 201)
    nodes = np.stack([axis.ravel() for axis in np.meshgrid(*[line] * d)], axis=-1)
    nodes = nodes[(nodes**2).sum(axis=1) <= public.ball**2]
    logs = prepared.posterior.log_density(nodes) - prepared.posterior.log_density((public.step * prepared.centre)[None])
    integral = np.exp(logs).sum() * (line[1] - line[0]) ** d / public.step**d
    share = integral * math.exp(-prepared.slack) * (public.table.scale / 2**62 / public.table.length) ** d
    assert share >= math.exp(-public.log_expected) * 0.97


@pytest.mark.parametrize("n", [3, 30, 3000])
@pytest.mark.parametrize("d", [1, 2])
def test_the_ball_holds_1_over_e_of_every_posterior(n, d):
    """By sums over a grid; records alike, of a length at which the bound κ on s/(1 + e^s) is met, have least in it."""
    power, precision = 0.2, 0.01
    radius = least_radius(n, d, n * precision, power)
    line = np.linspace(-3 * radius, 3 * radius, 20_001 if d == 1 else 601)
    nodes = np.stack([axis.ravel() for axis in np.meshgrid(*[line] * d)], axis=-1)
    held = []
    for length in (0.1, 0.3, 0.5, 0.7, 1.0):
        features = np.zeros((n, d))
        features[:, 0] = length
        posterior = LogisticPosterior(features, np.ones(n), n * precision, power)
        logs = posterior.log_prior(nodes) - n * power * np.logaddexp(0, -length * nodes[:, 0])
        law = np.exp(logs - logs.max())
        held.append(law[(nodes**2).sum(axis=1) <= radius**2].sum() / law.sum())
    assert min(held) >= math.exp(-1)
    # It is not far larger than it has to be.
    assert min(held) <= 0.95


def test_the_ball_s_edge_is_exact():
    """Whole numbers whose squares floats do not hold; |places|² is the bound, one more, and one less."""
    places = np.array([[2**40 + 1, 2**40, 3], [2**40, 2**40 + 1, 4]])
    squares = [sum(int(place) ** 2 for place in row) for row in places]
    for most, expected in ((squares[0], [True, False]), (squares[0] - 1, [False, False]), (squares[1], [True, True])):
        assert logistic_lattice_ball._within(places, most).tolist() == expected


@pytest.mark.parametrize("kind", KINDS)
def test_the_bits_that_are_drawn_are_the_same_for_all_data(monkeypatch, kind):
    """Five kinds of data; the number of proposals, of which seven are held at once, follows from public numbers."""
    monkeypatch.setattr(logistic_lattice_ball, "_ELEMENTS", 7 * 40)
    public = LatticeBall(40, 2, 0.05, 0.2, 2**0.5, least_radius(40, 2, 2.0, 0.2))
    drawn = []
    source = random.Random(5)
    proposals(*records(kind, 40, 2), public).draw(lambda bits: drawn.append(bits) or source.getrandbits(bits))
    assert set(drawn[:-3]) == {64 * 2 * 7, 64 * 7}
    assert sum(drawn) == 64 * (2 * 2 + 1) * public.proposals(1)


def test_more_proposals_are_made_where_the_planned_ones_do_not_do(monkeypatch):
    """They are as many as before, until one is accepted."""
    public = COARSE[0]
    prepared = proposals(*records("random", 4, 1), public)
    monkeypatch.setattr(LatticeBall, "proposals", lambda self, size: 1)
    monkeypatch.setattr(logistic_lattice_ball, "_ELEMENTS", 4)
    asked = []
    first = Proposals._first
    monkeypatch.setattr(
        Proposals, "_first", lambda self, number, bits: asked.append(number) or first(self, number, bits)
    )
    bits = random.Random(6).getrandbits
    for _ in range(20):
        prepared.draw(bits)
    assert set(asked) == {1}
    assert len(asked) > 20


def test_an_acceptance_above_1_is_refused():
    """A slack that is far too small refutes the bound."""
    prepared = proposals(*records("random", 4, 2), COARSE[2])
    with pytest.raises(ArithmeticError, match="no draw was made"):
        replace(prepared, slack=-5.0).draw(random.Random(1).getrandbits)
