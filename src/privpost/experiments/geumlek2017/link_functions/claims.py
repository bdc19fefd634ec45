"""Logistic, probit and complementary log-log regression under RDP: the claim."""

import numpy as np

from privpost.evaluation.rows import select
from privpost.experiments.claim_helpers import student_limit
from privpost.lab.claims import check, claim, number

LEVEL = 0.05


@claim(
    "G20",
    "ours",
    "At the same budget no link has a smaller test error than the logistic one, whose slopes need no ball.",
    "diffused sampling, each link drawn exactly: test error nowhere significantly below the logistic link's "
    "(one-sided t, 5 %, Bonferroni; not paired)",
    variant="public bounds",
)
def logistic_is_best(link_functions):
    table = select(link_functions, metric="test_error", method="diffused")
    cells = ["dataset", "log_epsilon"]
    others = table[table.link != "logistic"].merge(
        table[table.link == "logistic"], on=cells, suffixes=("", "_logistic")
    )
    others = others.assign(
        behind=others["mean"] - others.mean_logistic, error=np.hypot(others["sem"], others.sem_logistic)
    )
    limit = student_limit(int(table.n_repeats.min()), LEVEL / max(1, len(others)))
    yield from number("critical t", limit)
    yield from number("largest number of proposals a draw", link_functions.proposals.max())
    for (dataset, link), rows in others.groupby(["dataset", "link"]):
        worst = rows.loc[(rows.behind / rows.error).idxmax()]
        evidence = {
            "B": rows.slope_bound.iloc[0],
            "cells": len(rows),
            "significantly behind": (rows.behind > limit * rows.error).sum(),
            "furthest behind": worst.behind,
            "its standard error": worst.error,
        }
        yield check(f"{link} on {dataset}", (rows.behind >= -limit * rows.error).all())
        yield from number(f"{link} on {dataset}", evidence)
