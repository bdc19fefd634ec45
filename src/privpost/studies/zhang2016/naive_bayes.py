"""Accuracy of a naive Bayes classifier from private posteriors (Zhang et al. 2016, figure 1)."""

from __future__ import annotations

import itertools
import math
from dataclasses import replace

import numpy as np

from privpost.evaluation.summaries import mean_columns
from privpost.mechanisms.base import Mechanism
from privpost.mechanisms.map_estimate import UTILITIES
from privpost.models import graphs
from privpost.models.bayesian_network import BayesianNetwork
from privpost.pipeline.schema import Choice, Integer, Real, Schema
from privpost.privacy.accounting import Cost
from privpost.studies.zhang2016.mechanisms import METHODS, configured, target

SETTINGS = Schema(
    attributes=Integer(at_least=1),
    n=Integer(at_least=2),
    n_train=Integer(at_least=1),
    alpha=Real(above=0),
    beta=Real(above=0),
    model_alpha=Real(above=0),
    model_beta=Real(above=0),
    stealth_target=Real(above=0, below=1),
    bound_t=Real(above=0),
    method=Choice("non_private", *METHODS),
    epsilon=Real(above=0),
    t=Real(above=0),
)
# What varies within a method. `paper` sets t for the target share of stealthy runs, `bound` as corollary 3 asks,
# `corrected` releases the number of records without noise and sets t as `paper` does.
VARIANTS = {"fourier": ("paper", "bound", "corrected"), "map": UTILITIES}


def lines(methods) -> list[tuple[str, str]]:
    """Return the (method, variant) pairs that the methods' variants make."""
    return [(method, variant) for method in methods for variant in VARIANTS.get(method, ("paper",))]


def accuracy(theta, attributes, labels) -> np.ndarray:
    """Return the share of test examples that naive Bayes with given probabilities classifies rightly.

    Shapes: `theta` (..., trials, 2d+1) in the order of the network `graphs.naive_bayes(d)`; `attributes` (trials,
    tests, d) of floats; `labels` (trials, tests); result (..., trials). Ties count as class 0.
    """
    one, zero = theta[..., 2::2], theta[..., 1::2]
    weights = np.log(one / (1 - one)) - np.log(zero / (1 - zero))
    prior = np.log(theta[..., 0] / (1 - theta[..., 0]))
    offset = prior + (np.log1p(-one) - np.log1p(-zero)).sum(axis=-1)
    # Only the sign matters: single precision is enough, and twice as fast.
    scores = np.matmul(attributes, weights[..., None].astype(attributes.dtype))[..., 0]
    return np.mean((scores > -offset[..., None]) == labels, axis=-1)


def simulate(config, streams, ledger) -> dict:
    """Return `accuracy` (line, epsilon, trial), `stealthy` alike, and `t`, `smallest_t` of the Fourier variants.

    `t` (line, epsilon) is the increment that was used, `smallest_t` (epsilon, trial) the one that the paper's
    mechanism would have needed in each run. Lines are the pairs of `lines`.
    """
    model = BayesianNetwork(graphs.naive_bayes(config.attributes), config.alpha, config.beta)
    every = lines(config.method)
    named = _open(model, config, every, ledger)
    named = _with_increments(model, config, every, named, streams, ledger)
    shape = (len(every), len(config.epsilon))
    rates, stealthy = np.empty((*shape, config.trials)), np.ones((*shape, config.trials), bool)
    smallest = np.zeros((len(config.epsilon), config.trials))
    for block in streams.blocks():
        statistics, tests = _data(model, config, streams("data", block.index), block.size)
        labels, attributes = tests[..., 0] == 1, tests[..., 1:].astype(np.float32)
        if ("non_private", "paper") in every:
            theta = model.mean(model.posterior(statistics))
            rates[every.index(("non_private", "paper")), :, block.trials] = accuracy(theta, attributes, labels)
        for (i, j), (account, mechanism) in named.items():
            rng = streams("mechanism", block.index, method=every[i][0], epsilon=config.epsilon[j])
            release = ledger.release(account, mechanism, statistics, rng, repeats=block.trials).values
            if every[i][0] == "fourier":
                stealthy[i, j, block.trials] = mechanism.stealthy(release)
                if every[i][1] == "paper":
                    smallest[j, block.trials] = mechanism.smallest_t(release)
            theta = release if mechanism.releases == "sample" else model.mean(mechanism.posterior(release))
            rates[i, j, block.trials] = accuracy(theta, attributes, labels)
    t = np.full(shape, math.nan)
    for place, (_, mechanism) in named.items():
        t[place] = getattr(mechanism, "t", math.nan)
    return {"accuracy": rates, "stealthy": stealthy, "t": t, "smallest_t": smallest}


def _open(model, config, every, ledger) -> dict[tuple[int, int], tuple[str, Mechanism]]:
    """Return account and mechanism by the places of line and ε, the Fourier variants as yet without an increment."""
    named = {}
    for (i, (method, variant)), (j, epsilon) in itertools.product(enumerate(every), enumerate(config.epsilon)):
        if method != "non_private":
            noise = "corrected" if variant == "corrected" else "paper"
            mechanism = configured(method, model, config.n_train, epsilon, variant=noise, utility=variant)
            named[i, j] = f"{method}/{variant}/epsilon={epsilon:g}", mechanism
            ledger.open(named[i, j][0], target(method, model, epsilon), mechanism)
    return named


def _data(model, config, rng, size) -> tuple[np.ndarray, np.ndarray]:
    """Return the training counts (size, 2m) and the test records of data sets from random models."""
    theta = rng.beta(config.model_alpha, config.model_beta, (size, *model.theta_shape))
    records = model.sample_data(theta, config.n, rng)
    # Records are independent and alike, so that the first ones are a random split.
    return model.sufficient_statistics(records[:, : config.n_train]), records[:, config.n_train :]


def _with_increments(model, config, every, named, streams, ledger):
    """Return the mechanisms with the Fourier variants' t: as corollary 3 asks, or such that the target share of
    releases about a pilot's data is stealthy. They are of the same law and their own, so that t is public."""
    pilot, found = [], dict(named)
    for place, (account, mechanism) in named.items():
        if every[place[0]][0] == "fourier":
            t = config.bound_t
            if every[place[0]][1] != "bound":
                pilot = pilot or [_pilot(model, config, streams, block) for block in streams.blocks()]
                t = _stealthy_t(account, mechanism, config, pilot, streams, ledger)
            found[place] = account, replace(mechanism, t=t)
    return found


def _pilot(model, config, streams, block) -> np.ndarray:
    rng = streams("pilot", block.index)
    theta = rng.beta(config.model_alpha, config.model_beta, (block.size, *model.theta_shape))
    return model.sufficient_statistics(model.sample_data(theta, config.n_train, rng))


def _stealthy_t(account, mechanism, config, pilot, streams, ledger) -> float:
    """Return the t at which the target share of the pilot's releases is stealthy."""
    rng, needed = streams("pilot noise"), []
    ledger.open(f"pilot/{account}", Cost("pure", mechanism.epsilon), mechanism)
    for statistics, block in zip(pilot, streams.blocks(), strict=True):
        release = ledger.release(f"pilot/{account}", mechanism, statistics, rng, repeats=block.trials).values
        needed.append(mechanism.smallest_t(release))
    return float(np.quantile(np.concatenate(needed), config.stealth_target))


def tabulate(cells):
    """Return mean accuracies, their paired differences (`naive_bayes_pairs`) and rates of stealth (`stealth`)."""
    import pandas as pd

    (cell,) = cells
    config, arrays = cell.config, cell.arrays
    every = lines(config.method)
    rows, pairs = [], []
    for i, (method, variant) in enumerate(every):
        for j, epsilon in enumerate(config.epsilon[: 1 if method == "non_private" else None]):
            stealthy = arrays["stealthy"][i, j]
            chosen = {"all": np.ones_like(stealthy)} | ({"stealthy": stealthy} if method == "fourier" else {})
            for runs, kept in chosen.items():
                row = {
                    "method": method,
                    "variant": variant,
                    "runs": runs,
                    "epsilon": None if method == "non_private" else epsilon,
                    **mean_columns("accuracy", arrays["accuracy"][i, j, kept]),
                    "stealth_rate": stealthy.mean() if method == "fourier" else None,
                    "t": arrays["t"][i, j] if method == "fourier" else None,
                    "n_repeats": int(kept.sum()),
                }
                if method.startswith("sampler"):
                    level = 1 if method == "sampler_record" else config.attributes + 1
                    row["epsilon_record"] = level * epsilon
                elif method != "non_private":
                    row["epsilon_record"] = epsilon
                rows.append(row)
                for k, (other, other_variant) in enumerate(every):
                    if i != k and method != "non_private":
                        difference = arrays["accuracy"][i, j, kept] - arrays["accuracy"][k, j, kept]
                        pairs.append(
                            {
                                "method": method,
                                "variant": variant,
                                "runs": runs,
                                "other": other,
                                "other_variant": other_variant,
                                "epsilon": epsilon,
                                **mean_columns("difference", difference),
                                "n_repeats": int(kept.sum()),
                            }
                        )
    pairs += _averages(every, arrays)
    return {
        "naive_bayes": pd.DataFrame(rows),
        "naive_bayes_pairs": pd.DataFrame(pairs),
        "stealth": pd.DataFrame(_stealth(config, arrays)),
    }


def _stealth(config, arrays) -> list[dict]:
    """Return the share of stealthy runs at each t and ε, with the bound of corollary 3."""
    return [
        {
            "t": t,
            "epsilon": epsilon,
            "stealth_rate": float(np.mean(arrays["smallest_t"][j] <= t)),
            "stealth_sem": float(np.std(arrays["smallest_t"][j] <= t) / math.sqrt(config.trials)),
            "bound": -math.expm1(-t),
        }
        for j, epsilon in enumerate(config.epsilon)
        for t in config.t
    ]


def _averages(every, arrays) -> list[dict]:
    """Return the paired differences between mechanisms averaged over ε: rows without an ε, all runs."""
    means = arrays["accuracy"].mean(axis=1)
    return [
        {
            "method": method,
            "variant": variant,
            "runs": "all",
            "other": other,
            "other_variant": other_variant,
            "epsilon": None,
            **mean_columns("difference", means[i] - means[k]),
            "n_repeats": means.shape[-1],
        }
        for i, (method, variant) in enumerate(every)
        for k, (other, other_variant) in enumerate(every)
        if i != k and "non_private" not in (method, other)
    ]
