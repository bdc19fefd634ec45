"""Studies of regressions, computed a second time: splits, budgets, laws of draws, scores of held-out records.

Records have one feature, so that a posterior is a curve. All tests of laws are at the level 1e-5 (`FAR`), and seeded.
"""

from __future__ import annotations

import math
from types import SimpleNamespace

import numpy as np
import pytest
from recomputed import check_mean, ks, mean_and_error, normal_delta, row, run, solved, two_point

from privpost.datasets import Design
from privpost.experiments.fair_axis.logistic import study as fair
from privpost.experiments.geumlek2017.finite_time import study as finite_time
from privpost.experiments.geumlek2017.logistic import study as logistic
from privpost.lab import grid, tables

METRICS = ("test_error", "test_log_likelihood")
# Largest distance of an empirical distribution function, in units of 1/sqrt(M).
FAR = 2.5
# max x/(1 + e^x), by a grid.
KAPPA = max(x / (1 + math.exp(x)) for x in (k / 1e5 for k in range(200_000)))
TRAIN, TEST, BETA = 14, 9, 0.05


@pytest.fixture
def loaded():
    """What data were asked for: name, bounds, dropped level, and the first number of the split's generator."""
    return []


@pytest.fixture
def records(monkeypatch, loaded):
    """All records (x, y) of a toy task, whose first ones the publisher trains on."""
    rng = np.random.default_rng(12)
    x = np.round(rng.uniform(-1, 1, TRAIN + TEST), 6)
    y = (rng.random(len(x)) < 1 / (1 + np.exp(-5 * x))).astype(np.int8)
    design = Design(x[:TRAIN, None], y[:TRAIN], x[TRAIN:, None], y[TRAIN:])

    def load_design(name, *, bounds, dropped_level, rng):
        loaded.append((name, bounds, dropped_level, rng.random()))
        return design

    for study in (logistic, finite_time, fair):
        monkeypatch.setattr(study, "load_design", load_design)
    return list(zip(x.tolist(), y.tolist(), strict=True))


def held_out(records, statistics) -> list:
    """The records that signed features ±x were not told, each of which must be one of the task."""
    signed = {round(x if y else -x, 9): (x, y) for x, y in records}
    told = [signed[round(float(z), 9)] for z in statistics]
    assert len(told) == len(set(told)) == TRAIN
    return [record for record in records if record not in told]


def scores(w: float, tests) -> tuple[float, float]:
    """Share of wrong labels and mean log-likelihood of records under one weight; 1 is said where it is the likelier."""

    def p(z):
        return 1 / (1 + math.exp(-z))

    wrong = [(p(w * x) > 0.5) != (y == 1) for x, y in tests]
    logs = [math.log(p(w * x)) if y == 1 else math.log(1 - p(w * x)) for x, y in tests]
    return sum(wrong) / len(wrong), sum(logs) / len(logs)


def of_logistic_loss(records):
    """ln p(y | x, w) of records (x, y), summed, at weights."""
    return lambda w: sum(-np.log1p(np.exp(-w * (x if y else -x))) for x, y in records)


def check_law(draws, log_likelihood, precision: float, power: float, radius: float | None = None):
    """Whether draws have the density exp(−precision w²/2) p(data | w)^power, on [−radius, radius]."""
    reach = radius or 12 / math.sqrt(precision) + power * TRAIN / precision
    w = np.linspace(-reach, reach, 40_001)
    logs = -precision * w**2 / 2 + power * log_likelihood(w)
    mass = np.cumsum(np.exp(logs - logs.max()))
    values = np.interp(draws, w, mass / mass[-1])
    assert radius is None or np.abs(draws).max() <= radius
    assert ks(values) * math.sqrt(len(values)) < FAR


def slope_at(w, train, precision: float, power: float):
    """Derivative of the negative log-density at weights."""
    return precision * w - power * sum((x if y else -x) / (1 + np.exp((x if y else -x) * w)) for x, y in train)


def mode_of(train, precision: float, power: float) -> float:
    return solved(lambda w: slope_at(w, train, precision, power), 0.0, -50.0, 50.0)


# Geumlek et al. 2017, figure 3 and the appendix

ORDER, LOG_EPSILONS = 2.0, [-1.0, 1.0]


def powers(method: str, variant: str, epsilon: float) -> tuple[float, float, float | None]:
    """Precision of the prior per record, power of the likelihood and radius of the ball."""
    if method == "concentrated":
        return max(2 * ORDER / (TRAIN * epsilon), BETA), 1.0, None
    diffused = min(1.0, math.sqrt(epsilon * TRAIN * BETA / (2 * ORDER)))
    if method == "diffused":
        return BETA, diffused, None
    if variant == "paper":
        return BETA, min(1.0, epsilon * BETA / 4), 1 / BETA
    if variant == "smallest_ball":
        power = min(1.0, (epsilon / (2 * math.sqrt(KAPPA / BETA))) ** (2 / 3))
        return BETA, power, math.sqrt(power * KAPPA / BETA)
    pure = solved(lambda value: two_point(value, ORDER), epsilon, 0.0, 600.0)
    power = min(1.0, pure * BETA / 2)
    return BETA, max(power, diffused) if variant == "own_bound" else power, 1 / BETA


def of_one_split(cell):
    """The cell as that of another data set, with its first split only."""
    once = {key: cell.arrays[key][:1] for key in ("metrics", "proposals", "expected_proposals")}
    config = SimpleNamespace(**{**vars(cell.config), "dataset": "adult", "n_splits": [1]})
    return SimpleNamespace(config=config, arrays={**cell.arrays, **once})


def test_logistic_draws_are_scored_on_the_records_of_their_split_that_they_were_not_told(records, loaded):
    """All columns but proposals, from the draws and the statistics that the ledger saw: rounding alone may differ."""
    cells, found, splits = [], {}, []
    wanted = [("ops", "paper"), ("ops", "corrected_charge"), ("ops", "own_bound"), ("ops", "smallest_ball")]
    for method, variant in [*wanted, ("concentrated", "paper"), ("diffused", "paper")]:
        cell = run(
            "geumlek2017/logistic", 600, 600, method=method, variant=variant, beta0=BETA, log_epsilon=LOG_EPSILONS,
            order=None if variant == "smallest_ball" else ORDER, n_splits=[1, 3], draws=2, glm_orders=[1, 3],
            glm_powers=[0.5, 1.0],
        )  # fmt: skip
        cells.append(SimpleNamespace(config=cell.config, arrays=cell.arrays))
        assert loaded.pop() == ("abalone", "data", "first", cell.streams("split").random())
        for j, log_epsilon in enumerate(LOG_EPSILONS):
            epsilon = math.exp(log_epsilon)
            beta, power, radius = powers(method, variant, epsilon)
            assert cell.arrays["coefficient"][j] == pytest.approx(beta if method == "concentrated" else power)
            for n_splits in (1, 3):
                released = cell.ledger.of(f"{method}/epsilon={epsilon:.6g}/splits={n_splits}")
                assert len(released) == n_splits
                repeats = []
                for request, release in released:
                    tests = held_out(records, request.statistics)
                    splits.append(frozenset(tests))
                    train = of_logistic_loss([record for record in records if record not in tests])
                    draws = release.values[:, 0]
                    check_law(draws, train, TRAIN * beta, power, radius)
                    each = [scores(w, tests) for w in draws]
                    repeats += [np.mean(pair, axis=0) for pair in zip(each[::2], each[1::2], strict=True)]
                assert len(repeats) == 600
                i, drawn = (1, 3).index(n_splits), released[0][1].info
                reported = cell.arrays["proposals"][i, j], cell.arrays["expected_proposals"][i, j]
                assert reported == pytest.approx((drawn.proposals, drawn.expected), rel=0, nan_ok=True)
                # The publisher's split is the first one.
                assert frozenset(held_out(records, released[0][0].statistics)) == frozenset(records[TRAIN:])
                found[method, variant, n_splits, log_epsilon] = np.transpose(repeats)
    # Three splits, which all methods and ε share.
    assert len(set(splits)) == 3
    made = tables.tables_of(grid.load_study("geumlek2017/logistic", "smoke"), cells)
    guesses = sum(y for _, y in records[:TRAIN]) / TRAIN > 0.5
    for (method, variant, n_splits, log_epsilon), values in found.items():
        for metric, own in zip(METRICS, values, strict=True):
            place = {"method": method, "variant": variant, "log_epsilon": log_epsilon, "metric": metric}
            if n_splits == 1:
                kept = row(made["logistic"], **place)
                assert kept.majority_error == np.mean([(y == 1) != guesses for _, y in records[TRAIN:]])
                assert (kept.n_train, kept.n_repeats, kept.order, kept.sampling) == (TRAIN, 600, ORDER, "exact")
                check_mean(kept, own)
            if variant == "paper":
                kept = row(made["logistic_splits"], n_splits=n_splits, **place)
                check_mean(kept, own)
    assert list(made["logistic_splits"]) == list(made["logistic"])
    # Rows are in the order of the variants, not of their names.
    assert made["logistic"].variant.drop_duplicates().tolist() == [variant for _, variant in wanted]
    check_pairs(made["logistic_pairs"], found)
    check_charges(made["rdp_glm"], BETA)
    # With β = 4 the pure ε is below 1, and curves rise with the order.
    charges = {"beta0": 4.0, "glm_orders": [1, 3], "glm_powers": [0.5, 1.0]}
    cell = run("geumlek2017/logistic", 2, 2, log_epsilon=[0.0], n_splits=[1], **charges)
    check_charges(cell.tables["rdp_glm"], 4.0)
    # A data set of one split has no rows of several.
    more = tables.tables_of(grid.load_study("geumlek2017/logistic", "smoke"), [*cells, of_one_split(cells[-1])])
    assert set(more["logistic"].dataset) == {"abalone", "adult"}
    assert more["logistic_splits"].equals(made["logistic_splits"])


def test_searches_for_modes_start_from_the_draw_before(records):
    """ε runs downwards on a split; at the largest ε from the same of the split before, and on the first from nothing.

    Langevin steps are not exact draws, and the table says so, and whether bounds are private.
    """
    settings = {"trials": 6, "block": 6, "beta0": BETA, "log_epsilon": [-1.0, 0.0, 1.0], "order": ORDER, "draws": 1}
    cell = run("geumlek2017/logistic", **settings, method="diffused", variant="paper", n_splits=[2, 3])
    seen = iter(cell.ledger.seen)
    largest = None
    for n_splits, split in [(2, 0), (2, 1), (3, 0), (3, 1), (3, 2)]:
        before = largest if split else None
        for log_epsilon in (1.0, 0.0, -1.0):
            request, release = next(seen)
            assert request.account == f"diffused/epsilon={math.exp(log_epsilon):.6g}/splits={n_splits}"
            assert request.settings["start"] is before
            before = release.info.start
            largest = before if log_epsilon == 1.0 else largest
    cell = run("geumlek2017/logistic", **settings, method="langevin", variant="paper", n_splits=[1])
    assert set(cell.tables["logistic"].sampling) == {"steps"}
    # The paper's bounds are those of the data.
    assert cell.tables["logistic"].groupby("variant").uses_private_metadata.first().to_dict() == {"paper": True}
    cell = run("geumlek2017/logistic", **settings, method="ops", variant="corrected", n_splits=[1])
    assert cell.tables["logistic"].groupby("variant").uses_private_metadata.first().to_dict() == {"corrected": False}


def test_pairs_over_several_splits_are_of_means_of_many_draws(records):
    """One draw on each of several splits would have a pair of its own; what decides are the most draws of a cell."""
    cells = []
    for method, draws in (("ops", 1), ("diffused", 1), ("ops", 2), ("diffused", 2)):
        cell = run(
            "geumlek2017/logistic", 6, 6, method=method, variant="paper", beta0=BETA, log_epsilon=[0.0], order=ORDER,
            n_splits=[1, 3], draws=draws, glm_orders=[1], glm_powers=[1.0],
        )  # fmt: skip
        cells.append(SimpleNamespace(config=cell.config, arrays=cell.arrays))
    pairs = tables.tables_of(grid.load_study("geumlek2017/logistic", "smoke"), cells)["logistic_pairs"]
    assert sorted({*zip(pairs.n_splits, pairs.draws, strict=True)}) == [(1, 1), (1, 2), (3, 2)]
    assert set(logistic.decisive(pairs).draws) == {2}


def check_pairs(pairs, found):
    """Differences of the same repeat, OPS of each variant less the paper's other methods."""
    couples = [("ops", variant, other) for variant in ("paper", "corrected_charge", "own_bound", "smallest_ball")
               for other in ("concentrated", "diffused")]  # fmt: skip
    for first, variant, second in [*couples, ("concentrated", "paper", "diffused")]:
        for n_splits, log_epsilon in ((1, -1.0), (3, 1.0)):
            place = {"first": first, "second": second, "variant": variant, "n_splits": n_splits}
            difference = found[first, variant, n_splits, log_epsilon] - found[second, "paper", n_splits, log_epsilon]
            for k, metric in enumerate(METRICS):
                kept = row(pairs, log_epsilon=log_epsilon, metric=metric, **place)
                expected = mean_and_error(difference[k])
                assert (kept.difference_mean, kept.difference_sem) == pytest.approx(expected, abs=1e-12)
                assert kept.n_repeats == 600


def check_charges(table, beta: float):
    """Theorem 17, OPS's pure cost and what it implies, at the orders asked for and near 2n/ρ and n/ρ."""
    ops = {("ops", variant) for variant in ("paper", "corrected_charge", "own_bound")}
    for power, method in ((0.5, "diffused"), (1.0, "direct")):
        own = table[table.power == power]
        near = [factor * TRAIN / power for factor in (0.99, 1.01, 1.98, 2.02)]
        assert sorted(set(own.order)) == pytest.approx(sorted([1, 3, *near]))
        for line in own.itertuples():
            draw, pure = 2 * power**2 * line.order / (TRAIN * beta), 2 * power / beta
            implied = two_point(pure, line.order)
            charges = {"paper": 2 * pure, "corrected_charge": implied, "own_bound": min(draw, implied)}
            assert line.epsilon == pytest.approx(charges[line.variant] if line.method == "ops" else draw)
        assert set(zip(own.method, own.variant, strict=True)) == {(method, "paper"), *ops}


# Langevin steps


def test_each_number_of_langevin_steps_continues_the_one_before(records, loaded):
    """The chain is replayed by a loop from its stream, so that scores differ by rounding alone."""
    cell = run(
        "geumlek2017/finite_time", 400, 200, beta0=BETA, order=ORDER, log_epsilon=-1.0, step=0.5,
        relaxations=[2.0, 0.2, 0.6],
    )  # fmt: skip
    assert loaded == [("abalone", "public", "first", cell.streams("split", 0).random())]
    epsilon, precision, train = math.exp(-1), TRAIN * BETA, records[:TRAIN]
    power = math.sqrt(epsilon * precision / (2 * ORDER))
    found = {"diffused": cell.ledger.released("diffused/0"), "output_noise": cell.ledger.released("output_noise/1")}
    check_law(found["diffused"][:, 0], of_logistic_loss(train), precision, power)
    # Modes of neighbours are 2ρ/(nβ) apart, and so it costs what a draw does.
    mode = mode_of(train, precision, power)
    noise = np.concatenate([cell.streams("sampler", block).standard_normal((200, 1)) for block in (0, 1)])
    # The mode is certified to a gradient of 1e-8.
    np.testing.assert_allclose(found["output_noise"], mode + noise / math.sqrt(precision), atol=1e-6)
    eta = 0.5 / (TRAIN * (BETA + power / 4))
    steps = [math.ceil(each / (eta * precision)) for each in (0.2, 0.6, 2.0)]
    for block in (0, 1):
        rng, w = cell.streams("sampler", block), np.zeros(200)
        for k in range(1, steps[-1] + 1):
            noise = rng.standard_normal((200, 1))[:, 0]
            w = w - eta * slope_at(w, train, precision, power) + math.sqrt(2 * eta) * noise
            if k in steps:
                place = 2 + steps.index(k)
                released = cell.ledger.of(f"langevin/{place}")[block][1].values[:, 0]
                np.testing.assert_allclose(released, w, rtol=1e-9, atol=1e-12)
                found.setdefault(k, []).extend(released)
    # Pure ε on ‖w‖ ≤ R with R² = ρκ/β and 2ρR = ε.
    of_ball = solved(lambda rho: 2 * rho * math.sqrt(rho * KAPPA / BETA), epsilon, 0.0, 1.0)
    found["ops"] = cell.ledger.released("ops/5")
    check_law(found["ops"][:, 0], of_logistic_loss(train), precision, of_ball, math.sqrt(of_ball * KAPPA / BETA))
    table, budget = cell.tables["finite_time"], {"diffused": epsilon, "output_noise": epsilon, "ops": epsilon}
    for k in steps:
        # All noise adds up, and so do the shifts, each shrunk by later steps.
        left = [(1 - eta * precision) ** j for j in range(k)]
        budget[k] = ORDER / 2 * (2 * power * eta * sum(left)) ** 2 / (2 * eta * sum(each**2 for each in left))
    scored = {key: np.transpose([scores(float(w), records[TRAIN:]) for w in np.ravel(draws)])
              for key, draws in found.items()}  # fmt: skip
    for key, each in scored.items():
        which = {"method": "langevin", "steps": key} if key in steps else {"method": key}
        for k, (metric, sign) in enumerate((("test_error", 1), ("test_log_likelihood", -1))):
            kept = row(table, metric=metric, **which)
            (mean, sem), exact = mean_and_error(each[k]), mean_and_error(scored["diffused"][k])
            assert (kept["mean"], kept["sem"]) == pytest.approx((mean, sem))
            behind = sign * (mean - exact[0])
            assert kept.behind_mean == pytest.approx(behind, abs=1e-12)
            assert kept.behind_sem == pytest.approx(math.sqrt(sem**2 + exact[1] ** 2))
            # Tolerance of the mode takes 1e-8 of the power.
            assert kept.charge == pytest.approx(budget[key], rel=1e-6)
            assert kept.share_of_budget == pytest.approx(budget[key] / epsilon, rel=1e-6)
            assert kept.power == pytest.approx(of_ball if key == "ops" else power, rel=1e-6)
            assert (kept.variant == "smallest_ball") == (key == "ops")
            assert kept.sampling == ("steps" if key in steps else "exact") and not kept.uses_private_metadata
            assert (kept.n_train, kept.n_repeats) == (TRAIN, 400)


# OPS on balls of many radii


def test_ops_is_drawn_on_each_ball_at_the_power_that_it_pays_for(records, loaded):
    """ρ = ε/(2R) on every ball, by bisection on the smallest one; farthest modes to 1e-6, the flat top of a grid."""
    cell = run(
        "geumlek2017/logistic", 600, 600, variant="smallest_ball", method="ops", order=None, beta0=BETA, n_splits=[1],
        log_epsilon=[0.5], times_smallest=[0.4, 1, 3, None], draws=1, feature_bound=1.0,
    )  # fmt: skip
    assert loaded == [("abalone", "data", "first", cell.streams("split").random())]
    assert cell.tables["logistic"].empty
    epsilon = math.exp(0.5)
    # R² = ρκ/β and 2ρR = ε.
    power = solved(lambda rho: 2 * rho * math.sqrt(rho * KAPPA / BETA), epsilon, 0.0, 1.0)
    smallest = math.sqrt(power * KAPPA / BETA)
    guesses = sum(y for _, y in records[:TRAIN]) / TRAIN > 0.5
    majority = np.mean([(y == 1) != guesses for _, y in records[TRAIN:]])
    for times in [0.4, 1, 3, None]:
        radius = 1 / BETA if times is None else times * smallest
        power = min(1.0, epsilon / (2 * radius))
        account = f"ops/epsilon={epsilon:.6g}/splits=1/times={times}"
        draws = cell.ledger.released(account)[:, 0]
        assert held_out(records, cell.ledger.of(account)[0][0].statistics) == records[TRAIN:]
        check_law(draws, of_logistic_loss(records[:TRAIN]), TRAIN * BETA, power, radius)
        modes = [
            solved(lambda w, t=t, power=power: BETA * w - power * t / (1 + math.exp(t * w)), 0.0, 0.0, power / BETA)
            for t in np.linspace(0.002, 1, 500)
        ]
        each = np.transpose([scores(w, records[TRAIN:]) for w in draws])
        for metric, own in zip(METRICS, each, strict=True):
            kept = row(cell.tables["ops_radius"], times_smallest=times, metric=metric)
            check_mean(kept, own)
            assert (kept.radius, kept.power) == pytest.approx((radius, power))
            assert kept.spent == pytest.approx(2 * power * radius)
            assert kept.mode_bound == pytest.approx(math.sqrt(power * KAPPA / BETA))
            assert kept.mode_farthest == pytest.approx(max(modes), rel=1e-4)
            assert (kept.n_train, kept.n_repeats, kept.majority_error) == (TRAIN, 600, majority)
            assert 1 <= kept.proposals < 20 and kept.uses_private_metadata


# The fair axis: all at one (ε, δ)


def converted_mu(epsilon: float, delta: float) -> float:
    """The largest μ at which λμ²/2 converts to ε at δ, at the best order (Canonne et al. 2020)."""
    orders = np.linspace(1.01, 200, 200_000)
    spare = epsilon - np.log1p(-1 / orders) + (math.log(delta) + np.log(orders)) / (orders - 1)
    return math.sqrt(max(2 * spare / orders))


def test_regressions_of_the_fair_axis_spend_one_epsilon_and_delta(records, loaded):
    """Coefficients from sums over densities, to 1e-4; converted ones from a grid of orders, to 1 %; laws, scores."""
    epsilon, delta, precision = 1.0, 1e-3, TRAIN * BETA
    methods = ["concentrated", "diffused", "ops", "ops_renyi", "output_noise"]
    cell = run("fair_axis/logistic", 600, 300, methods=methods, beta0=BETA, epsilon=[epsilon], delta=[delta])
    assert loaded == [("abalone", "public", "first", cell.streams("split", 0).random())]
    table, pairs = cell.tables["logistic"], cell.tables["logistic_pairs"]
    assert set(table.variant.dropna()) == {"smallest_ball"} and set(table.method[table.variant.notna()]) == {"ops"}
    table = table.assign(method=table.method.where(table.variant.isna(), "ops_smallest_ball"))
    mu = solved(lambda each: normal_delta(each, epsilon), delta, 0.0, 5.0)
    pure = solved(lambda e: (math.exp(e) - math.exp(epsilon)) / (1 + math.exp(e)), delta, epsilon, 9.0)
    on_normal, on_pure = mu * math.sqrt(precision) / 2, pure * BETA / 2
    on_smallest = (pure * math.sqrt(BETA) / (2 * math.sqrt(KAPPA))) ** (2 / 3)
    mean, log_likelihood = converted_mu(epsilon, delta), of_logistic_loss(records[:TRAIN])
    found, place = {}, f"epsilon={epsilon:g}/delta={delta:g}"
    # Coefficient by the curve and by conversion.
    expected = {
        "diffused": (on_normal, mean * math.sqrt(precision) / 2),
        "output_noise": (on_normal, mean * math.sqrt(precision) / 2),
        "concentrated": (4 / (mu**2 * TRAIN), 4 / (mean**2 * TRAIN)),
        "ops": (on_pure, on_pure),
        "ops_renyi": (max(on_normal, on_pure), None),
        "ops_smallest_ball": (on_smallest, on_smallest),
    }
    radii = dict.fromkeys(("ops", "ops_renyi"), 1 / BETA) | {"ops_smallest_ball": math.sqrt(on_smallest * KAPPA / BETA)}
    for method in ("non_private", *methods, "ops_smallest_ball"):
        released = cell.ledger.of(
            f"{method}/{place}" if method != "non_private" else "non_private/epsilon=nan/delta=nan"
        )
        assert all(held_out(records, request.statistics) == records[TRAIN:] for request, _ in released)
        draws = np.concatenate([release.values for _, release in released])[:, 0]
        coefficient, converted = expected.get(method, (1.0, None))
        kept = row(table, method=method, metric="test_error")
        if method == "non_private":
            assert np.isnan(kept.coefficient) and np.isnan(kept.epsilon) and np.isnan(kept.delta)
        else:
            assert kept.coefficient == pytest.approx(coefficient, rel=1e-4)
            assert (kept.epsilon, kept.delta) == (epsilon, delta)
        if converted is not None:
            assert kept.converted_coefficient == pytest.approx(converted, rel=1e-2)
        if method == "output_noise":
            mode = mode_of(records[:TRAIN], precision, coefficient)
            noise = np.concatenate([cell.streams("sampler", b).standard_normal((300, 1))[:, 0] for b in (0, 1)])
            np.testing.assert_allclose(draws, mode + noise / math.sqrt(precision), atol=1e-3)
        else:
            beta, power = (coefficient, 1.0) if method == "concentrated" else (BETA, coefficient)
            check_law(draws, log_likelihood, TRAIN * beta, power, radii.get(method))
        found[method] = np.transpose([scores(w, records[TRAIN:]) for w in draws])
        for k, metric in enumerate(METRICS):
            kept = row(table, method=method, metric=metric)
            check_mean(kept, found[method][k])
            assert (kept.n_train, kept.n_repeats, kept.sampling) == (TRAIN, 600, "exact")
            assert not kept.uses_private_metadata
        # Both blocks have 300.
        assert kept.proposals == pytest.approx(sum(release.info.proposals for _, release in released) / 2, nan_ok=True)
    assert len(pairs) == 2 * 15 and "non_private" not in set(pairs["first"]) | set(pairs["second"])
    for line in pairs.itertuples():
        assert (line.epsilon, line.delta, line.n_repeats, line.dataset) == (epsilon, delta, 600, "abalone")
        k = METRICS.index(line.metric)
        expected_difference = mean_and_error(found[line.first][k] - found[line.second][k])
        assert (line.difference_mean, line.difference_sem) == pytest.approx(expected_difference, abs=1e-12)


@pytest.mark.parametrize("ones", [TRAIN // 2, TRAIN - 3])
def test_the_majority_is_of_the_training_records_and_a_tie_is_0(monkeypatch, ones):
    x, y = np.linspace(-1, 1, TRAIN + 5)[:, None], np.array([1] * ones + [0] * (TRAIN - ones) + [1, 0, 0, 0, 1])
    design = Design(x[:TRAIN], y[:TRAIN], x[TRAIN:], y[TRAIN:])
    wrong = 2 / 5 if ones == TRAIN / 2 else 3 / 5
    monkeypatch.setattr(logistic, "load_design", lambda *words, **settings: design)
    balls = {"variant": "smallest_ball", "method": "ops", "order": None, "times_smallest": [0.5, 1]}
    for name, settings in (("logistic", {}), ("ops_radius", balls)):
        cell = run("geumlek2017/logistic", 5, 5, beta0=BETA, **settings)
        assert set(cell.tables[name].majority_error) == {wrong}
