"""Releases one exact draw from a private posterior, rounded to public bits or to a public lattice."""

import functools
import math
import random
import secrets
from typing import Any

import numpy as np

from privpost.lab.schema import SettingError
from privpost.mechanisms.base import Mechanism
from privpost.privacy.accounting import proved
from privpost.release import statement
from privpost.release.models.base import Sampled
from privpost.release.specification import Specification

# Orders at which the statement prints the Rényi parameter.
_PRINTED_ORDERS = (2.0, 8.0, 32.0)
# Longest time of a draw with its rehearsals, in seconds.
LONGEST = 60.0
LAWS = {
    "ops": "the prior times the likelihood, both to the power 1/T, truncated to [a0, 1 - a0]",
    "direct": "the posterior",
    "diffused": "the posterior with the likelihood to the power r",
    "concentrated": "the posterior with a prior whose natural parameters are divided by m",
}


def calibrate(spec: Specification, kind: Sampled) -> tuple[Mechanism, float]:
    """Of the mechanisms that the budget allows, return the one nearest to the true posterior, and a bound on its ε.

    Raises:
        SettingError: python-flint is missing, or the budget allows no draw.
    """
    try:
        return proved.nearest(functools.partial(kind.sampler, spec), spec.mechanism, spec.epsilon, spec.delta)
    except (ValueError, OverflowError) as error:
        raise SettingError(f"{spec.path}: {error}") from None


def terms(spec: Specification, kind: Sampled, mechanism: Mechanism, bound: float) -> dict[str, Any]:
    """Return the terms of a release of one draw, which depend on the specification alone."""
    _check_time(spec, kind, mechanism)
    law = mechanism.terms | kind.reading(spec) if kind.on_lattice else _cells(spec, kind, mechanism)
    law |= {"randomness": "the operating system's" if spec.noise == "secure" else "simulated"}
    return statement.promise(spec, mechanism, bound, {"sampling": law}, "the draw", "it")


def _cells(spec, kind, mechanism) -> dict[str, Any]:
    """Return the statement's description of a draw that is rounded to bits."""
    try:
        rounding = mechanism.rounding(spec.bits)
    except ValueError as error:
        raise SettingError(f"{spec.path}: {error}") from None
    law: dict[str, Any] = {"law": LAWS[spec.mechanism], "family": kind.law}
    if spec.mechanism == "ops":
        law |= {"T": mechanism.temperature, "a0": mechanism.a0}
    else:
        law |= {"coefficient": mechanism.coefficient}
        law["order"] = proved.bound(mechanism, spec.delta)[1]
        law["renyi"] = {
            f"{order:g}": rdp if math.isfinite(rdp := mechanism.certified_rdp(order)) else "infinite"
            for order in _PRINTED_ORDERS
        }
    return law | {
        "released": f"floor(2^{spec.bits} theta) of one ideal draw theta: post-processing, which costs nothing",
        "bits": spec.bits,
        "method": "lazily revealed uniform bits and interval arithmetic; no rounding error changes the law",
        "rounding": rounding,
    }


def _check_time(spec, kind, mechanism) -> None:
    if (seconds := mechanism.seconds(spec.bits)) > LONGEST:
        bits = "" if kind.on_lattice else f" of {spec.bits} bits"
        raise SettingError(
            f"{spec.path}: a draw of {len(kind.parameters(spec))} numbers{bits} would take some "
            f"{seconds:.0f} seconds with this prior and budget and its rehearsals, but may take {LONGEST:g}: take "
            + ("fewer columns." if kind.on_lattice else "fewer levels or bits, or a larger epsilon.")
        )


def released(spec: Specification, kind: Sampled, mechanism: Mechanism, exact: np.ndarray) -> dict[str, Any]:
    """Make the draw, and return, by parameter name, what the statement says of the rounded value."""
    randbits = secrets.randbits if spec.noise == "secure" else random.Random(spec.seed).getrandbits
    cells = mechanism.rounded(kind.exact_statistics(spec, exact), spec.bits, randbits)
    named = zip(kind.parameters(spec), cells, strict=True)
    if kind.on_lattice:
        return {name: {"steps": steps, "value": steps * mechanism.public.step} for name, steps in named}
    unit = 2.0**-spec.bits
    return {
        name: {"cell": cell, "interval": [cell * unit, (cell + 1) * unit], "midpoint": (cell + 0.5) * unit}
        for name, cell in named
    }
