"""Priors that a model cannot have are refused by name; chains of one release share that release."""

import numpy as np
import pytest

from privpost.experiments.bernstein2018.trials import Data, Release, experiment, many_chains
from privpost.lab.schema import SettingError


@pytest.mark.parametrize(
    ("model", "prior", "message"),
    [
        ("binomal", [1, 1], "model is 'binomal', but must be one of .*Did you mean 'binomial'"),
        ("binomial", [1], r"prior is \[1\], but binomial needs numbers for alpha, beta, at least"),
        ("binomial", [], "needs numbers for"),
        ("exponential", [8, 2, 1], "needs numbers for shape, rate"),
        ("exponential", [0.0, 2.0], "shape must be a number in .0.01"),
        ("exponential", [0.01, 2.0], "95 % of exponential's records lie in"),
        ("binomial", [1e-300, 1], "alpha must be a number in .0.01"),
        ("multinomial", [5], "at least 2 concentrations"),
        ("multinomial", [5, -5, 5], "concentration must be a number in"),
        ("bit_rows", [10, 10, 2.5], "prior is .* which bit_rows cannot have: size is 2.5"),
        ("normal", [0, -0.1, 1], "prior_variance must be"),
    ],
)
def test_a_prior_that_a_model_cannot_have_is_refused(model, prior, message) -> None:
    with pytest.raises(SettingError, match=message):
        experiment(model, prior, "corrected")


@pytest.mark.parametrize(
    ("model", "prior"), [("normal", [-3, 0.1, 1]), ("multinomial_free", [5, 5]), ("bit_rows", [0.5, 0.5, 3])]
)
def test_other_priors_are_taken(model, prior) -> None:
    assert experiment(model, prior, "corrected").parameters


def test_chains_of_one_release_have_its_data_and_noise() -> None:
    trials, scale = np.arange(6.0).reshape(2, 3), np.array([1.0, 2.0, 3.0])
    data, release = many_chains(Data(trials, trials + 10, trials + 20, low=scale), Release(trials + 30, scale), 4)
    assert [values.shape for values in (data.theta, release.values, release.scale)] == [(2, 12), (2, 12), (12,)]
    assert (release.values == data.theta + 30).all() and (data.exact == data.statistics + 10).all()
    assert (release.scale == data.low).all() and data.high is None
    assert many_chains(data, Release(trials, 0.5), 4)[1].scale == 0.5
