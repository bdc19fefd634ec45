"""Calibration of Bernstein and Sheldon (2018), a second time: the rows of its tables, and the numbers beside U."""

from __future__ import annotations

import math

import numpy as np
import pytest
from recomputed import row, run
from recomputed_noise_aware import watched_chains
from scipy.stats import chi2, norm

from privpost.experiments.bernstein2018.calibration import study as calibration

SETTINGS = {"burn_in": 5, "draws": 20, "ops_draws": 5, "a0": 0.1, "ecdf_n": 8, "ecdf_epsilon": 1.5, "ecdf_points": 5}
POINTS = [(n, epsilon) for n in (6, 8) for epsilon in (1.5, 3.0)]


def test_rows_of_bits_at_every_point(monkeypatch):
    """Shares of rejected proposals and of projected releases, and the draws' spread over that of θ, over two blocks."""
    chains = watched_chains(monkeypatch, calibration)
    cell = run(
        "bernstein2018/calibration", 4, 2, model="binomial", prior=[2, 3], n=[6, 8], epsilon=[1.5, 3.0], **SETTINGS
    )
    table = cell.tables["calibration"]
    # Of one n all blocks run, at the first ε and the second; the true posterior has no ε.
    for place, (n, epsilon) in enumerate(POINTS):
        own = [chains[4 * (place // 2) + 2 * block + place % 2] for block in range(2)]
        kept = row(table, method="gibbs", n=n, epsilon=epsilon)
        assert kept.rejected_share == pytest.approx(sum(each.proposals.rejected_share for each in own) / 2)
        within, between = 0.0, 0.0
        for block, each in enumerate(own):
            truth = cell.streams("data", block, n=n).beta(2, 3, 2)
            within += np.mean([np.mean((draws - draws.mean()) ** 2) for draws in each.theta.T]) / 2
            between += np.mean((truth - truth.mean()) ** 2) / 2
        assert kept.sd_of_prior == pytest.approx(math.sqrt(within / between))
        assert row(table, method="exact", n=n, epsilon=epsilon).sd_of_prior == kept.sd_of_prior
        noisy = cell.ledger.released(f"gibbs/n={n}/epsilon={epsilon:g}")[:, 0]
        kept = row(table, method="naive", n=n, epsilon=epsilon)
        assert kept.rejected_share == np.mean((noisy < 0) | (noisy > n))
    assert (table.sampling == np.where(table.method == "gibbs", "mcmc", "exact")).all()
    assert table.sd_of_prior.notna().tolist() == table.method.isin(["gibbs", "exact"]).tolist()
    assert table.rejected_share.notna().tolist() == table.method.isin(["gibbs", "naive"]).tolist()
    assert (table.private == (table.method != "non_private")).all()
    # Distribution functions are shown at one n and ε alone, at five points from 0 to 1.
    ecdf = cell.tables["ecdf"]
    assert set(ecdf.n) == {8} and set(ecdf.epsilon.dropna()) == {1.5} and len(ecdf) == 6 * 5
    assert (ecdf.epsilon.isna() == (ecdf.method == "non_private")).all()
    assert ecdf.u.tolist() == [0.0, 0.25, 0.5, 0.75, 1.0] * 6
    other = run("bernstein2018/calibration", 2, 2, model="binomial", prior=[2, 3], n=[6], epsilon=[3.0], **SETTINGS)
    assert "ecdf" not in other.tables or other.tables["ecdf"].empty


def test_parameters_that_are_alike_are_tested_together_by_their_true_values_too():
    """z² of all categories in the prior by the quantiles that the study keeps: the mean, and the p-value by χ²."""
    cell = run(
        "bernstein2018/calibration", 4, 4, model="multinomial", prior=[2, 2, 2], n=[6], epsilon=[1.5], **SETTINGS
    )
    table = cell.tables["calibration"]
    assert len(table) == 3 * 4 and set(table.method) == {"non_private", "gibbs", "naive", "exact"}
    squares = norm.ppf(cell.arrays["quantiles"][0, :, 0, 0]) ** 2
    for name in ("theta_1", "theta_2", "theta_3"):
        kept = row(table, method="non_private", parameter=name)
        assert (kept.z2, kept.z2_of) == (pytest.approx(squares.mean()), "theta_1 to theta_3")
    prior = norm.ppf(cell.arrays["prior"][:, 0]) ** 2
    values = 12 * min(3, prior.var(axis=1).mean() / prior.mean(axis=0).var()) / 3
    tails = chi2(values).cdf(values * prior.mean()), chi2(values).sf(values * prior.mean())
    assert table.prior_p.tolist() == pytest.approx([2 * min(tails)] * 12)


def test_no_budget_covers_a_naive_method_that_reads_records():
    cell = run(
        "bernstein2018/calibration", 2, 2, model="exponential", prior=[8, 2], variant="corrected", n=[6],
        epsilon=[1.5], **SETTINGS,
    )  # fmt: skip
    table = cell.tables["calibration"]
    private = dict(zip(table.method, table.private, strict=True))
    assert private == {"non_private": False, "gibbs": True, "naive": False, "exact": True}
    assert math.isinf(cell.ledger.spent("naive/n=6/epsilon=1.5").epsilon)
    counts = run("bernstein2018/calibration", 2, 2, model="binomial", prior=[2, 3], n=[6], epsilon=[1.5], **SETTINGS)
    with pytest.raises(ValueError, match="is not open"):
        counts.ledger.spent("naive/n=6/epsilon=1.5")


@pytest.mark.parametrize("prior, refused", [([0.5, 3], True), ([3, 0.5], True), ([0.99, 3], False), ([1, 1], False)])
def test_ops_tempers_a_likelihood_beside_priors_that_do_not_fall_below_nothing(prior, refused):
    """1 + T(α − 1) must be above 0; with ε = 0.3 and a0 = 0.1 T is 2 ln 9/0.3 = 14.6."""
    settings = {"model": "binomial", "prior": prior, "n": [6], "epsilon": [1.5], **SETTINGS}
    if refused:
        with pytest.raises(ValueError, match=r"must be above 0\.93"):
            run("bernstein2018/calibration", 2, 2, **settings)
    else:
        assert len(run("bernstein2018/calibration", 2, 2, **settings).tables["calibration"]) == 6
