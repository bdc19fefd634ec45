"""Bounds of Zhang et al., computed a second time: how often each is exceeded, exact losses, table 1, noise scales."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from recomputed import beta_density, kl, mean_and_error, midpoints, quantile, row, run
from recomputed_graphs import (
    GRID,
    counted,
    every_record,
    largest_change,
    map_chances,
    rebuilt,
    signed,
    simulated,
    subsets,
    utility,
)
from scipy.special import betainc, betaln, digamma

from privpost.experiments.zhang2016.bounds import study
from privpost.experiments.zhang2016.settings import parse
from privpost.lab import grid, tables
from privpost.models.networks.bayesian_network import BayesianNetwork

PAIR, EDGELESS = [(), (0,)], [(), (), ()]
SMALL = {
    "difference_priors": [0.2, 1.0], "difference_sizes": [1, 2], "exact_graphs": ["pair [a][b|a]", "apart [a][b][c]"],
    "exact_sizes": [2], "map_sizes": [3], "lemma_3_nodes": [2], "sampler_draws": [1, 7],
    "noise_graphs": ["pair [a][b|a]", "fork [a][b|a][c|a:b]"], "t_shares": [0.1, 0.3],
}  # fmt: skip
LEAST = {"exact_graphs": ["one [a]"], "difference_sizes": [1], "sampler_draws": [1], "noise_graphs": ["one [a]"]}
SETTINGS = {
    "graph": "pair [a][b|a]", "n": [5], "epsilon": [3.0], "delta": [0.2, 0.05], "t": [0.1, 0.3, 2],
    "alpha": 2, "beta": 3, "model_alpha": 2, "model_beta": 1, "utility": "density",
}  # fmt: skip


def divergence(p, q) -> float:
    """KL of two beta laws in closed form."""
    log_b = [math.lgamma(a) + math.lgamma(b) - math.lgamma(a + b) for a, b in (p, q)]
    (a, b), (c, d) = p, q
    return float(
        log_b[1] - log_b[0] + (a - c) * digamma(a) + (b - d) * digamma(b) + (c - a + d - b) * digamma(a + b)
    )  # fmt: skip


@pytest.fixture(scope="module")
def made():
    """One cell of a parent and a child, n = 5 and ε = 3; 60 releases in blocks of 30."""
    return run("zhang2016/bounds", 60, 30, **SETTINGS, **SMALL)


def counts_of(cell, n: int = 5) -> list[float]:
    rng = cell.streams("data", n=n)
    theta = rng.beta(2, 1, 3)
    return counted(simulated(theta, rng.random((n, 2)), PAIR), PAIR)


def check_upper(table, statement, values, bound: float, delta: float, parameter: str) -> None:
    """A row of a bound that a share δ of the values may exceed, within four standard errors."""
    kept = row(table, statement=statement, parameter=parameter)
    rate = sum(value > bound for value in values) / len(values)
    empirical = quantile(values, 1 - delta)
    assert (kept.empirical, kept.bound) == pytest.approx((empirical, bound), abs=1e-7)
    assert (kept.rate, kept.allowed) == pytest.approx((rate, delta))
    assert kept.holds == (rate <= delta + 4 * math.sqrt(delta * (1 - delta) / len(values)))
    if empirical > 0:
        assert kept.margin == pytest.approx(bound / empirical)


def test_noise_and_divergences_of_laplace_are_those_of_its_releases(made):
    """Loops over releases and closed forms decide; quadrature agrees with one of them to 1e-4."""
    exact, table = np.array(counts_of(made)), made.tables["bounds"]
    released = made.ledger.released("laplace/n=5/epsilon=3")
    noise = np.concatenate([made.streams("laplace", block).laplace(size=(30, 6)) for block in range(2)])
    # Two nodes: Δ = 4.
    np.testing.assert_allclose(released, exact + 4 / 3 * noise)
    truth = [(2 + exact[2 * i], 3 + exact[2 * i + 1]) for i in range(3)]
    clipped = [[min(max(value, 0.0), 5.0) for value in each] for each in released]
    each = [[divergence(p, (2 + c[2 * i], 3 + c[2 * i + 1])) for i, p in enumerate(truth)] for c in clipped]
    theta, width = midpoints()
    laws = beta_density(theta, *truth[1]), beta_density(theta, 2 + clipped[0][2], 3 + clipped[0][3])
    assert kl(*laws, width) == pytest.approx(each[0][1], abs=1e-4)
    sums = [sum(own) for own in each]
    off, largest = [value - sum(sums) / 60 for value in sums], [max(abs(r - exact)) for r in released]
    c = 11 * math.log(8 * 9)
    for delta in (0.2, 0.05):
        parameter = f"delta={delta}"
        check_upper(table, "proposition_1", largest, 4 / 3 * math.log(6 / delta), delta, parameter)
        check_upper(table, "theorem_1", off, math.sqrt(-0.5 * 3 * c**2 * math.log(delta)), delta, parameter)
        check_upper(table, "theorem_1_unsquared", off, math.sqrt(-0.5 * 3 * c * math.log(delta)), delta, parameter)
    means = [sum(own[i] for own in each) / 60 for i in range(3)]
    printed = [5 * math.log(a * b) for a, b in truth]
    worst = max(range(3), key=lambda i: means[i] - printed[i])
    kept = row(table, statement="theorem_1_expectation")
    assert (kept.empirical, kept.bound) == pytest.approx((means[worst], printed[worst]))
    assert kept.parameter == f"ones={exact[2 * worst]:g},zeros={exact[2 * worst + 1]:g}"
    assert (kept.nodes, kept.closure) == (2, 4)
    # The child's two configurations against the parent's own count.
    apart = max(abs(c[2 + j] + c[3 + j] - c[0 if j else 1]) for c in clipped[:30] for j in (0, 2))
    kept = row(made.tables["consistency"], method="laplace")
    assert (kept.largest_disagreement, kept.largest_count) == pytest.approx((apart, max(map(max, clipped[:30]))))


def test_rebuilt_counts_of_fourier_are_within_its_bounds_as_often_as_stated(made):
    """Sums over subsets of families decide; rounding apart."""
    exact, table = np.array(counts_of(made)), made.tables["bounds"]
    released, size = made.ledger.released("fourier/n=5/epsilon=3"), len(subsets(PAIR))
    noise = np.concatenate([made.streams("fourier", block).laplace(size=(30, 4)) for block in range(2)])
    rng = made.streams("data", n=5)
    records = simulated(rng.beta(2, 1, 3), rng.random((5, 2)), PAIR)
    np.testing.assert_allclose(released, np.array(signed(records, PAIR)) + 2 * size / 3 * noise)
    counts, slopes = [np.array(part) for part in zip(*(rebuilt(each, PAIR) for each in released), strict=True)]
    for t in (0.1, 0.3, 2):
        raised = counts + 4 * t * size**2 / 3 * slopes
        distances = [np.abs(raised[:, part] - exact[part]).sum(axis=1) for part in (slice(0, 2), slice(2, 6))]
        for delta in (0.2, 0.05):
            bounds = [4 * size / 3 * (width * math.log(size / delta) + t * size) for width in (1, 2)]
            node = max((0, 1), key=lambda i: quantile(distances[i], 1 - delta) / bounds[i])
            check_upper(table, "theorem_3", distances[node], bounds[node], delta, f"delta={delta},t={t}")
        rate, promised = float(np.mean((raised >= 0).all(axis=1))), 1 - math.exp(-t)
        kept = row(table, statement="corollary_3", parameter=f"t={t}")
        stated = kept.empirical, kept.bound, kept.rate, kept.allowed
        assert stated == pytest.approx((rate, promised, 1 - rate, 1 - promised))
        assert kept.holds == (rate >= promised - 4 * math.sqrt(promised * (1 - promised) / 60))
        assert kept.margin == pytest.approx(rate / promised)
    assert list(made.tables["consistency"])[:4] == ["method", "variant", "graph", "n"]
    for variant in ("published", "truncated"):
        # Published counts have the largest t, truncated ones the mechanism's, which is 0.
        own = raised[:30] if variant == "published" else np.maximum(counts[:30], 0)
        apart = max(abs(c[2 + j] + c[3 + j] - c[0 if j else 1]) for c in own for j in (0, 2))
        kept = row(made.tables["consistency"], method="fourier", variant=variant)
        assert (kept.largest_disagreement, kept.largest_count) == pytest.approx((apart, np.abs(own).max()), abs=1e-9)


def test_lemma_4_is_about_the_utilities_of_the_points_that_were_chosen(made):
    """Loops over the grid decide, with the weights of enumerated sensitivities; draws are where their variates say."""
    exact, table = counts_of(made), made.tables["bounds"]
    drawn = made.ledger.released("map/n=5/epsilon=3")
    index = np.rint((drawn - 0.005) / 0.0099).astype(int)
    uniform = np.concatenate([made.streams("map", block).random((30, 3)) for block in range(2)])
    for i, chances in enumerate(map_chances(exact, PAIR, 5, 3.0, "density", 2, 3)):
        below = np.concatenate([[0], np.cumsum(chances)])
        assert (below[index[:, i]] <= uniform[:, i] + 1e-9).all()
        assert (below[index[:, i] + 1] >= uniform[:, i] - 1e-9).all()
    values = [utility(2 + exact[2 * i], 3 + exact[2 * i + 1], "density") for i in range(3)]
    deltas = [largest_change(5, has, 2, 3, "density") for has in (False, True, True)]
    for share, (statement, printed) in itertools.product((0.1, 0.3), (("lemma_4", False), ("lemma_4_printed", True))):
        rows = []
        for i, own in enumerate(values):
            t, top = share * max(own), max(own)
            outside = sum(own[k] <= top - 2 * t for k in index[:, i]) / 60
            mass = sum(value > top - t for value in own) / len(GRID)
            # ε is halved for two nodes.
            factor = 1.5 if printed else 1.5 / (2 * deltas[i])
            rows.append((outside / (math.exp(-factor * t) / mass), outside, math.exp(-factor * t) / mass, t))
        # The first of equals.
        _, outside, bound, t = max(rows, key=lambda each: each[0])
        kept = row(table, statement=statement, parameter=f"t_share={share:.4g},t={t:.4g}")
        assert (kept.empirical, kept.bound, kept.rate) == pytest.approx((outside, bound, outside))
        allowed = min(bound, 1)
        assert kept.holds == (outside <= allowed + 4 * math.sqrt(allowed * (1 - allowed) / 60))


def test_statements_that_need_no_release_are_decided_by_enumeration(made):
    """All data sets, pairs of records and binomial counts are listed; a grid of 9 stands for a convex function."""
    table = made.tables["bounds"]

    def check(statement, empirical, bound, **named) -> None:
        kept = row(table, statement=statement, **named)
        assert (kept.empirical, kept.bound) == pytest.approx((empirical, bound), rel=1e-8)
        assert kept.holds == (empirical <= bound * (1 + 1e-9))
        assert kept.margin == pytest.approx(bound / empirical)

    for prior, n in itertools.product((0.2, 1.0), (1, 2)):
        axis, largest = np.linspace(0, n, 9), 0.0
        for a, b, x, y in itertools.product(range(n + 1), range(n + 1), axis, axis):
            if a + b <= n:
                largest = max(largest, divergence((prior + a, prior + b), (prior + x, prior + y)))
        named = {"parameter": f"alpha=beta={prior:g}", "n": n}
        check("theorem_1_difference", largest, (2 * n + 1) * math.log((prior + n + 1) ** 2), **named)
        check("theorem_1_difference_sum", largest, (2 * n + 1) * math.log(2 * (prior + n + 1)), **named)
    lipschitz = math.log(0.995 / 0.005)
    for statement, kind, delta in (
        ("corollary 4", "density", lipschitz),
        ("corollary 4 with the probability", "mass", lipschitz),
        ("corollary 4 with the log-density", "log", lipschitz),
        ("corollary 4 with enumerated sensitivity", "density", largest_change(3, False, 1, 1, "density")),
    ):
        chances = []
        for ones in range(4):
            scores = utility(1 + ones, 4 - ones, "mass" if kind == "mass" else "density")
            weights = [math.exp((math.log(u) if kind == "log" else u) / (2 * delta)) for u in scores]
            chances.append([weight / sum(weights) for weight in weights])
        loss = max(abs(math.log(p / q)) for a, b in itertools.pairwise(chances) for p, q in zip(a, b, strict=True))
        check(statement, loss, 1.0, n=3)
    for graph, parents in (("pair", PAIR), ("apart", EDGELESS)):
        pairs = list(itertools.product(every_record(parents), repeat=2))
        for statement, read, most in (
            ("corollary 1", counted, 2 * len(parents)),
            ("corollary 2", signed, 2 * len(subsets(parents))),
        ):
            change = max(sum(abs(a - b) for a, b in zip(read([x], parents), read([y], parents), strict=True))
                         for x, y in pairs)  # fmt: skip
            check(statement, change / most, 1.0, graph=graph)
        theta = [0.2, 0.9, 0.2]
        logs = {}
        for record in every_record(parents):
            place = [0, 1 + record[0]] if parents == PAIR else [0, 1, 2]
            logs[record] = sum(
                math.log(theta[j] if bit else 1 - theta[j]) for j, bit in zip(place, record, strict=True)
            )
        slope = max(abs(logs[x] - logs[y]) / sum(a != b for a, b in zip(x, y, strict=True)) for x, y in pairs if x != y)
        name = "lemma 2" if parents == EDGELESS else "lemma 2 with edges"
        check(name, slope, math.log(9), graph=graph)


def test_tails_are_sums_over_binomial_counts(made):
    """Lemma 3's tail in closed form, and the samplers' utility over all counts."""
    table = made.tables["bounds"]
    for low, multiple in itertools.product((4, 8), (1, 1.5, 2, 4)):
        reach = low * multiple
        single = -math.log(2 / (1 + math.exp(low))) / low
        outside = 1 - (1 - 2 / (1 + math.exp(reach))) ** 2
        bound = math.exp(-(single - math.log(2) / low) * reach)
        kept = row(table, statement="lemma 3", parameter=f"L0={low:g},L={reach:g}")
        # 1 − 1e-14 has two digits.
        assert (kept.empirical, kept.bound) == pytest.approx((outside, bound), rel=0.05)
    for number, delta in itertools.product((1, 7), (0.2, 0.05)):
        squared = math.log(1 / delta) / number
        for statement, reach in (("sampler utility", math.sqrt(squared)), ("sampler utility without a root", squared)):
            missed = max(
                sum(math.comb(number, k) * p**k * (1 - p) ** (number - k) for k in range(number + 1)
                    if abs(k / number - p) > reach)
                for p in (0.5, 0.1, 0.01)
            )  # fmt: skip
            kept = row(table, statement=statement, parameter=f"N={number},delta={delta:g},within={reach:.3g}")
            assert (kept.empirical, kept.bound, kept.allowed) == pytest.approx((missed, delta, delta), abs=1e-12)


def log_trimmed(x: float, a: float, b: float, omega: float) -> float:
    """Log-density of Beta(a, b) on [ω, 1−ω]."""
    mass = betainc(a, b, 1 - omega) - betainc(a, b, omega)
    return (a - 1) * math.log(x) + (b - 1) * math.log(1 - x) - betaln(a, b) - math.log(mass)


@pytest.mark.parametrize("graph, parents", [("pair", PAIR), ("apart", EDGELESS)])
def test_the_loss_of_a_trimmed_draw_is_the_largest_of_all_neighbours(made, graph, parents):
    """All data sets of two records under unequal priors: exact without edges, at most 30 % above with one."""
    size = sum(2 ** len(own) for own in parents)
    omega, logs = 1 / (1 + math.exp(1 / (2 * len(parents)))), {}
    corners = list(itertools.product((omega, 1 - omega), repeat=size))
    records = every_record(parents)
    for data in itertools.product(records, repeat=2):
        counts = counted(data, parents)
        ends = [
            {x: log_trimmed(x, 2 + counts[2 * i], 3 + counts[2 * i + 1], omega) for x in (omega, 1 - omega)}
            for i in range(size)
        ]
        logs[data] = np.array([sum(own[x] for own, x in zip(ends, corner, strict=True)) for corner in corners])
    largest = max(
        np.abs(logs[x, common] - logs[y, common]).max() for x, y, common in itertools.product(records, repeat=3)
    )
    kept = row(made.tables["bounds"], statement="theorem 4 (1)", graph=graph)
    if parents == EDGELESS:
        assert kept.empirical == pytest.approx(largest, rel=1e-9)
    assert largest * (1 - 1e-9) <= kept.empirical <= 1.3 * largest
    assert kept.bound == pytest.approx(1) and kept.holds == (kept.empirical <= 1)


def test_table_1_and_noise_scales_are_read_off_the_rows_and_the_graphs(made):
    """Counts of rows, and scales by enumerated subsets, decide; equal but for rounding."""
    bounds = made.tables["bounds"]
    entries = {
        "laplace": ("corollary 1", "theorem_1_unsquared", "theorem_1"),
        "fourier": ("corollary 2", "theorem_3", "theorem_3"),
        "sampler_record": ("theorem 4 (1)", "sampler utility without a root", "sampler utility"),
        "map": ("corollary 4", "lemma_4_printed", "lemma_4"),
    }
    for method, statements in entries.items():
        kept = row(made.tables["table1"], method=method)
        for name, statement in zip(("privacy", "bound", "restored"), statements, strict=True):
            own = [each for each in bounds.itertuples() if each.statement == statement]
            assert (kept[f"{name}_rows"], kept[f"{name}_rows_that_hold"]) == (len(own), sum(x.holds for x in own))
            if name == "privacy":
                assert kept.largest_loss == pytest.approx(max(x.empirical / x.bound for x in own))
        assert kept.restored_margin == min(x.margin for x in own if not math.isnan(x.margin))
    for graph, parents in (("pair", PAIR), ("fork", [(), (0,), (0, 1)])):
        number = len(subsets(parents))
        for degree in {len(own) for own in parents}:
            kept = row(made.tables["noise_scale"], graph=graph, in_degree=degree)
            scales = 2 * len(parents), 2 * number / 2 ** (len(parents) / 2), 2 * number / 2 ** ((degree + 1) / 2)
            assert (kept.laplace, kept.fourier_coefficient, kept.fourier_cell) == pytest.approx(scales)
            assert (kept.largest_in_degree, kept.average_in_degree) == (len(parents) - 1, (len(parents) - 1) / 2)
    # What is never exceeded has no margin.
    never = bounds[(bounds.empirical == 0) & (bounds.statement != "corollary_3")]
    assert len(never) and never.margin.isna().all()
    # Rows of several cells are numbered through.
    twice = tables.tables_of(grid.load_study("zhang2016/bounds", "smoke"), [made, made])
    for name in ("bounds", "consistency"):
        assert len(twice[name]) > len(made.tables[name])
        assert list(twice[name].index) == list(range(len(twice[name])))


def test_marginals_disagree_by_the_largest_cell_of_what_two_families_share():
    """Families (a), (a, b) and (a, b, c): loops over cells, of two data sets whose differences have either sign."""
    model = BayesianNetwork(parse("fork [a][b|a][c|a:b]")[1])
    counts = np.random.default_rng(2).integers(0, 9, (2, 14)).astype(float)
    # Ones before zeros of each parameter: a; b for a = 0, 1; c for (a, b) = 00, 01, 10, 11.
    for each in (counts, counts[::-1], -counts):
        worst = 0.0
        for one in each:
            pairs = one.reshape(7, 2)
            first = {a: pairs[0][1 - a] for a in (0, 1)}
            second = {(a, b): pairs[1 + a][1 - b] for a in (0, 1) for b in (0, 1)}
            third = {(a, b): pairs[3 + 2 * a + b].sum() for a in (0, 1) for b in (0, 1)}
            worst = max([worst, *(abs(second[at] - third[at]) for at in second)])
            for a in (0, 1):
                sums = [sum(table[a, b] for b in (0, 1)) for table in (second, third)]
                worst = max([worst, *(abs(first[a] - total) for total in sums)])
        assert study.largest_disagreement(model, each) == pytest.approx(worst)


@pytest.mark.parametrize("rule", ["n", "n_squared"])
def test_the_mean_loss_and_the_terms_of_table_1_are_those_of_one_node(rule):
    """A sum over 400² pairs of noisy counts decides, to 1e-3 of the loss."""
    loss = {"loss_sizes": [30], "loss_delta": 0.2, "loss_nodes": 40}
    cell = run("zhang2016/bounds", 2, 2, **SETTINGS, **{**SMALL, **LEAST, **loss})
    kept, epsilon = row(cell.tables["theorem1"], epsilon_times=rule, n=30), 2 / 30 if rule == "n" else 1 / 900
    scale, (points, width) = 2 / epsilon, midpoints(0, 30, 400)
    shares = np.exp(-np.abs(points - 15) / scale) * width / (2 * scale)
    points = np.concatenate([[0], points, [30]])
    shares = np.concatenate([[math.exp(-15 / scale) / 2], shares, [math.exp(-15 / scale) / 2]])
    a, b = np.meshgrid(points, points, indexing="ij")
    losses = betaln(2 + a, 3 + b) - betaln(17, 18) + (15 - a) * digamma(17) + (15 - b) * digamma(18)
    losses += (a + b - 30) * digamma(35)
    size = 30 * math.log(30)
    terms = size * (1 - math.exp(-30 * epsilon / 2)), math.sqrt(size * math.log(5))
    assert kept.mean_loss == pytest.approx(shares @ losses @ shares, rel=1e-3)
    assert (kept.epsilon, kept.first_term, kept.second_term) == pytest.approx((epsilon, *terms))


@pytest.mark.parametrize("trials, holds", [(4, True), (20, False)])
def test_a_mean_divergence_contradicts_its_bound_beyond_four_standard_errors(trials, holds):
    """The child's parameter has no record and a printed bound of 0; the mean is that of a loop over the releases."""
    settings = {"graph": "pair [a][b|a]", "n": [1], "epsilon": [3.0], "delta": [0.2], "t": [1]}
    prior = {"alpha": 1, "beta": 1, "model_alpha": 2, "model_beta": 1, "utility": "density"}
    cell = run("zhang2016/bounds", trials, trials, **settings, **prior, **{**SMALL, **LEAST})
    (empty,) = (i for i in range(3) if sum(counts_of(cell, 1)[2 * i : 2 * i + 2]) == 0)
    released = cell.ledger.released("laplace/n=1/epsilon=3")[:, 2 * empty : 2 * empty + 2].clip(0, 1)
    mean, error = mean_and_error([divergence((1, 1), (1 + a, 1 + b)) for a, b in released])
    kept = row(cell.tables["bounds"], statement="theorem_1_expectation", parameter="ones=0,zeros=0")
    assert (kept.empirical, kept.bound) == pytest.approx((mean, 0))
    assert kept.holds == (mean <= 4 * error) == holds


@pytest.mark.parametrize("statement, parameter, sign", [
    ("proposition_1", "delta=0.2", 1), ("theorem_3", "delta=0.2,t=0.1", 1), ("corollary_3", "t=0.1", -1),
    ("corollary_3", "t=0.3", -1),
])  # fmt: skip
def test_a_frequency_contradicts_a_bound_beyond_so_many_standard_errors(made, monkeypatch, statement, parameter, sign):
    """The number of errors at which the verdict turns is computed by hand; a thousandth more or less turns it."""
    kept = row(made.tables["bounds"], statement=statement, parameter=parameter)
    promised = 0.2 if sign == 1 else 1 - math.exp(-float(parameter.removeprefix("t=")))
    rate = kept.rate if sign == 1 else kept.empirical
    turn = sign * (rate - promised) / math.sqrt(promised * (1 - promised) / 60)
    assert abs(turn) > 0.1
    for limit, holds in ((turn - 1e-3, False), (turn + 1e-3, True)):
        monkeypatch.setattr(study, "LIMIT", limit)
        cell = run("zhang2016/bounds", 60, 30, **SETTINGS, **SMALL)
        assert row(cell.tables["bounds"], statement=statement, parameter=parameter).holds == holds


def test_a_bound_that_all_may_exceed_holds_where_all_do():
    assert study._row("lemma_4", {}, {}, 1.0, 1.0, rate=1.0, allowed=1.0)["holds"]
