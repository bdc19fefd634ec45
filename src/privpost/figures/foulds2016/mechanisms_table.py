"""Table 1 as Markdown, beside its CSV (Foulds et al. 2016)."""

import math

from privpost.evaluation import rows
from privpost.figures import style

HEADINGS = (
    "Mechanism",
    "Sensitivity",
    "S(X) is",
    "Release",
    "ARE of a sample",
    "ARE of the mean",
    "Gibbs sampling is paid",
    "Largest loss found",
    "Gibbs chain costs",
)


def markdown(table) -> str:
    """Return table 1 as a Markdown table, from its rows as read back from the CSV."""
    lines = []
    for row in table.itertuples():
        mean = row.are_mean if math.isnan(row.are_mean_value) else f"{row.are_mean_value:.4g}"
        sample = row.are_sample
        if row.are_sample != f"{row.are_sample_value:g}":
            sample += f" = {row.are_sample_value:.4g}"
        chain = f"{row.gibbs_epsilon:g}"
        if row.gibbs_epsilon != row.gibbs_epsilon_if_converged:
            chain += f" ({row.gibbs_epsilon_if_converged:g} if converged)"
        cells = (
            f"{style.look(row.method).label}, ε = {row.epsilon:g}",
            f"{row.sensitivity} = {row.sensitivity_value:.4g}",
            row.statistics,
            row.release,
            sample,
            mean,
            row.gibbs,
            f"{row.epsilon_brute_force:.4g}",
            chain,
        )
        lines.append(cells)
    return f"{rows.markdown(HEADINGS, lines)}\n"


def documents(tables) -> dict[str, str]:
    """Return table 1 as Markdown, by file name."""
    return {"table1.md": markdown(tables["table1"])}
