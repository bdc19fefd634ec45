"""Claims on distances of Bernstein and Sheldon (2018) turn at their limits, as in `test_limits_bernstein2018.py`."""

from __future__ import annotations

import math

import pandas as pd
import pytest
from claims_at_limits import failed, limit, moved, scored

from privpost.experiments.bernstein2018 import claims
from privpost.experiments.bernstein2018.utility import claims as utility


def distances(*listed: dict, **values) -> pd.DataFrame:
    values = {"model": "binomial", "method": "gibbs", "epsilon": 1.0, **values}
    return pd.DataFrame({**values, **each} for each in listed)


@pytest.mark.parametrize("z, passes", [(-1.95, True), (-1.97, False)])
def test_gibbs_is_not_behind_by_more_than_chance(z, passes):
    """5 % over two cells, one-sided: 1.96 standard errors."""
    listed = [{"n": n, "below_naive_mean": 0.1 * each, "below_naive_sem": 0.1} for n, each in ((10, z), (100, 3.0))]
    far = distances({"n": 10, "below_naive_mean": -9.0, "below_naive_sem": 0.1}, model="exponential")
    naive = distances({"n": 10, "below_naive_mean": math.nan, "below_naive_sem": math.nan}, method="naive")
    found = scored(utility, "B5", utility=pd.concat([distances(*listed), far, naive]))
    less = found.evidence["MMD² of naive less that of Gibbs, binomial, n=10, epsilon=1"]
    assert less == pytest.approx(0.1 * z)
    assert set(found.failed) == (set() if passes else {"binomial, n=10, epsilon=1"})
    assert found.evidence["(naive − gibbs)/standard error, binomial, n=10, epsilon=1"] == pytest.approx(z)


def naive_curve(last=0.001, rise=0.0) -> pd.DataFrame:
    """Distances of 0.1 and so on at n from 10 to 1000; squared means with errors that are 0.005 together where they may
    rise, and of another model, which falls."""
    fall = {"mmd": 0.1, "mmd2_mean": 0.01, "mmd2_sem": 0.0}, {"mmd": 0.001, "mmd2_mean": 1e-6, "mmd2_sem": 0.0}
    return distances(
        {"n": 1000, **fall[1], "mmd": last},
        {"n": 100, "mmd": 0.01, "mmd2_mean": 0.01 + rise, "mmd2_sem": 0.004},
        {"n": 30, "mmd": 0.03, "mmd2_mean": 0.01, "mmd2_sem": 0.003},
        {"n": 10, **fall[0]},
        *({"n": n, "model": "multinomial", **each} for n, each in zip((10, 1000), fall, strict=True)),
        method="naive",
    )


def test_the_naive_method_converges_by_its_slope_and_without_an_increase():
    """Four steps of two curves, one-sided: 2.24 standard errors. A slope of −1/2 over two decades is a tenth."""
    allowed = limit(4) * 0.005
    for values, passes in (
        ({"rise": 0.99 * allowed}, True), ({"rise": 1.01 * allowed}, False), ({"last": 0.0099}, True),
        ({"last": 0.0101}, False), ({"last": 0.0}, True),
    ):  # fmt: skip
        found = scored(utility, "B6", utility=naive_curve(**values))
        assert (not found.failed) == passes, values
    found = scored(utility, "B6", utility=naive_curve().assign(mmd2_sem=[1e-6, 0.0, 0.0, 0.003, 0.0, 0.0]))
    name = "binomial, epsilon=1"
    assert f"{limit(4):.2f} standard errors" in found.test
    assert found.evidence[f"MMD at the smallest and largest n, {name}"] == [0.1, 0.001]
    # By the delta method of a root: half the error over the distance, 0.015 and 0.0005; relative errors 0.15 and 0.5.
    errors = found.evidence[f"standard errors of MMD at the smallest and largest n, {name}"]
    assert errors == pytest.approx([0.015, 0.0005])
    assert found.evidence[f"log-log slope of MMD in n, {name}"] == pytest.approx(-1)
    error = math.hypot(0.15, 0.5) / math.log(100)
    assert found.evidence[f"standard error of the slope, {name}"] == pytest.approx(error)


def shares(low: float, high: float, low_sem=0.05, high_sem=0.05) -> pd.DataFrame:
    """Shares of a naive MMD² of 2 that Gibbs saves at the smallest and the largest n and ε, and 0.3 between."""
    places = ((100, 0.1, 0.3, 0.0), (10, 1.0, 0.3, 0.0), (100, 1.0, high, high_sem), (10, 0.1, low, low_sem))
    gibbs = [
        {"n": n, "epsilon": epsilon, "below_naive_mean": 2 * share, "below_naive_sem": 2 * sem, "mmd2_mean": 7.0}
        for n, epsilon, share, sem in places
    ]
    naive = [{"n": n, "epsilon": epsilon, "mmd2_mean": 2.0} for n, epsilon, *_ in places]
    both = pd.concat([distances(*gibbs), distances(*naive, method="naive")])
    return pd.concat([both, moved(both.assign(model="multinomial"), {"n": 10}, below_naive_mean=2.0)])


def test_what_gibbs_saves_vanishes():
    """Three checks of two models each, one-sided; more than a half, less than a fifth, and a difference."""
    allowed = limit(6)
    much, little, less = "more than half", "less than a fifth", "less at the largest"
    for values, fails in (
        ((0.501 + 0.05 * allowed, 0.199 - 0.05 * allowed), ()),
        ((0.499 + 0.05 * allowed, 0.199 - 0.05 * allowed), (much,)),
        ((0.501 + 0.05 * allowed, 0.201 - 0.05 * allowed), (little,)),
        ((0.201 + 0.25 * allowed, 0.2, 0.2, 0.15), (much, little)),
        ((0.199 + 0.25 * allowed, 0.2, 0.2, 0.15), (much, little, less)),
    ):
        found = scored(utility, "B12", utility=shares(*values))
        mine = [name for name in found.failed if name.endswith("(binomial)")]
        assert [name.startswith(fails) if fails else False for name in mine] == [True] * len(fails), values
        name = "share of the naive MMD² that Gibbs saves, binomial, n=10, epsilon=0.1"
        assert found.evidence[name] == pytest.approx(values[0])
        assert found.evidence[f"its standard error, {name}"] == pytest.approx(values[2] if len(values) > 2 else 0.05)
        assert f"{allowed:.2f} standard errors" in found.test


def test_redacted_sums_have_points_of_either_sign():
    """Two points, two-sided: 2.24 standard errors."""
    for first, second, fails in ((2.25, -2.25, ""), (2.23, -2.25, "Gibbs"), (2.25, -2.23, "naive")):
        listed = [
            {"n": n, "below_naive_mean": 0.1 * z, "below_naive_sem": 0.1} for n, z in ((10, first), (100, second))
        ]
        others = distances({"n": 10, "below_naive_mean": 9.0, "below_naive_sem": 0.1})
        table = pd.concat([distances(*listed, model="exponential"), others])
        found = scored(utility, "B14", utility=table)
        assert set(found.failed) == ({f"{fails} is closer at some point"} if fails else set())
        assert found.evidence["standard errors asked for"] == pytest.approx(limit(2, sides=2))
        assert found.evidence["(naive − gibbs)/standard error, n=100, epsilon=1"] == pytest.approx(second)
        assert found.evidence["MMD² of naive less that of Gibbs, n=100, epsilon=1"] == pytest.approx(0.1 * second)
    single = scored(utility, "B14", utility=distances(listed[0], model="exponential"))
    assert single.evidence["standard errors asked for"] == pytest.approx(limit(1, sides=2))
    assert scored(utility, "B14", utility=others).verdict == "not testable"


SMALL, SMALLER = "total variation at most", "smaller at the largest n"


@pytest.mark.parametrize(
    ("n", "values", "fails"),
    [
        (100, {"total_variation": 0.02}, ""),
        (100, {"total_variation": 0.0201}, SMALL),
        (99, {"total_variation": 0.049}, ""),
        # One curve of bits, one-sided: 1.645 standard errors.
        (1000, {"total_variation_sem": 0.04 / 1.65}, ""),
        (1000, {"total_variation_sem": 0.04 / 1.64}, SMALLER),
    ],
)
def test_total_variations(n, values, fails):
    listed = [{"n": each, "total_variation": tv} for each, tv in ((1000, 0.01), (10, 0.05), (99, 0.03), (100, 0.015))]
    table = distances(*listed, task="binomial", prior="2, 3", total_variation_sem=0.001)
    # Of redacted sums the distance may grow; other families do not count.
    grown = distances(
        {"n": 10, "total_variation": 0.001}, {"n": 1000, "total_variation": 0.019}, task="exponential", prior="2",
        total_variation_sem=0.001,
    )  # fmt: skip
    grown = pd.concat([grown, grown.assign(epsilon=0.1), grown.assign(task="pareto", total_variation=0.9)])
    read = {"approximation": pd.concat([moved(table, {"n": n}, **values), grown])}
    found = scored(claims, "B7", **read)
    assert [name.startswith(fails) for name in found.failed] == ([True] if fails else [])
    assert all(name.endswith("(Beta(2, 3), epsilon=1)") for name in found.failed)
    largest = 0.015 if n != 100 else values["total_variation"]
    assert found.evidence["largest total variation of bits from n = 100 on"] == largest
    assert found.evidence["largest total variation, Beta(2, 3), epsilon=1 (n=10)"] == 0.05
    assert found.evidence["total variation at the largest n, exponential, epsilon=1"] == 0.019
    assert not failed(claims, "B7", approximation=pd.concat([table, grown]))
