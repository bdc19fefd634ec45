"""Distance of noise-aware methods from the exact posterior given the same releases, and CPU time (ours)."""

import math
from dataclasses import replace

import numpy as np

from privpost.evaluation.calibration import ks_p_value, ks_statistic
from privpost.evaluation.rows import columns, places
from privpost.evaluation.spread import spread_columns
from privpost.evaluation.summaries import mean_and_sem, share_error
from privpost.experiments.discovered import Discovered
from privpost.experiments.noise_aware.rivals import approximation
from privpost.experiments.ranges import BURN_IN, EPSILON, MODEL, N
from privpost.inference_benchmark import leaderboard, methods, metrics, scoring, tasks
from privpost.inference_benchmark.base import Budget
from privpost.inference_benchmark.tasks.private_n import PrivateNTask
from privpost.lab.schema import Integer, Real, Schema, Text, Vector
from privpost.lab.streams import Block

TASK, NOISE = "model of the records, and what is released", "method id of the mechanism that releases"
SETTINGS = Schema(
    task=Text(says=MODEL),
    noise=Text(says=NOISE),
    prior=Vector(Real(at_least=-1e6, at_most=1e6), says="parameters of the model's prior"),
    n=N,
    methods=Discovered(methods.names, none=True, says="methods that take part"),
    reference_draws=Integer(at_least=100, says="draws of the reference posterior of each release"),
    chains=Integer(at_least=1, says="chains per release"),
    draws=Integer(at_least=4, says="draws kept from each chain"),
    burn_in=BURN_IN,
    ranks=Integer(at_least=0, says="releases of a cell that only ranks the true parameters; 0 for all other scores"),
    epsilon=EPSILON,
)
TABLES = {
    "rivals": {
        "task": TASK,
        "noise": NOISE,
        "distance": "distance of the draws' law from the exact posterior's, sliced Wasserstein, mean [posterior's sd]",
        "mean_error": "error of the posterior mean, root mean square over parameters and releases [posterior's sd]",
        "sd_error": "posterior sd over the exact one, less 1, mean over parameters and releases",
        "c2st": "accuracy of a classifier that tells the draws from exact ones, mean; 0.5 is guessing [share]",
        "mmd2": "squared maximum mean discrepancy to exact draws, mean over five releases; empty for one parameter",
        "z2": "mean z² of the true parameters; above 1 where posteriors are too narrow",
        "ess": "effective sample size of the draws, smallest over parameters, mean over releases [count]",
        "ess_per_second": "effective draws per CPU second [1/seconds]",
        "seconds": "mean CPU time per release [seconds]",
        "n_releases": "releases [count]",
        "n_draws": "largest number of a method's draws for each release [count]",
        "failed": "releases with draws that are not finite [count]",
    },
    "rivals_refused": {
        "task": TASK,
        "noise": NOISE,
        "status": "`refused`, or `failed` where the method ended with an error or gave draws of a wrong shape",
        "reason": "why it has no draws",
    },
    "rivals_calibration": {
        "task": TASK,
        "noise": NOISE,
        "coverage_50": "share of true parameters in the posterior's central 50 % interval [probability]",
        "coverage_95": "share of true parameters in the posterior's central 95 % interval [probability]",
        "rank_p": "p-value of the test that ranks are uniform: smallest over parameters, times their number "
        "[probability]",
        "n_releases": "releases [count]",
    },
    "classifier": {
        "task": TASK,
        "noise": NOISE,
        "narrow": "accuracy of the classifier on two sets of exact draws, one shrunk by a tenth, mean over "
        "releases [share]",
        "n_releases": "releases [count]",
    },
    "unknown_n": {
        "task": TASK,
        "noise": NOISE,
        "sd_ratio": "posterior sd over the sd if n is known, given the same release, root mean square over "
        "parameters, mean over releases",
        "n_releases": "releases [count]",
    },
    "leaderboard": {
        "served": "pairs of task and noise that the method serves [count]",
        "of": "pairs of task and noise in the study [count]",
        "c2st_median": "classifier's accuracy, median over points [share]",
        "c2st_worst": "classifier's accuracy, largest over points [share]",
        "worst_at": "task, noise, n and epsilon of the point with that accuracy",
        "distance_ratio": "distance over that of exact draws at the same point, median over points",
        "miscalibrated": "points of calibration at which z² or ranks reject the method, at a joint 5 % [count]",
        "calibrations": "points of calibration [count]",
        "sd_seen_narrow": "shrinkage of the posterior's standard deviation that z² detects with probability 80 % "
        "(median over points) [share]",
        "ess_per_second": "effective draws per CPU second, median over points [1/seconds]",
    },
    "approximation": {
        "task": TASK,
        "prior": "parameters of the model's prior",
        "total_variation": "total variation distance of the normal approximation from the exact posterior, mean "
        "over releases [probability]",
        "total_variation_max": "largest total variation distance over releases [probability]",
        "n_releases": "releases [count]",
    },
}
REFUSED = ["task", "noise", "method", "status", "reason"]
# Number of draws of each reference that a cell stores. All draws would take a hundred megabytes.
STORED = 1000
# Number of draws from a posterior with n known.
KNOWN = 4000
NOTES = [
    "CPU time is that of the machine on which the table was made, without compilation. Its columns are not compared.",
    "`exact` is a second set of draws from the reference: its distance is what so many draws can reach.",
]


def simulate(config, streams, ledger) -> dict:
    """Return CPU times, reasons of refusal, and either ranks or scores.

    `seconds`, `reasons` and `status` have shape (methods, epsilons). If `ranks` > 0, `ranked` (methods, epsilons,
    releases, p) has the ranks of the true parameters. Otherwise there are `scores` (methods, epsilons, scores,
    releases), and arrays with first axes (epsilons, releases). `approximation` is the distance of the normal
    approximation. `narrow` is the classifier's accuracy on exact draws that were shrunk by a tenth. `unknown_n` is the
    ratio of posterior widths without and with a known n. Releases and reference draws are stored so that other methods
    can be scored later.
    """
    names, trials = config.methods, config.ranks or config.trials
    size = len(names), len(config.epsilon)
    seconds, reasons, status = np.zeros(size), np.full(size, "", dtype=object), np.full(size, "", dtype=object)
    scores, ranked = np.full((*size, len(metrics.SCORES), trials), np.nan), None
    budget = Budget(config.chains, config.draws, config.burn_in)
    stored: list[dict] = []
    for i, epsilon in enumerate(config.epsilon):
        task = tasks.made(config.task, config.prior, config.n, epsilon, config.noise)
        if ranked is None:
            ranked = np.full((*size, trials, task.size), np.nan)
        account, accounting = f"epsilon={epsilon:g}", "stated" if task.budget.notion == "pure" else "exact"
        ledger.open(account, task.budget, task.mechanism, accounting=accounting, repeats=trials)
        for block in [Block(0, trials, slice(0, trials))] if config.ranks else streams.blocks():
            theta = task.prior(block.size, streams("data", block.index))
            statistics = task.data(theta, streams("records", block.index))
            rng = streams("mechanism", block.index)
            releases = ledger.release(account, task.mechanism, statistics, rng, repeats=block.trials).values
            case = scoring.Case(task, theta, releases, np.empty(0))
            if not config.ranks:
                rng = streams("reference", block.index)
                case = replace(case, reference=task.reference(releases, config.reference_draws, rng))
                stored.append(_of_reference(case, statistics, streams, block.index))
            for k, name in enumerate(names):
                rng = streams(f"method {name}", block.index)
                outcome = scoring.run(methods.method(name), task, releases, rng, budget)
                if outcome.inferred is None:
                    reasons[k, i], status[k, i] = outcome.reason, outcome.status
                    continue
                seconds[k, i] += outcome.seconds / trials
                rng = streams("ranks", block.index)
                if config.ranks:
                    ranked[k, i, block.trials] = metrics.all_ranks(outcome.inferred, theta, rng)
                else:
                    measured = scoring.measured(outcome.inferred, case, rng)
                    scores[k, i, :, block.trials] = np.stack([measured[score] for score in metrics.SCORES])
    told = {"seconds": seconds, "reasons": reasons.astype(str), "status": status.astype(str)}
    if config.ranks:
        return told | {"ranked": ranked}
    joined = {name: np.concatenate([entry[name] for entry in stored]) for name in stored[0]}
    shaped = {name: array.reshape(len(config.epsilon), -1, *array.shape[1:]) for name, array in joined.items()}
    return {"scores": scores, **told, **shaped}


def _of_reference(case: scoring.Case, statistics, streams, block: int) -> dict:
    """Return the arrays that a block stores about its releases and the exact posteriors."""
    task, exact = case.task, case.reference
    mean, sd = exact.mean(axis=1), exact.std(axis=1)
    standard, rng = (exact - mean[:, None]) / sd[:, None], streams("classifier", block)
    size = min(STORED, exact.shape[1] // 2)
    pairs = [(draws[:size], draws[-size:]) for draws in standard]
    known = np.full(len(exact), np.nan)
    if isinstance(task, PrivateNTask):
        rng = streams("known n", block)
        for k, (release, total) in enumerate(zip(case.releases, statistics.sum(axis=1), strict=True)):
            spread = np.reshape(task.mechanism.posterior_of(int(total), release, KNOWN, rng), (KNOWN, -1)).std(axis=0)
            known[k] = math.sqrt(np.mean(np.square(sd[k] / spread)))
    return {
        "releases": case.releases,
        "reference": exact[:, :STORED].astype(np.float32),
        "reference_mean": mean,
        "reference_sd": sd,
        "approximation": approximation.distances(task, case.releases),
        "narrow": [metrics.c2st(0.9 * first, second, rng) for first, second in pairs],
        "unknown_n": known,
    }


def tabulate(cells):
    """Return all tables, by name."""
    import pandas as pd

    tables: dict[str, list[dict]] = {name: [] for name in TABLES}
    # The same reason at several n and ε gives one row. A dict keeps the order of its keys.
    refused: dict[tuple, None] = {}
    for cell in cells:
        for place, point in places(cell.config, "epsilon"):
            parts = cell.arrays
            for k, name in enumerate(cell.config.methods):
                status = str(parts["status"][k][place])
                if status:
                    refused[point.task, point.noise, name, status, str(parts["reasons"][k][place])] = None
                elif point.ranks:
                    tables["rivals_calibration"].append(_calibration(point, name, parts["ranked"][k][place]))
                else:
                    row = _row(point, name, parts["scores"][k][place], float(parts["seconds"][k][place]))
                    tables["rivals"].append(row)
            if not point.ranks:
                _by_point(
                    tables, point, {name: parts[name][place] for name in ("approximation", "narrow", "unknown_n")}
                )
    frames = {name: pd.DataFrame(rows) for name, rows in tables.items()}
    frames["rivals_refused"] = pd.DataFrame(list(refused), columns=REFUSED)
    frames["leaderboard"] = pd.DataFrame(
        leaderboard.rows(frames["rivals"], frames["rivals_calibration"], frames["rivals_refused"])
    )
    return frames


def _by_point(tables, point, arrays) -> None:
    """Append to `tables` those rows that do not depend on a method, for a task at one n and ε."""
    place = columns(point, "task", "noise", "n", "epsilon")
    if not np.isnan(arrays["approximation"]).any():
        distances = arrays["approximation"]
        mean, error = mean_and_sem(distances)
        row = place | {"prior": ", ".join(f"{x:g}" for x in point.prior)}
        row |= {"total_variation": mean, "total_variation_sem": error}
        row |= {"total_variation_max": float(distances.max()), "n_releases": len(distances)}
        tables["approximation"].append(row)
    if not point.methods:
        return
    mean, error = mean_and_sem(arrays["narrow"])
    tables["classifier"].append(place | {"narrow": mean, "narrow_sem": error, "n_releases": len(arrays["narrow"])})
    if not np.isnan(arrays["unknown_n"]).any():
        mean, error = mean_and_sem(arrays["unknown_n"])
        row = {"sd_ratio": mean, "sd_ratio_sem": error, "n_releases": len(arrays["unknown_n"])}
        tables["unknown_n"].append(place | row)


def _row(point, name: str, scores, seconds: float) -> dict:
    """Return a method's row of mean scores over the releases with finite draws."""
    done = np.isfinite(scores[0])
    means, errors = {}, {}
    for score, values in zip(metrics.SCORES, scores[:, done], strict=True):
        # MMD² is computed for some releases only.
        mean, error = mean_and_sem(values[np.isfinite(values)])
        means[score], errors[score] = float(mean), float(error)
    root = math.sqrt(means["mean_error"])
    return {
        **columns(point, "task", "noise", "n", "epsilon"),
        "method": name,
        "distance": means["distance"],
        "distance_sem": errors["distance"],
        "mean_error": root,
        # The standard error of a root, by the delta method.
        "mean_error_sem": errors["mean_error"] / (2 * root) if root else math.nan,
        "sd_error": means["sd_error"],
        "sd_error_sem": errors["sd_error"],
        "c2st": means["c2st"],
        "c2st_sem": errors["c2st"],
        "mmd2": means["mmd2"],
        "mmd2_sem": errors["mmd2"],
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


def _calibration(point, name: str, ranks) -> dict:
    """Return a row of coverage and tests, computed from ranks (releases, p)."""
    ranks = ranks[np.isfinite(ranks).all(axis=1)]
    row = columns(point, "task", "noise", "n", "epsilon") | {"method": name, "n_releases": len(ranks)}
    if not len(ranks):
        return row
    for share in (50, 95):
        inside = (np.abs(ranks - 0.5) < share / 200).mean(axis=1)
        # If all values are equal, `_error` returns the standard error of a share instead of 0.
        row[f"coverage_{share}"], row[f"coverage_{share}_sem"] = float(inside.mean()), _error(inside)
    p_value = np.min(ks_p_value(ks_statistic(ranks.T), len(ranks)))
    row |= {"rank_p": min(1.0, float(p_value) * ranks.shape[1])}
    return row | spread_columns(ranks.T, "all")


def _error(shares) -> float:
    return float(share_error(shares.mean(), len(shares)) if np.ptp(shares) == 0 else mean_and_sem(shares)[1])
