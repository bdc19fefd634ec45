"""What it would cost to pin the processor's kernels, so that other machines give the same bits."""

from __future__ import annotations

import json
import os
import sys
import tempfile
from pathlib import Path

import numpy as np
from bars import cpu_seconds, reference, run_command

NAME = "pins"
# The newest kernels that run on every x86 machine of the last ten years, without numpy's for newer machines.
PINS = {
    "OpenBLAS": {"OPENBLAS_CORETYPE": "Haswell"},
    "numpy": {"NPY_DISABLE_CPU_FEATURES": "X86_V4 AVX512_ICL AVX512_SPR"},
}
# Kernels of the studies, and the pin on which each depends.
KERNELS = {
    "matrix product": "OpenBLAS",
    "precision matrix": "OpenBLAS",
    "Cholesky factor": "OpenBLAS",
    "exp": "numpy",
    "expm1": "numpy",
    "log1p": "numpy",
}


def measure(path: str) -> None:
    """Time the kernels in this process; write seconds and results to an .npz."""
    rng = np.random.default_rng(0)
    features, weights = rng.standard_normal((4000, 784)), rng.standard_normal((50, 784))
    values = rng.standard_normal(200_000)
    precision = features.T @ features + np.eye(784)
    functions = {
        "matrix product": lambda: weights @ features.T,
        "precision matrix": lambda: features.T @ features,
        "Cholesky factor": lambda: np.linalg.cholesky(precision),
        "exp": lambda: np.exp(values),
        "expm1": lambda: np.expm1(values),
        "log1p": lambda: np.log1p(np.abs(values)),
    }
    timed = {name: cpu_seconds(function, calls=3, repeats=5) for name, function in functions.items()}
    seconds = json.dumps({name: time for name, (time, _) in timed.items()})
    np.savez(path, seconds=np.array(seconds), **{name: result for name, (_, result) in timed.items()})


def run() -> list[dict]:
    """Measure each kernel free and pinned, in separate processes, and how much the results differ."""
    if not any(name.startswith(("X86_V4", "AVX512")) for name in _processor_features()):
        print("skipped: the cost of pins (this processor has no kernels newer than the pinned ones)")
        return []
    with tempfile.TemporaryDirectory() as folder:
        free = _in_a_process(Path(folder) / "free.npz", {})
        pinned = {pin: _in_a_process(Path(folder) / f"{pin}.npz", variables) for pin, variables in PINS.items()}
    rows = []
    for kernel, pin in KERNELS.items():
        (ours, result), (theirs, other) = free[kernel], pinned[pin][kernel]
        difference = float(np.max(abs(other - result)) / np.max(abs(result)))
        words = " ".join(f"{key}={value}" for key, value in PINS[pin].items())
        rows.append(
            reference(
                f"cost of pinned kernels: {kernel}",
                words,
                theirs / ours,
                ours=1e3 * ours,
                theirs=1e3 * theirs,
                unit="ms",
                note=f"results differ by {difference:.0e} of the largest",
            )
        )
    return rows


def _processor_features() -> list[str]:
    from numpy._core._multiarray_umath import __cpu_features__

    return [name for name, there in __cpu_features__.items() if there]


def _in_a_process(path: Path, variables: dict[str, str]) -> dict[str, tuple[float, np.ndarray]]:
    places = os.pathsep.join([str(Path(__file__).parents[1]), *filter(None, [os.environ.get("PYTHONPATH")])])
    run_command([sys.executable, __file__, str(path)], PYTHONPATH=places, **variables)
    with np.load(path) as stored:
        seconds = json.loads(str(stored["seconds"]))
        return {name: (seconds[name], stored[name]) for name in KERNELS}


if __name__ == "__main__":
    measure(sys.argv[1])
