"""`privpost release`: its noise, its terms, what it refuses, and that nothing but noisy statistics gets out."""

from __future__ import annotations

import itertools
import json
import os
import re
import subprocess
import sys
import tracemalloc
from pathlib import Path

import numpy as np
import pytest
import yaml
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from scipy import stats

from privpost import discovery
from privpost.commands import cli
from privpost.distributions import noise
from privpost.mechanisms import (
    ExponentialMechanism,
    FourierMechanism,
    LaplaceMechanism,
    RedactedLaplace,
)
from privpost.mechanisms.redacted_laplace import RedactedSum
from privpost.models import BayesianNetwork, BetaBernoulli, GammaExponential
from privpost.privacy.accounting import to_approximate
from privpost.privacy.approximate import ORDERS, gaussian_from_approximate
from privpost.release import command, models, spec, statement, table
from privpost.release.models import bayesian_network, chains
from privpost.samplers import noise_aware_exact

# Secure noise has no seed, so that a test of its law fails by chance at this rate on every run.
FALSE_ALARM = 1e-6

YES_NO = ["no", "yes"]
SPECS = {
    "beta_bernoulli": {"columns": {"smokes": {"levels": YES_NO}}, "prior": {"alpha": 1, "beta": 2}},
    "dirichlet_categorical": {"columns": {"diet": {"levels": ["a", "b", "c"]}}, "prior": {"concentration": 1}},
    "bayesian_network": {
        "columns": {"smokes": {"levels": YES_NO}, "cough": {"levels": YES_NO, "parents": ["smokes"]}},
        "prior": {"alpha": 1, "beta": 1},
    },
    "naive_bayes": {
        "columns": {
            "diet": {"levels": ["a", "b", "c"]},
            "smokes": {"levels": YES_NO, "role": "class"},
            "cough": {"levels": YES_NO},
        }
    },
    "gamma_exponential": {
        "columns": {"minutes": {"low": 0, "high": 4, "resolution": 0.5}},
        "prior": {"shape": 2, "rate": 2},
    },
    "normal_known_variance": {
        "columns": {"minutes": {"low": -2, "high": 4, "resolution": 0.5, "outside": "redact"}},
        "prior": {"prior_mean": 1, "prior_variance": 1, "record_variance": 1},
    },
    "bounded_sum": {"columns": {"minutes": {"low": 1, "high": 3, "resolution": 0.5}}},
}
HEADER = ["smokes", "diet", "cough", "minutes"]
ROWS = [["yes", "a", "no", "1.5"], ["no", "b", "yes", "2.25"], ["no", "c", "yes", "3"], ["yes", "c", "no", "1"]]


def content(model: str, **changes) -> dict:
    """Return a valid specification about ROWS."""
    found = {"model": model, "n": len(ROWS), "epsilon": 1.0, **SPECS[model]}
    if model != "bounded_sum":
        found["posterior"] = {"draws": 3}
    return {**found, **changes}


class Folder:
    """A user's folder, with a specification and a CSV file."""

    def __init__(self, path: Path, capsys):
        self.path, self.capsys = path, capsys
        self.data("\n".join(map(",".join, [HEADER, *ROWS])) + "\n")

    def data(self, text: str) -> None:
        (self.path / "data.csv").write_text(text, encoding="utf-8")

    def specify(self, found) -> None:
        text = found if isinstance(found, str) else yaml.safe_dump(found, sort_keys=False)
        (self.path / "spec.yaml").write_text(text, encoding="utf-8")

    def run(self, *argv: str) -> tuple[int, str, str]:
        status = cli.main(["release", "spec.yaml", "--data", "data.csv", *argv])
        captured = self.capsys.readouterr()
        return status, captured.out, captured.err

    def files(self) -> set[str]:
        return {path.name for path in self.path.iterdir()}


@pytest.fixture
def folder(tmp_path, monkeypatch, capsys) -> Folder:
    """A user's folder as working directory; chains are short, for what is tested is not their convergence."""
    for name, value in (("BURN_IN", 10), ("THIN", 1), ("COUNT_BURN_IN", 10), ("COUNT_THIN", 1)):
        monkeypatch.setattr(chains, name, value)
    monkeypatch.chdir(tmp_path)
    return Folder(tmp_path, capsys)


# The noise


def discrete(law: str, scale: float, size: int) -> np.ndarray:
    """Probabilities of −size..size."""
    k = np.arange(-size, size + 1.0)
    weights = np.exp(-np.abs(k) / scale) if law == "laplace" else np.exp(-(k**2) / (2 * scale**2))
    return weights / weights.sum()


@pytest.mark.parametrize(("law", "scale"), [("laplace", 0.7), ("laplace", 6.0), ("normal", 0.8), ("normal", 5.0)])
def test_secure_noise_has_its_discrete_law(law, scale):
    draws = getattr(noise.SecureNoise(), law)(0.0, scale, 20_000)
    assert np.array_equal(draws, np.rint(draws))
    expected = discrete(law, scale, 400) * len(draws)
    observed = np.bincount(draws.astype(int) + 400, minlength=801)
    common = expected >= 10
    pairs = [np.append(counts[common], counts[~common].sum()) for counts in (observed, expected)]
    assert stats.chisquare(pairs[0], pairs[1] * pairs[0].sum() / pairs[1].sum()).pvalue > FALSE_ALARM


@pytest.mark.parametrize("law", ["laplace", "normal"])
def test_secure_noise_agrees_with_simulated_noise(law):
    """At scale 40 the laws' distribution functions differ by less than 1e-4; a tenth more scale would be found."""
    rng = np.random.default_rng(7)
    size, scale = 20_000, 40.0
    secure = getattr(noise.SecureNoise(), law)(0.0, scale, (size,)) + rng.random(size) - 0.5
    assert stats.ks_2samp(secure, getattr(rng, law)(0.0, scale, size)).pvalue > FALSE_ALARM
    assert stats.ks_2samp(secure, getattr(rng, law)(0.0, 1.25 * scale, size)).pvalue < FALSE_ALARM


def test_secure_noise_is_whole_and_independent_of_numpys_state():
    first, second = (
        LaplaceMechanism(BetaBernoulli(1, 1), 10, 0.01).perturb(np.tile([3.0, 7.0], (20, 1)), noise.SecureNoise())
        for _ in range(2)
    )
    assert np.array_equal(first, np.rint(first))
    # 40 variates of scale 200 agree with probability below 400^-40.
    assert not np.array_equal(first, second)
    assert len(set(first.ravel())) > 20


def test_secure_noise_hides_no_fraction():
    """The fraction of a sum would stand in the release whatever the noise."""
    redacted = RedactedLaplace(RedactedSum(GammaExponential(1, 1), 0.0, 2.0), 3, 1.0)
    assert redacted.perturb([4.0], noise.SecureNoise()).shape == (1,)
    for statistics in ([4.25], [2.0**60]):
        with pytest.raises(ValueError, match="not whole numbers below 2"):
            redacted.perturb(statistics, noise.SecureNoise())
    network = FourierMechanism.examples()[0]
    with pytest.raises(ValueError, match="not whole numbers"):
        network.perturb(np.full(2 * int(network.model.offsets[-1]), 0.3), noise.SecureNoise())


def test_a_posterior_sample_is_not_offered():
    mechanism = ExponentialMechanism(BetaBernoulli(1, 1), 10, 1.0, a0=0.05)
    with pytest.raises(AttributeError, match="drawn exactly"):
        mechanism.perturb([3.0, 7.0], noise.SecureNoise())


def test_every_mechanism_releases_whole_numbers_or_refuses():
    """And those that the guide names are the ones that release."""
    serving = set()
    for kind in itertools.chain.from_iterable(discovery.mechanisms().values()):
        example = kind.examples()[0]
        records = example.model.records[np.arange(example.n) % len(example.model.records)]
        # A redacted sum is one of whole numbers only where its records are.
        statistics = np.floor(example.model.sufficient_statistics(records))
        try:
            release = example.perturb(statistics, noise.SecureNoise())
        except AttributeError as error:
            assert "drawn exactly" in str(error)
        else:
            assert np.array_equal(release, np.rint(release))
            serving.add(kind.__name__)
    guide = (Path(__file__).parents[2] / "docs/release.md").read_text()
    named = re.search(r"These mechanisms take it: (.*?)\.", guide, re.DOTALL)[1]
    assert set(re.findall(r"`(\w+)`", named)) == serving


@pytest.mark.parametrize("scale", [0.0, -1.0, np.nan, 2.0**41])
def test_a_scale_that_secure_noise_cannot_have_is_refused(scale):
    with pytest.raises(ValueError, match=r"scale is .*\(0, 2\^40\]"):
        noise.SecureNoise().laplace(0.0, scale, 3)


# The terms


def specification(tmp_path, found: dict):
    path = tmp_path / "spec.yaml"
    path.write_text(yaml.safe_dump(found, sort_keys=False))
    found = spec.read(path)
    return found, models.KINDS[found.model]


@pytest.mark.parametrize("model", SPECS)
@pytest.mark.parametrize("epsilon", [0.1, 0.3, 1 / 3, 7.0])
def test_opendp_proves_the_epsilon_of_the_statement(tmp_path, model, epsilon):
    """opendp's privacy map, which rounds up, is an independent derivation of scale = Δ/ε."""
    found, kind = specification(tmp_path, content(model, epsilon=epsilon))
    mechanism, proved = command.calibrate(found, kind)
    assert proved <= epsilon
    assert proved == pytest.approx(epsilon, rel=1e-12)
    assert mechanism.sensitivity == round(mechanism.sensitivity)


@pytest.mark.parametrize("model", ["beta_bernoulli", "dirichlet_categorical"])
def test_gaussian_noise_meets_epsilon_and_delta(tmp_path, model):
    found, kind = specification(tmp_path, content(model, epsilon=0.5, delta=1e-6, mechanism="gaussian"))
    mechanism, proved = command.calibrate(found, kind)
    assert 0.5 * (1 - 1e-4) < proved <= 0.5
    # Our own conversion of the Rényi curve needs about the same noise, and the exact curve of continuous noise less.
    assert to_approximate(ORDERS, mechanism.rdp(ORDERS), 1e-6)[0] == pytest.approx(0.5, rel=0.02)
    assert mechanism.sigma > gaussian_from_approximate(0.5, 1e-6) * mechanism.sensitivity


TEXTS = {
    "smokes": ["no", "yes"],
    "cough": ["no", "yes"],
    "diet": ["a", "b", "c"],
    "minutes": ["-2", "0", "1", "1.2", "2.75", "3", "4", "4.1", "1e9"],
}


@pytest.mark.parametrize("model", SPECS)
def test_the_sensitivity_is_that_of_all_neighbouring_files(tmp_path, model):
    """The largest change over all records that a cell can hold, from text to statistics, is the one declared."""
    found, kind = specification(tmp_path, content(model))
    mechanism, _ = command.calibrate(found, kind)
    coded = [
        [code for text in TEXTS[name] if (code := kind.encode(found, name, text)) is not None]
        for name in kind.order(found)
    ]
    records = [
        mechanism.model.sufficient_statistics(kind.records(np.array([row]))) for row in itertools.product(*coded)
    ]
    changes = [np.abs(one - other).sum() for one, other in itertools.combinations(map(mechanism.select, records), 2)]
    assert max(changes) == mechanism.sensitivity


@pytest.mark.parametrize("model", SPECS)
def test_the_statistics_are_those_of_the_file(tmp_path, model, folder, monkeypatch):
    """With noise of zero put in by the test, the released numbers are the file's own counts and sums."""
    monkeypatch.setattr(noise.SecureNoise, "laplace", lambda self, loc, scale, size: np.zeros(size))
    folder.specify(content(model))
    found = json.loads(folder.run()[1])["statistics"]
    expected = {
        "beta_bernoulli": {"counts": {"smokes": {"yes": 2}}},
        "dirichlet_categorical": {"counts": {"diet": {"a": 1, "b": 1, "c": 2}}},
        "bayesian_network": {
            "counts": {
                "smokes": {"all": {"no": 2, "yes": 2}},
                "cough": {"smokes = no": {"no": 0, "yes": 2}, "smokes = yes": {"no": 2, "yes": 0}},
            }
        },
        "naive_bayes": {
            "counts": {
                "diet": {"smokes = no": {"a": 0, "b": 1, "c": 1}, "smokes = yes": {"a": 1, "b": 0, "c": 1}},
                "cough": {"smokes = no": {"no": 0, "yes": 2}, "smokes = yes": {"no": 2, "yes": 0}},
            }
        },
        # 2.25 becomes 2, the nearest multiple of the resolution with an even number of steps.
        "gamma_exponential": {"sums": {"minutes": 7.5}},
        "normal_known_variance": {"sums": {"minutes": 7.5}},
        "bounded_sum": {"sums": {"minutes": 7.5}},
    }
    assert found == expected[model]


# Posteriors


def test_draws_for_bits_are_from_the_exact_posterior(tmp_path):
    found, kind = specification(tmp_path, content("beta_bernoulli", n=60, epsilon=0.3, posterior={"draws": 20_000}))
    mechanism, _ = command.calibrate(found, kind)
    release = np.array([71.0])
    drawn = kind.posterior(found, mechanism, release, np.random.default_rng(3))
    theta = np.sort(drawn.draws["P(smokes = yes)"])
    at = np.linspace(0.5, 0.99, 8)
    exact = noise_aware_exact.posterior_cdf((1, 2), np.full((1, len(at)), 71.0), at, 60, [mechanism.scale])[0]
    # Four standard errors of a share of 20,000 draws; with the seed the test cannot fail by chance.
    assert np.abs(np.searchsorted(theta, at) / len(theta) - exact).max() < 4 * 0.5 / np.sqrt(20_000)
    assert drawn.noise_aware
    assert drawn.rhat is None


def test_draws_for_a_sum_agree_with_quadrature(tmp_path):
    """p(θ | y) ∝ p(θ) ∫ Gamma(S; n, θ) exp(−|y − S|/b) dS, without the sampler's normal approximation."""
    n, release = 50, 52.0
    columns = {"minutes": {"low": 0, "high": 20, "resolution": 0.01}}
    found, kind = specification(
        tmp_path, content("gamma_exponential", n=n, epsilon=2.0, columns=columns, posterior={"draws": 4000})
    )
    mechanism, _ = command.calibrate(found, kind)
    drawn = kind.posterior(found, mechanism, np.array([release / 0.01]), np.random.default_rng(6))
    grid = np.linspace(0.2, 3.0, 400)
    total = np.linspace(0.01, 250, 20_001)
    weight = np.exp(-np.abs(release - total) / (mechanism.scale * 0.01))
    likelihood = np.exp(n * np.log(grid)[:, None] + (n - 1) * np.log(total) - grid[:, None] * total - 160) @ weight
    density = likelihood * stats.gamma(2, scale=0.5).pdf(grid)
    density /= density.sum()
    mean = density @ grid
    sd = np.sqrt(density @ (grid - mean) ** 2)
    (theta,) = drawn.draws.values()
    # Three hundredths of a standard deviation are two standard errors of 4000 draws; the rest is the approximation.
    assert abs(theta.mean() - mean) < 0.1 * sd
    assert theta.std() == pytest.approx(sd, rel=0.1)
    assert drawn.rhat < 1.01


def enumerated(weights: dict[tuple, float], value) -> np.ndarray:
    """Mean of value(data) over all data sets, with these weights."""
    total = sum(weights.values())
    return sum(weight / total * value(data) for data, weight in weights.items())


def drawn_means(tmp_path, monkeypatch, found: dict, release: np.ndarray, names: list[str]) -> np.ndarray:
    """Means of 2000 draws of the named quantities, which are all."""
    monkeypatch.setattr(chains, "COUNT_BURN_IN", 100)
    monkeypatch.setattr(chains, "COUNT_THIN", 3)
    found, kind = specification(tmp_path, {**found, "posterior": {"draws": 2000}})
    mechanism, _ = command.calibrate(found, kind)
    drawn = kind.posterior(found, mechanism, release, np.random.default_rng(8))
    assert drawn.noise_aware
    assert set(drawn.draws) == set(names)
    return np.array([drawn.draws[name].mean() for name in names])


# A probability's standard deviation is below 0.3, so that 0.02 is three standard errors of 2000 independent draws;
# seeds are fixed. Noise of half the scale, or levels in the wrong order, move some mean by more than 0.05.
TOLERANCE = 0.02


def test_draws_for_categories_agree_with_enumeration(tmp_path, monkeypatch):
    release, scale, n = np.array([5.0, -2.0, 2.0]), 2.0, 6
    weights = {
        counts: np.exp(-np.abs(release - counts).sum() / scale)
        for counts in itertools.product(range(n + 1), repeat=3)
        if sum(counts) == n
    }
    # With a flat prior all counts of the same sum are equally likely.
    exact = enumerated(weights, lambda counts: (1 + np.array(counts)) / (3 + n))
    names = [f"P(diet = {level})" for level in "abc"]
    found = drawn_means(tmp_path, monkeypatch, content("dirichlet_categorical", n=n, epsilon=1.0), release, names)
    assert np.abs(found - exact).max() < TOLERANCE


def test_draws_for_naive_bayes_agree_with_enumeration(tmp_path, monkeypatch):
    columns = {"smokes": {"levels": YES_NO, "role": "class"}, "cough": {"levels": YES_NO}}
    release, scale, n = np.array([3.0, -1.0, 0.0, 4.0]), 2.0, 5
    weights = {}
    for size in range(n + 1):
        for first, second in itertools.product(range(size + 1), range(n - size + 1)):
            counts = first, size - first, second, n - size - second
            prior = 1 / ((size + 1) * (n - size + 1))
            weights[counts] = prior * np.exp(-np.abs(release - counts).sum() / scale)

    def means(counts):
        a, b, c, d = counts
        share = (1 + a + b) / (2 + n)
        return np.array(
            [
                share,
                1 - share,
                (1 + a) / (2 + a + b),
                (1 + b) / (2 + a + b),
                (1 + c) / (2 + c + d),
                (1 + d) / (2 + c + d),
            ]
        )

    specified = content("naive_bayes", n=n, epsilon=1.0, columns=columns)
    names = ["P(smokes = no)", "P(smokes = yes)"]
    names += [f"P(cough = {value} | smokes = {level})" for level in YES_NO for value in YES_NO]
    found = drawn_means(tmp_path, monkeypatch, specified, release, names)
    assert np.abs(found - enumerated(weights, means)).max() < TOLERANCE


def test_draws_for_a_network_agree_with_enumeration(tmp_path, monkeypatch):
    specified = content("bayesian_network", n=3, epsilon=2.0)
    model = BayesianNetwork({"smokes": [], "cough": ["smokes"]})
    release, scale = np.array([4.0, 0.0, -1.0, 2.0, 3.0, -2.0]), 2.0
    weights, counts = {}, {}
    for data in itertools.product(itertools.product((0, 1), repeat=2), repeat=3):
        counts[data] = model.sufficient_statistics(np.array(data))
        evidence = model.log_partition(model.natural_parameters(model.posterior(counts[data])))
        weights[data] = np.exp(evidence - np.abs(release - counts[data]).sum() / scale)
    exact = enumerated(weights, lambda data: model.mean(model.posterior(counts[data])))
    names = ["P(smokes = yes)", "P(cough = yes | smokes = no)", "P(cough = yes | smokes = yes)"]
    found = drawn_means(tmp_path, monkeypatch, specified, release, names)
    assert np.abs(found - exact).max() < TOLERANCE


def test_draws_of_large_networks_say_that_they_ignore_the_noise(tmp_path, monkeypatch):
    monkeypatch.setattr(bayesian_network, "LARGEST_NETWORK", 1)
    found, kind = specification(tmp_path, content("bayesian_network"))
    mechanism, _ = command.calibrate(found, kind)
    drawn = kind.posterior(found, mechanism, np.full(6, 2.0), np.random.default_rng(1))
    assert not drawn.noise_aware
    assert "clipped" in drawn.method


@pytest.mark.parametrize("model", ["dirichlet_categorical", "bayesian_network", "naive_bayes"])
def test_draws_are_probabilities(folder, model):
    folder.specify(content(model))
    draws = json.loads(folder.run()[1])["posterior"]["draws"]
    values = np.array(list(draws.values()))
    assert values.shape[1] == 3
    assert np.all((values >= 0) & (values <= 1))
    if model == "dirichlet_categorical":
        assert values.sum(axis=0) == pytest.approx(1)
    if model == "naive_bayes":
        assert list(draws)[:2] == ["P(smokes = no)", "P(smokes = yes)"]
        assert np.array([draws["P(smokes = no)"], draws["P(smokes = yes)"]]).sum(axis=0) == pytest.approx(1)


def test_a_posterior_that_fails_does_not_waste_the_release(folder):
    folder.specify(content("gamma_exponential", prior={"shape": 1e-300, "rate": 1e-300}))
    status, out, _ = folder.run()
    found = json.loads(out)
    assert status == 0
    assert found["posterior"].keys() == {"failed"}
    assert found["statistics"]["sums"].keys() == {"minutes"}


# What gets out


@pytest.mark.parametrize("model", SPECS)
def test_the_output_depends_on_the_records_through_the_release_alone(folder, model, monkeypatch):
    """Two files of which the mechanism is made to release the same give the same bytes."""
    folder.specify(content(model))
    generator = np.random.default_rng
    monkeypatch.setattr(np.random, "default_rng", lambda seed=None: generator(11))
    released = []
    monkeypatch.setattr(
        noise, "add", lambda exact, variates, source: (released.append(exact), np.full(np.shape(exact), 2.0))[1]
    )
    first = folder.run()
    folder.data("\n".join(map(",".join, [HEADER, *([["no", "a", "yes", "2.5"]] * 4)])) + "\n")
    second = folder.run()
    assert first[0] == 0
    assert first == second
    assert not np.array_equal(*released)


def test_a_statement_names_its_terms(folder):
    folder.specify(content("gamma_exponential", epsilon=0.25))
    status, out, err = folder.run()
    found = json.loads(out)
    assert status == 0
    # Noise without a seed: chains on an unlucky release may not converge, and then the user is told.
    assert ("have not converged" in err) is not found["posterior"]["converged"]
    privacy = found["privacy"]
    assert privacy["private"] is True
    assert privacy["notion"] == "pure epsilon-DP"
    assert (privacy["epsilon"], privacy["delta"]) == (0.25, 0.0)
    assert privacy["neighbours"].startswith("substitution: data sets of 4 records")
    assert privacy["sensitivity"] == {"norm": "l1", "value": 4.0}
    assert privacy["noise"]["scale"] == pytest.approx(16.0)
    assert privacy["noise"]["support"] == "multiples of 0.5"
    # Of the discrete law, in minutes.
    k = np.arange(-4000, 4001)
    assert privacy["noise"]["mean_absolute_deviation"] == pytest.approx(0.5 * discrete("laplace", 32, 4000) @ np.abs(k))
    (promise,) = privacy["covers"]
    assert "more than exp(epsilon) = 1.285 times as likely. " in promise
    assert any("rounded to multiples of 0.5" in text for text in found["posterior"]["approximations"])
    assert {"opendp", "privpost", "numpy", "python"} <= set(found["versions"])
    assert "data.csv" not in out
    assert found["statistics"]["sums"]["minutes"] % 0.5 == 0


def test_simulated_noise_has_a_seed_and_says_that_it_is_not_private(folder):
    folder.specify(content("beta_bernoulli", noise="simulation", seed=5))
    first, second = folder.run(), folder.run()
    assert first == second
    privacy = json.loads(first[1])["privacy"]
    assert privacy["private"] is False
    assert privacy["epsilon_proved"] is None
    assert "NOT A PRIVATE RELEASE" in privacy["covers"][0]


@pytest.mark.parametrize(("law", "scale"), [("laplace", 0.01), ("laplace", 0.5), ("normal", 0.3), ("normal", 12.0)])
def test_the_spread_of_the_noise_is_that_of_its_discrete_law(law, scale):
    """At small scales it is far from the scale: nearly all noise is 0."""
    k = np.arange(-400, 401)
    expected = discrete(law, scale, 400) @ np.abs(k) if law == "laplace" else np.sqrt(discrete(law, scale, 400) @ k**2)
    assert statement._spread(scale, law == "laplace", True) == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize(("epsilon", "factor"), [(0.1, "1.106"), (10.0, r"2.203e\+04"), (800.0, None)])
def test_the_promise_depends_on_epsilon(folder, epsilon, factor):
    """exp(0.1) = 1.1052 is rounded up; above 10 nothing is called private."""
    folder.specify({**BITS, "epsilon": epsilon, "allow_large_epsilon": True})
    privacy = json.loads(folder.run("--dry-run")[1])["privacy"]
    assert privacy["private"] is (epsilon <= 10)
    (promise,) = privacy["covers"]
    assert promise.startswith("NOT A PRIVATE RELEASE") is (epsilon > 10)
    assert re.search(f"exp\\(epsilon\\) = {factor} times" if factor else r"exp\(epsilon\) times", promise)


def test_the_promise_of_gaussian_noise_excepts_delta(folder):
    folder.specify({**BITS, "epsilon": 1, "delta": 1e-6, "mechanism": "gaussian"})
    privacy = json.loads(folder.run("--dry-run")[1])["privacy"]
    assert privacy["covers"][0].endswith("2.719 times as likely, but for an additional probability delta = 1e-06.")
    assert privacy["noise"]["standard_deviation"] == pytest.approx(privacy["noise"]["scale"], rel=1e-9)


def test_coarse_values_raise_the_rate_as_the_posterior_says(tmp_path):
    """A vague prior lets a coarse resolution pass; what rounding did to the rate stands beside the draws.

    Rounded to multiples of 4, records of rate 1 have the mean 2/sinh(2) = 0.551: a rate of 1.81, which is 81 % more.
    """
    rounded = 4 * np.rint(np.random.default_rng(1).exponential(size=200_000) / 4)
    # A standard error is below 0.003.
    assert rounded.mean() == pytest.approx(2 / np.sinh(2), abs=0.012)
    assert "raises the rate by about 81 %" in models.KINDS["gamma_exponential"].rounding(
        4.0, np.full(5, np.sinh(2) / 2)
    )
    assert "by about 0 %" in models.KINDS["gamma_exponential"].rounding(1e-9, np.ones(5))
    found, kind = specification(
        tmp_path,
        content(
            "gamma_exponential",
            n=2000,
            columns={"minutes": {"low": 0, "high": 40, "resolution": 4}},
            prior={"shape": 1, "rate": 100},
        ),
    )
    assert kind.coarsest(found) > 4


def test_a_dry_run_reads_no_data_and_draws_no_noise(folder, monkeypatch):
    folder.specify(content("beta_bernoulli"))
    (folder.path / "data.csv").unlink()
    monkeypatch.setattr(noise, "_variates", None)
    status, out, _ = folder.run("--dry-run", "--output", "out.json")
    assert status == 0
    assert "statistics" not in json.loads(out)
    assert folder.files() == {"spec.yaml"}


def test_records_are_summed_in_parts(folder, monkeypatch):
    monkeypatch.setattr(table, "CHUNK", 3)
    monkeypatch.setattr(noise.SecureNoise, "laplace", lambda self, loc, scale, size: np.zeros(size))
    folder.specify(content("dirichlet_categorical"))
    assert json.loads(folder.run()[1])["statistics"]["counts"]["diet"] == {"a": 1, "b": 1, "c": 2}


def test_many_counts_need_little_memory(tmp_path):
    """Ten classes and thirty attributes of a hundred levels: one 0 or 1 per record and count would need 150 MB."""
    levels = list(range(100))
    columns = {"smokes": {"levels": levels[:10], "role": "class"}, **{f"x{i}": {"levels": levels} for i in range(30)}}
    found, kind = specification(tmp_path, content("naive_bayes", columns=columns))
    mechanism, _ = command.calibrate(found, kind)
    data = np.random.default_rng(1).integers(0, 10, (5000, 31))
    tracemalloc.start()
    counts = mechanism.model.sufficient_statistics(data)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    # A few copies of 155,000 whole numbers of 8 bytes.
    assert peak < 10e6
    assert counts.shape == (30_000,)
    assert counts.sum() == data[:, 1:].size
    assert counts.reshape(10, 30, 100)[3, 7, 5] == np.sum((data[:, 0] == 3) & (data[:, 8] == 5))
    assert np.array_equal(mechanism.model.sufficient_statistics(data.reshape(2, 2500, 31)).sum(axis=0), counts)


# Refusals

BITS = content("beta_bernoulli")
SUM = content("gamma_exponential")
NETWORK = content("bayesian_network")


def without(found: dict, key: str) -> dict:
    return {name: value for name, value in found.items() if name != key}


BAD_SPECIFICATIONS = {
    "epsilon zero": ({**BITS, "epsilon": 0}, r"epsilon is 0, but must be a number in \(0, inf\)"),
    "epsilon negative": ({**BITS, "epsilon": -1}, "epsilon is -1, but must be"),
    "epsilon nan": ({**BITS, "epsilon": float("nan")}, "epsilon is nan, but must be"),
    "epsilon infinite": ({**BITS, "epsilon": float("inf")}, "epsilon is inf, but must be"),
    "epsilon text": ({**BITS, "epsilon": "much"}, "epsilon is 'much', but must be a number"),
    "epsilon too small": ({**BITS, "epsilon": 1e-15}, r"epsilon is 1e-15: .*beyond 2\^40"),
    "epsilon too small for Gaussian noise": (
        {**BITS, "epsilon": 1e-13, "delta": 1e-30, "mechanism": "gaussian"},
        r"epsilon is 1e-13: .*beyond 2\^40",
    ),
    "epsilon too large": ({**BITS, "epsilon": 10.5}, r"epsilon is 10.5, .*\(0, 10\].*allow_large_epsilon: true"),
    "epsilon missing": (without(BITS, "epsilon"), "epsilon is missing. Required: model, columns, n, epsilon"),
    "unknown key": ({**BITS, "epsilom": 1}, "no setting 'epsilom'. Did you mean 'epsilon'"),
    "unknown model": ({**BITS, "model": "beta_bernouli"}, "model is 'beta_bernouli'.*Did you mean 'beta_bernoulli'"),
    "unknown mechanism": ({**BITS, "mechanism": "laplce"}, "mechanism is 'laplce'.*Did you mean 'laplace'"),
    "mechanism that cannot": ({**SUM, "mechanism": "gaussian", "delta": 0.01}, "released with: laplace"),
    "delta for laplace": ({**BITS, "delta": 1e-6}, "delta is 1e-06, but Laplace noise is epsilon-DP"),
    "delta missing": ({**BITS, "mechanism": "gaussian"}, "delta is missing"),
    "delta of one": ({**BITS, "mechanism": "gaussian", "delta": 1}, r"delta is 1, but must be a number in \(0, 1\)"),
    "seed": ({**BITS, "seed": 5}, "seed is 5, but secure noise has no seed"),
    "n of another file": ({**BITS, "n": 5}, "n is 5, but data.csv has another number of records"),
    "n zero": ({**BITS, "n": 0}, "n is 0, but must be a whole number of at least 1"),
    "n fraction": ({**BITS, "n": 3.5}, "n is 3.5, but must be a whole number"),
    "n too large": ({**BITS, "n": 10**9}, "n is 1000000000; posterior draws need n <= 10000000"),
    "no columns": ({**BITS, "columns": {}}, "columns is {}, but must be a map"),
    "columns a list": ({**BITS, "columns": ["smokes"]}, "but must be a map from names of columns"),
    "setting of another model": ({**BITS, "columns": NETWORK["columns"]}, "there is no setting 'parents'"),
    "two columns": (
        {**BITS, "columns": {"smokes": {"levels": YES_NO}, "cough": {"levels": YES_NO}}},
        "columns has 2 entries, but beta_bernoulli has exactly 1",
    ),
    "one level": ({**BITS, "columns": {"smokes": {"levels": ["no"]}}}, r"levels is \['no'\], but must be a list"),
    "level twice": (
        {**BITS, "columns": {"smokes": {"levels": ["no", "no"]}}},
        "columns: smokes: levels: level 'no' is given twice",
    ),
    "three levels of a bit": (
        {**BITS, "columns": {"smokes": {"levels": ["no", "yes", "so"]}}},
        "levels has 3 entries; beta_bernoulli needs 2",
    ),
    "levels missing": ({**BITS, "columns": {"smokes": {}}}, "columns: smokes: levels is missing"),
    "bounds the wrong way": (
        {**SUM, "columns": {"minutes": {"low": 4, "high": 0, "resolution": 0.5}}},
        "low is 4 and high is 0; low must be less",
    ),
    "bound off the lattice": (
        {**SUM, "columns": {"minutes": {"low": 0, "high": 4.2, "resolution": 0.5}}},
        "high is 4.2, but must be a multiple of the resolution, 0.5",
    ),
    "resolution missing": ({**SUM, "columns": {"minutes": {"low": 0, "high": 4}}}, "resolution is missing"),
    "resolution zero": (
        {**SUM, "columns": {"minutes": {"low": 0, "high": 4, "resolution": 0}}},
        r"resolution is 0, but must be a number in \(0, inf\)",
    ),
    "resolution too fine": (
        {**SUM, "columns": {"minutes": {"low": 0, "high": 4, "resolution": 1e-18}}},
        r"resolution is 1E-18, too fine: .* at most 2\^50 steps",
    ),
    "resolution too coarse for waiting times": (
        {**SUM, "n": 2000, "columns": {"minutes": {"low": 0, "high": 40, "resolution": 4}}},
        "resolution is 4.0, too coarse for posterior draws: .* must be at most 0.232",
    ),
    "resolution too coarse for a normal law": (
        content("normal_known_variance", columns={"minutes": {"low": -2, "high": 4, "resolution": 1}}),
        "resolution is 1.0, too coarse for posterior draws: .* must be at most 0.5",
    ),
    "negative waiting time": (
        {**SUM, "columns": {"minutes": {"low": -1, "high": 4, "resolution": 0.5}}},
        "low is -1, but must be at least 0",
    ),
    "prior missing": (without(BITS, "prior"), "prior: alpha is missing"),
    "prior negative": ({**BITS, "prior": {"alpha": -1, "beta": 1}}, "prior: alpha is -1, but must be"),
    "draws of no posterior": (content("bounded_sum", posterior={"draws": 2}), "bounded_sum has no posterior"),
    "draws zero": ({**BITS, "posterior": {"draws": 0}}, "draws is 0, but must be a whole number of at least 1"),
    "parent unknown": (
        {**NETWORK, "columns": {"smokes": {"levels": YES_NO, "parents": ["couhg"]}, "cough": {"levels": YES_NO}}},
        "there is no column 'couhg'. Did you mean 'cough'",
    ),
    "too many parents": (
        {
            **NETWORK,
            "columns": {
                **{f"x{i}": {"levels": YES_NO} for i in range(13)},
                "smokes": {"levels": YES_NO, "parents": [f"x{i}" for i in range(13)]},
            },
        },
        "smokes: parents has 13 entries; at most 12 are supported",
    ),
    "cycle": (
        {
            **NETWORK,
            "columns": {
                "smokes": {"levels": YES_NO, "parents": ["cough"]},
                "cough": {"levels": YES_NO, "parents": ["smokes"]},
            },
        },
        "is in a cycle",
    ),
    "no class": (
        content("naive_bayes", columns={"diet": {"levels": ["a", "b"]}, "smokes": {"levels": YES_NO}}),
        "0 of 2 columns have role: class",
    ),
    "unquoted no and yes": (
        "model: beta_bernoulli\nn: 4\nepsilon: 1\ncolumns:\n  smokes: {levels: [no, yes]}\n",
        "YAML reads an unquoted yes, no, true, false, on or off as False; quote it",
    ),
    "key twice": ("model: beta_bernoulli\nn: 4\nepsilon: 1\nepsilon: 100\n", "line 4: 'epsilon' is given twice"),
    "no YAML": ("model: [beta", "spec.yaml is not valid YAML"),
    "no map": ("just text", "it must hold settings, key: value"),
    "empty": ("", "it must hold settings"),
}


@pytest.mark.parametrize("name", BAD_SPECIFICATIONS)
def test_a_bad_specification_is_refused_and_nothing_is_released(folder, name, monkeypatch):
    found, message = BAD_SPECIFICATIONS[name]
    folder.specify(found)
    before = folder.files()
    monkeypatch.setattr(noise, "_variates", None)
    status, out, err = folder.run("--output", "out.json")
    assert (status, out) == (2, "")
    assert err.startswith("privpost: spec.yaml")
    assert re.search(message, err), err
    assert folder.files() == before


def rows(*changed: str) -> str:
    return "\n".join(changed) + "\n"


BAD_DATA = {
    "column missing": (BITS, rows("smoke,x", "no,1"), r"has no column 'smokes'\.$"),
    "no header": (BITS, rows("secret17", "yes", "no", "yes"), "its first line, the header, has no column 'smokes'"),
    "no header, and a cell near the column's name": (
        {**BITS, "columns": {"secret1": {"levels": YES_NO}}},
        rows("secret17", "yes", "no", "yes"),
        "its first line, the header, has no column 'secret1'",
    ),
    "column twice": (BITS, rows("smokes,smokes", "no,no"), "the column 'smokes' is there 2 times"),
    "another level": (BITS, rows("smokes", "no", "secret17"), r"row 2, column 'smokes' must hold one of its levels"),
    "empty cell": (BITS, rows("smokes,x", "no,1", ",2"), "row 2, column 'smokes' is empty"),
    "not a number": (SUM, rows("minutes", "1", "NaN"), "row 2, column 'minutes' must hold a number in"),
    "infinite": (SUM, rows("minutes", "inf"), "row 1, column 'minutes' must hold a number in"),
    "beyond the bounds": (SUM, rows("minutes", "1", "4.3187"), r"row 2.*must hold a number in \[0, 4\]"),
    "decimal comma": (SUM, rows("minutes", '"1,5"'), "row 1, column 'minutes' must hold a number"),
    "ragged": (BITS, rows("smokes,x", "no,1", "yes"), "row 2 has 1 cells, but the header has 2"),
    "too few rows": (BITS, rows("smokes", "no"), "n is 4, but data.csv has another number of records"),
    "too many rows": (BITS, rows("smokes", *["no"] * 9), "n is 4, but data.csv has another number of records"),
    "empty file": (BITS, "", "its first line, the header, has no column"),
    "stray quote": (BITS, 'smokes\n"no"x\n', "is not a CSV file"),
}


@pytest.mark.parametrize("name", BAD_DATA)
def test_bad_data_are_refused_and_nothing_is_released_or_told(folder, name, monkeypatch):
    found, text, message = BAD_DATA[name]
    folder.specify(found)
    folder.data(text)
    before = folder.files()
    monkeypatch.setattr(noise, "_variates", None)
    status, out, err = folder.run("--output", "out.json")
    assert (status, out) == (2, "")
    assert re.search(message, err), err
    # A message goes to the data holder, and yet holds no cell.
    assert "secret17" not in err
    assert "4.3187" not in err
    assert folder.files() == before


def test_bytes_that_are_no_text_are_refused(folder):
    folder.specify(BITS)
    (folder.path / "data.csv").write_bytes(b"smokes\n\xff\xfe\n")
    assert folder.run()[0] == 2
    (folder.path / "spec.yaml").write_bytes(b"\xff\xfe\x00")
    assert folder.run()[0] == 2


def test_files_that_are_not_there_are_refused(folder, capsys):
    folder.specify(BITS)
    for argv, message in (
        (["release", "spec.yaml", "--data", "other.csv"], "other.csv: there is no such file"),
        (["release", "other.yaml", "--data", "data.csv"], "other.yaml: there is no such file"),
        (["release", "spec.yaml"], "there are no data; give --data FILE"),
        (["release", "spec.yaml", "--data", "data.csv", "--output", "no/out.json"], "there is no folder no"),
        (["release", "spec.yaml", "--data", "."], "cannot be read"),
    ):
        assert cli.main(argv) == 2
        captured = capsys.readouterr()
        assert message in captured.err
        assert captured.out == ""


def test_a_release_is_never_overwritten(folder, monkeypatch):
    folder.specify(BITS)
    assert folder.run("--output", "out.json")[0] == 0
    first = (folder.path / "out.json").read_text()
    status, out, err = folder.run("--output", "out.json")
    assert (status, out) == (2, "")
    assert "out.json exists. Another release costs its epsilon again" in err
    # Also not one that appears while the data are read.
    monkeypatch.setattr(command, "_check_output", lambda path: None)
    status, out, err = folder.run("--output", "out.json")
    assert (status, out) == (2, "")
    assert "out.json exists" in err
    assert (folder.path / "out.json").read_text() == first
    assert folder.files() == {"spec.yaml", "data.csv", "out.json"}


def test_a_file_system_without_links_will_do(folder, monkeypatch):
    def refuse(*_):
        raise PermissionError(1, "Operation not permitted")

    monkeypatch.setattr(os, "link", refuse)
    folder.specify(BITS)
    assert folder.run("--output", "out.json")[0] == 0
    first = json.loads((folder.path / "out.json").read_text())
    assert first["privacy"]["private"]
    monkeypatch.setattr(command, "_check_output", lambda path: None)
    status, _, err = folder.run("--output", "out.json")
    assert status == 2
    assert "out.json exists" in err
    assert json.loads((folder.path / "out.json").read_text()) == first
    assert folder.files() == {"spec.yaml", "data.csv", "out.json"}


def test_without_opendp_the_message_says_how_to_install_it(folder, monkeypatch):
    folder.specify(BITS)
    noise.opendp.cache_clear()
    monkeypatch.setitem(sys.modules, "opendp", None)
    monkeypatch.setitem(sys.modules, "opendp.prelude", None)
    status, out, err = folder.run("--output", "out.json")
    assert (status, out) == (2, "")
    assert "needs the package opendp. Install it: pip install" in err
    folder.specify({**BITS, "noise": "simulation"})
    assert folder.run()[0] == 0


def test_a_file_that_cannot_be_written_whole_is_not_left(folder, monkeypatch):
    def refuse(*_):
        raise PermissionError(1, "Operation not permitted")

    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "link", refuse)
    for failing, working in {"fsync": os.fsync, "replace": os.replace}.items():
        # The temporary file fails first, then the file itself.
        monkeypatch.setattr(os, failing, full)
        folder.specify(BITS)
        status, out, err = folder.run("--output", "out.json")
        assert (status, out) == (2, "")
        assert "--output: out.json cannot be written: No space left on device" in err
        assert folder.files() == {"spec.yaml", "data.csv"}
        monkeypatch.setattr(os, failing, working)


# The ledger


def test_a_refused_budget_leaves_no_ledger(folder):
    folder.specify({**BITS, "budget": {"ledger": "ledger.jsonl", "epsilon": 0.5}})
    status, out, err = folder.run()
    assert (status, out) == (2, "")
    assert "this one, epsilon 1, delta 0, would exceed epsilon 0.5" in err
    assert folder.files() == {"spec.yaml", "data.csv"}


def test_releases_stop_where_the_budget_is_spent(folder):
    budget = {"ledger": "ledger.jsonl", "epsilon": 2.5}
    folder.specify({**BITS, "budget": budget})
    assert [folder.run("--output", f"{i}.json")[0] for i in range(3)] == [0, 0, 2]
    lines = [json.loads(line) for line in (folder.path / "ledger.jsonl").read_text().splitlines()]
    assert [line["epsilon"] for line in lines] == [1.0, 1.0]
    assert folder.files() == {"spec.yaml", "data.csv", "ledger.jsonl", "0.json", "1.json"}
    _, out, err = folder.run()
    assert out == ""
    assert "2 earlier releases cost epsilon 2, delta 0; this one, epsilon 1, delta 0, would exceed epsilon 2.5" in err
    # A cheaper one still fits, and data that are refused cost nothing.
    folder.specify({**BITS, "epsilon": 0.5, "budget": budget})
    folder.data("nothing\n")
    assert folder.run()[0] == 2
    assert len((folder.path / "ledger.jsonl").read_text().splitlines()) == 2


def test_a_ledger_that_is_none_is_refused(folder):
    folder.specify({**BITS, "budget": {"ledger": "ledger.jsonl", "epsilon": 2.5}})
    (folder.path / "ledger.jsonl").write_text('{"epsilon": 1}\n')
    status, out, err = folder.run()
    assert (status, out) == (2, "")
    assert "line 1 is no entry of a ledger" in err


# Anything at all

SCALARS = st.one_of(
    st.none(), st.booleans(), st.integers(), st.floats(), st.text(max_size=8), st.lists(st.integers(), max_size=3)
)


@settings(max_examples=100, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    model=st.sampled_from(list(SPECS)),
    path=st.lists(st.integers(0, 5), min_size=1, max_size=3),
    value=SCALARS,
)
def test_any_specification_is_released_or_refused(folder, model, path, value):
    """One value somewhere in a valid specification is replaced by anything."""
    found = json.loads(json.dumps(content(model)))
    place = found
    for step in path[:-1]:
        inner = [item for item in place.values() if isinstance(item, dict)] if isinstance(place, dict) else []
        place = inner[step % len(inner)] if inner else place
    place[list(place)[path[-1] % len(place)]] = value
    folder.specify(found)
    check_outcome(folder)


@settings(max_examples=100, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    model=st.sampled_from(["beta_bernoulli", "normal_known_variance", "bounded_sum"]),
    lines=st.lists(st.text(alphabet="smokesminutyno,.\"'0123e-\x00\r é", max_size=12), max_size=5),
)
def test_any_file_is_released_or_refused(folder, model, lines):
    folder.specify(without(content(model), "posterior"))
    header = "minutes" if "minutes" in SPECS[model]["columns"] else "smokes"
    folder.data("\n".join([header, *lines]))
    check_outcome(folder)


def check_outcome(folder: Folder) -> None:
    status, out, err = folder.run()
    if status == 0:
        assert json.loads(out)["privacy"]["private"]
    else:
        assert status == 2
        assert out == ""
        assert err.startswith("privpost: ")


def test_the_command_runs_outside_a_checkout(folder):
    """As a user runs it: another folder, another process."""
    folder.specify({**BITS, "data": "data.csv"})
    done = subprocess.run(
        [sys.executable, "-m", "privpost", "release", "spec.yaml", "--output", "out.json"],
        cwd=folder.path,
        env={**os.environ, "PYTHONPATH": str(Path(cli.__file__).parents[2])},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    assert json.loads((folder.path / "out.json").read_text())["statistics"]["counts"]["smokes"].keys() == {"yes"}
    assert folder.files() == {"spec.yaml", "data.csv", "out.json"}


def test_the_command_is_listed_and_suggested(folder, capsys):
    assert cli.main(["--help"]) == 0
    assert "privpost release" in capsys.readouterr().out
    assert cli.main(["relase"]) == 2
    assert "Did you mean 'release'?" in capsys.readouterr().err
