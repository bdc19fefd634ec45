"""The benchmarks' bookkeeping, and the law of the peers that they measure against."""

import json
import sys
from pathlib import Path
from types import SimpleNamespace

import elliptical_slice
import numpy as np
import pandas as pd
import pytest

from privpost.models.regression.logistic import LogisticPosterior

FOLDER = Path(__file__).resolve().parents[2] / "benchmarks"


@pytest.fixture
def modules(monkeypatch):
    monkeypatch.syspath_prepend(str(FOLDER))
    # `run` and `timing` are common names: whoever imports them later gets its own.
    names = ("timing", "peers", "run", "scalar_gibbs", "hidden_markov_loop")
    for name in names:
        monkeypatch.delitem(sys.modules, name, raising=False)
    import peers
    import run
    import timing

    yield timing, peers, run
    for name in names:
        sys.modules.pop(name, None)


def test_every_module_of_the_suite_is_found(modules):
    found = modules[2].collect()
    assert len(found) == len(list((FOLDER / "suite").glob("*.py"))) >= 1
    assert {"growth", "hidden_markov", "logistic", "mmd", "noise_aware_gibbs", "rebuild"} <= set(found)
    assert all(callable(module.run) for module in found.values())


def test_a_module_that_fails_costs_the_others_nothing(modules, monkeypatch, tmp_path, capsys):
    timing, _, run = modules
    monkeypatch.setattr(run, "TABLE", tmp_path / "benchmarks.csv")
    there = []

    def fail():
        # What ran before is on disk already.
        there.extend(pd.read_csv(tmp_path / "benchmarks.csv").benchmark)
        raise RuntimeError("seeded")

    def work(name):
        return SimpleNamespace(run=lambda: [timing.row(name, "x", 2.0)])

    found = {"a": work("a"), "b": SimpleNamespace(run=fail), "c": work("c")}
    monkeypatch.setattr(run, "collect", lambda: found)
    assert run.main([]) == 1
    assert "b failed" in (said := capsys.readouterr().err) and "RuntimeError: seeded" in said
    assert there == ["a"]
    assert pd.read_csv(tmp_path / "benchmarks.csv").benchmark.tolist() == ["a", "c"]
    assert run.main(["a", "c"]) == 0
    # Rows of a module that is gone go.
    del found["c"]
    assert run.main(["a"]) == 0
    assert pd.read_csv(tmp_path / "benchmarks.csv").benchmark.tolist() == ["a"]


def test_the_shipped_table_is_of_the_suite(modules):
    table = pd.read_csv(FOLDER.parent / "results/benchmarks.csv")
    assert list(table.columns) == modules[2].COLUMNS
    assert set(table.benchmark) == set(modules[2].collect())
    assert table.ratio.notna().all()


def test_least_time_and_result(modules):
    calls = []
    seconds, result = modules[0].cpu_seconds(lambda x: calls.append(x) or len(calls), 7, calls=2, repeats=3)
    assert seconds >= 0 and result == len(calls) == 6


def test_a_command_that_fails_says_so(modules):
    done = modules[0].run_command([sys.executable, "-c", "import os; print(os.environ['TONE'])"], TONE="low")
    assert done.output.strip() == "low" and done.cpu_seconds > 0 and done.wall_seconds > 0
    with pytest.raises(RuntimeError, match=r"status 3:\nwhy"):
        modules[0].run_command([sys.executable, "-c", "print('why'); raise SystemExit(3)"])


@pytest.mark.parametrize("power", [0.0, 1.0, 2.0])
def test_the_exponent_of_a_power_is_found(modules, power):
    growth = modules[2].collect()["growth"]
    sizes = np.array([10, 100, 1000])
    assert growth.exponent(sizes, 3e-6 * sizes**power) == pytest.approx(power, abs=1e-9)


def test_growth_is_measured_at_every_size(modules, monkeypatch):
    growth = modules[2].collect()["growth"]
    monkeypatch.setattr(growth, "LEAST", 1e-4)
    for curve in growth.CURVES:
        # The smallest size of each axis only: what is timed runs, and takes time.
        timed = list(growth.measure(curve._replace(sizes=curve.sizes[:1])))
        assert timed[0][0] == curve.sizes[0] and timed[0][1] > 0, curve.axis
        assert sum(size >= curve.fit_from for size in curve.sizes) >= 3, curve.axis


def test_the_double_sum_is_the_estimate(modules):
    from privpost.evaluation.mmd import mmd2

    rng = np.random.default_rng(8)
    p, q = rng.beta(3, 4, 60), rng.beta(2, 4, 60)
    # By its definition, pair by pair; rounding only.
    kernel = np.exp(-((np.concatenate([p, q])[:, None] - np.concatenate([p, q])) ** 2) / 2)
    plain = sum(
        kernel[i, j] + kernel[60 + i, 60 + j] - kernel[i, 60 + j] - kernel[j, 60 + i]
        for i in range(60) for j in range(60) if i != j
    ) / (60 * 59)  # fmt: skip
    assert modules[2].collect()["mmd"].double_sum(p, q) == pytest.approx(plain, abs=1e-13)
    assert float(mmd2(p, q)) == pytest.approx(plain, abs=1e-12)


def test_the_recorded_rebuild_is_judged(modules, monkeypatch, tmp_path):
    rebuild = modules[2].collect()["rebuild"]
    times = pd.DataFrame({"study": ["a/b", "c/d"], "seconds": 100.0, "peak_mib": 300.0})
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(rebuild.grid, "load_studies", lambda: [])
    monkeypatch.setattr(rebuild.page, "run_times", lambda studies, results: times)
    assert rebuild._recorded() == []
    (tmp_path / "build/paper").mkdir(parents=True)
    record = {"seconds": 300, "cores": 2, "cell_seconds": 500.0}
    (tmp_path / "build/paper/rebuild.json").write_text(json.dumps(record))
    rows = {row["what"]: row for row in rebuild._recorded()}
    whole = next(row for what, row in rows.items() if what.startswith("whole rebuild"))
    # 300 s on two cores for 500 s of computing.
    assert whole["ratio"] == pytest.approx(1.2)
    assert rows["largest peak memory of a cell"]["ratio"] == pytest.approx(300 / 1024)


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
    timing, _, run = modules
    first = run.merge(
        pd.DataFrame(columns=run.COLUMNS),
        {"b": [timing.row("w", "x", 2.0)], "a": [timing.row("v", "y", 1.0, note="n")]},
        "2 cores",
    )
    assert first.benchmark.tolist() == ["a", "b"] and list(first.columns) == run.COLUMNS
    second = run.merge(first, {"b": [timing.row("w", "z", 0.5)]}, "4 cores")
    assert second.against.tolist() == ["y", "z"]
    assert second.machine.tolist() == ["2 cores", "4 cores"]


def test_machine_names_no_host(modules):
    import platform

    assert platform.node() not in modules[2].machine() or not platform.node()


def test_unknown_benchmark_is_named(modules, capsys):
    assert modules[2].main(["nothing"]) == 2
    assert "no benchmark nothing" in capsys.readouterr().err


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
