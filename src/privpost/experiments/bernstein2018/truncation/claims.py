"""Calibration of Algorithm 2 by bounds and by the covariance between segments (ours)."""

from privpost.evaluation.rows import select
from privpost.experiments import width_claims
from privpost.lab.claims import check, claim, numbers

POINT = "n={row.n:g}, epsilon={row.epsilon:g}"


def public_bounds(table, method: str, names: str):
    """Yield a check for each (n, ε) with public bounds and dependent segments, and the evidence.

    A method passes where neither KS nor z² rejects; `names` formats a row.
    """
    rows = width_claims.tested(select(table, method=method, variant="corrected"))
    what, segments = {"gibbs": ("Gibbs", "dependent"), "exact": ("the posterior without a chain", "any")}[method]
    for row in rows.itertuples():
        yield check(names.format(row=row), not row.rejected)
    yield from numbers(width_claims.evidence(rows, what, f"exponential, {segments} segments"))


@claim(
    "B10",
    "ours",
    "With public bounds Algorithm 2 is calibrated with dependent segments, not with independent ones.",
    f"{width_claims.BOTH}; {{seen}}; no test rejects for dependent segments, nor for the same posterior without a "
    "chain; one does for independent segments at some point where none does for dependent ones",
    variant="public_bounds, corrected",
)
def segments(truncation):
    yield from public_bounds(truncation, "gibbs", f"dependent segments pass ({POINT})")
    yield from public_bounds(truncation, "exact", f"no chain passes ({POINT})")
    gibbs = select(truncation, method="gibbs")
    both = (width_claims.tested(select(gibbs, variant=variant)) for variant in ("corrected", "public_bounds"))
    dependent, independent = (rows.set_index(["n", "epsilon"]) for rows in both)
    yield width_claims.power(dependent.reset_index())
    alone = independent[independent.rejected & ~dependent.rejected.reindex(independent.index)]
    yield check("independent segments fail somewhere where dependent ones pass", len(alone) > 0)
    places = [POINT.format(row=row) for row in alone.reset_index().itertuples()]
    evidence = width_claims.evidence(independent.reset_index(), "Gibbs", "exponential, independent segments")
    yield from numbers({"where independent segments alone fail": "; ".join(places) or "nowhere", **evidence})
