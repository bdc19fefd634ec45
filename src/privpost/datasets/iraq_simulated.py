"""Simulated war logs like those of Iraq, drawn from a hidden Markov model. The true states are kept for scoring."""

from pathlib import Path

import numpy as np

from privpost.datasets import war_logs
from privpost.datasets.catalogue import Dataset


def emissions(dataset: Dataset) -> list[np.ndarray]:
    """Return, for each field, the probabilities (states, levels) of its levels in the true states.

    A level with a stated share has this share as its probability. The other levels share the rest by a power law, in a
    random order that depends on the seed and is equal in all states.
    """
    rng = np.random.default_rng([dataset.settings["seed"], 0])
    fields = []
    for field, levels in dataset.public["levels"].items():
        order = rng.permutation(len(levels))
        rows = []
        for state in dataset.settings["states"]:
            shares = state[field]
            unknown = sorted(set(shares) - set(levels))
            if unknown or not 0 < sum(shares.values()) < 1:
                raise ValueError(f"dataset {dataset.name}: states: {field} = {shares!r}: must be shares of its levels")
            row = np.zeros(len(levels))
            rest = [index for index in order if levels[index] not in shares]
            power = np.arange(1, len(rest) + 1) ** -float(dataset.settings["zipf"])
            row[rest] = (1 - sum(shares.values())) * power / power.sum()
            for level, share in shares.items():
                row[levels.index(level)] = share
            rows.append(row)
        fields.append(np.array(rows))
    return fields


def parse(paths: dict[str, Path], dataset: Dataset) -> dict[str, np.ndarray]:
    """Draw the cells: `counts` (cells, levels) int64, `region`, `month` and the true `state` (cells,) int16.

    A region's states form a Markov chain that starts uniformly. A cell's number of events is log-normal. Each field of
    an event is drawn independently given the state. `paths` is empty.
    """
    settings = dataset.settings
    rng = np.random.default_rng([settings["seed"], 1])
    shape = (len(settings["regions"]), len(war_logs.months(dataset)))
    n_states = len(settings["states"])
    state = np.empty(shape, np.int16)
    state[:, 0] = rng.integers(n_states, size=shape[0])
    for month in range(1, shape[1]):
        moved = (state[:, month - 1] + rng.integers(1, n_states, size=shape[0])) % n_states
        state[:, month] = np.where(rng.random(shape[0]) < settings["stay"], state[:, month - 1], moved)
    events = np.rint(settings["median_events"] * np.exp(settings["spread"] * rng.standard_normal(shape))).astype(int)
    counts = [rng.multinomial(np.maximum(events, 1), field[state]) for field in emissions(dataset)]
    arrays = war_logs.cells(np.concatenate(counts, axis=2))
    return {**arrays, "state": state[arrays["region"], arrays["month"]]}
