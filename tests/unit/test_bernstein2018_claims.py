"""The claims of Bernstein and Sheldon's studies: shipped tables give a verdict, a falsified table flips it."""

import itertools

import numpy as np
import pandas as pd
import pytest

from privpost.evaluation.calibration import ks_limit, ks_p_value
from privpost.figures.bernstein2018 import convergence as convergence_figure
from privpost.figures.bernstein2018 import fig1a_ks, fig1b_ecdf, fig1c_mmd
from privpost.figures.bernstein2018 import oracle as oracle_figure
from privpost.figures.bernstein2018 import truncation as truncation_figure
from privpost.studies.bernstein2018 import calibration, convergence, oracle, truncation, utility

TRIALS = 1000


def calibration_tables():
    """Tables in which every claim of the calibration study holds."""
    rows, curves = [], []
    models = {"binomial": "paper", "exponential": "corrected"}
    for (model, variant), n in itertools.product(models.items(), (100, 1000, 10_000)):
        for epsilon, method in itertools.product((0.01, 0.1), calibration.METHODS):
            if method in ("ops", "exact") and model != "binomial":
                continue
            if method == "non_private" and epsilon == 0.1:
                continue
            ks = {"non_private": 0.02, "gibbs": 0.025, "exact": 0.02, "ops": 0.24}
            ks["naive"] = 0.45 - 0.06 * np.log10(n / 100) - 15 * (epsilon - 0.01) / 9
            rows.append(
                {
                    "variant": variant,
                    "model": model,
                    "parameter": "theta",
                    "n": n,
                    "epsilon": np.nan if method == "non_private" else epsilon,
                    "method": method,
                    "ks": max(0.02, ks[method]),
                    "ks_limit": ks_limit(TRIALS),
                    "uses_private_metadata": False,
                    "n_trials": TRIALS,
                }
            )
    for (model, variant), method in itertools.product(models.items(), ("naive", "ops", "gibbs")):
        u = np.linspace(0, 1, 201)
        shapes = {"gibbs": u, "naive": np.where(u < 1, 0.45 + 0.1 * u, 1.0), "ops": np.clip(2.5 * (u - 0.3), 0, 1)}
        if method != "ops" or model == "binomial":
            fixed = {"variant": variant, "model": model, "parameter": "theta", "n": 1000, "epsilon": 0.01}
            limit = ks_limit(TRIALS)
            band = {"band_low": np.maximum(u - limit, 0), "band_high": np.minimum(u + limit, 1)}
            curves.append(pd.DataFrame({**fixed, "method": method, "u": u, "ecdf": shapes[method], **band}))
    table = pd.DataFrame(rows)
    return with_p_values({"calibration": table, "ecdf": pd.concat(curves, ignore_index=True)})


def with_p_values(tables):
    tables["calibration"]["p_value"] = ks_p_value(tables["calibration"].ks, TRIALS)
    return tables


def verdicts(module, tables):
    return {claim.id: claim.verdict for claim in module.claims(tables)}


def test_calibration_claims_hold_on_a_table_made_for_them():
    found = verdicts(calibration, calibration_tables())
    assert found == {"B1": "holds", "B8": "holds", "B2": "holds", "B3": "holds", "B4": "holds"}


def shifted(method, ks, model=None):
    def change(tables):
        table = tables["calibration"]
        rows = table.method == method
        if model:
            rows &= table.model == model
        table.loc[rows, "ks"] = ks

    return change


def flattened(method):
    def change(tables):
        ecdf = tables["ecdf"]
        ecdf.loc[ecdf.method == method, "ecdf"] = ecdf.u[ecdf.method == method]

    return change


@pytest.mark.parametrize(
    "claim, change",
    [
        ("B1", shifted("gibbs", 0.2, "binomial")),
        ("B8", shifted("gibbs", 0.2, "exponential")),
        ("B2", shifted("naive", 0.4)),
        ("B2", shifted("naive", 0.02)),
        ("B3", shifted("ops", 0.02)),
        ("B4", flattened("naive")),
        ("B4", flattened("ops")),
    ],
)
def test_falsified_calibration_tables_flip_the_verdict(claim, change):
    tables = calibration_tables()
    change(tables)
    found = verdicts(calibration, with_p_values(tables))
    assert found[claim] != "holds"
    untouched = {"B1", "B3", "B8"} - {claim}
    assert all(found[other] == "holds" for other in untouched)


def test_one_statistic_just_beyond_the_limit_is_no_failure_but_half_of_them_are():
    tables = calibration_tables()
    table = tables["calibration"]
    gibbs = table.index[(table.method == "gibbs") & (table.model == "binomial")]
    table.loc[gibbs[0], "ks"] = 1.02 * ks_limit(TRIALS)
    assert verdicts(calibration, with_p_values(tables))["B1"] == "holds"
    table.loc[gibbs[::2], "ks"] = 1.02 * ks_limit(TRIALS)
    assert verdicts(calibration, with_p_values(tables))["B1"] != "holds"


def test_cells_where_the_true_posterior_fails_are_not_held_against_gibbs():
    tables = calibration_tables()
    shifted("non_private", 0.2)(tables)
    shifted("gibbs", 0.2)(tables)
    assert verdicts(calibration, with_p_values(tables))["B1"] == "not testable"


def utility_tables():
    rows = []
    for model, n, epsilon in itertools.product(("binomial", "multinomial"), (100, 1000, 10_000), (0.01, 0.1)):
        for method in utility.METHODS:
            mmd2 = (3 / (n * epsilon) * (2 if method == "naive" else 1)) ** 2
            rows.append(
                {
                    "variant": "paper",
                    "model": model,
                    "n": n,
                    "epsilon": epsilon,
                    "method": method,
                    "mmd": np.sqrt(mmd2),
                    "mmd2_mean": mmd2,
                    "mmd2_sem": mmd2 / 30,
                    "below_naive_mean": 3 * mmd2 if method == "gibbs" else np.nan,
                    "below_naive_sem": mmd2 / 10 if method == "gibbs" else np.nan,
                }
            )
    return {"utility": pd.DataFrame(rows)}


def test_utility_claims_and_their_falsification():
    assert verdicts(utility, utility_tables()) == {"B5": "holds", "B6": "holds"}
    worse = utility_tables()
    worse["utility"].loc[0, "below_naive_mean"] *= -1
    assert verdicts(utility, worse) == {"B5": "holds in part", "B6": "holds"}
    flat = utility_tables()
    table = flat["utility"]
    table.loc[table.method == "naive", ["mmd", "mmd2_mean"]] = [0.3, 0.09]
    assert verdicts(utility, flat)["B6"] == "does not hold"


def oracle_tables():
    n = np.array([5, 100, 10_000])
    parts = [
        pd.DataFrame(
            {
                "prior": "Beta(10, 10)",
                "n": n,
                "epsilon": epsilon,
                "total_variation": 0.05 / n,
                "total_variation_sem": 0.001 / n,
                "total_variation_sampled": 0.01,
                "sampling_floor": 0.008,
            }
        )
        for epsilon in (0.01, 0.1)
    ]
    return {"oracle": pd.concat(parts, ignore_index=True)}


@pytest.mark.parametrize(
    "column, value", [("total_variation", 0.03), ("total_variation_sampled", 0.2), ("total_variation_sem", 0.01)]
)
def test_the_oracles_claim_and_its_falsification(column, value):
    assert verdicts(oracle, oracle_tables()) == {"B7": "holds"}
    falsified = oracle_tables()
    falsified["oracle"][column] = value
    assert verdicts(oracle, falsified)["B7"] != "holds"


def convergence_tables():
    rows = [
        {"model": model, "n": n, "epsilon": epsilon, "rhat": 1.004, "rhat_median": 1.001, "ess_bulk": 2000.0}
        | {"ess_per_sweep": 0.1, "n_chains": 4, "variant": "corrected"}
        for model, n, epsilon in itertools.product(("binomial", "normal"), (100, 1000), (0.01, 0.1))
    ]
    traces = pd.DataFrame(
        {"model": m, "n": 1000, "epsilon": 0.01, "chain": c, "burn_in": 20, "sweep": s, "theta": 0.5}
        for m, c, s in itertools.product(("binomial", "normal"), (1, 2), (0, 20, 40))
    )
    return {"convergence": pd.DataFrame(rows), "traces": traces}


@pytest.mark.parametrize("column, value", [("rhat_median", 1.05), ("ess_bulk", 80.0)])
def test_convergence_claim_and_its_falsification(column, value):
    tables = convergence_tables()
    assert verdicts(convergence, tables) == {"B9": "holds"}
    tables["convergence"].loc[0, column] = value
    assert verdicts(convergence, tables) == {"B9": "holds in part"}


def truncation_tables():
    rows = [
        {"variant": variant, "bounds": bounds, "segments": segments, "method": "gibbs", "n": n, "epsilon": epsilon}
        | {"ks": 0.04 if segments == "independent" else 0.01, "ks_limit": ks_limit(4000)}
        for (variant, (bounds, segments)), n, epsilon in itertools.product(
            truncation.VARIANTS.items(), (100, 1000), (0.1, 1.0)
        )
    ]
    return {"truncation": pd.DataFrame(rows)}


@pytest.mark.parametrize("variant, ks", [("public_bounds", 0.01), ("corrected", 0.04)])
def test_the_claim_about_segments_and_its_falsification(variant, ks):
    tables = truncation_tables()
    table = tables["truncation"]
    table["p_value"] = ks_p_value(table.ks, 4000)
    assert verdicts(truncation, tables) == {"B10": "holds"}
    table.loc[table.variant == variant, "ks"] = ks
    table["p_value"] = ks_p_value(table.ks, 4000)
    assert verdicts(truncation, tables)["B10"] != "holds"


def test_figures_are_drawn_from_tables_alone():
    import matplotlib.pyplot as plt

    from privpost.figures import style

    utility_table = utility_tables()
    utility_table["utility"].loc[3, ["mmd2_mean", "mmd"]] = [-1e-6, 0.0]
    drawn = [
        (fig1a_ks, calibration_tables(), 4),
        (fig1b_ecdf, calibration_tables(), 2),
        (fig1c_mmd, utility_table, 4),
        (convergence_figure, convergence_tables(), 4),
        (oracle_figure, oracle_tables(), 1),
        (truncation_figure, truncation_tables(), 2),
    ]
    with style.context():
        for module, tables, panels in drawn:
            figure = module.draw(tables)
            assert len(figure.get_axes()) == panels
            assert all(axes.lines for axes in figure.get_axes())
            plt.close(figure)
