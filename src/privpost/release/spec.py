"""Reads and checks the specification of a release."""

import hashlib
from pathlib import Path
from typing import Any

from privpost import strict_yaml
from privpost.distributions.exact_draws import LARGEST_BITS
from privpost.lab.schema import Choice, Flag, Integer, Real, Schema, SettingError, Text, unquoted
from privpost.release import models, synthetic
from privpost.release.models.base import Inferred
from privpost.release.specification import COLUMN, MISSING, SAMPLING, Specification

# Largest number of posterior draws.
LARGEST_DRAWS = 100_000
# Counts up to this number are exact in floats, even with noise added.
LARGEST_N = 2**40
# With a larger ε, one record may make an event more than exp(10) = 22,000 times as likely.
LARGEST_EPSILON = 10.0
# Largest size of a specification in bytes, enough for tens of thousands of levels.
LARGEST_FILE = 4 * 2**20
# Largest number of characters of an error message.
LARGEST_MESSAGE = 2000


class _Epsilon(Real):
    """The setting ε > 0. Its upper limit is checked in `_check_size`."""

    def allowed(self) -> str:
        return f"a number in (0, {LARGEST_EPSILON:g}]"


SETTINGS = Schema(
    model=Choice(*models.KINDS),
    n=Integer(at_least=1, at_most=LARGEST_N),
    epsilon=_Epsilon(above=0),
    allow_large_epsilon=Flag(),
    delta=Real(above=0, below=1),
    allow_large_delta=Flag(),
    mechanism=Choice("laplace", "gaussian", *SAMPLING),
    bits=Integer(at_least=1, at_most=LARGEST_BITS),
    a0=Real(above=0, below=0.5),
    noise=Choice("secure", "simulation"),
    seed=Integer(at_least=0, at_most=None),
    sigma=Choice("analytic", "secure"),
    data=Text(),
    delimiter=Choice(",", ";", "\t", "|"),
    synthetic=Integer(at_least=1, at_most=1000),
)
BLOCKS = ("columns", "prior", "posterior", "budget")
POSTERIOR = Schema(draws=Integer(at_least=1, at_most=LARGEST_DRAWS))
BUDGET = Schema(ledger=Text(), epsilon=Real(at_least=1e-12, at_most=1e12), delta=Real(above=0, below=1))
REQUIRED = ("model", "columns", "n", "epsilon")


def largest_delta(n: int) -> float:
    """Return the largest δ with which a release of n records counts as private."""
    # Whole records may be revealed with probability δ.
    return min(1e-6, 1 / (10 * n))


def read(path: Path) -> Specification:
    """Return the checked specification in a YAML file. Raise SettingError if the file or a setting is wrong."""
    content, digest = _load(path)
    try:
        return _read(path, content, digest)
    except SettingError as error:
        text = f"{path}: {error}"
        half = LARGEST_MESSAGE // 2
        raise SettingError(text if len(text) <= LARGEST_MESSAGE else f"{text[:half]} ... {text[-half:]}") from None


def _read(path: Path, content: dict[str, Any], digest: str) -> Specification:
    plain = SETTINGS.checked(content, "", REQUIRED, BLOCKS)
    kind = models.KINDS[plain["model"]]
    if "posterior" in content and not isinstance(kind, Inferred):
        raise SettingError(f"posterior: {kind.name} has no posterior; leave it out.")
    columns = _columns(content["columns"], kind)
    needed = [key for key in kind.prior.fields if key not in kind.prior_defaults]
    prior = kind.prior.checked(content.get("prior", {}), "prior", needed)
    posterior = POSTERIOR.checked(content["posterior"], "posterior", ["draws"]) if "posterior" in content else {}
    budget = BUDGET.checked(content["budget"], "budget", ["ledger", "epsilon"]) if "budget" in content else {}
    spec = Specification(
        path=path,
        sha256=digest,
        columns=columns,
        prior=kind.prior_defaults | prior,
        draws=posterior.get("draws", 0),
        budget=budget,
        **plain,
    )
    if spec.mechanism not in kind.mechanisms:
        raise SettingError(
            f"mechanism is {spec.mechanism!r}, but {kind.name} is released with: {', '.join(kind.mechanisms)}."
        )
    _check_places(spec, content, kind)
    _check_size(spec)
    kind.check(spec)
    synthetic.check(spec, kind)
    return spec


def _check_places(spec: Specification, content: dict[str, Any], kind: models.Kind) -> None:
    """Raise SettingError if two settings do not fit together, or if a setting lacks another that it needs."""
    pure = spec.mechanism in ("laplace", "ops")
    simulated, bits_ops = spec.noise == "simulation", spec.mechanism == "ops" and not kind.on_lattice
    of = f" of {kind.name}" * (spec.sampling and kind.on_lattice)
    names = {"laplace": "Laplace noise", "gaussian": "Gaussian noise", "ops": "one posterior sample (ops)"}
    name = names.get(spec.mechanism, f"a {spec.mechanism} posterior draw")
    for key, fits, reason in (
        ("delta", not pure, f"{name} is epsilon-DP; leave delta out"),
        ("bits", spec.sampling and not kind.on_lattice, f"{name} has none{of}; leave it out"),
        ("a0", bits_ops, f"only ops has one{of}; leave it out"),
        ("posterior", not spec.sampling, f"a release by {spec.mechanism} is itself one posterior draw; leave it out"),
        ("seed", simulated, "secure noise has no seed; noise: simulation has one"),
        ("sigma", simulated and spec.mechanism == "gaussian", "only simulated Gaussian noise has a choice of it"),
    ):
        if key in content and not fits:
            raise SettingError(f"{key} is {getattr(spec, key, content[key])!r}, but {reason}.")
    if spec.budget and simulated:
        raise SettingError("noise is 'simulation', which keeps nothing private; leave the budget out.")
    if spec.delta is None and not pure:
        raise SettingError(f"delta is missing; {name} is (epsilon, delta)-DP with a delta in (0, 1).")
    if spec.a0 is None and bits_ops:
        raise SettingError("a0 is missing, a number in (0, 0.5): ops draws from [a0, 1 - a0].")


def _check_size(spec: Specification) -> None:
    """Raise SettingError if ε or δ is above its limit, unless the specification lifts the limit."""
    if spec.epsilon > LARGEST_EPSILON and not spec.allow_large_epsilon:
        raise SettingError(
            f"epsilon is {spec.epsilon:g}, but must be {SETTINGS.fields['epsilon'].allowed()}: a larger one protects "
            "hardly anything. allow_large_epsilon: true lifts the limit, and the statement then says that nothing is "
            "private."
        )
    if (spec.delta or 0.0) > (largest := largest_delta(spec.n)) and not spec.allow_large_delta:
        raise SettingError(
            f"delta is {spec.delta:g}, but must be at most {largest:g}, the smaller of 1e-6 and 1/(10 n): with "
            "probability delta anything may come out, a whole record included. allow_large_delta: true lifts the "
            "limit, and the statement then says that nothing is private."
        )


def _load(path: Path) -> tuple[dict[str, Any], str]:
    """Return the settings in a YAML file, and the SHA-256 of the file."""
    try:
        with path.open("rb") as handle:
            raw = handle.read(LARGEST_FILE + 1)
        if len(raw) > LARGEST_FILE:
            raise ValueError(f"larger than {LARGEST_FILE} bytes")
        content = strict_yaml.load(raw.decode("utf-8"))
    except FileNotFoundError:
        raise SettingError(f"{path}: there is no such file") from None
    except (OSError, UnicodeDecodeError) as error:
        raise SettingError(f"{path} cannot be read: {error}") from None
    except ValueError as error:
        raise SettingError(f"{path} is {error}") from None
    if not isinstance(content, dict):
        raise SettingError(f"{path}: it must hold settings, key: value. Required: {', '.join(REQUIRED)}.")
    return content, hashlib.sha256(raw).hexdigest()


def _columns(content: Any, kind: models.Kind) -> dict[str, dict[str, Any]]:
    """Return the settings of each column by the column's name."""
    if isinstance(content, dict) and (hint := next(filter(None, map(unquoted, content)), "")):
        raise SettingError(f"columns: the name of a column: {hint}.")
    if not isinstance(content, dict) or not content or not all(isinstance(name, str) and name for name in content):
        raise SettingError(f"columns is {content!r}, but must be a map from names of columns to their settings.")
    schema, columns = Schema(**kind.column.fields, **COLUMN), {}
    for name, block in content.items():
        where = f"columns: {name}"
        columns[name] = settings = schema.checked(block, where, kind.required)
        if settings.get("missing") != "level":
            continue
        if "levels" not in settings:
            raise SettingError(
                f"{where}: missing is 'level', but the column has no levels; {{impute: VALUE}} has a number."
            )
        if MISSING in settings["levels"]:
            raise SettingError(f"{where}: levels has {MISSING!r}, which missing: level adds; leave one of the two out.")
        settings["levels"].append(MISSING)
    return columns
