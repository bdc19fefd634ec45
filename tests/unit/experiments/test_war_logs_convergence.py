"""Claims on war logs from tables made by hand: the effect of rows that have not converged."""

from __future__ import annotations

import pandas as pd
import pytest
from war_log_toys import claims_of

from privpost.experiments.foulds2016.war_logs_ablation import claims as war_logs_ablation
from privpost.experiments.foulds2016.war_logs_likelihood import claims as war_logs_likelihood
from privpost.experiments.foulds2016.war_logs_states.claims import missed as missed_law


def paid(gap: float, converged: bool = True):
    rows = [
        {"method": method, "epsilon": epsilon, "converged": converged or method == "private_gibbs" or epsilon > 1}
        | {"ops_minus_paid_mean": gap * epsilon if method == "private_gibbs" else None}
        for method in ("ops", "private_gibbs")
        for epsilon in (0.1, 10.0)
    ]
    fixed = {
        "dataset": "afghanistan",
        "model": "hmm",
        "truncation": 10.0,
        "sampler": "collapsed",
        "iterations": 2,
        "stand_in": False,
    }
    return pd.DataFrame(rows).assign(**fixed, ops_minus_paid_sem=0.01)


def test_what_paying_costs_is_paired_and_asked_where_ops_has_converged() -> None:
    def verdict(*case):
        (claim,) = claims_of(war_logs_likelihood.paid_updates, war_logs_likelihood=paid(*case))
        return claim.verdict

    assert verdict(1.0) == "holds"
    assert verdict(-1.0) == "does not hold"
    # 0.04 is within five standard errors of 0.01, 4 is not.
    assert verdict(0.4) == "holds in part"
    assert verdict(0.4, False) == "holds"


def ablation(converged):
    """OPS ahead, by less the fewer levels there are; `converged` says it of a method and ε."""
    rows = [
        {"method": method, "variant": variant, "fields": fields, "prior": prior, "replication": 1}
        | {"epsilon": epsilon, "converged": converged(method, epsilon)}
        | {"per_event_mean": -1 / (epsilon * (2 - (fields == "all"))) if method == "laplace" else 0.0}
        for method, variant in (("laplace", "paper"), ("laplace", "corrected"), ("ops", None))
        for fields in ("all", "no_category")
        for prior in ("tempered", *(("untempered",) if method == "ops" else ()))
        for epsilon in (0.1, 1.0, 10.0)
    ]
    fixed = {"dataset": "afghanistan_dense", "model": "hmm", "sampling": "mcmc", "stand_in": False}
    return {"war_logs_ablation": pd.DataFrame(rows).assign(**fixed, per_event_sem=0.01)}


def test_a_check_of_the_ablation_uses_the_budgets_at_which_both_sides_have_converged() -> None:
    (claim,) = claims_of(war_logs_ablation.what_the_lead_depends_on, **ablation(lambda *_: True))
    assert claim.verdict == "holds"
    assert any("at epsilon = 0.1 " in check for check in claim.checks)
    # One row that has not converged costs one budget, not the data set.
    (claim,) = claims_of(
        war_logs_ablation.what_the_lead_depends_on,
        **ablation(lambda method, epsilon: (method, epsilon) != ("laplace", 0.1)),
    )
    assert claim.verdict == "holds"
    assert any("at epsilon = 1 " in check for check in claim.checks)
    assert not any("at epsilon = 0.1 " in check for check in claim.checks)
    # OPS alone still says what its prior's temperature does.
    (claim,) = claims_of(war_logs_ablation.what_the_lead_depends_on, **ablation(lambda method, *_: method == "ops"))
    assert list(claim.checks) == ["the prior's temperature changes nothing that matters (afghanistan_dense)"]
    (claim,) = claims_of(war_logs_ablation.what_the_lead_depends_on, **ablation(lambda *_: False))
    assert claim.verdict == "not testable"


@pytest.mark.parametrize(("rare", "lead", "verdict"), [
    ((3.0, 1.0), (-1.0, 1.0), "holds"),
    ((3.0, 1.0), (1.0, -1.0), "does not hold"),
    ((1.0, 1.0), (-1.0, 1.0), "does not hold"),
    ((1.0, 1.0), (-0.04, 1.0), "holds"),
    ((1.0, 1.0), (0.04, -0.04), "not testable"),
])  # fmt: skip
def test_the_critical_count_has_to_say_who_leads(rare, lead, verdict) -> None:
    table = pd.DataFrame({"epsilon": [0.1, 1.0], "rare_levels_per_event": rare, "laplace_minus_ops_mean": lead})
    fixed = {"dataset": "afghanistan_dense", "fields": "all", "variant": "paper", "prior": "tempered", "replication": 1}
    table = table.assign(**fixed, laplace_minus_ops_sem=0.01, stand_in=False, converged=True)
    (claim,) = claims_of(war_logs_ablation.crossover, war_logs_ablation_differences=table)
    assert claim.verdict == verdict
    unsettled = table.assign(converged=False)
    (claim,) = claims_of(war_logs_ablation.crossover, war_logs_ablation_differences=unsettled)
    assert claim.verdict == "not testable"


def missed(near: bool, rhat: float):
    fixed = {"dataset": "afghanistan", "method": "non_private", "variant": None, "summary": "mode", "stand_in": False}
    rows = [
        {"sampler": "paper", "below_best": 0.9 if near else 900.0, "near": near, "rhat_max": rhat},
        {"sampler": "collapsed", "below_best": 0.1, "near": True, "rhat_max": 1.0},
    ]
    used = pd.DataFrame(rows).assign(**fixed, n_states=3)
    used["converged"] = used.near & (used.rhat_max < 1.1)
    maps = pd.DataFrame(rows).assign(**fixed, disagreement_mean=[0.3, 0.01])
    (claim,) = claims_of(missed_law, war_logs_states_used=used, war_logs_maps=maps)
    return claim


def test_short_chains_of_the_right_mode_are_not_counted_as_missed() -> None:
    claim = missed(near=False, rhat=4.0)
    assert claim.verdict == "holds"
    assert claim.evidence["share of cells unlike the non-private map, paper, afghanistan, 3 states, non_private"] == 0.3
    for rhat in (1.0, 1.2):
        assert missed(near=True, rhat=rhat).verdict == "does not hold"
