"""Each limit of the claims on who leads, on tables made by hand: just inside of it passes, just outside fails."""

from __future__ import annotations

import pandas as pd
import pytest
from claims_at_limits import failed, moved, scored

from privpost.experiments.foulds2016.who_leads import claims


def pairs(method: str, places: str, **values) -> pd.DataFrame:
    """Three settings: far below a place where the lead changes, there, and far above it; errors of 1, all converged."""
    rows = pd.DataFrame({places: [0.01, 1.0, 100.0], "method": method, "less": "laplace", "converged": True})
    for name in ("difference", "predictive_difference"):
        rows[f"{name}_mean"], rows[f"{name}_sem"] = [-9.0, 0.0, 9.0], 1.0
    other = {"noise_scales", "crossings"} - {places}
    return rows.assign(**dict.fromkeys(other, 1.0), **values)


def names(words: str) -> set[str]:
    return {f"Laplace {words}, {score} score" for score in ("joint", "predictive")}


@pytest.mark.parametrize("score", ["joint", "predictive"])
@pytest.mark.parametrize(
    ("id", "method", "places", "words", "at", "inside", "outside"),
    [
        ("F25", "private_gibbs", "noise_scales", "is ahead beyond the noise", 100.0, 5.1, 4.9),
        ("F25", "private_gibbs", "noise_scales", "is not ahead below it", 0.01, 4.9, 5.1),
        ("F26", "ops", "crossings", "is not behind above the crossing", 100.0, -4.9, -5.1),
        ("F26", "ops", "crossings", "is not ahead below it", 0.01, 4.9, 5.1),
    ],
)
def test_a_lead_counts_beyond_five_standard_errors(id, method, places, words, at, inside, outside, score):
    table = pairs(method, places)
    column = {"joint": "difference_mean", "predictive": "predictive_difference_mean"}[score]
    assert not failed(claims, id, who_leads_pairs=table)
    for value, lost in ((inside, set()), (outside, {f"Laplace {words}, {score} score"})):
        assert failed(claims, id, who_leads_pairs=moved(table, {places: at}, **{column: value})) == lost


@pytest.mark.parametrize(
    ("id", "method", "places", "words", "wrong", "near", "far"),
    [
        ("F25", "private_gibbs", "noise_scales", "is ahead beyond the noise", -9.0, 2.9, 3.1),
        ("F25", "private_gibbs", "noise_scales", "is not ahead below it", 9.0, 0.34, 0.33),
        ("F26", "ops", "crossings", "is not behind above the crossing", -9.0, 2.9, 3.1),
        ("F26", "ops", "crossings", "is not ahead below it", 9.0, 0.34, 0.33),
    ],
)
def test_a_setting_counts_from_a_factor_of_three_on(id, method, places, words, wrong, near, far):
    wrong = {"difference_mean": wrong, "predictive_difference_mean": wrong}
    for at, lost in ((near, set()), (far, names(words))):
        table = moved(pairs(method, places), {places: 1.0}, **wrong, **{places: at})
        assert failed(claims, id, who_leads_pairs=table) == lost


def test_chains_count_that_have_not_converged_and_are_told_of():
    for id, method, places in (("F25", "private_gibbs", "noise_scales"), ("F26", "ops", "crossings")):
        table = moved(pairs(method, places), {places: 100.0}, converged=False)
        wrong = {"difference_mean": -table.difference_mean, "predictive_difference_mean": -table.difference_mean}
        assert scored(claims, id, who_leads_pairs=table.assign(**wrong)).verdict == "does not hold"
        told = {name: value for name, value in scored(claims, id, who_leads_pairs=table).evidence.items()
                if name.startswith("of these with converged")}  # fmt: skip
        assert sorted(told.values()) == [0, 0, 1, 1]


def test_other_methods_and_differences_from_others_have_no_part():
    for id, method, places in (("F25", "private_gibbs", "noise_scales"), ("F26", "ops", "crossings")):
        table = pairs(method, places)
        wrong = {"difference_mean": -table.difference_mean, "predictive_difference_mean": -table.difference_mean}
        others = [table.assign(**wrong, method="gibbs"), table.assign(**wrong, less="ops")]
        assert not failed(claims, id, who_leads_pairs=pd.concat([table, *others]))
