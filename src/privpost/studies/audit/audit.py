"""Privacy audit of every mechanism: the claimed ε against exact divergences and statistical lower bounds."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from privpost.mechanisms.base import Mechanism
from privpost.pipeline.schema import Integer, Real, Schema
from privpost.privacy.audit import Counts, choose_event, lower_bound
from privpost.studies.audit import instances as audited
from privpost.studies.discovered import Discovered

SETTINGS = Schema(
    mechanisms=Discovered(audited.names),
    epsilon=Real(above=0),
    large_n=Integer(at_least=1),
    releases=Integer(at_least=1000),
    chain_releases=Integer(at_least=1000),
    pilot=Integer(at_least=100),
    confidence=Real(above=0, below=1),
)
CHUNK = 10_000
# A claim may be met to rounding: exact divergences have 9 digits or more.
ROUNDING = 1e-7


class Finding(NamedTuple):
    """What the audit of one mechanism found: exact divergence (nan if unknown), and the event's counts."""

    exact: float
    counts: Counts
    pair: np.ndarray


def examine(mechanism: Mechanism, size: int, pilot: int, rng: np.random.Generator, level: float = 1e-4) -> Finding:
    """Audit one mechanism on the neighbours that are worst for it.

    They are those of the largest exact divergence over all neighbours; where the law is not known, those of the
    largest estimate from `pilot` releases each, over neighbours whose common records are all equal.

    Args:
        size: releases per neighbour, as many to choose the event as to count it.
        pilot: releases per neighbour from which the pair is chosen.
        level: at which events are compared; the reported bound has a level of its own.
    """
    order = audited.order_of(mechanism)
    pairs = audited.neighbours(mechanism)
    divergences = audited.exact_divergences(mechanism, pairs)
    if divergences is not None:
        pair, exact = pairs[int(np.argmax(divergences))], float(np.max(divergences))
    else:
        pair, exact = _worst_by_pilot(mechanism, order, pilot, rng, level), math.nan
    samples = [[_releases(mechanism, side, size, rng) for side in pair] for _ in range(2)]
    exact *= audited.copies(mechanism, samples[0][0])
    chosen, counted = ([audited.features(mechanism, sample, pair) for sample in half] for half in samples)
    event = choose_event(*chosen, order, level)
    return Finding(exact, Counts(event.hits(counted[0]), event.hits(counted[1]), size), pair)


def _releases(mechanism: Mechanism, statistics, size: int, rng) -> np.ndarray:
    # In parts: a mechanism that weighs a grid for each release needs much memory.
    parts = [min(CHUNK, size - start) for start in range(0, size, CHUNK)]
    return np.concatenate([mechanism.replicate(statistics, part, rng) for part in parts])


def _worst_by_pilot(mechanism, order, pilot, rng, level):
    pairs = audited.neighbours(mechanism, vertices=True)
    cache, best, worst = {}, -np.inf, pairs[0]
    for pair in pairs:
        for side in pair:
            if side.tobytes() not in cache:
                cache[side.tobytes()] = mechanism.replicate(side, pilot, rng)
        found = [audited.features(mechanism, cache[side.tobytes()], pair) for side in pair]
        event = choose_event(*found, order, level)
        bound = lower_bound(Counts(event.hits(found[0]), event.hits(found[1]), pilot), order, level)
        if bound > best:
            best, worst = bound, pair
    return worst


def verdict(claimed: float, bound: float, exact: float) -> str:
    """`violated` where the bound or the exact divergence exceeds the claim, else `within claim`."""
    limit = claimed * (1 + ROUNDING)
    return "violated" if bound > limit or exact > limit else "within claim"


def simulate(config, streams, ledger) -> dict:
    """Return one entry per audited mechanism: names, claims, exact divergences and event counts (audited, 3)."""
    rows = []
    for name, mechanism in audited.instances(config.epsilon, config.large_n).items():
        if type(mechanism).__name__ not in config.mechanisms:
            continue
        cost = mechanism.cost()
        if not math.isfinite(cost.epsilon) or not (cost.order is None or cost.order > 1):
            continue
        ledger.open(name, cost)
        ledger.charge(name, cost)
        size = config.releases if mechanism.exact else config.chain_releases
        found = examine(mechanism, size, config.pilot, streams("mechanism", 0, instance=name))
        kind = type(mechanism)
        rows.append(
            {
                "name": name,
                "method": kind.method,
                "study": audited.STUDIES.get(kind.__name__, "none"),
                "model": type(mechanism.model).__name__,
                "n": mechanism.n,
                "notion": kind.notion,
                "order": np.nan if cost.order is None else cost.order,
                "claimed": cost.epsilon,
                "exact": found.exact,
                "counts": found.counts,
                "mcmc": not kind.exact,
                "variant": mechanism.options.get("variant", mechanism.options.get("supremum", "")),
                "settings": repr(mechanism),
            }
        )
    return {key: np.array([row[key] for row in rows]) for key in rows[0]}


def tabulate(cells):
    """Return one row per mechanism and ε; the bounds hold together with the stated confidence (Bonferroni)."""
    import pandas as pd

    total = sum(len(cell.arrays["name"]) for cell in cells)
    rows = []
    for cell in cells:
        config, arrays = cell.config, cell.arrays
        level = (1 - config.confidence) / total
        for i, name in enumerate(arrays["name"]):
            order = None if np.isnan(arrays["order"][i]) else float(arrays["order"][i])
            counts = Counts(*map(int, arrays["counts"][i]))
            claimed, exact = float(arrays["claimed"][i]), float(arrays["exact"][i])
            bound = lower_bound(counts, order, level)
            spent = bound if math.isnan(exact) else exact
            rows.append(
                {
                    "method": arrays["method"][i],
                    "study": arrays["study"][i],
                    "post_processing": audited.POST_PROCESSING.get(str(name).split()[0]),
                    "mechanism": str(name).split()[0],
                    "model": arrays["model"][i],
                    "instance": name,
                    "n": int(arrays["n"][i]),
                    "variant": arrays["variant"][i],
                    "target_epsilon": config.epsilon,
                    "claimed_epsilon": claimed,
                    "notion": arrays["notion"][i],
                    "order": order,
                    "lower_bound": bound,
                    "exact": None if math.isnan(exact) else exact,
                    "confidence": config.confidence,
                    "row_confidence": 1 - level,
                    "n_samples": counts.size,
                    "events_first": counts.first,
                    "events_second": counts.second,
                    "tightness": spent / claimed,
                    "verdict": verdict(claimed, bound, exact),
                    "sampling": "mcmc" if arrays["mcmc"][i] else "exact",
                    "settings": arrays["settings"][i],
                }
            )
    return pd.DataFrame(rows)
