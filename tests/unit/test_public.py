"""What `import privpost` gives: names that are loaded on first use, one-line refusals, noise-aware posteriors."""

from __future__ import annotations

import ast
import dataclasses
import doctest
import importlib
import inspect
import io
import itertools
import pydoc
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from scipy import stats

import privpost
from privpost import discovery
from privpost.mechanisms.pure import PureMechanism
from privpost.models.base import Checked
from privpost.samplers.noise_aware import exact as noise_aware_exact
from privpost.samplers.noise_aware import exact_counts

PURE = privpost.Cost("pure", 1.0)


def test_every_mechanism_and_model_is_a_name_of_the_package_and_no_base_or_helper():
    found = {kind.mechanism for kind in discovery.kinds()} | set(discovery.models().values())
    for kind in found:
        assert getattr(privpost, kind.__name__) is kind
        assert kind.__name__ in dir(privpost)
    others = set(privpost.__all__) - {kind.__name__ for kind in found}
    assert others == {
        *("BinaryRegression", "LinkRegression", "LinearRegression", "NormalRegression", "EventCounts"),
        *("RedactedSum", "ClampedMoments"),
        *("Cost", "Ledger", "Release", "serving", "assess", "ks_statistic", "mmd2", "results"),
        *("compose", "NotConverged", "SecureNoise", "SimulationNoise"),
    }
    for module in (privpost, privpost.mechanisms):
        with pytest.raises(AttributeError, match="no attribute 'LaplaceMechansim'; did you mean 'LaplaceMechanism'"):
            _ = module.LaplaceMechansim
    # The first word of a name means that name.
    with pytest.raises(AttributeError, match="no attribute 'Laplace'; did you mean 'LaplaceMechanism'"):
        _ = privpost.Laplace


@pytest.mark.parametrize("name", privpost.__all__)
def test_every_public_name_has_an_example_that_runs(name):
    public = {each: getattr(privpost, each) for each in privpost.__all__}
    given = {**public, "np": np, "rng": np.random.default_rng(1)}
    cases = [
        case for case in doctest.DocTestFinder(recurse=False).find(public[name], name, globs=given) if case.examples
    ]
    assert cases, f"{name} has no example in its docstring"
    report = io.StringIO()
    failed, _ = doctest.DocTestRunner().run(cases[0], out=report.write)
    assert not failed, report.getvalue()


STRICT = """
import numpy as np
from privpost import BetaBernoulli, Cost, ExponentialMechanism, GaussianMechanism
from privpost import LaplaceMechanism, Ledger, MomentsLaplace, NormalRegression, PosteriorDraw
model, rng = BetaBernoulli(1, 1), np.random.default_rng(1)
statistics = model.sufficient_statistics(np.array([0, 1, 1, 0]))
laplace = LaplaceMechanism.calibrate(model, 4, Cost("pure", 0.5), coordinates="free")
draw = PosteriorDraw.calibrate(model, 4, Cost("rdp", 0.5, order=2), weighting="diffused")
normal = GaussianMechanism.calibrate(model, 4, Cost("approximate", 0.5, delta=1e-5))
ops = ExponentialMechanism.calibrate(model, 4, Cost("pure", 0.5), a0=0.1)
ledger = Ledger()
ledger.open("survey", Cost("pure", 1.0), laplace)
release = ledger.release("survey", laplace, statistics, rng).values
moments = MomentsLaplace(NormalRegression(dimension=2), 4, epsilon=1.0)
names = moments.posterior(np.zeros(6), 200, rng).names
print(laplace.posterior(release, 100, rng).diagnostics, names)
print(draw.cost(), normal.perturb(statistics, rng), ops.rdp(2.0))
"""


@pytest.mark.parametrize(
    ("right", "wrong"),
    [
        ("", ""),
        ('coordinates="free"', 'coordinate="free"'),
        ('weighting="diffused"', 'weighting="difused"'),
        ('"approximate"', '"aprox"'),
        (", a0=0.1", ""),
        ("np.zeros(6), 200, rng", 'np.zeros(6), "200", rng'),
        ("posterior(release, 100, rng)", "posterior(model, 100, rng)"),
        (".names", ".parameters"),
        ("dimension=2", "dimensions=2"),
    ],
)
def test_a_type_checker_accepts_a_script_and_finds_its_mistakes(right, wrong, tmp_path):
    api = pytest.importorskip("mypy.api")
    script = tmp_path / "script.py"
    script.write_text(STRICT.replace(right, wrong) if right else STRICT)
    options = ["--strict", "--follow-imports=silent", f"--cache-dir={tmp_path.parent / 'mypy'}", "--config-file="]
    source = str(Path(privpost.__file__).parents[1])
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("MYPYPATH", source)
        output, _, status = api.run([*options, str(script)])
    assert (status != 0) is bool(right), output


@pytest.mark.parametrize("name", [name for name in dir(privpost) if type(getattr(privpost, name)) is Checked])
def test_a_class_shows_its_own_signature(name):
    """What help and notebooks show was (*arguments, **settings), that of the metaclass."""
    member = getattr(privpost, name)
    known = [*inspect.signature(member).parameters.values()]
    assert known == [*inspect.signature(member.__init__).parameters.values()][1:]
    if dataclasses.is_dataclass(member):
        assert {entry.name for entry in known} == {entry.name for entry in dataclasses.fields(member) if entry.init}


def test_the_signature_of_a_model_is_what_its_documentation_says():
    shown = "(dimension: int, prior_precision: float = 1.0, shape: float = 1.0, rate: float = 1.0, "
    shown += "degrees: float = 10.0, feature_scale: float = 1.0, feature_bound: float = 1.0, label_bound: float = 1.0)"
    assert str(inspect.signature(privpost.NormalRegression)) == shown
    assert shown in pydoc.render_doc(privpost.NormalRegression)


def names_in_stub(package):
    """What a package's stub hands on, with where it is defined."""
    known = {}
    stub = Path(importlib.import_module(package).__file__).with_suffix(".pyi")
    for node in (node for node in ast.parse(stub.read_text()).body if isinstance(node, ast.ImportFrom)):
        for alias in node.names:
            known |= names_in_stub(node.module) if alias.name == "*" else {alias.asname: f"{node.module}.{alias.name}"}
    return known


@pytest.mark.parametrize("package", ["privpost", "privpost.mechanisms", "privpost.models"])
def test_type_checkers_know_the_names_that_are_found_at_run_time(package):
    module = importlib.import_module(package)
    known = names_in_stub(package)
    assert set(known) <= set(dir(module))
    for name, home in known.items():
        defined, _, original = home.rpartition(".")
        assert getattr(importlib.import_module(defined), original) is getattr(module, name)


def test_noise_is_on_one_count_of_bits_unless_asked_for():
    bits, three = privpost.BetaBernoulli(1, 1), privpost.DirichletCategorical((1, 1, 1))
    assert privpost.LaplaceMechanism.calibrate(bits, 10, PURE).perturb([3, 7], np.random.default_rng(1)).shape == (1,)
    assert privpost.LaplaceMechanism(bits, 10, 1.0).scale == 1
    assert privpost.LaplaceMechanism(bits, 10, 1.0, coordinates="all").scale == 2
    assert privpost.LaplaceMechanism(three, 10, 1.0).coordinates == "all"


def test_importing_the_package_imports_nothing_heavy():
    code = "import privpost, sys; dir(privpost); sys.exit('numpy' in sys.modules or 'yaml' in sys.modules)"
    subprocess.run([sys.executable, "-c", code], check=True)
    assert (Path(privpost.__file__).parent / "py.typed").is_file()


@pytest.mark.parametrize("budget", [0.5, None, "1"])
def test_a_budget_that_is_no_cost_is_refused(budget):
    for kind in (privpost.LaplaceMechanism, privpost.GaussianMechanism, privpost.PosteriorDraw):
        with pytest.raises(ValueError, match=r"^budget is .*; it must be a Cost, for instance"):
            options = {"weighting": "concentrated"} if kind.weightings else {}
            kind.calibrate(privpost.BetaBernoulli(1, 1), 400, budget, **options)


def test_a_release_about_other_than_n_records_or_without_a_generator_is_refused_and_costs_nothing():
    mechanism = privpost.LaplaceMechanism(privpost.BetaBernoulli(1, 1), 400, 0.5)
    ledger, rng = privpost.Ledger(), np.random.default_rng(1)
    ledger.open("survey", PURE)
    with pytest.raises(ValueError, match=r"^n is 400, but the statistics are those of 100 records$"):
        ledger.release("survey", mechanism, [30, 70], rng)
    for source in (1, None, "seed"):
        with pytest.raises(ValueError, match=r"^rng is .*; it must be a numpy Generator"):
            ledger.release("survey", mechanism, [100, 300], source)
    assert ledger.spent("survey").epsilon == 0
    ledger.release("survey", mechanism, [100, 300], rng)


@pytest.mark.parametrize(
    ("make", "coordinates"),
    [
        (lambda model, c: privpost.LaplaceMechanism(model, 6, 0.8, coordinates=c), "all"),
        (lambda model, c: privpost.LaplaceMechanism(model, 6, 0.8, coordinates=c), "free"),
        (lambda model, c: privpost.GaussianMechanism(model, 6, 1.0, order=2.0, coordinates=c), "free"),
    ],
    ids=["laplace-all", "laplace-free", "gaussian-free"],
)
def test_counts_have_the_law_that_enumeration_gives(make, coordinates):
    """Against the sum over all 28 tables of 6 records in 3 categories: chi-square at 10^-4, of 40,000 draws."""
    model = privpost.DirichletCategorical((1.0, 2.0, 0.5))
    mechanism = make(model, coordinates)
    release = np.array([4.1, 3.2, -1.5])[: 3 if coordinates == "all" else 2]
    tables = np.array([s for s in itertools.product(range(7), repeat=3) if sum(s) == 6])
    log_law = mechanism.log_density(release, tables) + stats.dirichlet_multinomial.logpmf(tables, model.prior, 6)
    law = np.exp(log_law - log_law.max())
    law /= law.sum()
    rng = np.random.default_rng(3)
    theta = mechanism.posterior(release, 40_000, rng)
    # The posterior mean of θ is a mean over tables; its error is at most 0.5/√40000 a coordinate.
    expected = law @ ((tables + model.prior) / (6 + model.prior.sum()))
    assert theta.mean(axis=0) == pytest.approx(expected, abs=4 * 0.3 / 200)
    counts = mechanism_counts(mechanism, release, 40_000, rng)
    places = {tuple(table): place for place, table in enumerate(tables)}
    seen = np.bincount([places[tuple(row)] for row in counts], minlength=len(tables))
    often = law * 40_000 > 5
    observed, wanted = [np.append(x[often], x[~often].sum()) for x in (seen, law * 40_000)]
    kept = wanted > 0
    assert stats.chisquare(observed[kept], wanted[kept]).pvalue > 1e-4


def mechanism_counts(mechanism, release, draws, rng):
    """Return the counts that `posterior` draws before θ."""
    found = []
    with pytest.MonkeyPatch.context() as patch:
        drawn = exact_counts.latent_counts
        patch.setattr(exact_counts, "latent_counts", lambda *given: found.append(drawn(*given)) or found[-1])
        mechanism.posterior(release, draws, rng)
    return found[0]


def test_the_posterior_of_bits_has_the_exact_distribution_function():
    """Against `posterior_cdf`, a sum without draws: Kolmogorov-Smirnov at 10^-4."""
    mechanism = privpost.LaplaceMechanism(privpost.BetaBernoulli(2, 3), 50, 0.2, coordinates="free")
    draws = mechanism.posterior(np.array([12.0]), 5000, np.random.default_rng(5))
    release = np.full((1, 5000), 12.0)
    uniform = noise_aware_exact.posterior_cdf((2, 3), release, draws, 50, [mechanism.scale])[0]
    assert stats.kstest(uniform, "uniform").pvalue > 1e-4
    # Noise-aware is wider than the update that takes the noisy count for a count.
    assert draws.std() > 1.1 * np.sqrt(mechanism.model.variance(mechanism.naive_posterior(np.array([12.0]))))


def test_what_has_no_noise_aware_posterior_says_so():
    sampler = privpost.PosteriorDraw(privpost.BetaBernoulli(1, 1), 10, 2.0, weighting="direct")
    with pytest.raises(ValueError, match=r"^PosteriorDraw has no noise-aware posterior for BetaBernoulli"):
        sampler.posterior(0.5, 10, np.random.default_rng(1))
    for release, draws, rng, message in (
        ([3.0], 10, np.random.default_rng(1), r"^release has the shape \(1,\); one release has \(2,\)"),
        ([3.0, 7.0], 0, np.random.default_rng(1), "^draws is 0; it must be"),
        ([3.0, 7.0], 10, 1, "^rng is 1; it must be"),
    ):
        with pytest.raises(ValueError, match=message):
            LAPLACE.posterior(np.array(release), draws, rng)


BITS, RNG, RENYI = privpost.BetaBernoulli(1, 1), np.random.default_rng(1), privpost.Cost("rdp", 1.0, order=2.0)
DELTA = privpost.Cost("approximate", 0.1, delta=1e-6)
TIMES = privpost.models.GammaExponential(2, 2)
LAPLACE = privpost.LaplaceMechanism(BITS, 10, 0.5, coordinates="all")


def spend(mechanism, statistics, rng, **given):
    """Ask a ledger for a release."""
    ledger = privpost.Ledger()
    ledger.open("survey", PURE)
    return ledger.release("survey", mechanism, statistics, rng, **given)


@pytest.mark.parametrize(
    ("ask", "message"),
    [
        (lambda: privpost.Cost("pure", "1"), r"^epsilon is '1'; it must be >= 0"),
        (lambda: privpost.Cost("rdp", 1.0, order="2"), r"^order is '2'; an rdp cost needs an order >= 1$"),
        (lambda: privpost.BetaBernoulli("1", 1), r"^alpha is '1'; it must be > 0 and finite$"),
        (lambda: privpost.DirichletCategorical(3), r"^concentration is 3; it must be numbers, one for each category$"),
        (lambda: privpost.DirichletCategorical("abc"), r"^concentration is 'abc'; it must be numbers"),
        (lambda: privpost.LaplaceMechanism(BITS, 10, None), r"^epsilon is None; it must lie in \[1e-100, 1e\+100\]$"),
        (lambda: privpost.LaplaceMechanism(BITS, True, 1.0), r"^n is True; it must be an integer >= 1$"),
        (lambda: privpost.LaplaceMechanism("bits", 10, 1.0), r"^model is 'bits'; it must be a model, for instance"),
        (
            lambda: privpost.LaplaceMechanism(privpost.BetaBernoulli, 10, 1.0),
            r"^model is <class .*; it must be a model",
        ),
        (
            lambda: LAPLACE.posterior([np.nan, 3.0], 5, RNG),
            r"^release is \[nan, 3.0\]; it must be finite$",
        ),
        (lambda: privpost.Ledger().open("survey", 1.0), r"budget is 1.0; it must be a Cost"),
        (lambda: privpost.Ledger().open("survey", PURE, "laplace"), r"^mechanism is 'laplace'; it must be one"),
        (lambda: spend(LAPLACE, [3, 7], RNG, size="2"), r"^size is '2'; it must be an integer >= 1$"),
        (lambda: spend(LAPLACE, [3, 7], RNG, repeats=3), r"^repeats are 3; they must be a slice"),
        (lambda: LAPLACE.perturb([30, 70], RNG), r"^n is 10, but the statistics are those of 100 records$"),
        (lambda: LAPLACE.perturb([3, 7], 1), r"^rng is 1; it must be a numpy Generator"),
        (lambda: LAPLACE.perturb([3, 7, 0], RNG), r"^statistics have a last axis of 3; those of one data set have 2$"),
        (lambda: LAPLACE.perturb("abc", RNG), r"^statistics are 'abc'; they must be numbers"),
        (lambda: LAPLACE.replicate([3, 7], 0, RNG), r"^size is 0; it must be an integer >= 1$"),
        (lambda: LAPLACE.naive_posterior([3.0]), r"^statistics have the shape \(1,\); the last axis must be 2$"),
        (lambda: LAPLACE.cost_in(1.0), r"^budget is 1.0; it must be a Cost"),
        (lambda: LAPLACE.cost_in(PURE, "exakt"), r"^accounting is 'exakt'; allowed: stated, exact$"),
        (lambda: LAPLACE.recalibrated(PURE), r"^budget is pure.* its notion must be 'approximate'$"),
        (lambda: PURE.within(1.0), r"^budget is 1.0; it must be a Cost"),
        (lambda: privpost.ExponentialMechanism.calibrate(BITS, 10, PURE), "^ExponentialMechanism.calibrate needs a0$"),
        (privpost.LaplaceMechanism, r"^LaplaceMechanism needs model, n, epsilon$"),
        (lambda: privpost.Cost("pure"), r"^Cost needs epsilon$"),
        (
            lambda: privpost.BetaBernoulli(alfa=1),
            r"^BetaBernoulli has no setting 'alfa'; did you mean 'alpha'\?; it has",
        ),
        (
            lambda: privpost.LaplaceMechanism.calibrate(BITS, 10, PURE, coordinate="free"),
            r"^LaplaceMechanism.calibrate has no setting 'coordinate'; did you mean 'coordinates'\?; it has model, n",
        ),
        (
            lambda: privpost.PosteriorDraw.calibrate(BITS, 10, DELTA, weighting="direct"),
            r"^budget is approx.*; no privacy curve of direct meets it: its notion must be 'rdp'$",
        ),
        (
            lambda: spend(LAPLACE, [3, 7], np.random.RandomState(1)),
            r"^rng is RandomState.*; it must be a numpy Generator",
        ),
        *(
            (
                lambda weighting=weighting: privpost.GammaDraw.calibrate(TIMES, 10, RENYI, weighting=weighting),
                r"^GammaDraw.calibrate needs bounds$",
            )
            for weighting in ("direct", "diffused", "concentrated")
        ),
        (
            lambda: privpost.GammaDraw(TIMES, 10, 2.0, bounds=(0, "1"), weighting="direct"),
            r"^bounds are \(0, '1'\); they must be two",
        ),
        (lambda: PureMechanism.calibrate(BITS, 10, PURE), r"^mechanism is PureMechanism; it must be a class that can"),
        (lambda: privpost.PosteriorDraw(BITS, 10, 0.5, 0.5, weighting="diffused"), r"^order is 0.5; it must be >= 1$"),
        (
            lambda: privpost.PosteriorDraw.calibrate("bits", 10, RENYI, weighting="diffused"),
            r"^model is 'bits'; it must be a model",
        ),
        (lambda: privpost.BayesianNetwork("x"), r"^nodes is 'x'; it must be a map of nodes to lists of their parents$"),
        (
            lambda: privpost.LaplaceMechanism(BITS, 10, 1.0).check_statistics([np.nan, 3.0]),
            r"^statistics have entries that are not finite$",
        ),
    ],
)
def test_wrong_types_get_one_line(ask, message):
    with pytest.raises((ValueError, TypeError), match=message):
        ask()
