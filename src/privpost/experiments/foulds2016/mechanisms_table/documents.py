"""Table 1 as Markdown (Foulds et al. 2016)."""

import math

from privpost.drawing import style
from privpost.evaluation import rows


def _sample(row) -> str:
    known = row.are_sample == f"{row.are_sample_value:g}"
    return row.are_sample if known else f"{row.are_sample} = {row.are_sample_value:.4g}"


def _chain(row) -> str:
    converged, cost = row.gibbs_epsilon_if_converged, f"{row.gibbs_epsilon:g}"
    return cost if row.gibbs_epsilon == converged else f"{cost} ({converged:g} if converged)"


COLUMNS = (
    ("Mechanism", lambda row: f"{style.look(row.method).label}, ε = {row.epsilon:g}"),
    ("Sensitivity", lambda row: f"{row.sensitivity} = {row.sensitivity_value:.4g}"),
    ("S(X) is", lambda row: row.statistics),
    ("Release", lambda row: row.release),
    ("ARE of a sample", _sample),
    ("ARE of the mean", lambda row: row.are_mean if math.isnan(row.are_mean_value) else f"{row.are_mean_value:.4g}"),
    ("Gibbs sampling is paid", lambda row: row.gibbs),
    ("Largest loss found", lambda row: f"{row.epsilon_brute_force:.4g}"),
    ("Gibbs chain costs", _chain),
)


def documents(tables) -> dict[str, str]:
    """Return table 1 in Markdown, by file name. `tables` are the study's tables as read from CSV files."""
    return {"table1.md": rows.rendered(tables["table1"], COLUMNS)}
