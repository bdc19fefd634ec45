"""Noise-aware inference by several methods against the exact posterior of the same releases, per CPU second (ours)."""

import math

import numpy as np

from privpost.evaluation.rows import columns, places
from privpost.evaluation.summaries import mean_and_sem
from privpost.experiments.discovered import Discovered
from privpost.experiments.noise_aware.rivals import approximation
from privpost.experiments.ranges import BURN_IN, EPSILON, MODEL, N
from privpost.inference_benchmark import methods, scoring, tasks
from privpost.inference_benchmark.base import Budget
from privpost.inference_benchmark.metrics import SCORES, Reference, score
from privpost.lab.schema import Integer, Real, Schema, Text, Vector

SETTINGS = Schema(
    task=Text(says=MODEL),
    noise=Text(says="method id of the mechanism that releases"),
    prior=Vector(Real(at_least=-1e6, at_most=1e6), says="parameters of the model's prior"),
    n=N,
    methods=Discovered(methods.names, none=True, says="methods that take part"),
    reference_draws=Integer(at_least=100, says="draws of the reference posterior of each release"),
    chains=Integer(at_least=1, says="chains per release"),
    draws=Integer(at_least=4, says="draws of each chain that are taken"),
    burn_in=BURN_IN,
    epsilon=EPSILON,
)
TABLES = {
    "rivals": {
        "task": "model of the records, and what is released",
        "distance": "distance of the draws' law from the exact posterior's, sliced Wasserstein, mean [posterior's sd]",
        "mean_error": "error of the posterior mean, root mean square over parameters and releases [posterior's sd]",
        "sd_error": "posterior sd over the exact one, less 1, mean over parameters and releases",
        "z2": "mean z² of the true parameters; above 1 where posteriors are too narrow",
        "ess": "independent draws that the draws are worth, smallest over parameters, mean over releases [count]",
        "ess_per_second": "such draws in a CPU second [1/seconds]",
        "seconds": "CPU time per release, of all releases together over their number [seconds]",
        "n_releases": "releases [count]",
        "n_draws": "draws of a method for each release, at most [count]",
        "failed": "releases with draws that are no numbers [count]",
    },
    "rivals_refused": {"task": "model of the records, and what is released", "reason": "why it cannot serve the task"},
    "approximation": {
        "task": "model of the records, and what is released",
        "prior": "parameters of the model's prior",
        "total_variation": "total variation from the exact posterior to where the normal approximation leads, mean "
        "over releases [probability]",
        "total_variation_max": "largest total variation distance over releases [probability]",
        "n_releases": "releases [count]",
    },
}
REFUSED = ["task", "method", "reason"]
# Draws of each reference that a cell stores: all of them would be a hundred megabytes.
STORED = 1000
NOTES = [
    "CPU time is that of the machine on which the table was made, without compilation. Its columns are not compared.",
    "`exact` is a second set of draws from the reference: its distance is what so many draws can reach.",
]


def simulate(config, streams, ledger) -> dict:
    """Return `scores` (methods, epsilons, scores, releases), `seconds` and `reasons` (methods, epsilons), and
    `approximation` (epsilons, releases), its distances.

    Scores are nan where a method cannot serve the task, or gave no numbers. Stored with them, so that other
    methods can be measured: `releases` (epsilons, releases, q), the first 1,000 draws from the exact posterior of
    each, `reference` (epsilons, releases, draws, p) in single precision, and all draws' `reference_mean` and
    `reference_sd` (epsilons, releases, p).
    """
    names = config.methods
    scores = np.full((len(names), len(config.epsilon), len(SCORES), config.trials), np.nan)
    seconds, reasons = np.zeros(scores.shape[:2]), np.full(scores.shape[:2], "", dtype=object)
    budget = Budget(config.chains, config.draws, config.burn_in)
    stored: list[dict] = []
    for i, epsilon in enumerate(config.epsilon):
        task = tasks.made(config.task, config.prior, config.n, epsilon, config.noise)
        accounting = "stated" if task.budget.notion == "pure" else "exact"
        ledger.open(f"epsilon={epsilon:g}", task.budget, task.mechanism, accounting=accounting)
        for block in streams.blocks():
            theta = task.prior(block.size, streams("data", block.index))
            statistics = task.data(theta, streams("records", block.index))
            account, rng = f"epsilon={epsilon:g}", streams("mechanism", block.index)
            releases = ledger.release(account, task.mechanism, statistics, rng, repeats=block.trials).values
            rng = streams("reference", block.index)
            exact = task.reference(releases, config.reference_draws, rng)
            references = [Reference.of(draws) for draws in exact]
            stored.append({"releases": releases, "reference": exact[:, :STORED].astype(np.float32)})
            stored[-1]["approximation"] = approximation.distances(task, releases)
            stored[-1] |= {f"reference_{part}": [getattr(r, part) for r in references] for part in ("mean", "sd")}
            for k, name in enumerate(names):
                rng = streams(f"method {name}", block.index)
                outcome = scoring.run(methods.method(name), task, releases, rng, budget)
                if outcome.inferred is None:
                    reasons[k, i] = outcome.reason
                    continue
                seconds[k, i] += outcome.seconds / config.trials
                rng = streams("ranks", block.index)
                scores[k, i, :, block.trials] = score(outcome.inferred, references, theta, rng).T
    joined = {name: np.concatenate([entry[name] for entry in stored]) for name in stored[0]}
    shaped = {name: array.reshape(len(config.epsilon), -1, *array.shape[1:]) for name, array in joined.items()}
    return {"scores": scores, "seconds": seconds, "reasons": reasons.astype(str), **shaped}


def tabulate(cells):
    """Return scores by task, n, ε and method, the methods that cannot serve a task with their reasons, and how far the
    normal approximation leads."""
    import pandas as pd

    rows: list[dict] = []
    # The same reason at several n and ε is one row.
    refused: dict[tuple, None] = {}
    for cell in cells:
        names = cell.config.methods
        for place, point in places(cell.config, "epsilon"):
            for k, name in enumerate(names):
                scores, seconds, reason = (cell.arrays[part][k][place] for part in ("scores", "seconds", "reasons"))
                if reason:
                    refused[point.task, name, str(reason)] = None
                else:
                    rows.append(_row(point, name, scores, float(seconds)))
    return {
        "rivals": pd.DataFrame(rows),
        "rivals_refused": pd.DataFrame(list(refused), columns=REFUSED),
        "approximation": pd.DataFrame(_approximations(cells)),
    }


def _approximations(cells):
    for cell in cells:
        for place, point in places(cell.config, "epsilon"):
            distances = cell.arrays["approximation"][place]
            if not np.isnan(distances).any():
                mean, error = mean_and_sem(distances)
                row = columns(point, "task", "n", "epsilon") | {"prior": ", ".join(f"{x:g}" for x in point.prior)}
                row |= {"total_variation": mean, "total_variation_sem": error}
                yield row | {"total_variation_max": float(distances.max()), "n_releases": len(distances)}


def _row(point, name: str, scores, seconds: float) -> dict:
    """Return means over the releases whose draws are numbers, nan where there are none."""
    done = np.isfinite(scores[0])
    means, errors = (dict(zip(SCORES, part.tolist(), strict=True)) for part in mean_and_sem(scores[:, done]))
    return {
        "task": point.task,
        "n": point.n,
        "epsilon": point.epsilon,
        "method": name,
        "distance": means["distance"],
        "distance_sem": errors["distance"],
        "mean_error": math.sqrt(means["mean_error"]),
        "sd_error": means["sd_error"],
        "sd_error_sem": errors["sd_error"],
        "z2": means["z2"],
        "z2_sem": errors["z2"],
        "ess": means["ess"],
        "ess_per_second": means["ess"] / max(seconds, 1e-9),
        "seconds": seconds,
        "n_releases": int(done.sum()),
        "n_draws": point.chains * point.draws,
        "reference_draws": point.reference_draws,
        "failed": int((~done).sum()),
    }
