"""The beta-Bernoulli studies of Foulds et al. (2016): known values, enumeration, other arithmetic, and the claims."""

import io
import math
from dataclasses import dataclass
from types import SimpleNamespace
from typing import ClassVar

import numpy as np
import pandas as pd
import pytest
from scipy.integrate import quad
from scipy.special import betainc, gammaln, xlog1py, xlogy

from privpost import discovery
from privpost.discovery import serving
from privpost.drawing import style
from privpost.evaluation.multiplicity import critical_value
from privpost.experiments.foulds2016.efficiency import study as efficiency
from privpost.experiments.foulds2016.mechanisms_table import study as mechanisms_table
from privpost.lab import grid, tables
from privpost.lab.schema import SettingError
from privpost.lab.streams import Streams
from privpost.mechanisms import ExponentialMechanism, LaplaceMechanism
from privpost.models import BetaBernoulli
from privpost.privacy.accounting.costs import Cost
from privpost.privacy.ledger.gate import Ledger

STUDIES = [
    "posterior_shapes",
    "sampling_error",
    "efficiency",
    "posterior_divergence",
    "adversary",
    "mechanisms_table",
]
UNIFORM = BetaBernoulli(1, 1)


@pytest.fixture(scope="module")
def shipped():
    return {
        name: table
        for study in STUDIES
        for name, table in tables.read_tables(grid.load_study(f"foulds2016/{study}")).items()
    }


def run(study):
    """A study's tables in memory, as the table job would write and read them."""
    module, results = study.module(), []
    for cell in grid.expand(study):
        arrays = module.simulate(cell.config, Streams.of(cell), Ledger())
        results.append(SimpleNamespace(config=cell.config, arrays={k: np.asarray(v) for k, v in arrays.items()}))
    found = tables.tables_of(study, results)
    return {name: pd.read_csv(io.StringIO(table.to_csv(index=False))) for name, table in found.items()}


# Sampling error


@pytest.mark.parametrize(
    ("n", "method", "expected", "digits"),
    [
        (10, "non_private", 0.106, 0.001),
        (10, "ops", 0.379, 0.001),
        (1000, "non_private", 0.011, 0.0005),
        (1000, "laplace", 0.022, 0.0005),
        (1000, "ops", 0.066, 0.0005),
        (100000, "non_private", 0.0011, 0.00005),
        (100000, "laplace", 0.0011, 0.00005),
        (100000, "ops", 0.0058, 0.0001),
    ],
)
def test_sampling_error_has_the_known_values(shipped, n, method, expected, digits):
    table = shipped["sampling_error"]
    row = table[(table.n == n) & (table.method == method)].iloc[0]
    # The values were given to two or three digits, from a thousand repeats.
    assert row.l1_mean == pytest.approx(expected, abs=digits + 3 * row.l1_sem)


def expected_error_of_beta(a, b, p):
    """E|θ − p| for θ ~ Beta(a, b), from incomplete beta functions."""
    mean = a / (a + b)
    return 2 * (p * betainc(a, b, p) - mean * betainc(a + 1, b, p)) + mean - p


def binomial(n, p):
    s = np.arange(n + 1.0)
    return s, np.exp(gammaln(n + 1) - gammaln(s + 1) - gammaln(n - s + 1) + xlogy(s, p) + xlog1py(n - s, -p))


def clipped_laplace(count, scale):
    """Nodes and weights of max(0, count + Lap(scale)): an atom at 0 and Gauss-Legendre panels either side."""
    x, w = np.polynomial.legendre.leggauss(16)
    edges = np.concatenate([np.linspace(0, count, 3), count + scale * np.array([0.5, 1.5, 4, 10, 20, 40])])
    half, middle = np.diff(edges)[:, None] / 2, (edges[1:] + edges[:-1])[:, None] / 2
    nodes = (middle + half * x).ravel()
    weights = (half * w).ravel() * np.exp(-np.abs(nodes - count) / scale) / (2 * scale)
    return np.append(nodes, 0.0), np.append(weights, math.exp(-count / scale) / 2)


def test_mean_errors_against_exact_expectations(shipped):
    table, p, n = shipped["sampling_error"], 0.1, 10
    successes, weight = binomial(n, p)
    truth = weight @ expected_error_of_beta(1 + successes, 1 + n - successes, p)
    laplace = 0.0
    for s, probability in zip(successes, weight, strict=True):
        (u, wu), (v, wv) = clipped_laplace(s, 20.0), clipped_laplace(n - s, 20.0)
        assert wu.sum() == pytest.approx(1, abs=1e-10)
        laplace += probability * (wu @ expected_error_of_beta(1 + u[:, None], 1 + v, p) @ wv)
    ops = 0.0
    temperature = 2 * math.log(19) / 0.1
    for s, probability in zip(successes, weight, strict=True):

        def kernel(theta, s=s):
            return math.exp((s * math.log(theta) + (n - s) * math.log1p(-theta)) / temperature)

        total = quad(kernel, 0.05, 0.95)[0]
        pieces = quad(lambda t: (p - t) * kernel(t), 0.05, p)[0] + quad(lambda t: (t - p) * kernel(t), p, 0.95)[0]
        ops += probability * pieces / total
    # One reference value for Laplace had been .361 from a thousand repeats, whose standard error is .01.
    assert laplace == pytest.approx(0.361, abs=0.01)
    for method, exact in (("non_private", truth), ("laplace", laplace), ("ops", ops)):
        row = table[(table.n == n) & (table.method == method)].iloc[0]
        # 4 standard errors: a false alarm in 5000 builds per method.
        assert abs(row.l1_mean - exact) < 4 * row.l1_sem


# Efficiency


@pytest.mark.parametrize(("n", "expected"), [(10000, 2.73), (100000, 2.074), (1000000, 2.008)])
def test_efficiency_of_a_laplace_sample_has_the_known_values(shipped, n, expected):
    table = shipped["efficiency"]
    chosen = (table.method == "laplace") & (table.statistic == "sample") & (table.p == 0.1) & (table.epsilon == 0.1)
    row = table[chosen & (table.n == n)].iloc[0]
    assert row["are"] == pytest.approx(expected, abs=3 * row["sem"] + 0.005)
    assert row.are_first_order == pytest.approx(expected, abs=0.002)


# Mechanisms that serve


@dataclass(frozen=True)
class ToyNoise(LaplaceMechanism):
    """A mechanism that nobody listed."""

    method: ClassVar[str] = "toy_noise"


@dataclass(frozen=True)
class DemandingNoise(LaplaceMechanism):
    """One that needs a setting which no study has."""

    method: ClassVar[str] = "demanding_noise"

    @classmethod
    def calibrate(cls, model, n, budget, *, unheard_of):
        raise AssertionError("must not be called without its setting")


def test_only_mechanisms_with_a_pure_guarantee_and_their_settings_serve():
    served = serving(UNIFORM, 10, Cost("pure", 0.5), a0=0.1)
    assert {"laplace", "ops"} <= set(served)
    assert not {"gaussian", "direct", "diffused", "concentrated"} & set(served)
    assert served["ops"] == ExponentialMechanism(UNIFORM, 10, 0.5, a0=0.1)
    assert served["laplace"] == LaplaceMechanism(UNIFORM, 10, 0.5)
    assert "ops" not in serving(UNIFORM, 10, Cost("pure", 0.5))
    assert served["ops"].cost().within(Cost("pure", 0.5))
    free = serving(UNIFORM, 10, Cost("pure", 0.5), coordinates="free")
    assert free["laplace"].coordinates == "free"
    rdp = serving(BetaBernoulli(6, 12), 10, Cost("rdp", 0.5, order=2.0), a0=0.1)
    assert {"gaussian", "diffused", "concentrated", "direct", "laplace", "ops"} <= set(rdp)


def test_every_mechanism_serves_bits_or_refuses_with_a_value_error():
    for budget in (Cost("pure", 1.0), Cost("rdp", 1.0, order=2.0)):
        # Any other exception would pass through.
        assert set(serving(UNIFORM, 10, budget, a0=0.1)) <= set(discovery.mechanisms())


def test_a_new_mechanism_appears_in_the_efficiency_study_by_itself(monkeypatch):
    before = efficiency.SETTINGS.fields["methods"].normalise("all")
    shipped = discovery.mechanisms()
    added = dict(shipped)
    for kind in (ToyNoise, DemandingNoise):
        added[kind.method] = (discovery.Kind(kind, {}, tuple(kind.examples())),)
    monkeypatch.setattr(discovery, "mechanisms", lambda: added)
    study = grid.load_study("foulds2016/efficiency", "smoke")
    assert grid.expand(study)[0].settings["methods"] == sorted([*before, "toy_noise"])
    table = run(study)["efficiency"]
    toy = table[(table.method == "toy_noise") & (table.statistic == "sample")]
    assert len(toy) and (toy.are_limit == 2).all()
    assert style.look("toy_noise").color in style.RESERVE


def test_methods_are_all_or_a_list_of_known_ones():
    assert efficiency.SETTINGS.fields["methods"].normalise(["ops", "laplace"]) == ["laplace", "ops"]
    known = efficiency.known()
    assert efficiency.SETTINGS.value("methods", "all", "here") == sorted(known)
    assert {"laplace", "non_private", "ops"} <= set(known)
    for wrong in (["gaussian"], [], "laplace", ["laplace", "no_such"]):
        with pytest.raises(SettingError, match=r"methods(: .* is none of| is .*must be all or a list of) .*laplace, "):
            efficiency.SETTINGS.value("methods", wrong, "here")


# Enumeration of sensitivities and guarantees, and the table of mechanisms


def test_enumeration_finds_a_sensitivity_that_is_too_small(monkeypatch):
    monkeypatch.setattr(LaplaceMechanism, "sensitivity", property(lambda self: 1.0))
    broken = LaplaceMechanism(UNIFORM, 4, 0.5, coordinates="all")
    assert mechanisms_table.largest_change(broken) > broken.sensitivity
    assert mechanisms_table.largest_loss(broken, mechanisms_table.releases(broken)) > 0.5 * 1.9


# Posterior shapes


def test_critical_value_is_bonferronis():
    assert critical_value(1, 0.05) == pytest.approx(1.959964, abs=1e-6)
    assert critical_value(10, 0.05) == pytest.approx(critical_value(1, 0.005), rel=1e-12)
    for arguments, message in (((0,), "comparisons is 0"), ((1, 1.0), "false_alarm is 1.0")):
        with pytest.raises(ValueError, match=message):
            critical_value(*arguments)
