"""CPU time of one release and one chain of the paper's sampler, by method, for `foulds2016/war_logs_states`.

Run from the project's folder, on an idle machine: `PYTHONPATH=src python benchmarks/war_log_chains.py`.
"""

from __future__ import annotations

import time

import numpy as np
import pandas as pd

from privpost.datasets import war_logs
from privpost.experiments.foulds2016 import chain_times
from privpost.mechanisms.event_counts import EventCountsLaplace, HiddenMarkovSampler, chains_of
from privpost.models.event_counts import EventCounts
from privpost.privacy import count_tables
from privpost.samplers import hidden_markov_gibbs as gibbs

# As in foulds2016/war_logs_states.
STATES = {"afghanistan": (3, 10), "afghanistan_dense": (3, 10), "iraq_sigact": (2, 10), "iraq_simulated": (2, 10)}
EPSILON, ITERATIONS, TRUNCATIONS, RUNS = 5.0, 200, (10.0, 100.0), 5


def chain(model, counts, rng) -> None:
    """Run the paper's sampler on a table of counts."""
    group = gibbs.Group(counts, np.ones((1, len(counts)), bool))
    gibbs.follow(chains_of(model, [group]), [rng], ITERATIONS, [None])


def methods(model, n: int, counts) -> dict:
    """Return what is timed, by method and truncation; each takes a generator."""
    laplace = EventCountsLaplace(model, n, EPSILON)

    def noisy(rng):
        released = model.tables(laplace.perturb(counts.ravel(), rng))
        chain(model, count_tables.clip(released), rng)

    found = {("non_private", None): lambda rng: chain(model, counts, rng), ("laplace", None): noisy}
    for truncation in TRUNCATIONS:
        ops = HiddenMarkovSampler(model, n, EPSILON, truncation=truncation, iterations=ITERATIONS)
        found["ops", truncation] = lambda rng, ops=ops: ops.draw(counts.ravel(), rng)
    return found


def main() -> None:
    """Time all methods in turn, so that other work on the machine affects all alike, and write the quickest runs."""
    rows = []
    for dataset, numbers in STATES.items():
        try:
            logs = war_logs.load(dataset)
        except (FileNotFoundError, ValueError):
            continue
        counts = logs.counts.astype(float)
        n = int(logs.counts[:, : logs.sizes[0]].sum())
        for n_states in numbers:
            timed = methods(EventCounts.of(logs.region, logs.sizes, n_states), n, counts)
            seconds = {key: [] for key in timed}
            for run in range(RUNS + 1):
                for key, one in timed.items():
                    start = time.process_time()
                    one(np.random.default_rng(run))
                    seconds[key].append(time.process_time() - start)
            # The first run loads compiled code.
            for (method, truncation), values in seconds.items():
                named = {"dataset": dataset, "n_states": n_states, "method": method, "variant": "paper"}
                named["truncation"] = truncation
                rows.append({**named, "iterations": ITERATIONS, "seconds": round(min(values[1:]), 4)})
    pd.DataFrame(rows, columns=chain_times.COLUMNS).to_csv(chain_times.PATH, index=False)


if __name__ == "__main__":
    main()
