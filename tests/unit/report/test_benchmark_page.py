"""The page of the benchmark: its tables from tables made by hand, and the numbers that stand beside others'."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from privpost.report.documents import inference_benchmark as page


def test_the_leaderboard_has_a_line_for_each_method():
    rows = {
        "method": ["exact", "naive"], "served": [21, 20], "of": 21, "c2st_median": [0.5, 0.9],
        "c2st_worst": [0.512, 1.0], "c2st_worst_sem": [0.004, 0.001],
        "worst_at": ["binomial, laplace, n = 10, epsilon = 0.1", "x"],
        "distance_ratio": [1.0, 9.61], "miscalibrated": [0, 3], "calibrations": [19, 0],
        "sd_seen_narrow": [0.118, np.nan], "ess_per_second": [234567.0, 3e6],
    }  # fmt: skip
    lines = page.board(pd.DataFrame(rows)).splitlines()
    assert lines[2] == (
        "| Noise-aware, exact | 21 of 21 | 0.50 | 0.512 ± 0.004 | binomial, laplace, n = 10, ε = 0.1 | 1.0 "
        "| 19 of 19 (12 %) | 200,000 |"
    )
    assert lines[3].endswith("| x | 9.6 | not tested | 3,000,000 |") and len(lines) == 4


def test_a_release_has_its_fastest_methods_and_those_that_are_told_apart():
    """By the largest accuracy over n and ε, and by the speed at n = 100, ε = 1."""
    rows = [
        ("binomial", "gaussian", n, epsilon, method, c2st, speed)
        for method, told, speed in (("gibbs", 0.6, 9e9), ("abc_smc", 0.5, 100.0), ("simulation", 0.51, 3000.0),
                                    ("napsu_mq", 0.52, 20.0), ("data_augmentation", 0.5, 1.0), ("naive", 1.0, 9e9))
        for n, epsilon, c2st, speed in ((100, 1.0, 0.5, speed), (10, 0.1, told, 5e8), (100, 10.0, 0.5, 7e8))
    ]  # fmt: skip
    table = pd.DataFrame(rows, columns=["task", "noise", "n", "epsilon", "method", "c2st", "ess_per_second"])
    (line,) = page.by_release(table, 0.53).splitlines()[2:]
    fast = "Weighted simulation 3,000; ABC-SMC 100; NAPSU-MQ 20"
    assert line == f"| `binomial_gaussian` | {fast} | Noise-aware, Gibbs 0.60 |"
    assert "NAPSU-MQ 0.52; Noise-aware, Gibbs 0.60" in page.by_release(table, 0.515)


def test_optional_methods_are_shown_with_versions_and_machine():
    row = {"task": "poisson", "method": "neural_posterior", "c2st": 0.5061, "c2st_sem": 0.003, "distance": 0.05,
           "distance_sem": 0.01, "sd_error": -0.02, "sd_error_sem": 0.01, "seconds": 5.1, "releases": 5,
           "version": "privpost 0.1.0, sbi 0.27.0", "machine": "2 cores, a processor"}  # fmt: skip
    text = page.optional(pd.DataFrame([row, {**row, "task": "regression", "c2st": np.nan, "version": "other"}]))
    assert "| `poisson` | Neural posterior | 0.506 ± 0.003 | 0.05 ± 0.01 | −0.02 ± 0.01 | 26 |" in text
    assert text.endswith("\n\nprivpost 0.1.0, sbi 0.27.0, on 2 cores, a processor.") and "regression" not in text


@pytest.mark.parametrize(
    ("scale", "expected"),
    [(4, [0.0653, 0.0608, 0.1375, 0.1383, 0.0492]), (3, [0.0610, 0.0558, 0.1245, 0.1255, 0.0458])],
)
def test_standard_deviations_of_the_log_linear_task(scale, expected):
    """Independent: a sum over the classes' number and beta-binomial features, in another code, of 20,000 draws."""
    found = np.array([float(word) for word in page.deviations(scale).split(", ")])
    assert found == pytest.approx(expected, rel=0.02)


def test_the_score_by_chance_falls_with_the_repeats_and_rises_with_a_wrong_posterior(monkeypatch):
    """Independent: coverage of uniform ranks at a level α has variance α (1 − α)/repeats."""
    levels = page.LEVELS
    chance = float(page.chance()["tarp_chance"])
    assert 0.75 < chance / np.sqrt(np.mean(levels * (1 - levels)) / page.REPEATS) < 1
    assert page.tarp(0.8).mean() > 1.5 * page.tarp(1.0).mean()
    monkeypatch.setattr(page, "REPEATS", 125)
    assert float(page.chance()["tarp_chance"]) == pytest.approx(2 * chance, rel=0.1)
