"""The benchmarks' bookkeeping, and the law of the peers that they measure against."""

import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from privpost.models.logistic_regression import LogisticPosterior
from privpost.samplers import elliptical_slice

FOLDER = Path(__file__).resolve().parents[2] / "benchmarks"


@pytest.fixture
def modules(monkeypatch):
    monkeypatch.syspath_prepend(str(FOLDER))
    # `run` and `bars` are common names: whoever imports them later gets its own.
    for name in ("bars", "peers", "run"):
        monkeypatch.delitem(sys.modules, name, raising=False)
    import bars
    import peers
    import run

    yield bars, peers, run
    for name in ("bars", "peers", "run"):
        sys.modules.pop(name, None)


def test_verdicts_are_computed_from_the_bar(modules):
    row = modules[0].row
    assert row("a", "b", 12.0, at_least=10) == {
        "what": "a", "against": "b", "ratio": 12.0, "bar": ">= 10", "met": True, "note": ""
    }  # fmt: skip
    assert [row("a", "b", r, at_least=10)["met"] for r in (9.99, 10)] == [False, True]
    assert [row("a", "b", r, at_most=1.5)["met"] for r in (1.5, 1.51)] == [True, False]
    for wrong in ({}, {"at_least": 1, "at_most": 2}):
        with pytest.raises(ValueError, match="either at_least or at_most"):
            row("a", "b", 1.0, **wrong)


def test_every_module_of_the_suite_is_found(modules):
    found = modules[2].collect()
    assert len(found) == len(list((FOLDER / "suite").glob("*.py"))) >= 1
    assert "logistic" in found and callable(found["logistic"].run)


def test_incomplete_or_doubled_benchmarks_are_refused(modules, tmp_path):
    (tmp_path / "one.py").write_text("NAME = 'x'\ndef run():\n    return []\n")
    assert list(modules[2].collect(tmp_path)) == ["x"]
    (tmp_path / "two.py").write_text("NAME = 'x'\ndef run():\n    return []\n")
    with pytest.raises(ValueError, match="'x' is taken"):
        modules[2].collect(tmp_path)
    (tmp_path / "two.py").write_text("NAME = 'y'\n")
    with pytest.raises(ValueError, match=r"two\.py: a benchmark needs run"):
        modules[2].collect(tmp_path)


def test_a_run_replaces_its_own_rows_only(modules):
    bars, _, run = modules
    first = run.merge(
        pd.DataFrame(columns=run.COLUMNS),
        {"b": [bars.row("w", "x", 2.0, at_least=1)], "a": [bars.row("v", "y", 1.0, at_most=2, note="n")]},
        "2 cores",
    )
    assert first.benchmark.tolist() == ["a", "b"] and list(first.columns) == run.COLUMNS
    second = run.merge(first, {"b": [bars.row("w", "z", 0.5, at_least=1)]}, "4 cores")
    assert second.against.tolist() == ["y", "z"]
    assert second.machine.tolist() == ["2 cores", "4 cores"] and second.met.tolist() == [True, False]


def test_machine_names_no_host(modules):
    import platform

    assert platform.node() not in modules[2].machine() or not platform.node()


def test_unknown_benchmark_is_named(modules, capsys):
    assert modules[2].main(["nothing"]) == 2
    assert "no benchmark nothing" in capsys.readouterr().err


def test_figure_is_drawn_from_the_table(modules):
    from privpost.figures import benchmarks, style

    bars, _, run = modules
    rows = {"a": [bars.row("w", "x", 200.0, at_least=10), bars.row("w", "y", 3.0, at_most=1.5)]}
    table = run.merge(pd.DataFrame(columns=run.COLUMNS), rows, "2 cores")
    with style.context():
        figure = benchmarks.draw({"benchmarks": table})
        left, right = figure.axes[0].get_xlim()
        style.close(figure)
    assert left < 1.5 and right > 200


def small_posterior():
    rng = np.random.default_rng(4)
    features = rng.standard_normal((150, 3))
    features /= np.linalg.norm(features, axis=1, keepdims=True)
    labels = (rng.random(150) < 1 / (1 + np.exp(-3 * features[:, 0]))).astype(float)
    return LogisticPosterior(features, labels, 1.5)


def gibbs(peers, posterior, seed):
    return peers.polya_gamma_gibbs(posterior, np.zeros(3), 50, 1000, np.random.default_rng(seed))


def nuts(peers, posterior, seed):
    pytest.importorskip("numpyro")
    return peers.nuts(posterior, np.zeros(3), 200, 1000, seed)


@pytest.mark.parametrize("peer", [gibbs, nuts])
def test_peers_sample_the_same_posterior(modules, peer):
    posterior = small_posterior()
    chains = [peer(modules[1], posterior, seed) for seed in range(4)]
    assert all(chain.seconds > 0 and chain.warm_up_seconds > 0 for chain in chains)
    draws = np.stack([chain.draws for chain in chains], axis=1)
    ours, _ = elliptical_slice.sample(posterior, n_chains=400, n_draws=20, n_burn_in=10, rng=np.random.default_rng(6))
    for power in (1, 2):
        theirs = (draws**power).reshape(20, 50, 4, 3).mean(axis=1).reshape(-1, 3)  # batches of 50 draws
        chain_means = (ours**power).mean(axis=0)
        error = np.hypot(*(m.std(axis=0, ddof=1) / np.sqrt(len(m)) for m in (theirs, chain_means)))
        # Three coordinates, two moments, two peers: beyond 5 standard errors once in 140,000 runs.
        assert (abs(theirs.mean(axis=0) - chain_means.mean(axis=0)) < 5 * error).all()
