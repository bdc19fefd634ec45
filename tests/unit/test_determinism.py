"""The same numbers whatever the order of the cells, the size of batches in memory, or the processor's kernels."""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from privpost.experiments.bernstein2018 import trials
from privpost.lab import cells, grid, store
from privpost.samplers.noise_aware import gibbs as noise_aware_gibbs

# Monte Carlo studies with each kind of sampler, a second in all at smoke scale.
STUDIES = ("bernstein2018/calibration", "bernstein2018/utility", "foulds2016/sampling_error", "zhang2016/naive_bayes")
# Sums of at most a million terms of size 1 whose order differs: a few units of 2e-16 each, averaging out.
ROUNDING = 1e-12


def computed(root, *, backwards: bool = False) -> dict[tuple[str, str], dict[str, np.ndarray]]:
    """Compute the cells of some studies at smoke scale below a folder; arrays by study and digest."""
    found = {}
    for study, cell in in_folder(root)[:: -1 if backwards else 1]:
        found[study.name, cell.digest] = store.read(cells.compute(study, cell)).arrays
    return found


def in_folder(root) -> list[tuple]:
    """Return the studies' cells, each with its study, below a folder."""
    return [
        (study, replace(cell, folder=f"{root}/{study.name}"))
        for study in grid.load_studies(STUDIES, "smoke")
        for cell in grid.expand(study)
    ]


@pytest.fixture(scope="module")
def truth(tmp_path_factory):
    folder = os.getcwd()
    os.chdir(Path(__file__).resolve().parents[2])
    try:
        return computed(tmp_path_factory.mktemp("truth"))
    finally:
        os.chdir(folder)


def same(found, truth, rtol: float = 0.0) -> None:
    assert found.keys() == truth.keys()
    for key, arrays in truth.items():
        assert arrays.keys() == found[key].keys()
        for name, array in arrays.items():
            if rtol:
                np.testing.assert_allclose(found[key][name], array, rtol=rtol, atol=rtol, err_msg=f"{key} {name}")
            else:
                assert found[key][name].tobytes() == array.tobytes(), (key, name)


def test_cells_do_not_depend_on_those_computed_before_them(checkout, truth, tmp_path):
    """Backwards in one process, after numpy's global generator was moved: nothing draws from what others share."""
    np.random.seed(1)  # noqa: NPY002
    same(computed(tmp_path, backwards=True), truth)


@pytest.mark.parametrize("size", [1, 7])
def test_cells_do_not_depend_on_batches_in_memory(checkout, truth, tmp_path, monkeypatch, size):
    monkeypatch.setattr(noise_aware_gibbs, "CHUNK", size)
    monkeypatch.setattr(trials, "RECORDS", 1000 * size)
    same(computed(tmp_path), truth, ROUNDING)


def test_cells_of_other_processor_kernels_differ_by_rounding(checkout, truth, tmp_path):
    """Without any of numpy's kernels for newer processors and with OpenBLAS's of 2008.

    The tolerance is that of closed forms across machines; draws follow the same path as long as no rounding error
    turns an acceptance, which none of these does.
    """
    from numpy._core._multiarray_umath import __cpu_dispatch__ as features

    code = """
import sys
from numpy._core._multiarray_umath import __cpu_features__ as on
assert not [name for name in sys.argv[2:] if on[name]], on
sys.path.insert(0, "tests/unit")
import test_determinism
test_determinism.computed(sys.argv[1])
"""
    environment = {**os.environ, "OPENBLAS_CORETYPE": "Nehalem", "NPY_DISABLE_CPU_FEATURES": " ".join(features)}
    subprocess.run([sys.executable, "-W", "ignore", "-c", code, str(tmp_path), *features], env=environment, check=True)
    found = {(study.name, c.digest): store.read(c.path, c.digest).arrays for study, c in in_folder(tmp_path)}
    same(found, truth, 1e-9)


def test_the_shell_cannot_change_the_number_of_blas_threads():
    """Two threads round the moments of a regression differently, in the last digits of a table."""
    names = ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS")
    code = f"import os, privpost.__main__; print([os.environ[name] for name in {names}])"
    environment = {**os.environ, **dict.fromkeys(names, "4")}
    said = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True)
    assert said.stdout.strip() == "['1', '1', '1']"
