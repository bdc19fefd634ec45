"""Bayesian logistic regression under RDP (Geumlek et al. 2017, section 5.2, figure 3 and its appendix figure)."""

import itertools
import math
from collections.abc import Callable
from functools import partial

import numpy as np

from privpost.datasets import load_design
from privpost.evaluation.rows import columns, places
from privpost.evaluation.summaries import mean_columns
from privpost.experiments.geumlek2017.logistic import radii
from privpost.experiments.ranges import (
    BETA0,
    DESIGN,
    DRAWS,
    DROPPED_LEVEL,
    FEATURE_BOUND,
    METHOD,
    OPTIONAL_LOG_EPSILON,
    ORDER,
)
from privpost.lab.schema import Choice, Integer, Real, Schema, SettingError, Vector
from privpost.mechanisms.draws.logistic_finite import LogisticLangevin, LogisticOutputNoise
from privpost.mechanisms.draws.logistic_ops import LogisticOps
from privpost.mechanisms.draws.logistic_sampling import LogisticDraw, LogisticSampling
from privpost.models.regression.binary import BinaryRegression
from privpost.models.regression.logistic import predictive_metrics
from privpost.privacy.accounting.costs import Cost
from privpost.privacy.divergences.glm import ops_rdp, posterior_rdp

# For each variant of OPS, the variant that supplies the other methods for comparison. The `corrected` variants have
# public feature bounds.
BESIDE = {
    "paper": "paper",
    "corrected_charge": "paper",
    "own_bound": "paper",
    "smallest_ball": "paper",
    "corrected": "corrected",
    "corrected_own_bound": "corrected",
}
VARIANTS = tuple(BESIDE)
METHODS = ("concentrated", "diffused", "ops", "output_noise", "langevin", "non_private")
SETTINGS = Schema(
    dataset=DESIGN,
    beta0=BETA0,
    feature_bound=FEATURE_BOUND,
    dropped_level=DROPPED_LEVEL,
    glm_orders=Vector(ORDER, says="orders of the table rdp_glm"),
    glm_powers=Vector(Real(above=0, at_most=1), says="powers of the likelihood in the table rdp_glm"),
    variant=Choice(
        *VARIANTS,
        says="how features are scaled and OPS is charged: `paper` scales by the data's own range, which is private, "
        "and charges OPS twice its pure cost at every order; `corrected_charge` charges what its pure cost implies, "
        "`own_bound` the smaller of that and theorem 17, `smallest_ball` the pure cost on the smallest ball; "
        "`corrected` and `corrected_own_bound` scale by public bounds",
    ),
    method=Choice(*METHODS, says=METHOD),
    order=Real(at_least=1, optional=True, says=ORDER.says),
    log_epsilon=OPTIONAL_LOG_EPSILON,
    times_smallest=Real(
        at_least=1e-3,
        at_most=1e3,
        optional=True,
        says="radius of the ball of `smallest_ball`, as a multiple of the smallest radius sure to hold the mode at "
        "this ε; empty for the paper's radius c/β",
    ),
    step=Real(above=0, at_most=1, says="Langevin step size times the largest curvature"),
    relaxations=Real(above=0, says="length of the Langevin chain, in its relaxation times"),
    n_splits=Integer(at_least=1, says="random splits into training and held-out data"),
    draws=DRAWS,
)
TABLES = {
    "logistic": {
        "majority_error": "test error of always guessing the majority [share]",
    },
    "logistic_splits": {},
    "logistic_pairs": {},
    "rdp_glm": {},
    "ops_radius": radii.TABLE,
}
METRICS = ("test_error", "test_log_likelihood")
PAIRS = (
    ("ops", "concentrated"),
    ("ops", "diffused"),
    ("concentrated", "diffused"),
    ("output_noise", "diffused"),
    ("langevin", "diffused"),
)


def check(config) -> None:
    """Raise SettingError if settings contradict each other."""
    if config.method == "non_private" and (given := [value for value in config.log_epsilon if value is not None]):
        raise SettingError(
            f"log_epsilon is {given[0]:g}, but method=non_private has no budget and takes none: log_epsilon=null"
        )
    for n_splits in config.n_splits:
        if config.trials % n_splits:
            raise SettingError(f"n_splits is {n_splits}, but must divide trials, which is {config.trials}")


def calibrations(config, model: BinaryRegression, n: int) -> list[tuple[Cost, Callable[[], LogisticSampling]]]:
    """Return, for each ε and radius, the budget and a function that makes the mechanism without reading the data."""
    # In a simulation, the time of a release need not be public.
    options: dict = {"public_time": False}
    kind: type[LogisticSampling] = LogisticDraw
    if config.method in ("output_noise", "langevin"):
        kind = LogisticOutputNoise if config.method == "output_noise" else LogisticLangevin
        if config.method == "langevin":
            options |= {"step": config.step, "relaxations": config.relaxations}
    elif config.method != "ops":
        options["weighting"] = "direct" if config.method == "non_private" else config.method
    elif config.variant.endswith("own_bound"):
        options["weighting"] = "ball"
    else:
        kind = LogisticOps
        options["charge"] = config.variant if config.variant in ("paper", "smallest_ball") else "corrected_charge"
    epsilons = [math.inf if value is None else math.exp(value) for value in config.log_epsilon]
    if is_pure(config):
        # A pure ε is charged at every order, as in the paper.
        budgets = [Cost("pure", epsilon) for epsilon in epsilons]
        if on_balls(config):
            pairs = itertools.product(budgets, config.times_smallest)
            return [(budget, partial(radii.mechanism, model, n, budget.epsilon, times)) for budget, times in pairs]
    else:
        budgets = [Cost("rdp", epsilon, order=config.order or 1.0) for epsilon in epsilons]
    if config.method == "non_private":
        # An infinite budget draws from the true posterior.
        return [(budget, partial(kind, model, n, budget.order, **options)) for budget in budgets]
    return [(budget, partial(kind.calibrate, model, n, budget, **options)) for budget in budgets]


def is_pure(config) -> bool:
    """Return whether a cell charges OPS by a pure ε."""
    return config.variant == "smallest_ball" or (config.variant, config.method) == ("paper", "ops")


def on_balls(config) -> bool:
    """Return whether a cell compares balls of several radii (table `ops_radius`)."""
    return config.variant == "smallest_ball" and config.times_smallest != [1]


def simulate(config, streams, ledger) -> dict:
    """Return the metrics of every repeat, facts about the mechanisms, and the proposals per draw.

    `metrics` (numbers of splits, epsilons, radii, 2, repeats) are test error and log-likelihood, each a mean over the
    draws of a repeat. `coefficient`, `radius` of the ball (nan without a ball) and `spent` ε have shape (epsilons,
    radii). `proposals` and `expected_proposals` (numbers of splits, epsilons, radii) are of the first split. `n` () is
    the number of training records. `majority_error` () is the test error of guessing the larger training class.
    """
    shape = len(config.log_epsilon), len(config.times_smallest) if on_balls(config) else 1
    metrics = np.full((len(config.n_splits), math.prod(shape), len(METRICS), config.trials), np.nan)
    proposals, expected = (np.empty((len(config.n_splits), math.prod(shape))) for _ in range(2))
    bounds = "public" if BESIDE[config.variant] == "corrected" else "data"
    design = load_design(config.dataset, bounds=bounds, dropped_level=config.dropped_level, rng=streams("split"))
    n, dimension = design.train_features.shape
    model = BinaryRegression(dimension, config.beta0, config.feature_bound)
    mechanisms = {}
    for n_splits, (j, (budget, make)) in itertools.product(config.n_splits, enumerate(calibrations(config, model, n))):
        account, repeats = _account(config, n_splits, budget, j), config.trials * config.draws
        mechanisms[n_splits, j] = account, ledger.open(account, budget, make, repeats=repeats)
    nearest = None
    for (i, n_splits), split in ((at, split) for at in enumerate(config.n_splits) for split in range(at[1])):
        # The first split is the data publisher's, if there is one.
        data = design if split == 0 else design.resplit(streams("split", split))
        repeats = config.trials // n_splits
        where = slice(split * repeats, (split + 1) * repeats)
        statistics = model.statistics_of(data.train_features, data.train_labels)
        start = None if split == 0 else nearest
        # The order is from the largest ε down. Each search starts from the posterior at the previous ε. The first
        # search starts from the previous split's posterior at the largest ε.
        for j in reversed(range(math.prod(shape))):
            draws, drawn = _draws(config, ledger, *mechanisms[n_splits, j], statistics, streams, split, repeats, start)
            start = drawn.start
            nearest = start if j == math.prod(shape) - 1 else nearest
            values = np.stack(predictive_metrics(draws, data.test_features, data.test_labels))
            metrics[i, j, :, where] = values.reshape(len(METRICS), repeats, config.draws).mean(axis=-1)
            if split == 0:
                proposals[i, j], expected[i, j] = drawn.proposals, drawn.expected
    first = [mechanisms[config.n_splits[0], j][1] for j in range(math.prod(shape))]
    private = config.method != "non_private"
    facts = {
        "coefficient": [mechanism.coefficient if private else math.nan for mechanism in first],
        "radius": [mechanism.radius or math.nan for mechanism in first],
        "spent": [mechanism.cost().epsilon if private else math.inf for mechanism in first],
    }
    return {
        "metrics": metrics.reshape(len(config.n_splits), *shape, len(METRICS), config.trials),
        "proposals": proposals.reshape(-1, *shape),
        "expected_proposals": expected.reshape(-1, *shape),
        **{name: np.reshape(values, shape) for name, values in facts.items()},
        "n": np.array(n),
        "majority_error": np.array(np.mean(design.test_labels != (design.train_labels.mean() > 0.5))),
    }


def _draws(config, ledger, account: str, mechanism, statistics, streams, split: int, repeats: int, start):
    """Return the draws of all repeats of one split at one ε, and a report on how they were sampled."""
    rng, size = streams("sampler", split), repeats * config.draws
    trials = slice(split * size, (split + 1) * size)
    return ledger.release(account, mechanism, statistics, rng, size=size, repeats=trials, start=start)


def _account(config, n_splits: int, budget: Cost, j: int) -> str:
    """Return the name of a budget's ledger account."""
    name = f"{config.method}/epsilon={budget.epsilon:.6g}/splits={n_splits}"
    times = config.times_smallest
    return f"{name}/times={times[j % len(times)]}" if on_balls(config) else name


def tabulate(cells):
    """Return five tables: metrics on one split, on several splits, paired differences, guarantees, OPS by radius."""
    import pandas as pd

    balls = [cell for cell in cells if on_balls(cell.config)]
    cells = [cell for cell in cells if not on_balls(cell.config)]
    if not cells:
        return {**dict.fromkeys(TABLES, pd.DataFrame()), "ops_radius": pd.DataFrame(radii.rows(balls, METRICS))}
    rows = [{**row, "order": order} for cell in cells for row in _rows(cell) for order in _orders(cell, cells)]
    # Another charge changes OPS only, so the other methods' rows are copied from the variant that `BESIDE` names.
    rows += [
        {**row, "variant": variant}
        for row, (variant, beside) in itertools.product(rows, BESIDE.items())
        if row["method"] in ("concentrated", "diffused", "non_private")
        and row["variant"] == beside != variant
        and variant in {cell.config.variant for cell in cells} - {"smallest_ball"}
    ]
    ranks, by = {"variant": VARIANTS, "method": METHODS}, ["dataset", "variant", "method", "order", "log_epsilon"]
    table = pd.DataFrame(rows).sort_values(
        [*by, "metric", "n_splits"],
        kind="stable",
        key=lambda column: column.map(ranks[column.name].index) if column.name in ranks else column,
    )
    # The curves use the rows with the fewest draws and splits. By default this is one draw on one split.
    single = table[table["draws"] == table["draws"].min()].drop(columns="draws")
    fewest = single.n_splits.min()
    studied = single.dataset.isin(single.dataset[single.n_splits > fewest]) & (single.variant == "paper")
    return {
        "logistic": single[single.n_splits == fewest].reset_index(drop=True),
        "logistic_splits": single[studied].reset_index(drop=True),
        "logistic_pairs": _pairs(cells),
        "rdp_glm": _glm_rows(cells),
        "ops_radius": radii.rows(balls, METRICS),
    }


def _orders(cell, cells) -> list:
    """Return the orders at which a cell's results are compared."""
    config = cell.config
    if not is_pure(config) or config.order is not None:
        return [config.order]
    return sorted({other.config.order for other in cells if other.config.dataset == config.dataset} - {None}) or [None]


def _rows(cell):
    arrays = cell.arrays
    for (i, j, k), point in places(cell.config, "n_splits", "log_epsilon", "metric", metric=METRICS):
        values = arrays["metrics"][i, j, 0, k]
        yield {
            **columns(point, "dataset", "variant", "method", "order", "log_epsilon", "metric"),
            **mean_columns("", values),
            "n_repeats": len(values),
            "coefficient": arrays["coefficient"][j, 0],
            "proposals": arrays["proposals"][i, j, 0],
            "expected_proposals": arrays["expected_proposals"][i, j, 0],
            **columns(point, "n_splits", "draws"),
            "n_train": int(arrays["n"]),
            "majority_error": float(arrays["majority_error"]),
            "sampling": "steps" if point.method == "langevin" else "exact",
            "uses_private_metadata": BESIDE[point.variant] != "corrected",
        }


def _glm_rows(cells):
    """Yield, for each data set, the Rényi guarantees of one posterior draw and of OPS at the same power."""
    sizes = {cell.config.dataset: (int(cell.arrays["n"]), cell.config) for cell in cells}
    for dataset, (n, config) in sorted(sizes.items()):
        for power in config.glm_powers:
            # Orders on both sides of n/ρ and of 2n/ρ. OPS is claimed to be better beyond these orders.
            near = [factor * n / power for factor in (0.99, 1.01, 1.98, 2.02)]
            orders = np.array(sorted({*config.glm_orders, *near}))
            draw = "direct" if power == 1 else "diffused"
            curves = {(draw, "paper"): posterior_rdp(orders, n, config.beta0, power, config.feature_bound)}
            for charge in ("paper", "corrected_charge"):
                curves["ops", charge] = ops_rdp(orders, power, config.beta0, config.feature_bound, charge)
            curves["ops", "own_bound"] = np.minimum(curves["ops", "corrected_charge"], curves[draw, "paper"])
            for (method, variant), curve in curves.items():
                place = {"method": method, "variant": variant, "dataset": dataset, "power": power, "n": n}
                for order, epsilon in zip(orders, curve, strict=True):
                    yield {**place, "order": order, "epsilon": float(epsilon)}


def decisive(pairs):
    """Return, for each data set, order and ε, the paired differences that are based on the most draws."""
    return pairs[pairs["draws"] == pairs.groupby(["dataset", "order", "log_epsilon"])["draws"].transform("max")]


def _pairs(cells):
    """Yield paired differences of both metrics, first method minus second."""
    metrics = {}
    for cell in cells:
        config = cell.config
        if config.method == "non_private":
            continue
        for n_splits, values in zip(config.n_splits, cell.arrays["metrics"], strict=True):
            if n_splits == 1 or config.draws > 1:
                for order in _orders(cell, cells):
                    key = config.dataset, config.variant, order, n_splits, config.draws
                    metrics[(*key, config.method)] = (config.log_epsilon, values[:, 0])
    for key in sorted({key[:-1] for key in metrics}):
        dataset, variant, order, n_splits, draws = key
        for first, second in PAIRS:
            curves = [
                metrics.get((*key, method)) or metrics.get((dataset, BESIDE[variant], *key[2:], method))
                for method in (first, second)
            ]
            if None in curves or (BESIDE[variant] != variant and first != "ops"):
                continue
            (log_epsilon, left), (_, right) = curves
            difference = left - right
            repeats = {"n_repeats": difference.shape[-1], "n_splits": n_splits, "draws": draws}
            place, pair = {"dataset": dataset, "variant": variant, "order": order}, {"first": first, "second": second}
            for (j, value), (k, metric) in itertools.product(enumerate(log_epsilon), enumerate(METRICS)):
                at = {"log_epsilon": value, "metric": metric}
                yield {**place, **at, **pair, **mean_columns("difference", difference[j, k]), **repeats}
