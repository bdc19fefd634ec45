"""What the report says of the mechanisms behind a study's figures."""

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
    laplace, ops = audited.behind(table, "a/one")
    assert laplace == {
        "mechanism": "Laplace", "settings": 2, "exact": 0.9, "bound": 0.5, "p": 0.01, "verdict": "violated",
    }  # fmt: skip
    assert (ops["mechanism"], ops["exact"], ops["bound"], ops["p"]) == ("Ops, paper", None, 0.3, None)
    assert audited.behind(table, "a/none") == []
