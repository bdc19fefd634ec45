"""What docs/noise_aware.md shows: scores of every method at a few ε."""

from __future__ import annotations

from collections.abc import Mapping

from privpost.figures.noise_aware.network_panels import LINES
from privpost.pipeline import tables
from privpost.pipeline.plan import Plan

NAIVE_BAYES, NETWORKS = "noise_aware/naive_bayes", "noise_aware/networks"
# Metric: how a row names it, and its format.
METRICS = {
    "accuracy": ("accuracy", ".3f"),
    "log_likelihood": ("log-likelihood of a record", ".2f"),
    "label_log_likelihood": ("log-likelihood of a label", ".3f"),
    "ks": ("largest KS statistic", ".3f"),
    "truncated_share": ("share of counts truncated", ".2f"),
}


def values(plan: Plan) -> Mapping[str, str]:
    """Return the tables by their placeholders."""
    bayes, networks = (tables.read_tables(plan.studies[name]) for name in (NAIVE_BAYES, NETWORKS))
    found = {}
    for n in sorted(bayes["naive_bayes"].n.unique()):
        parts = [
            table[(table.n == n) & (table.concentration == 1)]
            for table in (bayes["naive_bayes"], bayes["naive_bayes_calibration"])
        ]
        found[f"naive_bayes/n={n}"] = score_table(*parts, ("accuracy", "label_log_likelihood", "ks", "truncated_share"))
    for graph in dict.fromkeys(networks["networks"].graph):
        parts = [table[table.graph == graph] for table in (networks["networks"], networks["networks_calibration"])]
        found[f"networks/{graph}"] = score_table(*parts, ("accuracy", "log_likelihood", "ks"))
    return found


def score_table(scores, calibration, metrics) -> str:
    """Return one row per metric and method, one column for each of the smallest, the middle and the largest ε.

    Args:
        scores: rows of one setting with `method`, `variant`, `epsilon`, `metric`, `mean` and `truncated_share`.
        calibration: rows of the same setting with `ks`, one per parameter; the largest one is shown.
        metrics: of `METRICS`.
    """
    epsilons = sorted(scores.epsilon.dropna().unique())
    chosen = [epsilons[0], epsilons[len(epsilons) // 2], epsilons[-1]]
    lines = [
        "| score | method | " + " | ".join(f"ε = {epsilon:.3g}" for epsilon in chosen) + " |",
        "|---|---|---|---|---|",
    ]
    for metric in metrics:
        name, form = METRICS[metric]
        table, column = (calibration, "ks") if metric == "ks" else (scores[scores.metric == metric], "mean")
        if metric == "truncated_share":
            # The same beside every score.
            table, column = scores[scores.metric == "accuracy"], metric
        for (method, variant), (label, *_) in LINES.items():
            rows = table[(table.method == method) & (table.variant == variant) & table[column].notna()]
            # The true posterior has one value, whatever ε is.
            cells = [rows[rows.epsilon.isna() | (rows.epsilon == epsilon)][column].max() for epsilon in chosen]
            shown = [format(cell, form).replace("-", "−") for cell in cells]
            if len(rows):
                lines.append(f"| {name} | {label} | {' | '.join(shown)} |")
    return "\n".join(lines)
