"""`privpost release`: check everything, charge, draw once, and hand over a whole statement."""

import argparse
import contextlib
import hashlib
import json
import math
import sys
from pathlib import Path
from typing import Any

import numpy as np

from privpost.distributions import noise
from privpost.lab.schema import SettingError
from privpost.mechanisms.additive_noise import AdditiveNoiseMechanism
from privpost.mechanisms.base import Mechanism
from privpost.privacy.approximate import gaussian_from_approximate
from privpost.release import delivery, models, posterior_draw, spending, statement, summary, table
from privpost.release.models.base import Inferred
from privpost.release.spec import read
from privpost.release.specification import Specification


def main(argv: list[str]) -> int:
    """Run the command; its errors are SettingErrors, raised before anything is charged or released."""
    options = _parser().parse_args(argv)
    spec = read(options.specification)
    kind = models.KINDS[spec.model]
    mechanism, terms = prepared(spec, kind)
    statement_terms = {"privacy": terms, "specification": statement.specification(spec)}
    if options.dry_run:
        delivery.encoded(text := _json(statement_terms))
        print(text)
        return 0
    with delivery.Delivery(options.output, spec) as place:
        if options.draws:
            delivery.check_draws(options.draws, spec, options.output)
        spent = ""
        try:
            if options.again:
                content = _again(spec, kind, mechanism, statement_terms, options.again)
                place.prepare(_json(content))
            else:
                data = options.data or spec.data
                if data is None:
                    raise SettingError(f"{spec.where}: there are no data; give --data FILE, or data: in it.")
                exact = table.statistics(data, spec, kind, kind.counted(spec, mechanism))
                content = {"format": statement.FORMAT, **statement_terms, "versions": statement.versions(spec)}
                # A rehearsal, which is thrown away: whatever can fail does so before the charge.
                place.prepare(_json(_drawn(spec, kind, mechanism, content, exact)))
                with spending.charged(spec) as entry:
                    spent = _spent(spec)
                    content = _drawn(spec, kind, mechanism, content, exact, entry)
                    place.store(_json(content) + "\n")
            return _finish(spec, kind, mechanism, content, place, options)
        except delivery.Undelivered as error:
            print(f"privpost: {error}.{spent}", file=sys.stderr)
        except Exception as error:
            if not spent:
                raise
            print(f"privpost: the release failed: {type(error).__name__}: {error}.{spent}", file=sys.stderr)
        except BaseException:
            print(f"privpost: stopped.{spent}", file=sys.stderr)
            raise
        return 1


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="privpost release",
        allow_abbrev=False,
        description="Release private statistics of a CSV file, or one draw from a private posterior, as JSON with a "
        "privacy statement. The YAML specification holds model, columns with levels or bounds, n, epsilon; "
        "docs/release.md explains it. Whatever is wrong is said, and nothing is released.",
    )
    parser.add_argument("specification", type=Path, help="YAML file: what is public, and what the release may cost")
    parser.add_argument("--data", type=Path, help="CSV file with a header; default: the specification's data")
    parser.add_argument("--output", type=Path, help="new JSON file; default: standard output")
    parser.add_argument(
        "--draws", type=Path, metavar="FILE", help="new CSV file for the posterior's draws, beside the JSON"
    )
    parser.add_argument(
        "-n", "--dry-run", action="store_true", help="print the privacy terms; read no data and draw no noise"
    )
    parser.add_argument(
        "--again", type=Path, metavar="RELEASE", help="draw the posterior of an earlier release again, at no cost"
    )
    return parser


def _spent(spec: Specification) -> str:
    """What a failed release has cost all the same."""
    delta = "" if spec.delta is None else f" and delta {spec.delta:g}"
    return f" Epsilon {spec.epsilon:g}{delta} was spent."


def _again(spec, kind, mechanism, terms, path: Path) -> dict[str, Any]:
    """An earlier release without its posterior; a SettingError where the specification is another one."""
    try:
        found = json.loads(path.read_bytes())
        same = all(found[key] == json.loads(_json(value)) for key, value in terms.items())
        release = np.array(found["release"], float)
    except (OSError, ValueError, KeyError, TypeError, RecursionError) as error:
        raise SettingError(f"--again: {path} is no release: {error}") from None
    if not (same and spec.draws and np.isfinite(release).all()):
        raise SettingError(f"--again: {path} was made with another specification, or there is no posterior to draw.")
    return {key: value for key, value in found.items() if key != "posterior"}


def _finish(spec, kind, mechanism, content, place: delivery.Delivery, options) -> int:
    """Draw the posterior of what was released, hand over the statement, and sum it up."""
    if spec.draws and not spec.sampling:
        content["posterior"] = _posterior(spec, kind, mechanism, content, options.draws)
    place.hand_over(_json(content) + "\n")
    wrong = statement.unusable(content.get("posterior", {}))
    if wrong:
        print(f"privpost: the statistics were released, but {wrong}", file=sys.stderr)
    if options.output:
        # The statement is on the disk: a reader that has gone away makes no failure of it.
        with contextlib.suppress(OSError):
            print("\n".join(summary.lines(content, options.output)), flush=True)
            if isinstance(kind, Inferred) and not (spec.draws or spec.sampling):
                asked = "with posterior: {draws: 4000} in the specification"
                print(f"  a posterior     costs nothing more: --again {options.output}, {asked}", flush=True)
    return 1 if wrong else 0


def _generator(content: dict[str, Any]) -> np.random.Generator:
    """The posterior's randomness, which the statement fixes: whoever repeats --again gets the same draws."""
    fixed = [content[key] for key in ("privacy", "specification", "release")]
    return np.random.default_rng(int.from_bytes(hashlib.sha256(json.dumps(fixed, sort_keys=True).encode()).digest()))


def prepared(spec: Specification, kind: models.Kind) -> tuple[Mechanism, dict[str, Any]]:
    """Return the calibrated mechanism and the terms of its release, before any data are read; errors as `calibrate`."""
    if spec.sampling:
        sampler, bound = posterior_draw.calibrate(spec, kind)
        return sampler, posterior_draw.terms(spec, kind, sampler, bound)
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
    except SettingError:
        raise
    except Exception as error:
        # opendp's own errors are of no one type, and some have thousands of digits.
        reason = str(error).strip().splitlines()[0][:200] if str(error).strip() else type(error).__name__
        raise SettingError(f"{spec.where}: epsilon is {spec.epsilon:g}: {reason}") from None


def _check_scale(scale: float) -> None:
    if scale > noise.LARGEST_SCALE:
        raise ValueError(f"the noise would have scale {scale:g}, beyond 2^40")


def _sigma(spec: Specification, kind: models.Kind) -> float:
    """The least σ that opendp's map allows; for simulated noise the analytic one, unless it is to be the same."""
    sensitivity = math.nextafter(kind.mechanism(spec, 1.0).sensitivity, math.inf)
    secure = spec.noise == "secure" or spec.sigma == "secure"
    return (secure_sigma if secure else analytic_sigma)(spec.epsilon, spec.delta, sensitivity)


def analytic_sigma(epsilon: float, delta: float, sensitivity: float) -> float:
    """The least σ of continuous noise (Balle and Wang 2018)."""
    with np.errstate(divide="ignore"):
        return gaussian_from_approximate(epsilon, delta) * sensitivity


def secure_sigma(epsilon: float, delta: float, sensitivity: float) -> float:
    """The least σ that opendp's map allows, by its bound from zero-concentrated DP: 1.03 to 1.14 times the analytic
    one for δ from 1e-12 to 1e-6 and ε from 0.001 to 10, and up to 1.52 times at δ = 0.1.
    """
    low = analytic_sigma(epsilon, delta, sensitivity)
    # Larger ones are refused, and opendp takes them for seconds.
    _check_scale(low)
    high = 2 * low
    while noise.gaussian_epsilon(high, sensitivity, delta) > epsilon:
        low, high = high, 2 * high
    while high / low > 1 + 1e-6:
        middle = math.sqrt(low * high)
        if noise.gaussian_epsilon(middle, sensitivity, delta) <= epsilon:
            high = middle
        else:
            low = middle
    return high


def _drawn(spec, kind, mechanism, content, exact, entry=None) -> dict[str, Any]:
    """The statement of a release that is drawn now."""
    found = {"format": content["format"], "privacy": content["privacy"]}
    if entry is not None:
        found["ledger"] = entry
    found["specification"] = content["specification"]
    if spec.sampling:
        found["draw"] = posterior_draw.released(spec, kind, mechanism, exact)
    else:
        source = noise.SecureNoise() if spec.noise == "secure" else np.random.default_rng(spec.seed)
        release = mechanism.perturb(exact, source)
        found["statistics"] = kind.statistics(spec, release)
        found["release"] = release.tolist()
    return {**found, "versions": content["versions"]}


def _posterior(spec, kind, mechanism, content, file: Path | None) -> dict[str, Any]:
    """Draws and how they were made; where extreme settings leave none, a statement of that: the release is made."""
    try:
        with np.errstate(all="ignore"):
            found = kind.posterior(spec, mechanism, np.array(content["release"], float), _generator(content))
        if not all(np.isfinite(draws).all() for draws in found.draws.values()):
            raise ValueError("draws are not finite")
        return statement.posterior(spec, found, file and delivery.write_draws(file, found.draws))
    except OSError as error:
        return {"failed": f"{file} cannot be written: {error.strerror}; draw it again with --again, at no cost"}
    except MemoryError:
        return {"failed": "not enough memory for the posterior; draw it again with --again, at no cost"}
    except Exception as error:
        return {"failed": f"no draws from the posterior with this prior: {error}"}


def _json(content: dict[str, Any]) -> str:
    return json.dumps(content, indent=2, ensure_ascii=False, allow_nan=False)
