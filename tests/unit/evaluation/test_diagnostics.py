"""R-hat and effective sample sizes against ArviZ, known autocorrelations and chains that have not mixed."""

import warnings

import numpy as np
import pytest

from privpost.evaluation.diagnostics import _normal_scores, assess, diagnose
from privpost.samplers.noise_aware import draws as noise_aware_draws


def autoregressive(coefficient: float, noise: np.ndarray) -> np.ndarray:
    """Stationary AR(1) chains along the first axis, whose integrated autocorrelation time is (1 + c) / (1 - c)."""
    chains = np.empty_like(noise)
    chains[0] = noise[0] / np.sqrt(1 - coefficient**2)
    for t in range(1, len(noise)):
        chains[t] = coefficient * chains[t - 1] + noise[t]
    return chains


def example(name: str) -> np.ndarray:
    noise = np.random.default_rng(42).standard_normal((300, 4))
    return {
        "independent": lambda: autoregressive(0.0, noise),
        "persistent": lambda: autoregressive(0.5, noise),
        "antithetic": lambda: autoregressive(-0.5, noise),
        "slow": lambda: autoregressive(0.9, noise),
        "shifted chain": lambda: noise + np.array([0, 0, 0, 1.0]),
        "wide chain": lambda: noise * np.array([1, 1, 1, 3.0]),
        "ties": lambda: np.round(2 * noise),
        "heavy tails": lambda: noise / np.roll(noise, 7, axis=0),
        "odd length": lambda: autoregressive(0.5, noise)[:257],
    }[name]()


# R-hat, bulk and tail effective sample size by ArviZ 0.21 and 0.23 (rhat, ess(method="bulk"), ess(method="tail")), on
# the draws of `example`, seed 42.
ARVIZ = {
    "independent": (0.9978173527937461, 1268.4387244410107, 1044.8581555094427),
    "persistent": (0.9991407626201444, 404.49264533926424, 689.1097399698814),
    "antithetic": (0.9993151165803725, 3695.0174952571497, 1160.4587351947175),
    "slow": (1.0103810117405105, 93.11491066739045, 201.29492295577245),
    "shifted chain": (1.102934676254916, 27.006904713173153, 441.0145172498586),
    "wide chain": (1.1326002121733714, 1332.3527329936123, 35.87365501985825),
    "ties": (0.99814642716043, 1285.324013652122, 1114.5711674404984),
    "heavy tails": (0.9973399541018203, 1280.4866091116855, 1156.5033617559272),
    "odd length": (1.0013063425811124, 356.0454072085171, 585.3783468998892),
}


@pytest.mark.parametrize("name", ARVIZ)
def test_equal_arviz(name):
    draws = example(name)
    # The same formulas, rounded in another order.
    np.testing.assert_allclose(diagnose(draws), ARVIZ[name], rtol=1e-9)


@pytest.mark.parametrize("name", ARVIZ)
def test_equal_the_arviz_that_is_installed(name):
    """Chains first, as ArviZ has them, and an odd draw in the middle left out as there; rounding alone differs."""
    arviz = pytest.importorskip("arviz")
    chains = example(name).T
    found = arviz.rhat(chains), arviz.ess(chains, method="bulk"), arviz.ess(chains, method="tail")
    np.testing.assert_allclose(diagnose(example(name)), found, rtol=1e-9)
    np.testing.assert_allclose(ARVIZ[name], found, rtol=1e-9)


@pytest.mark.parametrize("coefficient", [-0.5, 0.0, 0.5, 0.9])
def test_bulk_size_of_an_autoregression_is_its_known_value(coefficient):
    noise = np.random.default_rng(1).standard_normal((5000, 4, 20))
    expected = 20000 * (1 - coefficient) / (1 + coefficient)
    # The mean over 20 quantities has a standard deviation of 0.9 % at most (2.9 % at 0.9) and a bias of up to 1 %, both
    # measured over a dozen seeds: the limit lies four standard deviations beyond the bias.
    limit = 0.126 if coefficient == 0.9 else 0.046
    assert np.mean(diagnose(autoregressive(coefficient, noise))[1]) == pytest.approx(expected, rel=limit)


def test_tail_size_of_independent_draws_is_their_number():
    draws = np.random.default_rng(2).standard_normal((5000, 4, 20))
    # Regression: 2.2 % came out of our own code: the smaller of two noisy numbers lies below 20000. Its mean over 20
    # varies by 0.64 %: four of these.
    assert np.mean(diagnose(draws)[2]) == pytest.approx(0.978 * 20000, rel=0.026)


def test_split_halves_reveal_a_trend():
    draws = np.random.default_rng(3).standard_normal((400, 4)) + np.linspace(0, 2, 400)[:, None]
    assert diagnose(draws)[0] > 1.1


def test_folding_reveals_chains_that_differ_in_scale_only():
    draws = np.random.default_rng(4).standard_normal((400, 4)) * np.array([1, 1, 1, 4.0])
    assert diagnose(draws)[0] > 1.1


@pytest.mark.parametrize("scale", [1.0, 0.1, 1 / 3])
def test_chains_stuck_at_different_points_have_an_infinite_rhat(scale):
    """Variances of equal numbers are rounded; assess made nan of the answer, and nan warned of nothing."""
    draws = np.repeat(scale * np.arange(4.0)[None], 200, axis=0)
    assert diagnose(draws)[0] == np.inf
    assert assess(draws).rhat_max == np.inf
    assert not assess(draws).agree
    # Beside a quantity that mixes, and one that never changes.
    mixing = np.random.default_rng(9).standard_normal(draws.shape)
    both = np.stack([mixing, draws, np.ones_like(draws)], axis=-1)
    assert assess(both).rhat_max == np.inf
    assert "constant" in assess(both).reason


@pytest.mark.parametrize("odd", [-50.0, 50.0])
def test_one_chain_stuck_far_away_is_kept_and_named(odd):
    """Its R-hat, 1.53, was thrown away, as the draws' tail is that chain and has no effective sample size."""
    draws = np.random.default_rng(10).standard_normal((500, 4))
    draws[:, 3] = odd
    assessed = assess(draws)
    # Independent: by hand. The ranks of three chains are those of a normal law below its upper quartile, of mean −0.424
    # and variance 0.535; the fourth's are all 1.150: R-hat² = 1 + 0.531/(3/4 · 0.535).
    assert assessed.rhat_max == pytest.approx((1 + 0.531 / (0.75 * 0.535)) ** 0.5, abs=0.02)
    assert not assessed.agree
    # Draws up to the 95 % quantile, which is the stuck chain above all others, are all draws.
    assert np.isnan(assessed.ess_min) == (odd > 0)
    assert assessed.reason == "effective sample size not known: a quantity is constant in its tail" * (odd > 0)


def test_a_quantity_that_never_changes_is_no_agreement():
    draws = np.stack([np.random.default_rng(11).standard_normal((500, 4)), np.ones((500, 4))], axis=-1)
    assessed = assess(draws)
    assert np.isnan(assessed.rhat_max)
    assert not assessed.agree
    assert assess(draws[..., 0]).agree
    assert assess(draws[..., 0]).reason == ""


@pytest.mark.parametrize("kind", ["stuck apart", "one stuck", "never moved", "one chain"])
def test_chains_that_are_not_known_to_agree_warn(kind):
    draws = np.random.default_rng(12).standard_normal((500, 4, 2))
    if kind == "stuck apart":
        draws[:] = np.arange(8.0).reshape(4, 2)
    elif kind == "one stuck":
        draws[:, 3] = 50.0
    elif kind == "never moved":
        draws[..., 1] = 1.0
    chains = draws[:, :1] if kind == "one chain" else draws
    with pytest.warns(noise_aware_draws.NotConverged, match="R-hat is"):
        noise_aware_draws.diagnosed(chains, 100, chains)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        good = np.random.default_rng(13).standard_normal((500, 4, 2))
        assert noise_aware_draws.diagnosed(good, 100, good).diagnostics.agree


@pytest.mark.parametrize("value", [1.0, 0.1, 1 / 3])
def test_constant_draws_have_no_diagnostic(value):
    draws = np.full((203, 7), value)
    assert np.isnan(diagnose(draws)).all()


def test_ranks_of_ties_are_averages():
    from scipy.special import ndtri
    from scipy.stats import rankdata

    chains = np.random.default_rng(5).integers(0, 6, (3, 4, 25)).astype(float)
    expected = [ndtri((rankdata(c) - 0.375) / 100.25).reshape(4, 25) for c in chains]
    np.testing.assert_allclose(_normal_scores(chains), expected, rtol=1e-12, atol=1e-12)


def test_quantities_are_assessed_one_by_one():
    draws = np.random.default_rng(6).standard_normal((201, 5, 2, 3)).cumsum(axis=0)
    together = np.array(diagnose(draws))
    assert together.shape == (3, 2, 3)
    for index in np.ndindex(2, 3):
        assert together[(..., *index)] == pytest.approx(np.array(diagnose(draws[(..., *index)])), rel=1e-12)


def test_assess_reports_the_worst_quantity():
    draws = np.random.default_rng(7).standard_normal((250, 4, 3))
    draws[..., 1] = autoregressive(0.9, draws[..., 1])
    draws[..., 2] += np.array([0, 0, 0, 0.5])
    assessment = assess(draws)
    hat, *sizes = diagnose(draws)
    assert assessment.rhat_max == max(hat)
    assert assessment.ess_min == np.min(sizes)
    assert assessment[2:] == (4, 250, "")


@pytest.mark.parametrize(
    ("draws", "reason"),
    [
        (np.random.default_rng(8).standard_normal((200, 3)), "3 chains, fewer than 4"),
        (np.random.default_rng(8).standard_normal((199, 50)), "199 draws per chain, fewer than 200"),
        (np.random.default_rng(8).standard_normal((1, 50)), "1 draws per chain"),
        (np.empty((200, 4, 0)), "no quantity"),
        (np.full((200, 4), np.nan), "not finite"),
        (np.ones((200, 4, 2)), "constant"),
    ],
)
def test_what_cannot_be_assessed_is_never_a_pass(draws, reason):
    assessment = assess(draws)
    assert np.isnan([assessment.rhat_max, assessment.ess_min]).all()
    assert assessment.reason.startswith("not assessed: ")
    assert reason in assessment.reason


def test_one_constant_quantity_spoils_the_assessment():
    draws = np.random.default_rng(9).standard_normal((200, 4, 2))
    draws[..., 1] = 3.0
    assert np.isnan(assess(draws).rhat_max)


def test_bad_shapes_and_values_are_refused():
    with pytest.raises(ValueError, match="n_draws >= 4"):
        diagnose(np.ones((3, 4)))[0]
    with pytest.raises(ValueError, match="finite"):
        diagnose(np.full((10, 4), np.inf))
    with pytest.raises(ValueError, match="n_draws, n_chains"):
        assess(np.ones(10))
