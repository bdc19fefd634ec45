"""Checks for several claims on calibration."""

from privpost.evaluation.rows import select
from privpost.experiments import width_claims
from privpost.lab.claims import check, number, numbers

TEST = (
    "tests at every n, epsilon and parameter where those of the non-private posterior pass, and z² of the true "
    f"parameters in their prior: {width_claims.BOTH}; "
    "{seen}; one check per model and test"
)
# The columns that identify a row of the non-private posterior, which has no ε.
POINTS = ["variant", "model", "parameter", "n"]
NO_CHAIN = "the posterior without a chain"
# How texts name a row of the table `truncation`.
POINT = "n={row.n:g}, epsilon={row.epsilon:g}"


def calibrated_by_model(table, method: str, what: str):
    """Yield, for each model, evidence and one check per test (KS and z²) that a method is calibrated."""
    rows = width_claims.sound(table, method, POINTS)
    left = select(table, method=method)
    left = left[~left.index.isin(rows.index)].drop_duplicates(["model", "n"])
    places = [f"{row.model}, n={row.n:g}" for row in left.itertuples()]
    yield from number(f"left out, as draws of the true parameters fail, {what}", ", ".join(places) or "none")
    if method == "gibbs":
        yield width_claims.power(rows)
    for model, group in rows.groupby("model", sort=False):
        yield check(f"{model}: KS rejects {what} nowhere", not (group.p_value < group.level).any())
        yield check(f"{model}: z² rejects {what} nowhere", not (group.z2_p < group.z2_level).any())
        yield from numbers(width_claims.evidence(group, what, model))
        for name, column in (("p-value", "p_value"), ("p-value by z²", "z2_p")):
            where = "n={0.n:g}, epsilon={0.epsilon:g}".format(group.loc[group[column].idxmin()])
            yield from number(f"where the {name} of {what} is smallest, {model}", where)


def evidence(parts):
    """Return the evidence among the parts of a claim."""
    return (part for part in parts if part.kind == "number")


def public_bounds(table, method: str, names: str):
    """Yield, for each (n, ε), a check that a method is calibrated under public bounds, then the evidence."""
    rows = width_claims.tested(select(table, method=method, variant="corrected"))
    what, segments = {"gibbs": ("Gibbs", "dependent"), "exact": ("the posterior without a chain", "any")}[method]
    for row in rows.itertuples():
        yield check(names.format(row=row), not row.rejected)
    yield from numbers(width_claims.evidence(rows, what, f"exponential, {segments} segments"))
