"""Makes the statement of a release: the privacy guarantee with its limits, and the posterior."""

import decimal
import math
import platform
from importlib import metadata
from typing import Any

import numpy as np

from privpost.distributions import noise
from privpost.mechanisms.base import Mechanism
from privpost.mechanisms.noise.additive import AdditiveNoiseMechanism
from privpost.release.models.base import Kind, Posterior
from privpost.release.spec import LARGEST_EPSILON, largest_delta
from privpost.release.specification import Specification

FORMAT = "privpost release 1"
# Chains with a larger R-hat have not mixed (Vehtari et al. 2021).
RHAT_LIMIT = 1.01
_QUANTILES = (0.025, 0.25, 0.5, 0.75, 0.975)

# Largest ε for which the factor exp(ε) is printed.
_LARGEST_PRINTED = 700.0
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
TOO_LARGE = (
    f"NOT A PRIVATE RELEASE: epsilon is above {LARGEST_EPSILON:g}, where the following promises next to nothing. "
)
LARGE_DELTA = (
    "NOT A PRIVATE RELEASE: with probability up to delta anything may come out, a whole record included, and delta is "
    "above 1e-6 or 1/(10 n). "
)


def privacy(spec: Specification, kind: Kind, mechanism: AdditiveNoiseMechanism, proved: float | None) -> dict[str, Any]:
    """Return the terms of a release of noisy statistics, where `proved` is the ε that opendp proves, or None."""
    secure, laplace, unit = spec.noise == "secure", spec.mechanism == "laplace", kind.unit(spec)
    scale = mechanism.scale if laplace else mechanism.sigma
    spread = noise.spread(scale, laplace) if secure else scale
    nobody = np.zeros((0, len(spec.columns)), np.int64)
    terms = {
        "sensitivity": {"norm": mechanism.norm, "value": mechanism.sensitivity * unit},
        "noise": {
            "distribution": ("discrete " if secure else "") + ("Laplace" if laplace else "Gaussian"),
            "scale": scale * unit,
            "scale_is": "b of a density or probability proportional to exp(-|x|/b)"
            if laplace
            else "sigma of a density or probability proportional to exp(-x^2/(2 sigma^2))",
            "mean_absolute_deviation" if laplace else "standard_deviation": spread * unit,
            "support": f"multiples of {unit:g}" if secure else "floating-point numbers",
            "independent_coordinates": mechanism.query(kind.records(nobody)).size,
            "backend": spec.noise,
        },
    }
    return promise(spec, mechanism, proved, terms, "the released statistics", "them such as the posterior draws")


def promise(
    spec: Specification, mechanism: Mechanism, proved: float | None, terms: dict[str, Any], what: str, source: str
) -> dict[str, Any]:
    """Return the statement's part on privacy: the guarantee, the given terms, and what is covered.

    Here `what` names the release in words, and `source` names the numbers from which users compute other results.
    """
    secure = spec.noise == "secure"
    return {
        "private": secure and spec.epsilon <= LARGEST_EPSILON and not _much(spec),
        "notion": "pure epsilon-DP" if spec.delta is None else "(epsilon, delta)-DP",
        "epsilon": spec.epsilon,
        "delta": spec.delta or 0.0,
        "epsilon_proved": proved if secure else None,
        "neighbours": f"{mechanism.neighbours}: data sets of {spec.n} records that differ in one record; every cell "
        "holds what the specification allows",
        "mechanism": spec.mechanism,
        **terms,
        "releases": 1,
        "public": list(_public(spec, terms)),
        "covers": [_covers(spec, what, source) if secure else NOT_PRIVATE],
        "does_not_cover": list(DOES_NOT_COVER),
    }


def _much(spec: Specification) -> bool:
    """Return whether δ is so large that whole records may be revealed."""
    return spec.delta is not None and spec.delta > largest_delta(spec.n)


def _covers(spec: Specification, what: str, source: str) -> str:
    """Return a sentence on how ε and δ limit what an observer of the release learns."""
    factor = f"exp(epsilon) = {_factor(spec.epsilon)}" if spec.epsilon <= _LARGEST_PRINTED else "exp(epsilon)"
    rest = (
        ". So whoever knows all other records, or takes them for independent of this one, changes the odds that this "
        "record has one content rather than another by at most that factor."
        if spec.delta is None
        else f", but for an additional probability delta = {spec.delta:g}."
    )
    warnings = TOO_LARGE * (spec.epsilon > LARGEST_EPSILON) + LARGE_DELTA * _much(spec)
    return (
        f"{warnings}Where any single record is replaced by another one, no event that depends on {what} alone, or on "
        f"anything computed from {source}, becomes more than {factor} times as likely{rest}"
    )


def _factor(epsilon: float) -> str:
    """Return exp(ε) to four digits, rounded up, as text."""
    exact = decimal.Context(prec=30).exp(decimal.Decimal(epsilon))
    return f"{float(decimal.Context(prec=4, rounding=decimal.ROUND_CEILING).plus(exact)):.4g}"


def _public(spec: Specification, terms: dict[str, Any]):
    yield "the number of records n"
    yield "names, levels, bounds, resolution and roles of the columns"
    if any(spec.counts_as(name) is not None for name in spec.columns):
        yield "what cells without a value count as"
    if spec.prior:
        yield "the prior"
    if "bits" in terms.get("sampling", ()):
        yield "the number of bits of the draw" + (" and a0" if spec.mechanism == "ops" else "")
    yield "epsilon" + ("" if spec.delta is None else ", delta") + " and every other line of the specification"


def specification(spec: Specification) -> dict[str, Any]:
    """Return the public settings of a release, without paths of files."""
    return {
        "model": spec.model,
        "n": spec.n,
        "columns": spec.columns,
        "prior": spec.prior,
        **{key: value for key in ("seed", "sigma") if (value := getattr(spec, key)) is not None},
        **({"synthetic": spec.synthetic} if spec.synthetic else {}),
    }


def posterior(spec: Specification, drawn: Posterior, file: dict[str, Any] | None = None) -> dict[str, Any]:
    """Return the statement's part on the posterior: the method, summaries, and the draws or their file."""
    imputed = [
        f"cells of {name!r} without a value are taken for {settings['missing']['impute']!r}"
        for name, settings in spec.columns.items()
        if isinstance(settings.get("missing"), dict)
    ]
    return {
        "noise_aware": drawn.noise_aware,
        "method": drawn.method,
        "approximations": [*drawn.approximations, *imputed],
        # R-hat is nan if the chains could not be assessed, and inf if each chain stands still.
        "converged": drawn.rhat is None or (drawn.rhat < RHAT_LIMIT and not drawn.reason),
        "rhat_max": "infinite" if drawn.rhat == math.inf else _known(drawn.rhat),
        "ess_min": _known(drawn.ess),
        **({"not_assessed": drawn.reason} if drawn.reason else {}),
        "summary": {name: _summary(draws) for name, draws in drawn.draws.items()},
        "draws": {name: draws.tolist() for name, draws in drawn.draws.items()} if file is None else file,
    }


def _known(value: float | None) -> float | None:
    return None if value is None or math.isnan(value) else value


def unusable(shown: dict[str, Any], synthetic: dict[str, Any]) -> str:
    """Return a sentence on what is wrong with a posterior or synthetic data, or "" if both can be used."""
    if "failed" in shown:
        return f"there is no posterior: {shown['failed']}."
    if not shown.get("converged", True):
        why = f" ({reason})" if (reason := shown.get("not_assessed")) else ""
        return f"the posterior's chains have not converged{why}: do not use its draws; more of them run longer chains."
    return f"there are no synthetic data: {synthetic['failed']}." if "failed" in synthetic else ""


def _summary(draws: np.ndarray) -> dict[str, float]:
    if len(draws) == 1:
        # A single draw has no spread to summarise.
        return {"draw": float(draws[0])}
    quantiles = zip(_QUANTILES, np.quantile(draws, _QUANTILES), strict=True)
    return {"mean": float(draws.mean()), "sd": float(draws.std()), **{f"{q:g}": float(value) for q, value in quantiles}}


def versions(spec: Specification) -> dict[str, str]:
    """Return the versions of the software that made the release."""
    drawing = ("python-flint",) if spec.sampling else ("opendp",) if spec.noise == "secure" else ()
    packages = ("privpost", "numpy", "scipy", *drawing)
    return {"python": platform.python_version(), **{name: metadata.version(name) for name in packages}}
