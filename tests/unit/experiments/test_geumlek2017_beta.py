"""The closed-form studies of Geumlek et al. (2017): known values, quadrature against simulation, and the claims."""

import math
from types import SimpleNamespace

import numpy as np
import pytest

from privpost.experiments.geumlek2017.tradeoff import study as tradeoff
from privpost.lab import grid, tables
from privpost.mechanisms.draws.posterior import PosteriorDraw
from privpost.mechanisms.noise.gaussian import GaussianMechanism
from privpost.models.conjugate.beta_bernoulli import BetaBernoulli
from privpost.privacy.accounting.costs import Cost
from privpost.privacy.divergences.renyi import dirichlet_divergence


@pytest.fixture(scope="module")
def curves():
    return tables.read_tables(grid.load_study("geumlek2017/rdp_curves"))


@pytest.fixture(scope="module")
def tradeoffs():
    return tables.read_tables(grid.load_study("geumlek2017/tradeoff"))


def test_coefficient_one_is_the_direct_posterior(curves):
    table = curves["rdp_curves"]
    whole = table[table.coefficient == 1].set_index(["supremum", "order"])
    direct = whole[whole.method == "direct"].epsilon.sort_index()
    for method in ("diffused", "concentrated"):
        assert whole[whole.method == method].epsilon.sort_index().equals(direct)


# Independent: KL of two beta distributions by mpmath, after 38 successes of 100.
@pytest.mark.parametrize(("method", "floor"), [("diffused", 0.09773), ("concentrated", 0.02216)])
def test_floors_above_the_critical_order(tradeoffs, method, floor):
    table = tradeoffs["tradeoff"]
    rows = table[(table.method == method) & (table.order == 15) & (table.metric == "kl") & (table.log_epsilon == 3)]
    assert rows["mean"].to_numpy() == pytest.approx(floor, abs=1e-5)
    assert rows.coefficient.to_numpy() == pytest.approx(6 / 14, rel=1e-9)


def test_samplers_reach_the_true_posterior_exactly_at_the_cost_of_the_direct_one(tradeoffs):
    table = tradeoffs["tradeoff"]
    for method in ("diffused", "concentrated"):
        rows = table[(table.method == method) & (table.order == 2) & (table.metric == "kl")]
        assert (rows.coefficient[rows.log_epsilon >= math.log(0.1912902)] == 1).all()
        assert (rows["mean"][rows.log_epsilon < math.log(0.1912902)] > 0).all()


def test_a_density_under_wide_noise_integrates_to_one():
    node, weight = np.polynomial.legendre.leggauss(400)
    mechanism = GaussianMechanism(BetaBernoulli(6, 12), 100, 15.0, 2.0)
    density = np.exp(tradeoff.released_log_density((node + 1) / 2, mechanism, 38, 400))
    assert np.sum(weight / 2 * density) == pytest.approx(1, abs=1e-10)


def test_common_random_numbers_pair_the_methods():
    from privpost.lab.streams import Streams
    from privpost.privacy.ledger.gate import Ledger

    study = grid.load_study("geumlek2017/tradeoff", "smoke")
    two, fifteen = (grid.make_cell(study, {"order": order}) for order in (2, 15))
    nll = []
    for cell in (two, fifteen):
        arrays = tradeoff.simulate(cell.config, Streams.of(cell), Ledger())
        nll.append(arrays["neg_log_likelihood_mean"][cell.config.method.index("non_private")])
    # The true posterior's draws depend neither on the order nor on epsilon.
    assert (nll[0] == nll[1]).all() and len(set(nll[0])) == 1


def test_schema_refuses_impossible_orders():
    study = grid.load_study("geumlek2017/rdp_curves")
    with pytest.raises(ValueError, match=r"order is 1.*\(1, 1e\+100\]"):
        grid.make_cell(study, {"order": 1})
    assert isinstance(grid.make_cell(study, {"order": 2}).config, SimpleNamespace)


@pytest.mark.parametrize("order", [1.5, 5.0])
def test_public_records_in_the_prior_make_a_draw_cheaper_and_more_orders_finite(order):
    # 30 public bits, 12 of them ones, as after a breach: they update the prior, and the other 70 are protected.
    all_private = PosteriorDraw(BetaBernoulli(6, 12), 100, order, supremum="exact", weighting="direct").cost().epsilon
    with_public = PosteriorDraw(BetaBernoulli(18, 30), 70, order, supremum="exact", weighting="direct").cost().epsilon
    assert 0 < with_public < all_private
    # λ* = 1 + min(α, β) moves from 7 to 19.
    beyond = np.array([7.5, 18.5, 19.5])
    found = PosteriorDraw(BetaBernoulli(18, 30), 70, order, supremum="exact", weighting="direct").rdp(beyond)
    assert np.isfinite(found).tolist() == [True, True, False]


@pytest.mark.parametrize("n", [100, 10_000])
def test_a_statistical_query_is_answered_by_a_draw(n):
    # Values in [0, 1] of n records in place of bits: no pair of neighbours is beyond the supremum over bits.
    mechanism = PosteriorDraw.calibrate(BetaBernoulli(6, 12), n, Cost("rdp", 0.1, order=2), weighting="diffused")
    rng = np.random.default_rng(3)
    common, values = (n - 1) * rng.random(2000), rng.random((2, 2000))
    law, other = (mechanism.release_law(np.stack([common + value, n - common - value], axis=-1)) for value in values)
    assert dirichlet_divergence(law, other, 2.0).max() <= mechanism.cost().epsilon * (1 + 1e-9)
    # The answer 0.7: by the prior's pull and the draw's deviation, some 1/n and 1/sqrt(n) of r n records.
    draws = mechanism.perturb(np.tile([0.7 * n, 0.3 * n], (4000, 1)), rng)
    weight = mechanism.r * n
    pull, deviation = 18 * (0.7 - 6 / 18) / (18 + weight), math.sqrt(0.7 * 0.3 / (18 + weight))
    assert np.mean(draws) == pytest.approx(0.7 - pull, abs=5 * deviation / math.sqrt(4000))
    assert np.std(draws) == pytest.approx(deviation, rel=0.15)
    assert np.sqrt(np.mean((draws - 0.7) ** 2)) < (0.2 if n == 100 else 0.01)
