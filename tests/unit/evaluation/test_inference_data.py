"""Draws for ArviZ: separate chains, with names and release, the same from a netCDF file; ArviZ may be missing."""

from __future__ import annotations

import sys

import numpy as np
import pytest

import privpost
from privpost.evaluation import inference_data
from privpost.samplers.noise_aware import draws as noise_aware_draws

CHAINS, EACH = 8, 200


@pytest.fixture
def drawn(monkeypatch) -> noise_aware_draws.Draws:
    """All draws of the chains of a small network, which one chain is far from."""
    chains = np.random.default_rng(3).normal(size=(EACH, CHAINS, 3)) + 0.2 * np.eye(CHAINS, 3)
    monkeypatch.setattr(noise_aware_draws, "network", lambda *_: chains)
    mechanism = privpost.NetworkLaplace(privpost.BayesianNetwork({"a": [], "b": ["a"]}), 20, 2.0)
    return mechanism.posterior(np.full(6, 9.0), CHAINS * EACH, np.random.default_rng(1))


@pytest.mark.parametrize(("draws", "chains", "first"), [(12, 4, 0), (10, 4, 2), (3, 4, 0), (5, 1, 0)])
def test_pooled_draws_are_told_apart(draws, chains, first):
    """Draw i of the last ones is draw i // chains of chain i % chains, counted one by one."""
    pooled = np.arange(2.0 * draws).reshape(draws, 2)
    found = inference_data.by_chain(pooled, chains)
    count = min(chains, draws)
    assert found.shape == (count, (draws - first) // count, 2)
    for i in range(first, draws):
        assert found[(i - first) % count, (i - first) // count].tolist() == [2.0 * i, 2.0 * i + 1]


def test_draws_know_their_chains_and_parts_of_them_have_none(drawn):
    assert (drawn.chains, drawn[:, 0].chains, drawn[5:].chains) == (CHAINS, CHAINS, 1)
    counts = privpost.LaplaceMechanism(privpost.BetaBernoulli(1, 1), 20, 1.0)
    assert counts.posterior(np.array([9.0]), 5, np.random.default_rng(1)).chains == 1
    moments = privpost.MomentsLaplace(privpost.NormalRegression(1), 9, 1.0)
    found = moments.posterior(np.ones(3), 30, np.random.default_rng(1))
    assert (found.chains, found.diagnostics.n_chains, found.diagnostics.reason) == (4, 4, "")


def test_without_arviz_one_line_names_the_extra(drawn, monkeypatch):
    monkeypatch.setitem(sys.modules, "arviz", None)
    with pytest.raises(ValueError, match=r"^InferenceData and netCDF need the package arviz\. .*'\.\[arviz\]'\)$"):
        drawn.inference_data()


def test_arviz_finds_the_diagnostics_that_the_draws_have(drawn):
    """R-hat and sizes of the handed-out draws by ArviZ: the same formulas, rounded in another order."""
    arviz = pytest.importorskip("arviz")
    found = drawn.inference_data(["a", "b | a", "b | not a"], release=np.full(6, 9.0))
    assert isinstance(found, arviz.InferenceData)
    assert dict(found.posterior.sizes) == {"chain": CHAINS, "draw": EACH, "parameter": 3}
    assert found.observed_data.release.values.tolist() == [9.0] * 6
    hat = float(arviz.rhat(found).theta.max())
    sizes = [float(arviz.ess(found, method=method).theta.min()) for method in ("bulk", "tail")]
    assert (drawn.diagnostics.rhat_max, drawn.diagnostics.ess_min) == pytest.approx((hat, min(sizes)), rel=1e-9)
    one = arviz.extract(found, var_names="theta", combined=False).sel(parameter="b | a")
    assert np.array_equal(one.values.T.ravel(), np.asarray(drawn)[:, 1])


def test_a_netcdf_file_holds_the_draws_and_equal_draws_make_equal_files(drawn, tmp_path):
    arviz = pytest.importorskip("arviz")
    for name in ("one", "two"):
        drawn.inference_data().to_netcdf(str(tmp_path / f"{name}.nc"))
    read = arviz.from_netcdf(tmp_path / "one.nc").posterior
    assert np.array_equal(np.moveaxis(read.theta.values, 0, 1).reshape(-1, 3), np.asarray(drawn))
    assert read.attrs["inference_library"] == "privpost"
    assert (tmp_path / "one.nc").read_bytes() == (tmp_path / "two.nc").read_bytes()


def test_draws_know_the_names_of_their_coordinates():
    """As the model has them, also in what ArviZ gets; a part of the coordinates has none."""
    pair = privpost.BayesianNetwork({"a": [], "b": ["a"]})
    rng = np.random.default_rng(1)
    counts = privpost.LaplaceMechanism(privpost.DirichletCategorical((1, 1, 1)), 20, 1.0)
    clamped = privpost.ClampedMoments(privpost.NormalUnknownVariance(), -1.0, 1.0)
    drawn = {
        ("w1", "s2"): privpost.MomentsLaplace(privpost.NormalRegression(1), 9, 1.0).posterior(np.ones(3), 30, rng),
        ("P(a)", "P(b | a=0)", "P(b | a=1)"): privpost.NetworkLaplace(pair, 20, 1.0).posterior(np.ones(6), 30, rng),
        ("P(0)", "P(1)", "P(2)"): counts.posterior(np.array([9.0, 6.0, 5.0]), 30, rng),
        ("mu", "s2"): privpost.LaplaceMechanism(clamped, 50, 1.0).posterior(np.array([3.0, 20.0]), 30, rng),
    }
    for names, draws in drawn.items():
        assert draws.names == draws[3:].names == names
        assert draws.shape[1:] == (len(names),)
        assert draws[:, 0].names is None
    bits = privpost.LaplaceMechanism(privpost.BetaBernoulli(1, 1), 20, 1.0).posterior(np.array([9.0]), 5, rng)
    assert bits.names is None


@pytest.mark.parametrize("names", [["a", "a", "b"], ["a", "b"], "abcd"])
def test_names_that_are_not_those_of_the_coordinates_are_refused(drawn, names):
    with pytest.raises(ValueError, match="need one name a coordinate, no two alike"):
        drawn.inference_data(names)


def test_arviz_names_the_coordinates_that_the_model_knows(drawn):
    pytest.importorskip("arviz")
    found = drawn.inference_data()
    assert found.posterior.parameter.values.tolist() == list(drawn.names)
    assert found.posterior.theta.dims == ("chain", "draw", "parameter")
