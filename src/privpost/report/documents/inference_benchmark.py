"""Tables of docs/inference_benchmark.md, with the leaderboard, methods by release, and published numbers."""

from collections.abc import Mapping

import numpy as np
import pandas as pd
from scipy.special import ndtr

from privpost.drawing import style
from privpost.evaluation.rows import markdown
from privpost.inference_benchmark import outside
from privpost.inference_benchmark.tasks import made
from privpost.lab.published import RESULTS
from privpost.report.templates import number

STUDY = "noise_aware/rivals"
# Scores of methods whose packages are not in requirements.lock. No rebuild makes these scores. They come from the
# command `privpost bench score <method> --output`.
OPTIONAL = "optional_methods.csv"
# Largest number of methods that are listed for a release.
FEW = 3
# The noisy counts n_ijk of class, feature and level that Xiong, Ju and Zhang (2025) publish for their log-linear task.
PUBLISHED = np.array([32.7540, 45.2008, 58.6172, 18.2683, 12.9260, 8.5805, 12.8789, 9.5372]).reshape(2, 2, 2)
# Levels at which Alrawajfeh, Jälkö and Honkela (2025) measure coverage, and how often they repeat an experiment.
LEVELS, REPEATS = np.linspace(0, 1, 21), 500
DRAWS, RUNS = 200_000, 400


def values(published) -> Mapping[str, str]:
    """Return the document's tables and numbers by the names that the template uses."""
    tables = published.tables(STUDY)
    return {
        "leaderboard": board(tables["leaderboard"]),
        "by_release": by_release(tables["rivals"], published.study(STUDY).module("claims").TOLD),
        "optional": optional(pd.read_csv(RESULTS / OPTIONAL)),
        **{f"sd_of_{scale}": deviations(scale) for scale in (3, 4)},
        **chance(),
    }


def board(leaderboard: pd.DataFrame) -> str:
    """Return the leaderboard in Markdown, one row per method."""
    head = ("method", "releases", "C2ST, median", "worst", "where", "distance", "calibrated", "draws/s")
    rows = []
    for row in leaderboard.itertuples():
        passed = row.calibrations - row.miscalibrated
        calibrated = f"{passed} of {row.calibrations} ({number(100 * row.sd_seen_narrow, '.0f')} %)"
        rows.append(
            (
                style.look(row.method).label,
                f"{row.served} of {row.of}",
                number(row.c2st_median, ".2f"),
                f"{number(row.c2st_worst, '.3f')} ± {number(row.c2st_worst_sem, '.3f')}",
                str(row.worst_at).replace("epsilon", "ε"),
                number(row.distance_ratio, ".1f"),
                calibrated if row.calibrations else "not tested",
                _rate(row.ess_per_second),
            )
        )
    return markdown(head, [row for row in rows if "nan" not in row[1]])


def by_release(rivals: pd.DataFrame, told: float) -> str:
    """Return a table by release: the fastest methods whose C2ST is always below `told`, and the worst methods."""
    labels = {(entry.name, entry.noise): entry.label for entry in outside.entries()}
    rivals, rows = rivals[~rivals.method.isin(["exact", "naive", "prior"])], []
    for (task, noise), part in rivals.groupby(["task", "noise"], sort=False):
        worst = part.groupby("method").c2st.max().sort_values()
        # Speeds are compared at ε = 1 and n = 100, or at the n nearest to 100.
        near = part[(part.epsilon == 1) & (part.n == min(part.n, key=lambda n: (abs(n - 100), n)))]
        speed = near.groupby("method").ess_per_second.mean().reindex(worst.index)
        good = speed[worst < told].sort_values(ascending=False)[:FEW]
        far = worst[worst >= told][-FEW:]
        rows.append(
            (
                f"`{labels[task, noise]}`",
                "; ".join(f"{style.look(name).label} {_rate(rate)}" for name, rate in good.items()) or "none",
                "; ".join(f"{style.look(name).label} {number(value, '.2f')}" for name, value in far.items()),
            )
        )
    return markdown(("release", "fastest that are not told apart, draws/s", "told apart, worst C2ST"), rows)


def optional(scores: pd.DataFrame) -> str:
    """Return a table with the scores of methods that no study runs, followed by the versions of their packages."""
    served = scores[scores.c2st.notna()]
    rows = [
        (
            f"`{row.task}`",
            style.look(row.method).label,
            f"{number(row.c2st, '.3f')} ± {number(row.c2st_sem, '.3f')}",
            f"{number(row.distance, '.2f')} ± {number(row.distance_sem, '.2f')}",
            f"{number(row.sd_error, '.2f')} ± {number(row.sd_error_sem, '.2f')}",
            number(row.seconds * row.releases, ".0f"),
        )
        for row in served.itertuples()
    ]
    versions = "; ".join(dict.fromkeys(f"{row.version}, on {row.machine}" for row in served.itertuples()))
    return f"{markdown(('release', 'method', 'C2ST', 'distance', 'sd error', 'CPU s'), rows)}\n\n{versions}."


def deviations(scale: float) -> str:
    """Return the exact posterior's sds given the published counts, if their Laplace noise has this scale."""
    task = made("log_linear", [2, 2], 100, 4 / scale)
    # In `release`, classes vary within features, and the first level is a one.
    release = PUBLISHED.transpose(1, 0, 2).reshape(1, 8)
    sd = task.reference(release, DRAWS, np.random.default_rng(0))[0].std(axis=0)
    # The features by class come first, and the class comes last.
    return ", ".join(number(float(value), ".3f") for value in sd[[1, 3, 2, 4, 0]])


def chance() -> dict[str, str]:
    """Return TARP's scores of exact and of narrower posteriors, and how often TARP rejects the narrower ones."""
    exact, narrow = (tarp(factor) for factor in (1.0, 0.9))
    limit = np.quantile(exact, 0.95)
    return {
        "tarp_chance": number(float(exact.mean()), ".3f"),
        "tarp_limit": number(float(limit), ".3f"),
        "tarp_narrow": number(float(narrow.mean()), ".3f"),
        "tarp_seen": number(100 * float((narrow > limit).mean()), ".0f"),
        "tarp_repeats": str(REPEATS),
    }


def tarp(factor: float) -> np.ndarray:
    """Return root mean square errors (runs,) of TARP's coverage if the sd is wrong by a factor (Lemos et al. 2023)."""
    rng = np.random.default_rng(0)
    truth, point = rng.standard_normal((RUNS, REPEATS)), rng.uniform(-3, 3, (RUNS, REPEATS))
    reach = np.abs(truth - point)
    nearer = ndtr((point + reach) / factor) - ndtr((point - reach) / factor)
    coverage = (nearer[..., None] <= LEVELS).mean(axis=1)
    return np.sqrt(np.square(coverage - LEVELS).mean(axis=1))


def _rate(value: float) -> str:
    """Return a number of draws per second as text with one significant digit."""
    return f"{float(f'{value:.1g}'):,.0f}"
