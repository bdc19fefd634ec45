"""What a release says about itself: the promise, its terms, and what it does not cover."""

from __future__ import annotations

import platform
from importlib import metadata
from typing import Any

import numpy as np

from privpost.mechanisms.base import AdditiveNoiseMechanism
from privpost.release.models import Kind, Posterior
from privpost.release.spec import Specification

FORMAT = "privpost release 1"
# Chains above it have not mixed (Vehtari et al. 2021).
RHAT_LIMIT = 1.01
_QUANTILES = (0.025, 0.25, 0.5, 0.75, 0.975)

COVERS = (
    "Whoever sees the released statistics, or anything computed from them such as the posterior draws, can hardly tell "
    "whether any single record was replaced by another one, whatever else they know: no event becomes more than "
    "exp(epsilon) times as likely (with delta, but for that probability).",
)
DOES_NOT_COVER = (
    "Other releases about the same records, this one repeated included: their epsilons add up.",
    "What is listed as public: it is not protected, and must not have been chosen by looking at the records.",
    "A person with several records: k records of one person are protected at k times epsilon.",
    "Facts about the population that the statistics reveal, also about people without a record.",
    "Time, memory and error messages of the program that made the release; they stay with the data holder.",
)
NOT_PRIVATE = (
    "NOT A PRIVATE RELEASE: the noise was simulated in floating point, from a generator that can be predicted or "
    "repeated. It shows what a release looks like; the data must not be real."
)


def privacy(spec: Specification, kind: Kind, mechanism: AdditiveNoiseMechanism, proved: float) -> dict[str, Any]:
    """Return the terms of a release; they depend on the specification alone.

    Args:
        spec: the specification.
        kind: its model.
        mechanism: the calibrated mechanism.
        proved: ε that the noise costs, at spec.delta where there is one, by the backend's own account.
    """
    secure = spec.noise == "secure"
    laplace = spec.mechanism == "laplace"
    unit = kind.unit(spec)
    law = ("discrete " if secure else "") + ("Laplace" if laplace else "Gaussian")
    scale = mechanism.scale if laplace else mechanism.sigma
    return {
        "private": secure,
        "notion": "pure epsilon-DP" if laplace else "(epsilon, delta)-DP",
        "epsilon": spec.epsilon,
        "delta": 0.0 if spec.delta is None else spec.delta,
        "epsilon_proved": proved,
        "neighbours": f"{mechanism.neighbours}: data sets of {spec.n} records that differ in one record; every cell "
        "holds what the specification allows",
        "mechanism": spec.mechanism,
        "sensitivity": {"norm": mechanism.norm, "value": mechanism.sensitivity * unit},
        "noise": {
            "distribution": law,
            "scale": scale * unit,
            "scale_is": "mean absolute deviation, about" if laplace else "standard deviation, about",
            "support": f"multiples of {unit:g}" if secure else "floating-point numbers",
            "independent_coordinates": _coordinates(spec, kind, mechanism),
            "backend": spec.noise,
        },
        "releases": 1,
        "public": list(_public(spec)),
        "covers": list(COVERS) if secure else [NOT_PRIVATE],
        "does_not_cover": list(DOES_NOT_COVER),
    }


def _coordinates(spec: Specification, kind: Kind, mechanism: AdditiveNoiseMechanism) -> int:
    nobody = np.zeros((0, len(spec.columns)), np.int64)
    return mechanism.query(kind.records(nobody)).size


def _public(spec: Specification):
    yield "the number of records n"
    yield "names, levels, bounds, resolution and roles of the columns"
    if spec.prior:
        yield "the prior"
    yield "epsilon" + ("" if spec.delta is None else ", delta") + " and every other line of the specification"


def specification(spec: Specification) -> dict[str, Any]:
    """Return the public settings of a release, without paths of files."""
    return {
        "model": spec.model,
        "n": spec.n,
        "columns": spec.columns,
        "prior": spec.prior,
        **({} if spec.seed is None else {"seed": spec.seed}),
    }


def posterior(found: Posterior) -> dict[str, Any]:
    """Return draws with their summaries and with how they were made."""
    return {
        "noise_aware": found.noise_aware,
        "method": found.method,
        "approximations": list(found.approximations),
        "converged": found.rhat is None or found.rhat < RHAT_LIMIT,
        "rhat_max": found.rhat,
        "ess_min": found.ess,
        "summary": {name: _summary(draws) for name, draws in found.draws.items()},
        "draws": {name: draws.tolist() for name, draws in found.draws.items()},
    }


def _summary(draws: np.ndarray) -> dict[str, float]:
    quantiles = zip(_QUANTILES, np.quantile(draws, _QUANTILES), strict=True)
    return {"mean": float(draws.mean()), "sd": float(draws.std()), **{f"{q:g}": float(value) for q, value in quantiles}}


def versions(spec: Specification) -> dict[str, str]:
    """Return the versions of what made the release."""
    packages = ("privpost", "numpy", "scipy", *(("opendp",) if spec.noise == "secure" else ()))
    return {"python": platform.python_version(), **{name: metadata.version(name) for name in packages}}
