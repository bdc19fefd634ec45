"""The shipped tables of Bernstein and Sheldon (2018), the figures drawn from them, and why B13 fails where it does."""

import matplotlib.pyplot as plt
import numpy as np
import pytest
from scipy.special import betainc

from privpost.drawing import style
from privpost.evaluation.calibration import ks_limit, ks_statistic
from privpost.lab import grid, tables
from privpost.mechanisms.choices.exponential import ExponentialMechanism
from privpost.models import BetaBernoulli

STUDIES = ("calibration", "utility", "convergence")


def shipped(name):
    return tables.read_tables(grid.load_study(f"bernstein2018/{name}"))


def test_tables_say_what_is_private_and_how_it_is_drawn():
    table = shipped("calibration")["calibration"]
    # An infinite charge in the ledger is the naive method's on redacted sums, and the true posterior has no charge.
    redacted = table.model.isin(["exponential", "normal"])
    assert (table.private == ((table.method != "non_private") & ~((table.method == "naive") & redacted))).all()
    assert ((table.sampling == "mcmc") == (table.method == "gibbs")).all()
    assert set(table.sampling) == {"mcmc", "exact"}
    assert set(table[table.method == "exact"].model) == set(table.model)
    # All models have as many trials; so has the study of bounds and segments.
    assert {*table.n_trials, *shipped("calibration")["truncation"].n_trials} == {2000}
    utility = shipped("utility")["utility"]
    assert "exponential" in set(utility.model)
    assert ((utility.sampling == "mcmc") == (utility.method == "gibbs")).all()


@pytest.mark.parametrize("name", STUDIES)
def test_figures_are_drawn_from_tables_alone(name):
    study, own, labels = grid.load_study(f"bernstein2018/{name}"), shipped(name), set()
    with style.context():
        for stem in study.figures:
            figure = study.draw(stem, own)
            assert all(axes.lines for axes in figure.get_axes())
            labels |= {text.get_text() for legend in figure.legends for text in legend.get_texts()}
            plt.close(figure)
    assert name != "calibration" or any(label.startswith("Hollow") for label in labels)


@pytest.mark.parametrize("n, epsilon, learns", [(100, 0.01, False), (10_000, 0.1, True)])
def test_ops_with_its_prior_is_calibrated_until_it_learns(n, epsilon, learns):
    # B13's explanation, by the closed distribution function of a draw and far more trials than the study has.
    trials, rng = 100_000, np.random.default_rng(5)
    theta = rng.beta(10, 10, trials)
    ones = rng.binomial(n, theta)
    temperature = ExponentialMechanism(BetaBernoulli(10, 10), n, epsilon / 100, a0=0.1).temperature
    ends = [betainc(10 + ones / temperature, 10 + (n - ones) / temperature, x) for x in (0.1, theta, 0.9)]
    u = np.clip((ends[1] - ends[0]) / (ends[2] - ends[0]), 0, 1)
    assert (ks_statistic(u) > ks_limit(trials, 1e-4)) == learns
    # Too wide: the true parameter lies too often in the middle; 5 standard errors.
    assert (np.mean(np.abs(u - 0.5) < 0.25) > 0.5 + 5 * 0.5 / np.sqrt(trials)) == learns
