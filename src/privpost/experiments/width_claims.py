"""Tests of calibration for the claims of several studies: KS, and the sum of z²."""

from typing import Any

from privpost.evaluation.calibration import LEVEL
from privpost.evaluation.spread import Spread, halves, seen
from privpost.experiments.claim_helpers import ks_evidence
from privpost.lab.claims import Part, word

# Columns that identify a test of z². Rows that agree in all these columns share one test.
_PLACES = ("variant", "law", "model", "method", "tempered", "n", "concentration", "graph", "epsilon", "z2_of")
# A claim on calibration should detect relative errors of a posterior's standard deviation above this size.
GOAL = 0.10
# A posterior with at least this share of the prior's standard deviation is taken for the prior.
OF_PRIOR = 0.95
BOTH = (
    f"KS, and the sum of z² (two-sided chi-square; parameters that are alike count together), each at {LEVEL / 2:g} "
    "over all its tests (Bonferroni)"
)


def tested(rows):
    """Return rows with the levels of their KS and z² tests, and whether one of the two tests rejects."""
    tests = len(rows[_keys(rows)].drop_duplicates())
    level, z2_level = (LEVEL / 2 / max(1, count) for count in (len(rows), tests))
    rejected = (rows.p_value < level) | (rows.z2_p < z2_level)
    return rows.assign(level=level, z2_level=z2_level, rejected=rejected)


def from_prior(table):
    """Return the rows whose true parameters pass the z² test against their prior, at a joint 5 %."""
    # By chance true parameters may be too spread out. A posterior close to the prior then looks miscalibrated.
    if "prior_p" not in table:
        return table
    draws = table[[name for name in ("variant", "model", "n", "z2_of") if name in table]].drop_duplicates()
    return table[table.prior_p >= LEVEL / max(1, len(draws))]


def sound(table, method: str, keys: list[str]):
    """Return `tested` rows of a method at points where the non-private posterior passes both tests."""
    table = from_prior(table)
    control = tested(table[table.method == "non_private"])
    passed = control[~control.rejected].set_index(keys).index
    rows = table[table.method == method]
    return tested(rows[rows.set_index(keys).index.isin(passed)])


def evidence(rows, what: str, where: str = "") -> dict[str, Any]:
    """Return evidence from both tests of a posterior (KS and z²): the results, and what the tests can detect.

    `rows` are `tested` and have the same number of trials. The texts `what` and `where` name the posterior and the
    rows.
    """
    suffix = f", {where}" if where else ""
    tests = rows.drop_duplicates(_keys(rows))
    worst = tests.loc[tests.z2_p.idxmin()]
    narrow, wide = halves(worst.z2, worst.z2_values)
    spread = Spread(worst.z2, worst.z2_values, narrow, wide)
    least = _least(tests)
    return {
        **ks_evidence(rows, what, where),
        f"tests of z² of {what} that reject{suffix}": int((tests.z2_p < tests.z2_level).sum()),
        f"tests of z² of {what}{suffix}": len(tests),
        f"mean z² of {what} where its p-value is smallest{suffix}": worst.z2,
        f"smallest p-value of z² of {what}{suffix}": spread.p_value,
        f"p-value of its half that finds {what} too narrow{suffix}": narrow,
        f"p-value of its half that finds {what} too wide{suffix}": wide,
        f"fewest independent values of z² of {what}{suffix}": tests.z2_values.min(),
        f"how much too narrow {what} is that z² sees with a chance of 80 %{suffix}": least.narrow,
        f"how much too wide {what} is that z² sees with a chance of 80 %{suffix}": least.wide,
        f"tests of z² of {what} that test the prior{suffix}": int(_of_prior(tests).sum()),
    }


def power(rows) -> Part:
    """Return, as text, the smallest relative errors of a posterior's standard deviation that every z² test detects."""
    if rows.empty:
        return word("seen", "no test counts")
    least = _least(rows)
    text = (
        f"z² sees with a chance of 80 % a standard deviation {least.narrow:.1%} too small or {least.wide:.1%} too large"
    )
    short = f" ({GOAL:.0%} is the aim)" if max(least) > GOAL else ""
    prior = _of_prior(rows.drop_duplicates(_keys(rows)))
    rest = f"; {prior.sum()} of {len(prior)} test the prior, as the release says little there" if prior.any() else ""
    return word("seen", f"{text}{short}{rest}")


def _of_prior(tests):
    """Return, for each test, whether the posterior is as wide as the prior."""
    return tests.get("sd_of_prior", 0 * tests.z2) >= OF_PRIOR


def _least(rows):
    return seen(rows.z2_values.min(), float(rows.z2_level.max()))


def _keys(rows) -> list[str]:
    return [name for name in _PLACES if name in rows]
