"""Claims on Bernstein and Sheldon (2018) turn at the limits that they state: rows by hand, just inside and outside.

Each limit is computed here from the claim's words.
"""

from __future__ import annotations

import math
from itertools import product

import pandas as pd
import pytest
from claims_at_limits import failed, moved, scored

from privpost.experiments.bernstein2018 import claims as shared
from privpost.experiments.bernstein2018.calibration import claims as calibration
from privpost.experiments.bernstein2018.convergence import claims as convergence

CORNERS = list(product((10, 100), (0.1, 1.0)))


def rows(methods=("non_private", "gibbs", "exact"), **values) -> pd.DataFrame:
    """Tests that all pass, of every method at every n and ε; the true posterior has no ε."""
    values = {
        "variant": "paper", "model": "binomial", "parameter": "theta", "tempered": None, "ks": 0.02, "ks_limit": 0.03,
        "p_value": 0.5, "n_trials": 2000, "z2": 1.0, "z2_p": 0.5, "z2_values": 2000.0, "z2_of": "theta",
        "sd_of_prior": 0.5, "prior_p": 0.5, **values,
    }  # fmt: skip
    return pd.DataFrame(
        {**values, "method": method, "n": n, "epsilon": math.nan if method == "non_private" else epsilon}
        for method in methods for n, epsilon in CORNERS if method != "non_private" or epsilon == 1
    )  # fmt: skip


ONE = {"method": "gibbs", "n": 10, "epsilon": 0.1}
KS, Z2 = "binomial: KS rejects Gibbs nowhere", "binomial: z² rejects Gibbs nowhere"


@pytest.mark.parametrize(
    ("moves", "fails"),
    [
        # Half of 5 % over four tests each; the other three of a row have nothing to do with it.
        ([(ONE, {"p_value": 0.0062})], {KS}),
        ([(ONE, {"p_value": 0.00625})], set()),
        ([(ONE, {"z2_p": 0.0062})], {Z2}),
        ([(ONE, {"z2_p": 0.00625})], set()),
        ([({**ONE, "method": "exact"}, {"p_value": 0.0, "z2_p": 0.0})], set()),
        # The true posterior's two tests: where one of them rejects, nothing is said.
        ([(ONE, {"p_value": 0.0}), ({"method": "non_private", "n": 10}, {"p_value": 0.0124})], set()),
        ([(ONE, {"p_value": 0.0}), ({"method": "non_private", "n": 10}, {"z2_p": 0.0124})], set()),
        ([(ONE, {"p_value": 0.0}), ({"method": "non_private", "n": 10}, {"p_value": 0.0126})], {KS}),
        ([(ONE, {"p_value": 0.0}), ({"method": "non_private", "n": 100}, {"p_value": 0.0})], {KS}),
        # Draws of the parameters themselves: 5 % over two sets of data.
        ([(ONE, {"p_value": 0.0}), ({"n": 10}, {"prior_p": 0.0249})], set()),
        ([(ONE, {"p_value": 0.0}), ({"n": 10}, {"prior_p": 0.0251})], {KS}),
    ],
)  # fmt: skip
@pytest.mark.parametrize("id", ["B1", "B8", "B15"])
def test_calibration_fails_where_a_test_rejects_that_the_true_posterior_passes(id, moves, fails):
    table = rows(variant="corrected" if id == "B8" else "paper")
    for where, values in moves:
        table = moved(table, where, **values)
    if id == "B1":
        # Rows with public bounds are another claim's.
        other = rows(variant="corrected", p_value=0.0)
        assert failed(calibration, id, calibration=pd.concat([table, other])) == fails
    elif id == "B15":
        exact = {each.replace("Gibbs", calibration.NO_CHAIN) for each in (KS, Z2)}
        found = failed(calibration, id, families=table)
        assert found - exact == fails and (not found & exact or moves[0][0]["method"] == "exact")
    else:
        assert failed(shared, id, calibration=table, truncation=bounds(), convergence=chains()) == fails


def test_parameters_that_are_alike_share_a_test_of_z2():
    """Two categories at four points: eight tests by KS, four by z²."""
    both = [rows(model="multinomial", parameter=name, z2_of="theta_1 to theta_2") for name in ("theta_1", "theta_2")]
    for name, values in (("KS", ("p_value", 0.0031, 0.0032)), ("z²", ("z2_p", 0.0062, 0.0063))):
        for value, fails in zip(values[1:], (True, False), strict=True):
            table = pd.concat([moved(each, ONE, **{values[0]: value}) for each in both], ignore_index=True)
            found = failed(calibration, "B1", calibration=table)
            assert found == ({f"multinomial: {name} rejects Gibbs nowhere"} if fails else set())


def test_evidence_on_calibration_names_where_it_is_worst():
    table = moved(rows(), ONE, p_value=0.001, ks=0.09)
    table = moved(table, {"method": "gibbs", "n": 100, "epsilon": 1.0}, z2_p=0.01, sd_of_prior=0.96)
    table = moved(table, {"method": "gibbs", "n": 100, "epsilon": 0.1}, z2_p=0.002)
    table = moved(table, {"method": "exact", "n": 100, "epsilon": 0.1}, z2_p=0.002)
    found = scored(calibration, "B1", calibration=table)
    expected = {
        "where the p-value of Gibbs is smallest, binomial": "n=10, epsilon=0.1",
        "where the p-value by z² of Gibbs is smallest, binomial": "n=100, epsilon=0.1",
        "points where Gibbs rejects, binomial": 2,
        f"of these where {calibration.NO_CHAIN} does not, binomial": "n=10, epsilon=0.1",
        "left out, as draws of the true parameters fail, Gibbs": "none",
        "tests of Gibbs that reject, binomial": 1, "tests of Gibbs, binomial": 4,
        "largest KS of Gibbs, binomial": 0.09, "smallest p-value of Gibbs, binomial": 0.001,
        "tests of z² of Gibbs that reject, binomial": 1, "tests of z² of Gibbs that test the prior, binomial": 1,
    }  # fmt: skip
    assert {name: found.evidence[name] for name in expected} == expected
    assert "1 of 4 test the prior" in found.test
    left = moved(rows(), {"method": "non_private", "n": 10}, p_value=0.0)
    found = scored(calibration, "B1", calibration=left).evidence
    assert found["left out, as draws of the true parameters fail, Gibbs"] == "binomial, n=10"
    assert found["tests of Gibbs, binomial"] == 2
    none = scored(calibration, "B1", calibration=moved(rows(), {}, prior_p=0.0))
    assert none.verdict == "not testable" and "no test counts" in none.test


def naive_rows() -> pd.DataFrame:
    """KS of 0.5 at the smallest n and ε, 0.3 and 0.2 where one of them is larger, 0.1 where both are; two models."""
    table = pd.concat([rows(["naive"], p_value=0.02), rows(["naive"], model="exponential", p_value=0.02)])
    table = table.reset_index(drop=True)
    for place, ks in zip(CORNERS, (0.5, 0.2, 0.3, 0.1), strict=True):
        table = moved(table, dict(zip(("n", "epsilon"), place, strict=True)), ks=ks)
    return pd.concat([table, rows(["naive"], parameter="theta_2", p_value=1.0), rows(["gibbs"], p_value=1.0)])


@pytest.mark.parametrize(
    ("where", "values", "fails"),
    [
        # 5 % over two models; the difference of two statistics is within √2 limits of one, 0.0424.
        ({"n": 10, "epsilon": 0.1}, {"p_value": 0.0251}, "miscalibrated at the smallest n and epsilon"),
        ({"n": 10, "epsilon": 0.1}, {"p_value": 0.0249}, ""),
        ({"n": 100, "epsilon": 0.1}, {"ks": 0.4577}, "improves with n"),
        ({"n": 100, "epsilon": 0.1}, {"ks": 0.4575}, ""),
        ({"n": 10, "epsilon": 1.0}, {"ks": 0.4577}, "improves with epsilon"),
        ({"n": 10, "epsilon": 1.0}, {"ks": 0.4575}, ""),
        ({"n": 100, "epsilon": 1.0}, {"ks": 0.9}, ""),
    ],
)  # fmt: skip
def test_the_naive_method_improves_by_more_than_chance(where, values, fails):
    where = {**where, "model": "exponential", "method": "naive", "parameter": "theta"}
    found = scored(calibration, "B2", calibration=moved(naive_rows().reset_index(drop=True), where, **values))
    assert set(found.failed) == ({f"{fails} (exponential, paper)"} if fails else set())
    assert found.evidence["KS at the corners, binomial, paper"] == [0.5, 0.3, 0.2, 0.1]
    assert found.evidence["95 % limit of a KS statistic"] == 0.03


def test_ops_is_calibrated_nowhere_or_at_every_point():
    """B3: each of four p-values below 5 %/4. B13: KS and z² at half of that, where the parameters' own test passes."""
    joint = rows(["ops"], tempered="joint", p_value=0.0124, ks=0.2)
    alone = rows(["ops"], tempered="likelihood")
    table = pd.concat([joint, alone], ignore_index=True)
    place = {"n": 10, "epsilon": 0.1}
    assert failed(calibration, "B3", calibration=table) == set()
    above = moved(table, {**place, "tempered": "joint"}, p_value=0.0125, ks=0.1, ks_limit=0.02)
    found = scored(calibration, "B3", calibration=above)
    assert found.failed == ("n=10, epsilon=0.1",)
    shown = ("smallest KS", "largest KS", "95 % limit of a KS statistic")
    assert [found.evidence[name] for name in shown] == [0.1, 0.2, 0.03]
    lying = {**place, "tempered": "likelihood"}
    for test, (inside, outside) in product(("p_value", "z2_p"), [(0.0063, 0.0062)]):
        assert failed(calibration, "B13", calibration=moved(table, lying, **{test: inside})) == set()
        low = moved(table, lying, **{test: outside, "ks": 0.01})
        found = scored(calibration, "B13", calibration=low)
        assert found.failed == ("n=10, epsilon=0.1",) and found.evidence["smallest KS"] == 0.01
    # Two draws of data: 2.5 % each; the test of each remaining point is at 2.5 %/2.
    low = moved(low, lying, prior_p=0.0249)
    assert failed(calibration, "B13", calibration=low) == set()
    assert scored(calibration, "B13", calibration=moved(low, {}, prior_p=0.0)).verdict == "not testable"


def ecdf(method: str, tenth=0.13, quarter=0.2, three=0.8, nine=0.87, **values) -> pd.DataFrame:
    """A distribution function by its values at 0.1, 0.25, 0.75 and 0.9; in the middle its band is 0.02 wide."""
    at = {1.0: 1.0, 0.9: nine, 0.75: three, 0.6: 0.6, 0.5: 0.5, 0.4: 0.4, 0.25: quarter, 0.1: tenth, 0.0: 0.0}
    place = {"parameter": "theta", "tempered": "joint", "model": "binomial", "variant": "paper", "method": method}
    return pd.DataFrame(
        {**place, "u": u, "ecdf": f, "band_high": u + (0.02 if u == 0.5 else 0.3), **values} for u, f in at.items()
    )


@pytest.mark.parametrize(
    ("method", "values", "passes"),
    [
        # 0.2 and twice the limit of 0.02 in both outer tenths together, and 0.1 in either.
        ("naive", {"tenth": 0.13, "nine": 0.889}, True),
        ("naive", {"tenth": 0.13, "nine": 0.891}, False),
        ("naive", {"tenth": 0.15, "nine": 0.899}, True),
        ("naive", {"tenth": 0.15, "nine": 0.901}, False),
        ("naive", {"tenth": 0.101, "nine": 0.85}, True),
        ("naive", {"tenth": 0.1, "nine": 0.84}, False),
        # Half and twice the limit in the middle half.
        ("ops", {"quarter": 0.2, "three": 0.741}, True),
        ("ops", {"quarter": 0.2, "three": 0.739}, False),
    ],
)  # fmt: skip
def test_shapes_of_distribution_functions(method, values, passes):
    others = [ecdf(method, 0.1, 0.25, 0.75, 0.9, tempered="likelihood"), ecdf("gibbs", 0.1, 0.25, 0.75, 0.9)]
    others.append(ecdf(method, 0.1, 0.25, 0.75, 0.9, parameter="theta_2"))
    found = scored(calibration, "B4", ecdf=pd.concat([ecdf(method, **values), *others]))
    assert len(found.checks) == 1 and (not found.failed) == passes
    tenth, quarter, three, nine = ({"tenth": 0.13, "quarter": 0.2, "three": 0.8, "nine": 0.87} | values).values()
    shares = found.evidence[f"share in the outer tenths and in the middle half, {method}, binomial, paper"]
    assert shares == pytest.approx([tenth + 1 - nine, three - quarter])
    assert found.evidence["95 % limit of the sampling error of a share"] == pytest.approx(0.04)


def bounds(**values) -> pd.DataFrame:
    """Dependent and independent segments of redacted sums; no test rejects."""
    values = {"model": "exponential", **values}
    methods = ("non_private", "gibbs", "exact")
    return pd.concat(
        [rows(methods, variant="corrected", **values), rows(methods, variant="public_bounds", **values)],
        ignore_index=True,
    )


INDEPENDENT = "independent segments fail somewhere where dependent ones pass"
APART = {"method": "gibbs", "variant": "public_bounds", "n": 10, "epsilon": 0.1}


@pytest.mark.parametrize("test", ["p_value", "z2_p"])
def test_segments_tell_whether_public_bounds_are_calibrated(test):
    """Half of 5 % over four points, of each variant and method by itself."""
    table = moved(bounds(), APART, **{test: 0.0062})
    found = scored(calibration, "B10", truncation=table)
    assert not found.failed and len(found.checks) == 9
    assert found.evidence["where independent segments alone fail"] == "n=10, epsilon=0.1"
    assert failed(calibration, "B10", truncation=moved(bounds(), APART, **{test: 0.0063})) == {INDEPENDENT}
    for method, words in (("gibbs", "dependent segments pass"), ("exact", "no chain passes")):
        # Where dependent segments fail too, independent ones do not fail alone.
        other = {INDEPENDENT} if method == "gibbs" else set()
        dependent = {**APART, "variant": "corrected", "method": method}
        assert failed(calibration, "B10", truncation=moved(table, dependent, **{test: 0.0063})) == set()
        found = failed(calibration, "B10", truncation=moved(table, dependent, **{test: 0.0062}))
        assert found == {f"{words} (n=10, epsilon=0.1)"} | other


def test_public_bounds_fail_with_stuck_chains_beside_them():
    table = moved(bounds(), {**APART, "variant": "corrected"}, p_value=0.0062)
    tables = {"calibration": rows(variant="corrected"), "convergence": chains()}
    found = scored(shared, "B8", truncation=table, **tables)
    assert found.failed == ("exponential, truncation, n=10, epsilon=0.1",)
    stuck = {name: value for name, value in found.evidence.items() if "stuck" in name}
    assert stuck == {"share of releases with stuck chains, n=10, epsilon=0.1": 0.03}
    assert "stuck" not in str(scored(shared, "B8", truncation=bounds(), **tables).evidence)


def categories() -> pd.DataFrame:
    """Three categories at four points; the naive method fails by KS."""
    values = {"model": "multinomial", "z2_of": "theta_1 to theta_3"}
    names = ("theta_1", "theta_2", "theta_3")
    gibbs = [rows(["gibbs"], parameter=name, **values) for name in names]
    naive = [rows(["naive"], parameter=name, p_value=0.003, **values) for name in names]
    return pd.concat([*gibbs, *naive, rows(["gibbs", "naive"], parameter="theta_2", p_value=0.0)], ignore_index=True)


@pytest.mark.parametrize(
    ("where", "values", "fails"),
    [
        # Two categories are not shown, at four points: half of 5 % over eight tests by KS, four by z².
        (ONE, {"p_value": 0.0031}, "Gibbs is calibrated at every n and epsilon"),
        (ONE, {"p_value": 0.0032}, ""),
        (ONE, {"z2_p": 0.0062}, "Gibbs is calibrated at every n and epsilon"),
        (ONE, {"z2_p": 0.0063}, ""),
        ({**ONE, "method": "naive"}, {"p_value": 0.003125}, "naive is miscalibrated at the smallest n and epsilon"),
        ({**ONE, "method": "naive"}, {"p_value": 0.0031}, ""),
        ({**ONE, "method": "naive", "epsilon": 1.0}, {"p_value": 1.0}, ""),
    ],
)  # fmt: skip
def test_categories_that_are_not_shown(where, values, fails):
    where = {**where, "model": "multinomial", "parameter": "theta_3"}
    found = scored(calibration, "B11", calibration=moved(categories(), where, ks=0.3, ks_limit=0.02, **values))
    assert set(found.failed) == ({f"{fails} (theta_3)"} if fails else set())
    assert found.evidence["p value below which a test rejects"] == pytest.approx(0.025 / 8)
    assert found.evidence["p value of z² below which a test rejects"] == pytest.approx(0.025 / 4)
    assert found.evidence["95 % limit of a KS statistic"] == 0.03
    if where["method"] == "gibbs":
        expected = {"p_value": 0.5, "z2_p": 0.5, **values}
        assert found.evidence["largest KS statistic of Gibbs, theta_3"] == 0.3
        assert found.evidence["smallest p value of Gibbs, theta_3"] == expected["p_value"]
        assert found.evidence["smallest p value of z², Gibbs"] == expected["z2_p"]


def chains(**values) -> pd.DataFrame:
    """Chains of every n and ε that are long enough."""
    values = {
        "sampler": "gibbs", "model": "exponential", "variant": "corrected", "rhat": 1.05, "rhat_median": 1.0,
        "ess_bulk": 800.0, "n_chains": 4, "stuck_share": 0.03, "biased_share": 0.01, "n_draws": 5000, **values,
    }  # fmt: skip
    return pd.DataFrame({**values, "n": n, "epsilon": epsilon} for n, epsilon in CORNERS)


@pytest.mark.parametrize(
    ("values", "passes"),
    [
        ({"rhat_median": 1.0099}, True), ({"rhat_median": 1.01}, False),
        ({"ess_bulk": 400.0}, True), ({"ess_bulk": 399.0}, False),
    ],
)  # fmt: skip
def test_chains_are_long_enough(values, passes):
    """R-hat below 1.01, and at least 100 effective draws of each of four chains."""
    place = {"n": 10, "epsilon": 0.1}
    worst = {"rhat": 1.2, "stuck_share": 0.2, "biased_share": 0.1}
    table = moved(moved(chains(), place, **values), {"n": 100, "epsilon": 0.1}, **worst)
    table = pd.concat([moved(table, {"n": 100}, n_draws=4000), chains(sampler="other", rhat=9.0, rhat_median=9.0)])
    found = scored(convergence, "B9", convergence=table)
    assert set(found.failed) == (set() if passes else {"exponential, epsilon=0.1"})
    name = "exponential, epsilon=0.1"
    assert found.evidence["draws of one chain"] == 5000
    paper = "exponential, bounds of the paper, epsilon=0.1"
    both = scored(convergence, "B9", convergence=pd.concat([chains(), table.assign(variant="paper")]))
    assert set(both.failed) == (set() if passes else {paper}) and len(both.checks) == 4
    least = values.get("ess_bulk", 800.0) / 4
    assert found.evidence[f"fewest effective draws of one chain, {name} (n=10)"] == least
    assert found.evidence[f"largest R-hat, {name} (n=100)"] == 1.2
    assert found.evidence[f"largest share of releases with stuck chains, {name} (n=100)"] == 0.2
    assert found.evidence[f"largest share of releases with a biased chain, {name}"] == 0.1
