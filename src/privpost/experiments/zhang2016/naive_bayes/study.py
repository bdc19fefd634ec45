"""Accuracy of a naive Bayes classifier from private posteriors (Zhang et al. 2016, figure 1)."""

import itertools
import math
from dataclasses import replace
from functools import partial

import numpy as np

from privpost.evaluation.summaries import mean_columns, share_error
from privpost.experiments.ranges import ALPHA, ATTRIBUTES, BETA, EPSILON, METHOD, MODEL_ALPHA, MODEL_BETA, N, T
from privpost.experiments.zhang2016.mechanisms import METHODS, configured, target
from privpost.lab.schema import Choice, Integer, Real, Schema
from privpost.mechanisms.base import Mechanism
from privpost.mechanisms.choices.map_estimate import UTILITIES
from privpost.models.networks import graphs
from privpost.models.networks.bayesian_network import BayesianNetwork
from privpost.privacy.ledger.gate import Request

# `one`: the repeats of a block are random splits of one data set, as in the paper. `many`: each repeat has its own
# model and data, so that averages are over models, too.
DATA = ("many", "one")
SETTINGS = Schema(
    data=Choice(*DATA, says="`one` synthesised data set per block of trials, or `many`, one per trial"),
    attributes=ATTRIBUTES,
    n=Integer(at_least=2, says=N.says, unit=N.unit),
    n_train=Integer(at_least=1, under="n", says="records of the training part", unit="records"),
    alpha=ALPHA,
    beta=BETA,
    model_alpha=MODEL_ALPHA,
    model_beta=MODEL_BETA,
    stealth_target=Real(at_least=0.5, below=1, says="share of stealthy releases that t is chosen for", unit="share"),
    bound_t=Real(at_least=0.1, says="t of Fourier's variant `bound`"),
    method=Choice("non_private", *METHODS, says=METHOD),
    epsilon=EPSILON,
    t=T,
)
TABLES = {
    "naive_bayes": {
        "runs": "`all` runs, or the `stealthy` ones, whose released counts have no negative cell",
        "stealth_rate": "share of the releases without a negative cell [share]",
    },
    "naive_bayes_pairs": {
        "other": "method that the method is compared with",
        "other_variant": "variant of the other method",
    },
    "stealth": {
        "stealth_sem": "standard error of `stealth_rate` [share]",
        "bound": "share of stealthy releases that corollary 3 promises [share]",
    },
}
# Variants of Fourier: `paper` sets t for the target share of stealthy runs. `bound` sets t as corollary 3 asks.
# `corrected` is like `paper`, but the number of records is released without noise. Variants of MAP are utilities.
VARIANTS = {"fourier": ("paper", "bound", "corrected"), "map": UTILITIES}


def lines(methods) -> list[tuple[str, str]]:
    """Return all pairs (method, variant): every method with each of its variants."""
    return [(method, variant) for method in methods for variant in VARIANTS.get(method, ("paper",))]


def accuracy(theta, attributes, labels) -> np.ndarray:
    """Return the share (..., trials) of test records that naive Bayes classifies correctly. Ties predict class 0.

    Args:
        theta: probabilities (..., trials, 2d+1) in the order of the network `graphs.naive_bayes(d)`.
        attributes: attributes of the test records as floats (trials, tests, d).
        labels: classes (trials, tests) of the test records.
    """
    one, zero = theta[..., 2::2], theta[..., 1::2]
    weights = np.log(one / (1 - one)) - np.log(zero / (1 - zero))
    prior = np.log(theta[..., 0] / (1 - theta[..., 0]))
    offset = prior + (np.log1p(-one) - np.log1p(-zero)).sum(axis=-1)
    leading, (trials, size) = offset.shape[:-1], weights.shape[-2:]
    right = np.empty((trials, int(np.prod(leading))))
    # One product for all methods of a trial. Only the sign matters, so single precision is enough and twice as fast.
    weights = np.moveaxis(weights.reshape(-1, trials, size), 0, -1).astype(attributes.dtype)
    offset = offset.reshape(-1, trials).T.astype(attributes.dtype)
    for trial in range(trials):
        predicted = attributes[trial] @ weights[trial] > -offset[trial]
        right[trial] = np.mean(predicted == labels[trial][:, None], axis=0)
    return right.T.reshape(*leading, trials)


def simulate(config, streams, ledger) -> dict:
    """Return `accuracy` and `stealthy` (line, epsilon, trial), and the increments t of the Fourier variants.

    A line is a method with a variant (`lines`). A run is stealthy if no released count is negative. `t` (line, epsilon)
    is the increment in use. `smallest_t` (epsilon, trial) is the least t with which the paper's mechanism is stealthy.
    """
    model = BayesianNetwork(graphs.naive_bayes(config.attributes), config.alpha, config.beta)
    variants = lines(config.method)
    opened = _open(model, config, variants, ledger)
    opened = _with_increments(model, config, variants, opened, streams, ledger)
    shape = (len(variants), len(config.epsilon))
    rates, stealthy = np.empty((*shape, config.trials)), np.ones((*shape, config.trials), bool)
    smallest = np.zeros((len(config.epsilon), config.trials))
    for block in streams.blocks():
        statistics, tests = _data(model, config, streams("data", block.index), block.size)
        theta = np.empty((*shape, block.size, *model.theta_shape))
        if ("non_private", "paper") in variants:
            theta[variants.index(("non_private", "paper"))] = model.mean(model.posterior(statistics))
        requests = []
        for account, mechanism in opened.values():
            rng = streams("mechanism", block.index)
            requests.append(Request(account, mechanism, statistics, rng, repeats=block.trials))
        for (i, j), (_, mechanism), outcome in zip(opened, opened.values(), ledger.release_all(requests), strict=True):
            release = outcome.values
            if variants[i][0] == "fourier":
                stealthy[i, j, block.trials] = mechanism.stealthy(release)
                if variants[i][1] == "paper":
                    smallest[j, block.trials] = mechanism.smallest_t(release)
            theta[i, j] = release if mechanism.releases == "sample" else model.mean(mechanism.naive_posterior(release))
        rates[..., block.trials] = accuracy(theta, tests[..., 1:].astype(np.float32), tests[..., 0] == 1)
    t = np.full(shape, math.nan)
    for place, (_, mechanism) in opened.items():
        t[place] = getattr(mechanism, "t", math.nan)
    return {"accuracy": rates, "stealthy": stealthy, "t": t, "smallest_t": smallest}


def _open(model, config, variants, ledger) -> dict[tuple[int, int], tuple[str, Mechanism]]:
    """Return account and mechanism, as yet without Fourier's increment, by the indices of line and ε."""
    opened = {}
    for (i, (method, variant)), (j, epsilon) in itertools.product(enumerate(variants), enumerate(config.epsilon)):
        if method != "non_private":
            noise = "corrected" if variant == "corrected" else "paper"
            make = partial(configured, method, model, config.n_train, epsilon, variant=noise, utility=variant)
            account = f"{method}/{variant}/epsilon={epsilon:g}"
            opened[i, j] = account, ledger.open(account, target(method, model, epsilon), make)
    return opened


def _data(model, config, rng, size) -> tuple[np.ndarray, np.ndarray]:
    """Return training counts (size, 2m) and test records, from random models or from random splits of one data set."""
    theta = rng.beta(config.model_alpha, config.model_beta, (size if config.data == "many" else 1, *model.theta_shape))
    records = model.sample_data(theta, config.n, rng)
    if config.data == "one":
        records = records[0, rng.permuted(np.tile(np.arange(config.n), (size, 1)), axis=1)]
    # Records of one model are exchangeable, so the first records are a random split.
    return model.sufficient_statistics(records[:, : config.n_train]), records[:, config.n_train :]


def _with_increments(model, config, variants, opened, streams, ledger):
    """Return accounts and mechanisms with the increments t of the Fourier variants."""
    # Variant `bound` has the t of corollary 3. For others, the target share of releases about pilot data is stealthy.
    # Pilot data have no private record, so t is public.
    pilot, complete = [], dict(opened)
    for place, (account, mechanism) in opened.items():
        if variants[place[0]][0] == "fourier":
            t = config.bound_t
            if variants[place[0]][1] != "bound":
                pilot = pilot or [_pilot(model, config, streams, block) for block in streams.blocks()]
                ledger.open(f"pilot/{account}", target("fourier", model, config.epsilon[place[1]]), mechanism)
                t = _stealthy_t(f"pilot/{account}", mechanism, config, pilot, streams, ledger)
            complete[place] = account, replace(mechanism, t=t)
    return complete


def _pilot(model, config, streams, block) -> np.ndarray:
    rng = streams("pilot", block.index)
    theta = rng.beta(config.model_alpha, config.model_beta, (block.size, *model.theta_shape))
    return model.sufficient_statistics(model.sample_data(theta, config.n_train, rng))


def _stealthy_t(account, mechanism, config, pilot, streams, ledger) -> float:
    """Return the increment t with which the target share of releases about pilot data is stealthy."""
    rng, blocks = streams("pilot noise"), zip(pilot, streams.blocks(), strict=True)
    requests = [Request(account, mechanism, statistics, rng, repeats=block.trials) for statistics, block in blocks]
    needed = [mechanism.smallest_t(release.values) for release in ledger.release_all(requests)]
    return float(np.quantile(np.concatenate(needed), config.stealth_target))


def tabulate(cells):
    """Return three tables: mean accuracies, paired differences, and rates of stealthy runs."""
    (cell,) = cells
    rows, pairs = [], []
    for row, runs, differences in _curves(cell):
        rows.append({**row, **mean_columns("accuracy", runs), "n_repeats": len(runs)})
        place = {name: row[name] for name in ("method", "variant", "runs")}
        for (other, other_variant), values in differences.items():
            point = {**place, "other": other, "other_variant": other_variant, "epsilon": row["epsilon"]}
            pairs.append({**point, **mean_columns("difference", values), "n_repeats": len(values)})
    return {
        "naive_bayes": rows,
        "naive_bayes_pairs": pairs + _averages(cell),
        "stealth": _stealth(cell.config, cell.arrays),
    }


def _curves(cell):
    """Yield, per line, ε and kind of runs, a row's first columns, its accuracies and their excess over other lines."""
    config, arrays = cell.config, cell.arrays
    variants = lines(config.method)
    for i, (method, variant) in enumerate(variants):
        for j, epsilon in enumerate(config.epsilon[: 1 if method == "non_private" else None]):
            stealthy = arrays["stealthy"][i, j]
            runs_of = {"all": np.ones_like(stealthy)} | ({"stealthy": stealthy} if method == "fourier" else {})
            for runs, selected in runs_of.items():
                row = {"method": method, "variant": variant, "runs": runs}
                row["epsilon"] = None if method == "non_private" else epsilon
                row["stealth_rate"] = stealthy.mean() if method == "fourier" else None
                row["t"] = arrays["t"][i, j]
                if method != "non_private":
                    row["epsilon_record"] = epsilon * (config.attributes + 1 if method == "sampler_attribute" else 1)
                accuracy = arrays["accuracy"][i, j, selected]
                others = [k for k in range(len(variants)) if k != i and method != "non_private"]
                yield row, accuracy, {variants[k]: accuracy - arrays["accuracy"][k, j, selected] for k in others}


def _stealth(config, arrays) -> list[dict]:
    """Return one row per t and ε: the share of stealthy runs, and the bound of corollary 3 on this share."""
    return [
        {
            "t": t,
            "epsilon": epsilon,
            "stealth_rate": (rate := float(np.mean(stealthy := arrays["smallest_t"][j] <= t))),
            "stealth_sem": float(np.std(stealthy) / math.sqrt(config.trials) or share_error(rate, config.trials)),
            "bound": -math.expm1(-t),
        }
        for j, epsilon in enumerate(config.epsilon)
        for t in config.t
    ]


def _averages(cell) -> list[dict]:
    """Return paired differences between mechanisms, averaged over ε, for all runs and for stealthy runs."""
    accuracies, stealthy = cell.arrays["accuracy"], cell.arrays["stealthy"]
    variants, rows = lines(cell.config.method), []
    for (i, (method, variant)), (k, (other, other_variant)) in itertools.permutations(enumerate(variants), 2):
        if "non_private" in (method, other):
            continue
        runs_of = {"all": np.ones_like(stealthy[i])} | ({"stealthy": stealthy[i]} if method == "fourier" else {})
        for runs, selected in runs_of.items():
            # The average over stealthy runs is the mean over ε of the mean over the runs that are stealthy at this ε.
            # The standard error follows from the contributions of the repeats, which are independent.
            difference, share = accuracies[i] - accuracies[k], selected.mean(axis=1, keepdims=True)
            level = (difference * selected).mean(axis=1, keepdims=True) / share
            parts = (level + (difference - level) * selected / share).mean(axis=0)
            place = {"method": method, "variant": variant, "runs": runs, "other": other}
            place |= {"other_variant": other_variant, "epsilon": None}
            rows.append({**place, **mean_columns("difference", parts), "n_repeats": parts.size})
    return rows
