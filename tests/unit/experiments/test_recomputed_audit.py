"""The audit and theorem 16's bound, computed a second time: worst pairs by listing them, bounds by sums, quadrature."""

from __future__ import annotations

import math
from types import SimpleNamespace

import numpy as np
import pytest
from recomputed import Remembering, midpoints, renyi, row, run, solved, spied
from scipy.special import log_ndtr
from scipy.stats import norm

from privpost.experiments.audit import instances
from privpost.experiments.audit.audit import study as audit
from privpost.experiments.geumlek2017.theorem16 import study as theorem16
from privpost.lab import grid, ledgers, tables
from privpost.mechanisms.event_states import HiddenMarkovSampler
from privpost.mechanisms.gaussian import GaussianMechanism
from privpost.mechanisms.laplace import LaplaceMechanism
from privpost.mechanisms.posterior_sampling import PosteriorDraw
from privpost.models import BetaBernoulli
from privpost.models.event_counts import EventCounts
from privpost.privacy.accounting import Cost

CONFIDENCE, FALSE_ALARM = 0.9, 0.01


def audited(monkeypatch, listed, **changes):
    """The audit's table of some mechanisms: (name, mechanism, budget)."""
    made = [
        instances.Instance(name, mechanism, ((budget, "stated"),), ("a/study",)) for name, mechanism, budget in listed
    ]
    monkeypatch.setattr(instances, "examples", lambda epsilon, large_n, records: made)
    settings = {"source": "examples", "releases": 3000, "pilot": 300, "chain_share": 0.25, "ledgers": {}}
    settings |= {"mechanisms": {mechanism.name for _, mechanism, _ in listed}, "epsilon": 1.0}
    cell = run(
        "audit/audit", 1, 1, **{**settings, "confidence": CONFIDENCE, "false_alarm": FALSE_ALARM, **changes}
    )  # fmt: skip
    return cell, cell.tables["audit"]


def clopper_pearson(hits: int, size: int, level: float) -> tuple[float, float]:
    """Limits of a probability, each by bisection on a sum of binomial probabilities."""
    k = np.arange(size + 1)
    logs = np.array([math.lgamma(size + 1) - math.lgamma(j + 1) - math.lgamma(size - j + 1) for j in k])

    def at_most(p: float, most: int) -> float:
        return float(np.exp(logs + k * math.log(p) + (size - k) * math.log1p(-p))[: most + 1].sum())

    def solved(rises) -> float:
        low, high = 1e-12, 1 - 1e-12
        for _ in range(60):
            middle = (low + high) / 2
            low, high = (low, middle) if rises(middle) else (middle, high)
        return low

    low = 0.0 if hits == 0 else solved(lambda p: 1 - at_most(p, hits - 1) > level)
    return low, 1.0 if hits == size else solved(lambda p: at_most(p, hits) < level)


def proved(line, level: float) -> float:
    """What an event's counts prove: of pure ε, or of the divergence at an order."""
    low, _ = clopper_pearson(line.events_first, line.n_samples, level / 2)
    _, high = clopper_pearson(line.events_second, line.n_samples, level / 2)
    if low <= high:
        return 0.0
    if math.isnan(line.order):
        return math.log(low / high)
    both = low**line.order * high ** (1 - line.order) + (1 - low) ** line.order * (1 - high) ** (1 - line.order)
    return math.log(both) / (line.order - 1)


def of_one_cell(n: int, epsilon: float) -> float:
    """Largest log-ratio of neighbours' laws x^(c/T) (1 − x)^((n − c)/T) on [1/20, 19/20], T = 2 ln 19/ε."""
    x, width = midpoints(0.05, 0.95)
    odds, temperature, found = math.log(19), 2 * math.log(19) / epsilon, []
    logs = [(c * np.log(x) + (n - c) * np.log1p(-x)) / temperature for c in range(n + 1)]
    totals = [math.log(np.exp(each).sum() * width) for each in logs]
    for c in range(n):
        change = totals[c + 1] - totals[c]
        # One more of the first level: the ratio is largest at one end or the other.
        found += [odds / temperature + sign * change for sign in (1, -1)]
    return max(found)


def half_lines(first, second) -> set[tuple[int, int]]:
    """How many of either side's releases lie in each half-line, on either side of a cut."""
    cuts = np.sort(np.concatenate([first, second]))
    found = [tuple(int((side >= cut).sum()) for side in (first, second)) for cut in cuts]
    return {*found, *((len(first) - a, len(second) - b) for a, b in found)}


def test_rows_of_the_audit_are_worst_pairs_and_bounds_that_hold_jointly(monkeypatch):
    """Exact divergences by a loop over all neighbours, of the chain to 1e-4, and bounds by binomial sums to 1e-6."""
    rdp, pure, bits = Cost("rdp", 0.5, order=2.0), Cost("pure", 1.5), BetaBernoulli(3, 4)
    draw = PosteriorDraw.calibrate(bits, 6, rdp, weighting="diffused")
    chain = HiddenMarkovSampler(EventCounts((1,), (2,), 1), 30, 1.0, iterations=2)
    listed = [
        ("Draw 0", draw, rdp),
        ("Laplace 0", LaplaceMechanism(bits, 6, 1.5, coordinates="free"), pure),
        ("Gaussian 0", GaussianMechanism.calibrate(bits, 6, rdp), rdp),
        ("Chain 0", chain, Cost("pure", 1.0)),
        # Claims more than its budget: not examined.
        ("Laplace 1", LaplaceMechanism(bits, 6, 1.5, coordinates="free"), Cost("pure", 1.0)),
    ]
    cell, table = audited(monkeypatch, listed)
    assert table.instance.tolist() == [name for name, *_ in listed]
    laws = [(3 + draw.coefficient * s, 4 + draw.coefficient * (6 - s)) for s in range(7)]
    pairs = [pair for s in range(6) for pair in ((laws[s], laws[s + 1]), (laws[s + 1], laws[s]))]
    exact = {"Draw 0": max(renyi(p, q, 2.0) for p, q in pairs), "Laplace 0": 1.5, "Gaussian 0": 0.5}
    exact["Chain 0"] = of_one_cell(30, 1.0)
    claims = {"Draw 0": 0.5, "Laplace 0": 1.5, "Gaussian 0": 0.5, "Chain 0": 1.0, "Laplace 1": 1.5}
    level = (1 - CONFIDENCE) / 5
    for line in table.itertuples():
        assert line.claimed_epsilon == pytest.approx(claims[line.instance], rel=1e-6)
        over = line.instance == "Laplace 1"
        assert line.share_of_target == pytest.approx(1.5 if over else 1.0, rel=1e-6)
        assert line.verdict == ("over target" if over else "within claim")
        assert line.n_samples == (0 if over else 750 if line.instance == "Chain 0" else 3000)
        assert line.row_confidence == pytest.approx(1 - level)
        assert line.sampling == ("mcmc" if line.instance == "Chain 0" else "exact")
        # The supremum over posteriors, and how noise is charged.
        assert line.variant == {"Draw 0": "exact", "Gaussian 0": "corrected"}.get(line.instance, "")
        assert line.instance in (f"{line.mechanism} 0", f"{line.mechanism} 1")
        assert line.target_epsilon == 1.0 and line.confidence == CONFIDENCE and line.study == "a/study"
        if over:
            assert np.isnan(line.lower_bound) and np.isnan(line.exact) and np.isnan(line.tightness)
            continue
        assert line.lower_bound == pytest.approx(proved(line, level), abs=1e-6)
        assert line.exact == pytest.approx(exact[line.instance], rel=1e-4 if line.instance == "Chain 0" else 1e-6)
        assert line.tightness == pytest.approx(line.exact / line.claimed_epsilon)
        assert line.lower_bound < line.exact <= line.claimed_epsilon * (1 + 1e-7)
        # All events of a mechanism that spends what it claims prove a good part of it.
        assert line.instance != "Laplace 0" or line.lower_bound > 0.5 * 1.5
        assert line.drawn_p > FALSE_ALARM / 5
    assert table.rounded_p.notna().tolist() == [True, False, False, False, False]
    # Releases about either data set that choose the event, and others that count it, all through the ledger.
    halves = np.reshape(cell.ledger.released("Laplace 0"), (2, 2, 3000))
    line = row(table, instance="Laplace 0")
    assert (line.events_first, line.events_second) in half_lines(*halves[1])
    assert (line.events_first, line.events_second) not in half_lines(*halves[0])


@pytest.mark.parametrize(
    "p, expected",
    [({"drawn": 1e-9}, "other law"), ({"rounded": 1e-9}, "other law"), ({"drawn": 2e-3}, "within claim")],
)
def test_a_p_value_is_judged_by_all_tests_of_the_table(p, expected):
    """Five p-values share 1 %, so that the limit is 0.002."""
    entry = {
        "name": "A 0, n = 1", "method": "a", "study": "none", "model": "M", "n": 1, "variant": "", "notion": "pure",
        "order": np.nan, "claimed": 1.0, "target": "", "share": 1.0, "exact": 0.7, "drawn": 0.5, "rounded": 0.5,
        "counts": np.array([500, 400, 1000]), "mcmc": False, "settings": "",
    }  # fmt: skip
    config = SimpleNamespace(confidence=CONFIDENCE, epsilon=1.0, source="records", false_alarm=FALSE_ALARM)
    others = [{**entry, "rounded": np.nan}] * 3
    arrays = {key: np.array([each[key] for each in [{**entry, **p}, *others]]) for key in entry}
    table = list(audit.tabulate([SimpleNamespace(config=config, arrays=arrays)]))
    assert [each["verdict"] for each in table] == [expected, *["within claim"] * 3]
    assert table[0]["target_epsilon"] is None


def test_a_claim_at_order_one_is_not_examined_and_a_table_may_have_one_row_or_none(monkeypatch, capsys):
    bits, budget = BetaBernoulli(3, 4), Cost("rdp", 0.5, order=1.0)
    listed = [("Gaussian 0", GaussianMechanism.calibrate(bits, 6, budget), budget)]
    listed += [("Laplace 0", LaplaceMechanism(bits, 6, 1.5, coordinates="free"), Cost("pure", 1.5))]
    cell, table = audited(monkeypatch, listed)
    first = row(table, instance="Gaussian 0")
    assert (first.verdict, first.n_samples, first.order) == ("not examined", 0, 1.0)
    # It was not tried in vain either.
    assert capsys.readouterr().err == ""
    for mechanisms in ({"LaplaceMechanism"}, set()):
        config = SimpleNamespace(**{**vars(cell.config), "mechanisms": mechanisms})
        arrays = audit.simulate(config, cell.streams, Remembering())
        assert len(list(audit.tabulate([SimpleNamespace(config=config, arrays=arrays)]))) == len(mechanisms)


def test_releases_come_in_parts_by_turns_one_for_each_row_and_a_number_at_once(monkeypatch):
    """Eleven in parts of at most four, halved: 2 2 2 2 1 2, each after the other; those at once have no rows."""
    monkeypatch.setattr(audit, "CHUNK", 4)
    mechanism, ledger = LaplaceMechanism(BetaBernoulli(3, 4), 6, 1.0, coordinates="free"), Remembering()
    gate, each = audit.Gate(ledger, "it", mechanism, Cost("pure", 1.0)), spied(monkeypatch, LaplaceMechanism, "each")
    drawn = gate.releases(np.array([1, 1, 0, 0, 0, 0]), 11, np.random.default_rng(1))
    assert drawn.shape == (11, 1) and len(set(drawn.ravel())) == 11
    asked = [request for request, _ in ledger.of("it")]
    assert [np.shape(request.statistics) for request in asked] == [(2, 2), (2,), (2, 2), (2,), (1, 2), (2,)]
    assert [request.size for request in asked] == [None, 2, None, 2, None, 2]
    # A trial may have settings of its own.
    assert [call.given[1] for call in each] == [2, 2, 1]
    assert all(np.all(request.statistics == [2, 4]) for request in asked)


@pytest.mark.parametrize("size", [99, 100])
def test_fewer_than_a_hundred_releases_are_not_counted(size):
    """The exact divergence is known without them: ε, as the noise is one Laplace variate."""
    mechanism = LaplaceMechanism(BetaBernoulli(3, 4), 6, 1.5, coordinates="free")
    finding = audit.examine(mechanism, size, 100, np.random.default_rng(1))
    assert finding.exact == pytest.approx(1.5) and math.isnan(finding.rounded)
    assert math.isnan(finding.drawn) == (size < 100)
    assert finding.counts.size == (100 if size == 100 else 0)
    assert (finding.counts == (0, 0, 0)) == (size < 100)
    assert math.isnan(finding.smallest_p) == (size < 100)


@pytest.mark.parametrize("wrong", [0, 1])
def test_draws_about_either_data_set_are_tested_against_its_law(wrong):
    """Noise of twice the scale where the number of ones is even, or odd: a KS distance of 1/8 for 2000 draws."""
    mechanism = LaplaceMechanism(BetaBernoulli(3, 4), 6, 1.0, coordinates="free")

    def releases(data, size, rng):
        return data.sum() + rng.laplace(size=(size, 1)) * (2 if data.sum() % 2 == wrong else 1)

    gate = SimpleNamespace(releases=releases)
    finding = audit.examine(mechanism, 1000, 100, np.random.default_rng(1), gate=gate)
    assert finding.drawn < 1e-9 and finding.smallest_p == finding.drawn


# Theorem 16


def mode_of(beta: float, length: float) -> float:
    """The root M of βM = t/(1 + e^(tM))."""
    return solved(lambda m: beta * m * (1 + math.exp(min(700.0, length * m))), length, 0.0, length / beta)


def plane(link: str, sign: int, n: float, beta: float, angle: float, length: float, radius, reach: float):
    """Log-weights (k, k) at midpoints of a square: one record (± cos a, sin a), n − 1 records (0, −t)."""
    w, _ = midpoints(-reach, reach, 500)
    first, second = np.meshgrid(w, w, indexing="ij")
    margin = sign * math.cos(angle) * first + math.sin(angle) * second
    push = -length * second
    if link == "logistic":
        losses = np.log1p(np.exp(-margin)) + (n - 1) * np.log1p(np.exp(-push))
    elif link == "probit":
        losses = -log_ndtr(margin) - (n - 1) * log_ndtr(push)
    else:
        # The changed record has no event, the others have one.
        losses = np.exp(-margin) - (n - 1) * np.log(-np.expm1(-np.exp(push)))
    logs = -n * beta * (first**2 + second**2) / 2 - losses
    return np.where(first**2 + second**2 <= radius**2, logs, -np.inf) if radius else logs


def plane_divergence(link, n, beta, order, angle, length, radius) -> float:
    # The modes are at most 1/β from 0.
    reach = radius or min(1 / beta, 30 / math.sqrt(n * beta))
    p, q = (plane(link, s, n, beta, angle, length, radius, reach) for s in (1, -1))
    inside = np.isfinite(p)
    p, q = p[inside], q[inside]
    top = max(p.max(), q.max())
    totals = [np.log(np.exp(each - top).sum()) for each in (p, q)]
    mixed = order * (p - top) + (1 - order) * (q - top)
    return float((np.log(np.exp(mixed).sum()) - order * totals[0] + (order - 1) * totals[1]) / (order - 1))


@pytest.mark.parametrize("link", ["logistic", "probit", "cloglog"])
def test_theorem_16_is_compared_with_the_worst_of_the_pairs_that_were_tried(link):
    """Two posteriors in a plane by 250,000 midpoints, to 1e-3; the limit by a grid of angles."""
    angles, lengths, radius = [0.3, 0.8], [1.0, 0.3], 1.5
    cell = run(
        "geumlek2017/theorem16", None, None, link=link, n=[40.0], betas=[0.05], orders=[2.0, 3.0], radius=radius,
        angles=angles, pushing=lengths, limit_betas=[1e-3, 1e-5],
    )  # fmt: skip
    table = cell.tables["theorem16"]
    # Steepest slopes of −ln p on the ball: 1/(1 + e^−R) and φ(R)/Φ(−R) of both labels; e^R and t/(e^t − 1) at t = e^−R.
    t = math.exp(-radius)
    slopes = {"logistic": 1 / (1 + t), "cloglog": (1 / t + t / math.expm1(t)) / 2}
    bound = slopes.get(link, norm.pdf(radius) / norm.cdf(-radius))
    for order in (2.0, 3.0):
        paper = 2 * order / (40 * 0.05)
        for ball in (None, radius):
            kept = row(table, order=order, radius=ball)
            assert kept.bound_paper == pytest.approx(paper)
            unbounded = link != "logistic" and ball is None
            if unbounded:
                assert kept.bound_own == math.inf and np.isnan(kept.share_of_own)
            if unbounded and (link == "cloglog" or order == 3):
                # exp(z) outgrows every normal law, and twice z²/2 the prior of precision 40 · 0.05.
                assert kept.exact == math.inf
                continue
            tried = {
                (angle, length): plane_divergence(link, 40.0, 0.05, order, angle, length, ball)
                for angle in angles for length in lengths
            }  # fmt: skip
            worst = max(tried, key=tried.get)
            assert kept.exact == pytest.approx(tried[worst], rel=1e-3)
            assert (kept.angle, kept.pushing) == worst
            own = paper * (bound**2 if ball else 1.0)
            assert kept.share_of_paper == pytest.approx(kept.exact / paper)
            if not unbounded:
                assert (kept.bound_own, kept.share_of_own) == pytest.approx((own, kept.exact / own))
            assert (kept.n, kept.beta, kept.link) == (40.0, 0.05, link)
    limits = cell.tables["theorem16_limits"]
    assert len(limits) == (2 if link == "logistic" else 0)
    for line in limits.itertuples():
        # The longest mode of pushers of any length, βM = t/(1 + e^(tM)), and the best angle there.
        distance = max(mode_of(line.beta, t) for t in np.geomspace(0.1, 10, 2001) * math.sqrt(line.beta))
        assert line.distance == pytest.approx(distance, rel=1e-5)
        sines = np.geomspace(1 / distance, 1, 20_001)
        shares = (1 - sines**2) / (1 + np.exp(-distance * sines)) ** 2
        assert line.share == pytest.approx(shares.max(), rel=1e-6)
        assert line.sine == pytest.approx(sines[shares.argmax()], rel=1e-2)
    if link == "logistic":
        kept = row(table, order=2.0, radius=None)
        wide = np.geomspace(1e-3, 1, 20_001)
        distance = max(mode_of(0.05, t) for t in np.geomspace(0.05, 5, 2001))
        assert kept.limit == pytest.approx(((1 - wide**2) / (1 + np.exp(-distance * wide)) ** 2).max(), rel=1e-4)
        assert table[table.radius.notna()].limit.isna().all()


def test_logistic_posteriors_differ_finitely_under_a_weak_prior():
    """The prior's precision is 1/2, below the curvature of a record; the midpoints are 0.08 apart."""
    cell = run(
        "geumlek2017/theorem16", None, None, link="logistic", n=[10.0], betas=[0.05], orders=[2.0], radius=1.5,
        angles=[0.3], pushing=[1.0], limit_betas=[1e-3],
    )  # fmt: skip
    kept = row(cell.tables["theorem16"], radius=None)
    expected = plane_divergence("logistic", 10.0, 0.05, 2.0, 0.3, 1.0, None)
    assert kept.exact == pytest.approx(expected, rel=1e-3)


def test_the_loss_of_a_record_with_an_event_is_linear_far_from_it():
    """-ln(1 - exp(-e^m)): by expm1 down to -30, and -m in its limit, which it is within e^m of."""
    margins = np.array([-700.0, -40.0, -31.0, -29.0, -3.0, 2.0])
    expected = [-m if m < -36 else -math.log(-math.expm1(-math.exp(m))) for m in margins]
    np.testing.assert_allclose(theorem16.LOSSES["cloglog"][1](margins), expected, rtol=1e-12)


def test_the_published_audit_is_of_the_settings_in_the_published_ledgers():
    """A setting that a study no longer records, or records anew, would leave the audit behind it."""
    study = grid.load_study("audit/audit")
    records = {name: ledger["mechanisms"] for name, ledger in ledgers.contents(grid.read_by(study)).items()}
    recorded = {(one.name, ", ".join(one.studies)) for one in instances.recorded(records)}
    table = tables.read_tables(study)["audit"].query("source == 'records'")
    assert recorded == set(zip(table.instance, table.study, strict=True))
