"""The command that makes a release. It checks all settings, charges the ledger, draws, and writes the statement."""

import argparse
import contextlib
import functools
import hashlib
import json
import sys
from pathlib import Path
from typing import Any

import numpy as np

from privpost.distributions import noise
from privpost.lab.schema import SettingError
from privpost.mechanisms.base import Mechanism
from privpost.mechanisms.noise.additive import AdditiveNoiseMechanism
from privpost.privacy.accounting import secure_noise
from privpost.release import delivery, models, posterior_draw, spending, statement, synthetic, table
from privpost.release.models.base import Posterior
from privpost.release.spec import read
from privpost.release.specification import Specification

# A wait of more than this many seconds is announced.
_PATIENCE = 5.0


def run(options: argparse.Namespace) -> tuple[int, dict[str, Any] | None]:
    """Make a release, and return the exit status and the statement. The statement is None if it was not delivered.

    Raises:
        SettingError: a setting, the data or a file is wrong. Nothing was charged or released.
    """
    spec = read(options.specification)
    kind = models.KINDS[spec.model]
    mechanism, privacy = prepared(spec, kind)
    terms = {"privacy": privacy, "specification": statement.specification(spec)}
    if options.dry_run:
        print(_json(terms))
        return 0, None
    with delivery.Delivery(options.output, spec) as place:
        if options.draws:
            delivery.check_draws(options.draws, spec, options.output)
        synthetic.check_output(spec, options.output)
        spent = ""
        try:
            if options.again:
                content = _again(spec, terms, options.again)
                place.prepare(_json(content))
            else:
                if not (data := options.data or (spec.data and spec.path.parent / spec.data)):
                    raise SettingError(f"{spec.path}: there are no data; give --data FILE, or data: in it.")
                exact = table.statistics(data, spec, kind, kind.counted(spec, mechanism))
                # Versions are read from files before the charge, since reading can fail.
                terms["versions"] = statement.versions(spec)
                if spec.sampling:
                    _announce(spec, "the draw", mechanism.seconds(spec.bits))
                place.prepare(_json(_rehearsed(spec, kind, mechanism, terms, exact)))
                with spending.charged(spec, getattr(mechanism, "loss", None)) as entry:
                    delta = "" if spec.delta is None else f" and delta {spec.delta:g}"
                    spent = f" Epsilon {spec.epsilon:g}{delta} was spent."
                    content = _drawn(spec, kind, mechanism, terms, exact, entry)
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
        return 1, None


def _again(spec, terms, path: Path) -> dict[str, Any]:
    """Return an earlier statement without its posterior and synthetic data. Its terms must equal `terms`."""
    try:
        earlier = json.loads(path.read_bytes())
        same = all(earlier[key] == json.loads(_json(value)) for key, value in terms.items())
        release = np.array(earlier["release"], float)
    except (OSError, ValueError, KeyError, TypeError, RecursionError) as error:
        raise SettingError(f"--again: {path} is no release: {error}") from None
    if not (same and spec.draws and np.isfinite(release).all()):
        raise SettingError(f"--again: {path} was made with another specification, or there is no posterior to draw.")
    return {key: value for key, value in earlier.items() if key not in ("posterior", "synthetic")}


def _finish(spec, kind, mechanism, content, place: delivery.Delivery, options) -> tuple[int, dict[str, Any]]:
    """Add posterior draws to a statement, hand the statement over, and return the exit status and the statement."""
    if spec.draws:
        _announce(spec, "drawing the posterior", kind.seconds(spec))
        content["posterior"], drawn = _posterior(spec, kind, mechanism, content, options.draws)
        if spec.synthetic and drawn:
            content["synthetic"] = _synthetic(spec, kind, drawn, options.output)
    place.hand_over(_json(content) + "\n")
    wrong = statement.unusable(content.get("posterior", {}), content.get("synthetic", {}))
    if wrong:
        print(f"privpost: the statistics were released, but {wrong}", file=sys.stderr)
    return int(bool(wrong)), content


def prepared(spec: Specification, kind: models.Kind) -> tuple[Mechanism, dict[str, Any]]:
    """Return the calibrated mechanism and a release's terms. Raise SettingError if the budget allows no release."""
    # Floats may overflow at extreme priors and budgets. This is harmless, since every guarantee is proved exactly.
    with np.errstate(all="ignore"):
        if spec.sampling:
            sampler, bound = posterior_draw.calibrate(spec, kind)
            return sampler, posterior_draw.terms(spec, kind, sampler, bound)
        mechanism, proved = calibrate(spec, kind)
        return mechanism, statement.privacy(spec, kind, mechanism, proved)


def calibrate(spec: Specification, kind: models.Kind) -> tuple[AdditiveNoiseMechanism, float | None]:
    """Return the mechanism with the least noise that the budget allows, and its proved ε (None for simulated noise).

    Raises:
        SettingError: opendp is missing, or the noise would be too large or too small for the backend.
    """
    secure = spec.noise == "secure"
    try:
        make = functools.partial(kind.mechanism, spec)
        by_opendp = secure or spec.sigma == "secure"
        return secure_noise.least(make, spec.epsilon, spec.delta, secure=secure, by_opendp=by_opendp)
    except SettingError:
        raise
    except Exception as error:
        raise SettingError(f"{spec.path}: epsilon is {spec.epsilon:g}: {_reason(error)}") from None


def _reason(error: Exception) -> str:
    """Return the first line of an error's text, cut to 200 characters."""
    # Some errors of opendp have thousands of digits.
    return str(error).strip().splitlines()[0][:200] if str(error).strip() else type(error).__name__


def _rehearsed(spec, kind, mechanism, terms, exact) -> dict[str, Any]:
    """Return the statement of a trial draw."""
    # The trial makes errors of drawing occur before the charge. Its statement is thrown away.
    try:
        return _drawn(spec, kind, mechanism, terms, exact)
    except Exception as error:
        raise SettingError(f"{spec.path}: nothing can be drawn, and nothing was charged: {_reason(error)}") from None


def _drawn(spec, kind, mechanism, terms, exact, entry=None) -> dict[str, Any]:
    """Draw a release, and return its statement without posterior draws."""
    if spec.sampling:
        drawn = {"draw": posterior_draw.released(spec, kind, mechanism, exact)}
    else:
        source = noise.SecureNoise() if spec.noise == "secure" else np.random.default_rng(spec.seed)
        # Simulated noise is allowed here, as the statement declares it.
        with noise.simulation():
            release = mechanism.perturb(exact, source)
        drawn = {"statistics": kind.statistics(spec, release), "release": release.tolist()}
    head = {"format": statement.FORMAT, "privacy": terms["privacy"]}
    if entry is not None:
        head["ledger"] = entry
    return {**head, "specification": terms["specification"], **drawn, "versions": terms["versions"]}


def _synthetic(spec, kind, drawn: Posterior, output: Path) -> dict[str, Any]:
    """Write synthetic data, and return a description of the data or the reason why there are none."""
    # The draws determine the seed, so --again gives the same data.
    seed = hashlib.sha256(np.stack([*drawn.draws.values()]).tobytes()).digest()
    try:
        return synthetic.write(spec, kind, drawn, output, np.random.default_rng(int.from_bytes(seed)))
    except OSError as error:
        where = synthetic.place(output)
        return {"failed": f"{where} cannot be written: {error.strerror}; draw it again with --again, at no cost"}


def _posterior(spec, kind, mechanism, content, file: Path | None) -> tuple[dict[str, Any], Posterior | None]:
    """Return the statement's part on the posterior, and the posterior itself (None if drawing fails)."""
    # An error must not undo the release, so the statement describes the error.
    # The statement determines the seed, so repeating --again gives the same draws.
    fixed = json.dumps([content[key] for key in ("privacy", "specification", "release")], sort_keys=True)
    rng = np.random.default_rng(int.from_bytes(hashlib.sha256(fixed.encode()).digest()))
    again = "draw it again with --again, at no cost"
    try:
        with np.errstate(all="ignore"):
            drawn = kind.posterior(spec, mechanism, np.array(content["release"], float), rng)
        if not all(np.isfinite(draws).all() for draws in drawn.draws.values()):
            raise ValueError("draws are not finite")
        return statement.posterior(spec, drawn, file and delivery.write_draws(file, drawn, content)), drawn
    except OSError as error:
        return {"failed": f"{file} cannot be written: {error.strerror}; {again}"}, None
    except MemoryError:
        return {"failed": f"not enough memory for the posterior; {again}"}, None
    except Exception as error:
        return {"failed": f"no draws from the posterior with this prior: {error}"}, None


def _announce(spec, what: str, seconds: float) -> None:
    """Tell the user about a long wait. Errors in writing this message are ignored."""
    if seconds > _PATIENCE:
        with contextlib.suppress(OSError, ValueError):
            line = f"privpost: {spec.path}: {what} takes some {seconds:.0f} seconds or longer"
            print(line, file=sys.stderr, flush=True)


def _json(content: Any, indent: str = "\n") -> str:
    """Return indented JSON, with each list of numbers on one line."""
    # Indenting lists of numbers would take six times as long.
    if content and isinstance(content, dict):
        marks, lines = "{}", [f"{_json(key)}: {_json(value, indent + '  ')}" for key, value in content.items()]
    elif isinstance(content, list) and content and isinstance(content[0], str):
        marks, lines = "[]", [_json(text) for text in content]
    else:
        return json.dumps(content, ensure_ascii=False, allow_nan=False)
    return marks[0] + ",".join(f"{indent}  {line}" for line in lines) + indent + marks[1]
