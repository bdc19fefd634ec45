"""Checks and evidence of claims on tables made by hand, whose numbers are easy to check by hand."""

from __future__ import annotations

import math
from statistics import NormalDist

import pandas as pd
import pytest

from privpost.experiments.fair_axis.beta_bernoulli import claims as fair_axis
from privpost.experiments.foulds2016.sampling_error import claims as sampling_error
from privpost.experiments.geumlek2017.theorem15 import claims as theorem15
from privpost.experiments.geumlek2017.tradeoff import claims as tradeoff
from privpost.lab.claims import declared, score

SIZES = (10, 20, 30, 100, 1000, 10_000)


def errors(ops=2.08, laplace=1.04, ahead=-1.0) -> pd.DataFrame:
    """Errors of 1/√n; multiples of that for OPS at T = 7 and, at the end, for Laplace.

    Standard errors are tiny, and those of OPS less Laplace grow with n.
    """
    over = {"ops": ops, "laplace": laplace, "non_private": 1.0}
    more = {"ops": [0] * 6, "laplace": [1, 0.7, 0.5, 0.3, 0.2, 0], "non_private": [0] * 6}
    return pd.DataFrame(
        {
            "method": method, "n": n, "temperature": 7.0, "l1_mean": (ratio + more[method][i]) / math.sqrt(n),
            "over_true_sem": 1e-6, "over_laplace_sem": 1e-9 * n,
            "over_laplace_mean": ahead if n == 10 else 0.5 + n / 1000,
        }
        for method, ratio in over.items() for i, n in enumerate(SIZES)
    )  # fmt: skip


def claims(module, **tables) -> dict:
    return {claim.id: claim for claim in score(module, tables)}


def test_claims_on_sampling_errors():
    found = claims(sampling_error, sampling_error=errors())
    assert {claim.verdict for claim in found.values()} == {"holds"}
    # 4 % from the limit √((1 + 7)/2) = 2, and an error as from a sample 2.08² times smaller.
    evidence = found["F3"].evidence
    assert evidence["OPS / true posterior at n = 10000"] == pytest.approx(2.08)
    assert evidence["limit sqrt((1 + T)/2)"] == pytest.approx(2)
    assert evidence["records of a true posterior with the error of OPS at n = 10000"] == pytest.approx(10_000 / 2.08**2)
    assert evidence["share of records that count, 2/(1 + T)"] == 0.25
    assert claims(sampling_error, sampling_error=errors(ops=2.12))["F3"].verdict != "holds"
    assert claims(sampling_error, sampling_error=errors(laplace=1.06))["F2"].verdict != "holds"
    assert claims(sampling_error, sampling_error=errors(ahead=0.1))["F1"].verdict != "holds"
    evidence = found["F1"].evidence
    assert (evidence["largest n with OPS ahead"], evidence["smallest n with OPS behind"]) == (10, 20)
    assert evidence["largest standard error of these"] == pytest.approx(2e-8)
    shown = {name: value for name, value in evidence.items() if name.startswith("OPS minus Laplace")}
    small = [n for n in SIZES if n <= 2 * sampling_error.SMALL]
    assert shown == {f"OPS minus Laplace at n = {n}": -1.0 if n == 10 else 0.5 + n / 1000 for n in small}
    assert found["F2"].evidence["Laplace / true posterior at n = 1000"] == pytest.approx(1.24)

    # Two decades from 1000 on, six sizes of OPS: one thousandth over that number of two-sided tests.
    for key, comparisons in (("F1", 6), ("F2", 2), ("F3", 6)):
        assert f"{-NormalDist().inv_cdf(0.0005 / comparisons):.2f} standard errors" in found[key].test
    # Without a decade there is nothing to share.
    few = claims(sampling_error, sampling_error=errors().query("n < 1000"))["F2"].test
    assert f"{-NormalDist().inv_cdf(0.0005):.2f} standard errors" in few


def test_where_no_method_is_ahead_there_is_no_first_size():
    for ahead, name in ((1.0, "largest n with OPS ahead"), (-1.0, "smallest n with OPS behind")):
        table = errors().assign(over_laplace_mean=ahead)
        assert claims(sampling_error, sampling_error=table)["F1"].evidence[name] is None


def test_claims_on_theorem_15():
    sizes = {"n": [2, 2, 9], "order": [2.0, 5.0, 2.0], "coefficient": 1.0}
    table = pd.DataFrame({**sizes, "at_ends": [2.0, 4.0, 5.0], "inside": [1.0, 3.0, 5.0]})
    table = table.assign(convexity=[0.1, 0.2, 0.3], excess_pairs=[3, 4, 5])
    found = claims(theorem15, theorem15=table)
    assert {claim.verdict for claim in found.values()} == {"holds"}
    evidence = found["G24"].evidence
    assert [evidence[f"largest divergence elsewhere over that at the ends, n = {n}"] for n in (2, 9)] == [0.75, 1.0]
    table.loc[2, "inside"] = 5.1
    assert claims(theorem15, theorem15=table)["G24"].verdict != "holds"


@pytest.mark.parametrize("leads, holds", [([-1.0, 1.0], False), ([-1.0, -1.0], True)])
def test_claims_on_draws_of_bits(leads, holds):
    """Diffused sampling leads Laplace noise, its one rival, at one epsilon of two or at both: most is over half."""
    place = [{"accounting": "exact", "n": 5, "epsilon": each, "delta": 0.01, "metric": "kl"} for each in (1.0, 2.0)]
    couple = {"first": "diffused", "second": "laplace", "difference_sem": 0.01}
    pairs = [{**at, **couple, "difference_mean": lead} for at, lead in zip(place, leads, strict=True)]
    means = {"mean": 1.0, "sem": 0.1, "setting": 0.5}
    rows = [{**at, **means, "method": method} for at in place for method in ("diffused", "laplace")]
    tables = {"beta_bernoulli": pd.DataFrame(rows), "beta_bernoulli_pairs": pd.DataFrame(pairs)}
    (claim,) = (each.score(tables) for each in declared(fair_axis) if each.id == "X1")
    assert (claim.verdict == "holds") == holds


@pytest.mark.parametrize(
    "density, modes", [([0.9, 0.1, 0.8], 2), ([0.1, 0.9, 0.2], 1), ([0.9, 0.2, 0.04], 1), ([2.0, 0.02, 0.1], 1)]
)
def test_modes_of_a_density_may_stand_at_its_ends(density, modes):
    """Counted by eye, whatever the order of the rows."""
    curve = pd.DataFrame({"theta": [0.0, 0.5, 1.0], "density": density})
    assert tradeoff.modes(curve) == tradeoff.modes(curve[::-1]) == modes
