"""CPU time of one chain of each method on war logs, measured once by `benchmarks/war_log_chains.py`."""

from pathlib import Path

from privpost.experiments.foulds2016.war_logs import uses_private_metadata

PATH = Path("benchmarks/war_log_chains.csv")
COLUMNS = ("dataset", "n_states", "method", "variant", "truncation", "iterations", "seconds")


def recorded():
    """Return the recorded times as a table; without rows where the file is missing."""
    import pandas as pd

    table = pd.read_csv(PATH) if PATH.is_file() else pd.DataFrame(columns=COLUMNS)
    # The times are of the paper's sampler.
    return table.assign(sampler="paper", uses_private_metadata=[uses_private_metadata(name) for name in table.dataset])
