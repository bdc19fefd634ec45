"""Logistic, probit and complementary log-log regression under RDP: the claim."""

import numpy as np

from privpost.evaluation.claims import Claim, from_checks
from privpost.evaluation.rows import select
from privpost.experiments.claim_helpers import student_limit

LEVEL = 0.05


def claims(tables) -> list[Claim]:
    """Score G20."""
    table = tables["link_functions"]
    table = select(table, metric="test_error", method="diffused")
    logistic = table[table.link == "logistic"].set_index(["dataset", "log_epsilon"])
    others = table[table.link != "logistic"]
    limit = student_limit(int(table.n_repeats.min()), LEVEL / max(1, len(others)))
    proposals = tables["link_functions"].proposals.max()
    checks, evidence = {}, {"critical t": limit, "largest number of proposals a draw": proposals}
    for (dataset, link), rows in others.groupby(["dataset", "link"]):
        beside = logistic.loc[list(zip(rows.dataset, rows.log_epsilon, strict=True))]
        behind = rows["mean"].to_numpy() - beside["mean"].to_numpy()
        sem = np.hypot(rows["sem"].to_numpy(), beside["sem"].to_numpy())
        checks[f"{link} on {dataset}"] = bool((behind >= -limit * sem).all())
        worst = int(np.argmax(behind / sem))
        evidence[f"{link} on {dataset}"] = {
            "B": rows.slope_bound.iloc[0],
            "cells": len(rows),
            "significantly behind": (behind > limit * sem).sum(),
            "furthest behind": behind[worst],
            "its standard error": sem[worst],
        }
    return [
        from_checks(
            "G20",
            "ours",
            "At the same budget no link has a smaller test error than the logistic one, whose slopes need no ball.",
            "diffused sampling, each link drawn exactly: test error nowhere significantly below the logistic link's "
            "(one-sided t, 5 %, Bonferroni; not paired)",
            checks,
            evidence,
            variant="public bounds",
        )
    ]
