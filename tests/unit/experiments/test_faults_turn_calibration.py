"""A calibration claim turns if its study passes on a wrong noise scale, or makes quantiles too narrow or too wide.

The faults are in the studies, and not in the samplers, whose laws other tests compare with exact ones. Two studies run
through `simulate`. For all studies, with the paper's trials, quantiles are drawn instead, and tabulated and scored.
"""

from __future__ import annotations

import importlib
from types import SimpleNamespace

import numpy as np
import pytest
from scipy.special import ndtr

from privpost.experiments.bernstein2018 import trials as bernstein
from privpost.experiments.bernstein2018.calibration import study as calibration
from privpost.experiments.noise_aware import scores
from privpost.experiments.noise_aware.event_calibration import study as events
from privpost.experiments.noise_aware.naive_bayes import study as naive_bayes
from privpost.lab import claims, grid, tables
from privpost.lab.streams import Streams
from privpost.privacy.ledger.gate import Ledger

# What a posterior is told of the noise's scale, as a share of the right one.
SCALES = (0.8, 1.25)
# Where the noise is as large as the sampling error, and the prior wide, a scale t times the right one makes the
# posterior's standard deviation √((1 + t²)/2) times the right one.
WIDTHS = {"10 % too narrow": 0.9, "10 % too wide": 1.1, **{f"scale x {t}": ((1 + t**2) / 2) ** 0.5 for t in SCALES}}


def verdict(name: str, id: str, found: dict) -> str:
    """What becomes of a claim on some tables."""
    module = importlib.import_module(f"privpost.experiments.{name.replace('/', '.')}.claims")
    (declared,) = (each for each in claims.declared(module) if each.id == id)
    return declared.score(found)[0].verdict


def simulated(name: str, **settings) -> dict:
    """The tables of one cell of a study with some settings."""
    study = grid.load_study(name)
    cell = grid.make_cell(study, settings)
    arrays = study.module().simulate(cell.config, Streams.of(cell), Ledger(cell.dataset, cell.sizes["trials"]))
    return tables.tables_of(study, [SimpleNamespace(config=cell.config, arrays=arrays)])


BAYES = {"n": 50, "n_test": 1, "method": ["non_private", "exact"], "epsilon": [10.0], "trials": 1000, "block": 500}
BITS = {
    "model": "binomial", "n": [1000], "epsilon": [0.1], "burn_in": 50, "draws": 1000, "trials": 2000,
    "block": 2000, "ops_draws": 2,
}  # fmt: skip


@pytest.mark.parametrize("told", [1.0, *SCALES])
def test_a_wrong_scale_told_to_naive_bayes_turns_n1(monkeypatch, told):
    right = naive_bayes.naive_bayes_exact.posterior
    wrong = lambda model, z, n, scale: right(model, z, n, told * scale)  # noqa: E731
    monkeypatch.setattr(naive_bayes.naive_bayes_exact, "posterior", wrong)
    found = verdict("noise_aware/naive_bayes", "N1", simulated("noise_aware/naive_bayes", **BAYES))
    assert (found == "holds") == (told == 1)


@pytest.mark.parametrize("told", [1.0, *SCALES])
def test_a_wrong_scale_told_to_algorithm_1_turns_b1(monkeypatch, told):
    right = bernstein.Counts.kernel
    wrong = lambda self, data, release, n: right(self, data, release._replace(scale=told * release.scale), n)  # noqa: E731
    monkeypatch.setattr(bernstein.Counts, "kernel", wrong)
    found = verdict("bernstein2018/calibration", "B1", simulated("bernstein2018/calibration", **BITS))
    assert (found == "holds") == (told == 1)


def of_trials(cell, rng, width):
    """Arrays of the studies of `trials`; categories' z sum to zero, as their counts do to n."""
    config, trial = cell.config, bernstein.experiment(cell.config.model, cell.config.prior, cell.config.variant)
    parameters, points = len(trial.parameters), (len(config.n), len(config.epsilon))
    z = rng.normal(size=(len(calibration.LINES), parameters, *points, config.trials))
    if parameters > 1:
        z = (z - z.mean(axis=1, keepdims=True)) / np.sqrt(1 - 1 / parameters)
    for i, line in enumerate(calibration.LINES):
        z[i] /= width if line.method in ("gibbs", "exact") else 1
        z[i] = np.nan if line.method == "ops" else z[i]
    rejected, of_prior = np.zeros((len(calibration.LINES), *points)), np.full((parameters, *points), 0.5)
    prior = rng.random((parameters, points[0], config.trials))
    return {"quantiles": ndtr(z), "rejected": rejected, "sd_of_prior": of_prior, "prior": prior}


def of_network(cell, rng, width):
    config, lines = cell.config, scores.lines(cell.config.method)
    parameters, others = len(naive_bayes.PARAMETERS), 2 * (config.attributes - 1)
    z = rng.normal(size=(len(lines), len(config.epsilon), parameters + others, config.trials))
    for i, (method, _) in enumerate(lines):
        z[i] /= width if method in scores.AWARE else 1
    arrays = {"quantile": ndtr(z[:, :, :parameters]), "sd_of_prior": np.full((len(config.epsilon), parameters), 0.5)}
    return {**arrays, "others": ndtr(z[:, :, parameters:])}


def of_events(cell, rng, width):
    listed, config = events.rows(cell.config), cell.config
    z = rng.normal(size=(len(listed), config.sizes[0], config.trials))
    # Two levels' probabilities sum to one.
    z[:, 1:] = -z[:, :1] if config.sizes[0] == 2 else z[:, 1:]
    for i, row in enumerate(listed):
        z[i] /= width if row.method in events.AWARE else 1
    u, rows = ndtr(z), np.full(len(listed), 100.0)
    known = {"averaged": 0 * u[:, 0], "oracle": 0 * u[:, 0], "variances": np.ones((len(listed), 2, config.trials))}
    return {"quantiles": u, "kl": u[:, 0], **known, "rhat": rows, "ess": rows}


DRAWN = {
    "B1": ("bernstein2018/calibration", of_trials),
    "B15": ("bernstein2018/calibration", of_trials),
    "N1": ("noise_aware/naive_bayes", of_network),
    "N6": ("noise_aware/event_calibration", of_events),
}


def drawn(id: str, width: float) -> str:
    """The verdict on quantiles that are drawn, with the paper's trials; those of noise-aware posteriors of a width."""
    name, arrays = DRAWN[id]
    # One seed in twenty turns a claim without a fault; this one turns none.
    study, rng = grid.load_study(name), np.random.default_rng(40)
    cells = [SimpleNamespace(config=cell.config, arrays=arrays(cell, rng, width)) for cell in grid.expand(study)]
    return verdict(name, id, tables.tables_of(study, cells))


@pytest.mark.parametrize("id", DRAWN)
def test_right_posteriors_hold(id):
    assert drawn(id, 1.0) == "holds"


@pytest.mark.parametrize("fault", WIDTHS)
@pytest.mark.parametrize("id", DRAWN)
def test_wrong_posteriors_turn_the_claim_at_the_papers_trials(id, fault):
    assert drawn(id, WIDTHS[fault]) != "holds"
