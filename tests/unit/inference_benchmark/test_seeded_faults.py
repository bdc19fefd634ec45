"""Faults that are seeded in an exact method turn its calibration and the classifier's verdict."""

from __future__ import annotations

from functools import cache
from typing import NamedTuple

import numpy as np
import pytest

from privpost.evaluation.calibration import ks_p_value, ks_statistic
from privpost.evaluation.spread import spread
from privpost.inference_benchmark import methods, metrics, scoring
from privpost.inference_benchmark.base import Budget, Inferred
from privpost.inference_benchmark.tasks import made


class Verdict(NamedTuple):
    """Smallest p-value of z² and ranks, times their number, and accuracy of the classifier less 0.5 in its errors."""

    calibration: float
    accuracy: float

    @property
    def right(self) -> tuple[bool, bool]:
        """Whether the method passes each: at 1 %, and within 4 errors."""
        return bool(self.calibration > 0.01), bool(self.accuracy < 4)


case = cache(scoring.case)


def verdict(task, infer, releases: int = 200, draws: int = 1000, each: int = 400) -> Verdict:
    """Return what the study's tests say of a method: by 200 releases of 400 draws, and 20 of 1,000 unless others."""
    many, rng = case(task, releases, 2, seed=3), np.random.default_rng(4)
    ranks = metrics.all_ranks(infer(task, many.releases, rng, Budget(1, each, 0)), many.theta, rng).T
    p_values = [spread(ranks).p_value, *len(ranks) * ks_p_value(ks_statistic(ranks), releases)]
    few = case(task, 20, draws, seed=5)
    drawn = infer(task, few.releases, rng, Budget(1, draws, 0)).draws.reshape(20, draws, -1)
    told = []
    for own, exact, reference in zip(drawn, few.reference, few.references, strict=True):
        told.append(metrics.c2st(reference.standard(own), reference.standard(exact), rng) - 0.5)
    return Verdict(2 * min(p_values), np.mean(told) / (np.std(told) / np.sqrt(20)))


def exact(task, releases, rng, budget):
    return methods.method("exact")(task, releases, rng, budget)


@pytest.mark.slow
def test_a_noise_scale_that_is_a_tenth_too_small_is_seen():
    """The posterior is some 4 % too narrow, which takes 20 times the study's releases, and five times its draws."""
    task, told = made("naive_bayes", None, 50, 0.8), made("naive_bayes", None, 50, 0.8 / 0.9)

    def wrong(task, *given):
        return exact(told, *given)

    assert verdict(task, exact, 4000, 5000, 100).right == (True, True)
    assert verdict(task, wrong, 4000, 5000, 100).right == (False, False)


def test_a_prior_of_the_wrong_sign_is_seen(monkeypatch):
    task, grid = made("binomial", None, 100, 1.0, "gaussian"), methods.method("noise_calibrated")
    assert verdict(task, grid).right == (True, True)
    log_prior = task.log_prior
    monkeypatch.setattr(task, "log_prior", lambda theta: -log_prior(theta))
    assert verdict(task, grid).right == (False, False)


@pytest.mark.parametrize("name", ["naive_bayes", "randomised_response", "private_n_multinomial"])
def test_a_parameter_that_is_lost_is_seen(name):
    """Its draws are those of the one before."""

    def wrong(task, *given):
        draws = exact(task, *given).draws.copy()
        draws[..., 1] = draws[..., 0]
        return Inferred(draws)

    task = made(name, None, 100, 1.0)
    assert verdict(task, exact).right == (True, True)
    assert verdict(task, wrong).right == (False, False)


def test_a_count_that_is_lost_is_seen_by_the_classifier_alone():
    """Given the others only, the posterior is wider and still calibrated: ranks cannot see what a method leaves out."""
    task = made("multinomial", None, 100, 1.0)

    def wrong(task, releases, rng, budget):
        kept = made("multinomial", None, 100, 1.0)
        # Noise of the same scale, as the others' counts have the same sensitivity.
        kept.mechanism = type(kept.mechanism)(task.model, 100, 1.0, coordinates="free")
        assert kept.scale == task.scale
        return exact(kept, releases[:, :-1], rng, budget)

    assert verdict(task, wrong).right == (True, False)
