"""`privpost release`: check everything, then draw noise once, then write the statement whole or not at all."""

from __future__ import annotations

import argparse
import json
import math
import os
import sys
from pathlib import Path
from typing import Any

import numpy as np

from privpost.atomic import replacing
from privpost.distributions import noise
from privpost.mechanisms.base import AdditiveNoiseMechanism
from privpost.pipeline.schema import SettingError
from privpost.privacy.approximate import gaussian_from_approximate
from privpost.release import models, spending, statement, table
from privpost.release.spec import read
from privpost.release.specification import Specification


def main(argv: list[str]) -> int:
    """Run the command; its errors are SettingErrors, raised before anything is released."""
    parser = argparse.ArgumentParser(
        prog="privpost release",
        allow_abbrev=False,
        description="Release private statistics of a CSV file, and posterior draws if asked, as JSON with a privacy "
        "statement. The YAML specification holds model, columns with levels or bounds, n, epsilon; docs/release.md "
        "explains it. Whatever is wrong is said, and nothing is released.",
    )
    parser.add_argument("specification", type=Path, help="YAML file: what is public, and what the release may cost")
    parser.add_argument("--data", type=Path, help="CSV file with a header; default: the specification's data")
    parser.add_argument("--output", type=Path, help="new JSON file; default: standard output")
    parser.add_argument(
        "-n", "--dry-run", action="store_true", help="print the privacy terms; read no data and draw no noise"
    )
    options = parser.parse_args(argv)
    spec = read(options.specification)
    kind = models.KINDS[spec.model]
    mechanism, terms = prepared(spec, kind)
    if options.dry_run:
        print(_json({"privacy": terms, "specification": statement.specification(spec)}))
        return 0
    data = options.data or spec.data
    if data is None:
        raise SettingError(f"{spec.where}: there are no data; give --data FILE, or data: in the specification.")
    _check_output(options.output)
    exact = table.statistics(data, spec, kind, mechanism.model)
    with spending.charged(spec):
        content = _released(spec, kind, mechanism, terms, exact)
        _write(options.output, _json(content) + "\n")
    if not content.get("posterior", {}).get("converged", True):
        print("privpost: the posterior's chains have not converged; do not use its draws.", file=sys.stderr)
    return 0


def prepared(spec: Specification, kind: models.Kind) -> tuple[AdditiveNoiseMechanism, dict[str, Any]]:
    """Return the calibrated mechanism and the terms of its release, before any data are read; errors as `calibrate`."""
    mechanism, proved = calibrate(spec, kind)
    return mechanism, statement.privacy(spec, kind, mechanism, proved)


def calibrate(spec: Specification, kind: models.Kind) -> tuple[AdditiveNoiseMechanism, float | None]:
    """Return the mechanism with the least noise that the budget allows, and the ε that opendp proves for it.

    Nothing is proved for simulated noise: its ε is None.

    Secure noise is calibrated by opendp's own privacy map, which rounds up: the mechanism's ε is lowered, or σ raised,
    by units in the last place until the map is within the specification's ε.

    Raises:
        SettingError: opendp is missing, or the noise would be too large or too small for the backend.
    """
    secure = spec.noise == "secure"
    try:
        if spec.mechanism == "gaussian":
            mechanism = kind.mechanism(spec, _sigma(spec, kind))
            sensitivity = math.nextafter(mechanism.sensitivity, math.inf)
            if not secure:
                return mechanism, None
            _check_scale(mechanism.sigma)
            return mechanism, noise.gaussian_epsilon(mechanism.sigma, sensitivity, spec.delta)
        mechanism = kind.mechanism(spec, spec.epsilon)
        if not secure:
            return mechanism, None
        _check_scale(mechanism.scale)
        epsilon = spec.epsilon
        while (proved := noise.laplace_epsilon(mechanism.scale, round(mechanism.sensitivity))) > spec.epsilon:
            epsilon = math.nextafter(epsilon, 0.0)
            mechanism = kind.mechanism(spec, epsilon)
        return mechanism, proved
    except (ValueError, OverflowError) as error:
        raise SettingError(f"{spec.where}: epsilon is {spec.epsilon:g}: {error}") from None


def _check_scale(scale: float) -> None:
    if scale > noise.LARGEST_SCALE:
        raise ValueError(f"the noise would have scale {scale:g}, beyond 2^40")


def _sigma(spec: Specification, kind: models.Kind) -> float:
    """The least σ that opendp's map allows; the analytic one, less than 1 in 1000 smaller, where noise is simulated."""
    sensitivity = math.nextafter(kind.mechanism(spec, 1.0).sensitivity, math.inf)
    with np.errstate(divide="ignore"):
        low = gaussian_from_approximate(spec.epsilon, spec.delta) * sensitivity
    if spec.noise != "secure":
        return low
    high = 2 * low
    while noise.gaussian_epsilon(high, sensitivity, spec.delta) > spec.epsilon:
        low, high = high, 2 * high
    while high / low > 1 + 1e-6:
        middle = math.sqrt(low * high)
        if noise.gaussian_epsilon(middle, sensitivity, spec.delta) <= spec.epsilon:
            high = middle
        else:
            low = middle
    return high


def _released(spec, kind, mechanism, terms, exact) -> dict[str, Any]:
    simulated = np.random.default_rng(spec.seed)
    source = noise.SecureNoise() if spec.noise == "secure" else simulated
    release = mechanism.perturb(exact, source)
    content: dict[str, Any] = {
        "format": statement.FORMAT,
        "privacy": terms,
        "specification": statement.specification(spec),
        "statistics": kind.statistics(spec, release),
    }
    if spec.draws:
        content["posterior"] = _posterior(spec, kind, mechanism, release, simulated)
    return {**content, "versions": statement.versions(spec)}


def _posterior(spec, kind, mechanism, release, rng) -> dict[str, Any]:
    """Draws and how they were made; where extreme settings leave none, a statement of that: the release is made."""
    try:
        with np.errstate(all="ignore"):
            found = kind.posterior(spec, mechanism, release, rng)
        if all(np.isfinite(draws).all() for draws in found.draws.values()):
            return statement.posterior(found)
        reason = "draws are not finite"
    except (ValueError, ArithmeticError) as error:
        reason = str(error)
    return {"failed": f"no draws from the posterior with this prior: {reason}"}


def _json(content: dict[str, Any]) -> str:
    return json.dumps(content, indent=2, ensure_ascii=False, allow_nan=False)


def _check_output(path: Path | None) -> None:
    if path is None:
        return
    if path.exists() or path.is_symlink():
        raise _taken(path)
    if not path.parent.is_dir():
        raise SettingError(f"--output: there is no folder {path.parent}")
    if not os.access(path.parent, os.W_OK):
        raise SettingError(f"--output: the folder {path.parent} cannot be written to")


def _taken(path: Path) -> SettingError:
    return SettingError(
        f"--output: {path} exists. Another release costs its epsilon again; name a new file if that is meant."
    )


def _write(path: Path | None, text: str) -> None:
    """Write a new file whole or not at all; a file that appeared meanwhile is kept."""
    if path is None:
        sys.stdout.write(text)
        return
    try:
        with replacing(path, durable=True, new=True) as temporary:
            temporary.write_text(text, encoding="utf-8")
    except FileExistsError:
        raise _taken(path) from None
    except OSError as error:
        raise SettingError(f"--output: {path} cannot be written: {error.strerror}") from None
