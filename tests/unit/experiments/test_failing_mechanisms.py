"""Studies that run every mechanism: one that fails loses its own rows, and no others."""

from dataclasses import dataclass
from types import SimpleNamespace
from typing import ClassVar

import numpy as np
import pandas as pd
import pytest

from privpost import discovery
from privpost.experiments.fair_axis import calibration
from privpost.lab import grid
from privpost.lab.streams import Streams
from privpost.mechanisms.noise.additive import AdditiveNoiseMechanism
from privpost.mechanisms.pure import PureMechanism
from privpost.models.conjugate.beta_bernoulli import BetaBernoulli
from privpost.privacy.ledger.gate import Ledger


@dataclass(frozen=True)
class WholeNoise(PureMechanism, AdditiveNoiseMechanism):
    """Two-sided geometric noise whose author took its probabilities for a density."""

    method: ClassVar[str] = "whole_noise"
    norm: ClassVar[str] = "l1"
    public_inputs: ClassVar[tuple[str, ...]] = ("n", "prior")

    def noise(self, shape, rng):
        """Differences of two geometric variates."""
        return np.diff(rng.geometric(1 - np.exp(-self.epsilon / self.sensitivity), (*shape, 2)), axis=-1)[..., 0]

    def log_density(self, release, statistics):
        """Log-probabilities."""
        rate = self.epsilon / self.sensitivity
        away = np.abs(np.asarray(release, float) - self.select(statistics))
        return (np.log(np.tanh(rate / 2)) - rate * away).sum(axis=-1)

    @classmethod
    def examples(cls):
        """One count."""
        return [cls(BetaBernoulli(1, 1), 8, 0.5)]


@dataclass(frozen=True)
class NoNoise(WholeNoise):
    """One that cannot draw."""

    method: ClassVar[str] = "no_noise"

    def noise(self, shape, rng):
        """Nothing."""
        raise RuntimeError("no noise\nat all")

    def log_density(self, release, statistics):
        """Not known."""


@pytest.fixture
def contributed(monkeypatch):
    """Both mechanisms as if their files were in the package."""
    added = dict(discovery.mechanisms())
    for kind in (WholeNoise, NoNoise):
        added[kind.method] = (discovery.Kind(kind, {}, tuple(kind.examples())),)
    known = [kind for kinds in added.values() for kind in kinds]
    cached = calibration.methods, calibration.converted
    for function in cached:
        function.cache_clear()
    with monkeypatch.context() as patch:
        patch.setattr(discovery, "mechanisms", lambda: added)
        patch.setattr(discovery, "kinds", lambda: known)
        yield
    for function in cached:
        function.cache_clear()


# Of the smoke grids.
SMALL = {"methods": ["laplace", "non_private", "ops"], "epsilon": [1.0], "delta": [1e-4]}


def rows_of(name, **settings):
    """The rows of a study's first table, of the first cell of its smoke grid."""
    study = grid.load_study(name, "smoke")
    cell, module = grid.expand(study)[0], study.module()
    config = SimpleNamespace(**{**vars(cell.config), **settings})
    arrays = module.simulate(config, Streams.of(cell), Ledger())
    found = module.tabulate([SimpleNamespace(config=config, arrays=arrays)])
    return pd.DataFrame(found[study.tables[0]] if isinstance(found, dict) else found)


@pytest.mark.parametrize("name", ["fair_axis/beta_bernoulli", "foulds2016/efficiency"])
def test_a_mechanism_that_fails_costs_its_own_rows(name, request, capsys):
    """All rows of the study without the newcomers are there, equal to the last bit; each failure is one line."""
    before = rows_of(name, **SMALL)
    request.getfixturevalue("contributed")
    after = rows_of(name, **{**SMALL, "methods": [*SMALL["methods"], "no_noise", "whole_noise"]})
    err = capsys.readouterr().err
    # Efficiency takes no density.
    lost = {"no_noise"} | ({"whole_noise"} if name.startswith("fair_axis") else set())
    assert set(after.method) - set(before.method) == {"no_noise", "whole_noise"} - lost
    others = after[after.method != "whole_noise"].reset_index(drop=True)
    pd.testing.assert_frame_equal(others, before, check_exact=True)
    for method in lost:
        (line,) = [line for line in err.splitlines() if line.startswith(f"privpost: {method} is left out: ")]
        assert ("no noise at all" if method == "no_noise" else "log_mass") in line


def test_the_audit_calls_a_mechanism_that_fails_not_examined(contributed, capsys):
    """What it claims stands in the table, without a number that the audit did not measure."""
    settings = {"mechanisms": ["LaplaceMechanism", "NoNoise"], "releases": 1000, "ledgers": {}}
    found = rows_of("audit/audit", **settings)
    assert set(found.verdict[found.mechanism == "LaplaceMechanism"]) == {"within claim"}
    assert set(found.verdict[found.mechanism == "NoNoise"]) == {"not examined"}
    assert "privpost: NoNoise 0, n = 8 is left out: no noise at all." in capsys.readouterr().err
