"""What the report says about the mechanisms behind a study's figures."""

from __future__ import annotations

import numpy as np
import pandas as pd

from privpost.report import audited


def test_mechanisms_behind_figures_are_those_that_the_study_recorded():
    """Largest shares, smallest p and worst verdict of each; examples and other studies' rows are left out."""
    shares = {
        "claimed_epsilon": [2.0] * 5,
        "exact": [1.0, 1.8, np.nan, 2.0, 2.0],
        "lower_bound": [0.4, 1.0, 0.6, 2.0, 2.0],
    }
    table = pd.DataFrame(
        {
            "source": ["records"] * 4 + ["examples"],
            "study": ["a/one, b/two", "a/one", "a/one", "b/two", "a/one"],
            "mechanism": ["Laplace", "Laplace", "Ops", "Laplace", "Laplace"],
            "variant": [np.nan, np.nan, "paper", np.nan, np.nan],
            "drawn_p": [0.5, 0.01, np.nan, 1e-9, 1e-9],
            "verdict": ["within claim", "violated", "within claim", "other law", "other law"],
            **shares,
        }
    )
    laplace, ops = audited.behind(table, "a/one", {("Laplace", ""): 7})
    assert laplace == {
        "mechanism": "Laplace", "settings": 7, "audited": 2, "exact": 0.9, "bound": 0.5, "p": 0.01,
        "verdict": "violated (1)",
    }  # fmt: skip
    assert (ops["settings"], ops["audited"]) == (None, 1)
    assert (ops["mechanism"], ops["exact"], ops["bound"], ops["p"]) == ("Ops, paper", None, 0.3, None)
    assert audited.behind(table, "a/none", {}) == []


def test_settings_that_differ_in_numbers_are_counted_each_once():
    """Two kinds of accounts share one; what has an infinite budget is no private setting."""

    def row(settings, budget=1.0, **varied):
        return {"mechanism": {"class": "Ops", "settings": settings}, "budget": {"epsilon": budget}, "varied": varied}

    several = row({"n": 4, "epsilon": 1.0}, **{"/mechanism/settings/epsilon": [1.0, 2.0, 3.0]})
    listed = [several, row({"n": 4, "epsilon": 2.0}), row({"n": 4, "charge": "paper"}), row({"n": 5}, "inf")]
    assert audited.ran(listed) == {("Ops", ""): 3, ("Ops", "paper"): 1}
