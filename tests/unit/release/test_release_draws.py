"""`privpost release` of one posterior draw: exactly an ideal draw, rounded down to public bits, and its price."""

from __future__ import annotations

import itertools
import json
import math
import random
import re
import secrets
import sys
import time
from fractions import Fraction

import numpy as np
import pytest
from release_cases import content, specification
from scipy import stats

from privpost.distributions import exact_draws
from privpost.mechanisms.choices.exponential import ExponentialMechanism
from privpost.mechanisms.draws.gamma import GammaDraw
from privpost.mechanisms.draws.posterior import PosteriorDraw
from privpost.mechanisms.draws.rounded import Rounded
from privpost.models.conjugate.beta_bernoulli import BetaBernoulli
from privpost.privacy.accounting.costs import to_approximate
from privpost.privacy.divergences import certified
from privpost.release import command

RANDOM = random.Random(3)
DRAWS = 1000
# A correct sampler fails a test with this probability; there are about ten.
FALSE_ALARM = 1e-4


def draw(model: str, mechanism: str, **changes) -> dict:
    found = content(model, mechanism=mechanism, **changes)
    found.pop("posterior", None)
    return found | ({"delta": 1e-6} if mechanism != "ops" else {"a0": 0.05})


KINDS = [
    ("beta_bernoulli", "ops"),
    *itertools.product(["beta_bernoulli", "dirichlet_categorical", "gamma_exponential"], ["diffused", "concentrated"]),
]


def fits(cells: np.ndarray, bits: int, cdf) -> bool:
    """Whether cells have the law of ⌊2^bits θ⌋, by a test of χ² on cells pooled to about 50 expected."""
    edges = np.quantile(cells, np.linspace(0.025, 0.975, 39), method="lower")
    edges = np.unique(edges) + 1
    counts = np.histogram(cells, [-1, *edges, 2**60])[0]
    below = np.array([0.0, *cdf(edges / 2.0**bits), 1.0])
    expected = np.diff(below) * len(cells)
    return stats.chisquare(counts, expected).pvalue > FALSE_ALARM


@pytest.mark.parametrize(
    ("a", "b", "low", "high"), [(2, 3, 0, 1), (0.5, 7, 0, 1), (30, 2, 0.05, 0.95), (1, 90, 0.1, 0.9)]
)
def test_beta_cells_have_the_law_of_rounded_draws(a, b, low, high):
    """Truncated ones too, of which the last has nearly all of its mass outside."""
    ends = Fraction(low), Fraction(high)
    cells = [exact_draws.beta((Fraction(a), Fraction(b)), ends, RANDOM.getrandbits).refine(9) for _ in range(DRAWS)]
    law = stats.beta(a, b)
    top, bottom = law.sf(low), law.sf(high)
    assert fits(np.array(cells), 9, lambda x: (top - law.sf(np.clip(x, low, high))) / (top - bottom))


@pytest.mark.parametrize(("shape", "rate"), [(1.5, 0.25), (0.3, 2.0)])
def test_gamma_cells_have_the_law_of_rounded_draws(shape, rate):
    cells = [exact_draws.gamma(Fraction(shape), Fraction(rate), RANDOM.getrandbits).refine(8) for _ in range(DRAWS)]
    assert fits(np.array(cells), 8, stats.gamma(shape, scale=1 / rate).cdf)


def test_dirichlet_cells_have_the_law_of_rounded_draws():
    """Every coordinate's floor is that of its beta marginal; rounded fractions of the stick would not be."""
    alpha = [Fraction(1, 2), Fraction(2), Fraction(3, 2), Fraction(1)]
    cells = np.array([exact_draws.dirichlet(alpha, 5, RANDOM.getrandbits) for _ in range(DRAWS)])
    for i, one in enumerate(alpha):
        assert fits(cells[:, i], 5, stats.beta(float(one), 5 - float(one)).cdf)
    # Floors of shares that sum to one miss up to d − 1 units together.
    assert {29, 30, 31} <= set(cells.sum(axis=1)) <= {29, 30, 31, 32}


def test_a_draw_is_refined_not_drawn_again():
    one = exact_draws.beta((Fraction(6), Fraction(12)), randbits=RANDOM.getrandbits)
    coarse = one.refine(4)
    assert one.refine(40) >> 36 == coarse


@pytest.mark.parametrize("parameters", [(6, 12), (12, 6), (2, 0.5)])
def test_a_cell_is_that_of_the_inverse_distribution_function(parameters):
    """Given the uniform's bits the cell is ⌊2^b F⁻¹(U)⌋."""
    for seed in range(20):
        u = random.Random(seed).getrandbits(32)
        cell = exact_draws.beta(tuple(map(Fraction, parameters)), randbits=random.Random(seed).getrandbits).refine(12)
        assert cell == int(stats.beta(*parameters).ppf((u + 0.5) / 2**32) * 2**12)


@pytest.mark.parametrize(
    ("a", "b", "low", "high"),
    [(2, 3, 0, 1), (0.5, 7, 0, 1), (36774, 73549, 0, 1), (30, 2, 0.05, 0.95), (1, 90, 0.1, 0.9), (9e4, 1, 0.1, 0.5)],
)
def test_a_draw_that_is_guessed_is_the_same_and_takes_fewer_steps(a, b, low, high, monkeypatch):
    law, points = ((Fraction(a), Fraction(b)), (Fraction(low), Fraction(high))), []
    below = exact_draws.Draw._below
    monkeypatch.setattr(exact_draws.Draw, "_below", lambda draw, point: points.append(point) or below(draw, point))
    for seed in range(10):
        slow = exact_draws.beta(*law, random.Random(seed).getrandbits).refine(40)
        steps = len(points)
        with exact_draws.guessing():
            assert exact_draws.beta(*law, random.Random(seed).getrandbits).refine(40) == slow
        # The last law has no mass in floats: nothing is guessed, or the guess is not kept.
        assert steps == 40 and len(points) - steps <= (42 if a == 9e4 else 8)
        points.clear()


def test_a_wrong_guess_costs_time_but_changes_no_draw(monkeypatch):
    law = (Fraction(6), Fraction(12))
    slow = [exact_draws.beta(law, randbits=random.Random(seed).getrandbits).refine(40) for seed in range(5)]
    for wrong in (0.0, 0.999, math.nan, -1.0, math.inf):
        monkeypatch.setattr(exact_draws, "_beta_quantile", lambda *given, wrong=wrong: wrong)
        with exact_draws.guessing():
            assert slow == [
                exact_draws.beta(law, randbits=random.Random(seed).getrandbits).refine(40) for seed in range(5)
            ]


def test_a_release_guesses_nothing(monkeypatch):
    """Its time would tell of the draw."""
    guessed = []
    monkeypatch.setattr(exact_draws.Draw, "_guess", lambda draw, bits: guessed.append(bits))
    mechanism = ExponentialMechanism(BetaBernoulli(1, 1), 10, 1.0, a0=0.05)
    mechanism.rounded([3, 7], 16)
    assert not guessed
    mechanism.rounded([3, 7], 16, public_time=False)
    assert guessed


@pytest.mark.parametrize("rate", [1e40, 1e160, 1e300, 1e308])
def test_bits_that_round_every_draw_to_one_number_are_refused(folder, rate):
    """The share of the variance that rounding adds was no float."""
    folder.specify(draw("gamma_exponential", "diffused", epsilon=5.0, prior={"shape": 2, "rate": rate}))
    status, out, err = folder.run("--dry-run")
    assert (status, out) == (2, "")
    assert "all draws would be rounded to one number" in err


def test_an_uncertain_distribution_function_is_an_error():
    vague = exact_draws.Draw(lambda point: exact_draws.flint().arb(0.5, 0.5), RANDOM.getrandbits)
    with pytest.raises(ArithmeticError, match="no draw was made"):
        vague.refine(1)


@pytest.mark.parametrize("n", [100, 100_000, 1_000_000])
def test_a_draw_takes_a_fraction_of_a_second(n):
    start = time.perf_counter()
    exact_draws.beta((6 + Fraction(n, 3), 12 + Fraction(2 * n, 3))).refine(16)
    exact_draws.beta((1 + Fraction(n, 90), 1 + Fraction(n, 99)), (Fraction(0.05), 1 - Fraction(0.05))).refine(16)
    # Ends so close to 0 and 1 kept a charged release from ever ending.
    exact_draws.beta((1 + Fraction(n, 90), 1 + Fraction(n, 99)), (Fraction(1e-99), 1 - Fraction(1e-99))).refine(16)
    exact_draws.gamma(Fraction(n + 2), Fraction(n)).refine(16)
    # 0.1 to 0.3 s together on one core.
    assert time.perf_counter() - start < 5


BITS_PRIOR = BetaBernoulli(6, 12)


@pytest.mark.parametrize(
    "mechanism",
    [
        PosteriorDraw(BITS_PRIOR, 100, 3.0, weighting="direct"),
        PosteriorDraw(BITS_PRIOR, 100_000, 3.0, 0.3, weighting="diffused"),
        PosteriorDraw(BITS_PRIOR, 7, 3.0, 1e-3, weighting="concentrated"),
        *({each.weighting: each for each in reversed(GammaDraw.examples())}.values()),
    ],
)
def test_certified_costs_are_the_floating_point_ones(mechanism):
    """Another implementation, in balls: equal to the floats' own error, which falls with n to 1e-10."""
    for order in (1.25, 2.0, 5.0):
        assert mechanism.certified_rdp(order) == pytest.approx(float(mechanism.rdp(order)), rel=1e-9)


def test_a_certified_conversion_is_that_of_dp_accounting():
    for order, rdp in ((2.0, 0.1), (30.0, 1.5)):
        expected, _ = to_approximate([order], [rdp], 1e-6)
        assert certified.approximate_epsilon(rdp, order, 1e-6) == pytest.approx(expected, rel=1e-12)
    assert certified.approximate_epsilon(np.inf, 2.0, 1e-6) == np.inf


@pytest.mark.parametrize(("model", "mechanism"), KINDS)
def test_a_released_draw_is_within_its_budget_and_says_what_it_is(folder, model, mechanism):
    budget = {"ledger": "ledger.jsonl", "epsilon": 2, "delta": 1e-5}
    folder.specify(draw(model, mechanism, epsilon=0.7, bits=12, budget=budget))
    status, out, err = folder.run()
    assert (status, err) == (0, "")
    found = json.loads(out)
    privacy = found["privacy"]
    assert privacy["private"] is True
    assert 0.99 * 0.7 < privacy["epsilon_proved"] <= 0.7
    assert privacy["sampling"]["bits"] == 12
    assert privacy["sampling"]["rounding"]["cell_width"] == 2.0**-12
    assert found["ledger"]["spent"] == {"epsilon": 0.7, "delta": 0.0 if mechanism == "ops" else 1e-6}
    for value in found["draw"].values():
        assert value["interval"][0] == value["cell"] / 2**12 < value["midpoint"] < value["interval"][1]
    if model == "dirichlet_categorical":
        assert sum(value["interval"][0] for value in found["draw"].values()) <= 1
    assert "python-flint" in found["versions"]


def test_the_direct_posterior_is_released_where_it_is_cheap_enough(folder):
    found = draw("beta_bernoulli", "direct", epsilon=1.0, prior={"alpha": 200, "beta": 200})
    folder.specify(found)
    assert folder.run()[0] == 0
    folder.specify({**found, "prior": {"alpha": 1, "beta": 1}})
    status, out, err = folder.run()
    assert (status, out) == (2, "")
    assert "a draw from the posterior itself costs" in err


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"bits": 0}, "bits is 0, but must be a whole number of at least 1 and at most 64"),
        ({"bits": 65}, "bits is 65, but must be a whole number of at least 1 and at most 64"),
        ({"bits": "many"}, "bits is 'many', but must be"),
        ({"a0": 0.1}, "a0 is 0.1; only ops has one|a0 is 0.1, but only ops has one"),
        ({"posterior": {"draws": 2}}, "a release by diffused is itself one posterior draw"),
        ({"mechanism": "ops"}, "delta is 1e-06, but one posterior sample .* leave delta out"),
        ({"mechanism": "laplace", "delta": None}, "delta is None|bits"),
        ({"delta": 1e-3}, "delta is 0.001, but must be at most 1e-06"),
        ({"epsilon": 1e-9}, "epsilon is 1e-09, but must be at least 0.00594: "),
    ],
)
def test_settings_of_a_draw_that_do_not_fit_are_refused_before_anything_is_drawn(folder, monkeypatch, changes, message):
    monkeypatch.setattr(secrets, "randbits", None)
    folder.specify({**draw("beta_bernoulli", "diffused", bits=8), "budget": {"ledger": "l", "epsilon": 9}, **changes})
    status, out, err = folder.run()
    assert (status, out) == (2, "")
    assert re.search(message, err), err
    assert folder.files() == {"spec.yaml", "data.csv"}


def test_redacted_records_have_no_exact_draw(folder):
    columns = {"minutes": {"low": 0, "high": 4, "resolution": 0.5, "outside": "redact"}}
    folder.specify(draw("gamma_exponential", "diffused", columns=columns))
    assert "a draw needs outside: refuse" in folder.run()[2]


def test_without_flint_the_message_says_how_to_install_it(folder, monkeypatch):
    folder.specify(draw("beta_bernoulli", "diffused"))
    exact_draws.flint.cache_clear()
    monkeypatch.setitem(sys.modules, "flint", None)
    status, out, err = folder.run()
    assert (status, out) == (2, "")
    assert "needs" not in out
    assert "exact draws need the package python-flint. Install it: pip install" in err


@pytest.mark.parametrize(("model", "mechanism"), KINDS)
def test_simulated_draws_repeat_and_are_not_private(folder, model, mechanism):
    folder.specify(draw(model, mechanism, noise="simulation", seed=4))
    first, second = folder.run(), folder.run()
    assert first[0] == 0
    assert first == second
    assert json.loads(first[1])["privacy"]["private"] is False


def test_the_drawn_law_is_that_of_the_mechanism(tmp_path):
    """The sum of a file's records enters the draw as an exact number, in the units of the file."""
    found, kind = specification(tmp_path, draw("gamma_exponential", "diffused", epsilon=3, bits=10))
    mechanism, _ = command.prepared(found, kind)
    statistics = kind.exact_statistics(found, np.array([16.0]))
    assert statistics == [Fraction(8), Fraction(4)]
    cells = np.array([mechanism.rounded(statistics, 10, RANDOM.getrandbits)[0] for _ in range(DRAWS)])
    shape, rate = mechanism.release_law([8.0, 4.0])
    assert fits(cells, 10, stats.gamma(shape, scale=1 / rate).cdf)


@pytest.mark.parametrize("levels", [300, 4000])
def test_the_terms_of_a_draw_of_many_levels_are_quick(folder, levels):
    """With 300 levels they once took 92 s, a loop over triples of levels; the time of a draw is limited."""
    found = content("dirichlet_categorical", n=30, epsilon=0.1, delta=1e-6, mechanism="diffused", bits=8)
    found["columns"] = {"diet": {"levels": [f"level {i}" for i in range(levels)]}}
    del found["posterior"]
    folder.specify(found)
    start = time.process_time()
    status, _, err = folder.run("--dry-run")
    assert time.process_time() - start < 5
    assert status == (0 if levels == 300 else 2)
    assert levels == 300 or "a draw of 4000 numbers of 8 bits would take some" in err


def test_a_draw_that_would_take_long_is_refused_before_the_charge(folder):
    """This one was ended after two minutes, not half way: a small epsilon makes the beta laws slow."""
    found = content("dirichlet_categorical", n=192, epsilon=0.0088, delta=4e-7, mechanism="concentrated", bits=64)
    found |= {"columns": {"diet": {"levels": [f"level {i}" for i in range(253)]}}, "prior": {"concentration": 0.194}}
    del found["posterior"]
    folder.specify(found)
    status, out, err = folder.run("--dry-run")
    assert (status, out) == (2, "")
    assert "a draw of 253 numbers of 64 bits would take some 1426 seconds" in err
    few = {"columns": {"diet": {"levels": found["columns"]["diet"]["levels"][:20]}}}
    for changes in ({**few, "bits": 16}, {"epsilon": 9}):
        folder.specify({**found, **changes})
        assert folder.run("--dry-run")[0] == 0


def test_a_long_draw_is_announced_and_a_short_one_is_silent(folder, monkeypatch):
    """By the public estimate of its time alone; said once, before the charge."""
    folder.specify(draw("beta_bernoulli", "diffused"))
    assert folder.run("--output", "short.json")[::2] == (0, "")
    monkeypatch.setattr(Rounded, "seconds", lambda *_: 31.0)
    status, _, err = folder.run("--output", "long.json")
    assert (status, err) == (0, "privpost: spec.yaml: the draw takes some 31 seconds or longer\n")
