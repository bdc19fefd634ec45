"""Privacy audit of every mechanism: the claimed ε against exact divergences and statistical lower bounds."""

from privpost.experiments.audit.audit.study import ROUNDING, TARGET_ROUNDING
from privpost.lab.claims import check, claim, number, numbers, word

# Probability that any test rejects if all draws are correct. It is lower than the 5 % of other claims, because the
# audit runs after every change to the code, and an alarm says that a mechanism is broken.
FALSE_ALARM = 0.001
SHIPPED = "shipped mechanisms"


def none(violations, check_name: str, rows):
    """Yield two parts of a claim: the check that there are rows but no violations, and the violations as evidence."""
    yield check(check_name, violations.empty and len(rows) > 0)
    yield from number("violations", violations.instance.tolist())


@claim(
    "A1",
    "ours",
    "No audited lower bound exceeds the claimed epsilon of a mechanism.",
    "Clopper-Pearson bounds on events chosen on separate releases, {confidence:.0%} confidence jointly over {rows} "
    "rows (Bonferroni)",
    variant=SHIPPED,
)
def bounds_within(audit):
    share = audit.lower_bound / audit.claimed_epsilon
    yield word("confidence", audit.confidence.iloc[0])
    yield word("rows", len(audit))
    yield from numbers({"rows": len(audit), "mechanisms": audit.mechanism.nunique()})
    yield from number("largest bound / claim", share.max())
    known = audit[audit.exact.notna() & (audit.n_samples > 0)]
    of_exact = known.lower_bound / known.exact
    yield from numbers({"median bound / exact": of_exact.median(), "largest bound / exact": of_exact.max()})
    yield from none(audit[share > 1 + ROUNDING], f"{len(audit)} bounds are within their claims", audit)


@claim(
    "A2",
    "ours",
    "Where the law of a release is known, its exact worst case over all neighbours is within the claim.",
    f"exact divergence at most the claim (relative rounding {ROUNDING:g})",
    variant=SHIPPED,
)
def exact_within(audit):
    known = audit[audit.exact.notna()]
    yield from numbers({"rows": len(known), "largest share": known.tightness.max()})
    over = known[known.exact > known.claimed_epsilon * (1 + ROUNDING)]
    yield from none(over, f"{len(known)} exact worst cases are within their claims", known)


@claim(
    "A4",
    "ours",
    "Every mechanism whose law is known spends at least half of its claimed epsilon on its worst neighbours.",
    "largest exact divergence / claim of each mechanism and variant at least 0.5, on the audited instances",
    variant=SHIPPED,
)
def spends_half(audit):
    known = audit[audit.exact.notna()]
    names = known.mechanism + (", " + known.variant).fillna("")
    shares = known.tightness.groupby(names).max().sort_values()
    for name, share in shares.items():
        yield check(name, share >= 0.5)
    yield from number("rows below one half", (known.tightness < 0.5).sum())
    yield from numbers({"smallest": shares.iloc[0], "largest": shares.iloc[-1]})
    yield from number("largest share of the claim that is spent", shares.to_dict())


@claim(
    "A5",
    "ours",
    "Drawn releases, and exactly rounded draws, follow the law that the settings of their mechanism imply.",
    f"Kolmogorov-Smirnov tests of marginals against quadrature or closed form, false alarm {FALSE_ALARM} jointly",
    variant=SHIPPED,
)
def follows_its_law(audit):
    both = audit.melt("instance", ["drawn_p", "rounded_p"], value_name="p").dropna()
    counts = both.variable.value_counts()
    rows = {"rows": counts.get("drawn_p", 0), "rows with rounded draws": counts.get("rounded_p", 0)}
    yield from numbers({**rows, "smallest p": both.p.min()})
    words = f"{rows['rows']} rows draw from their laws, and so do {rows['rows with rounded draws']} by rounded draws"
    yield from none(both[both.p < FALSE_ALARM / len(both)], words, both)


@claim(
    "A6",
    "ours",
    "No mechanism that a study recorded, and no example calibrated to a budget, claims more than its target.",
    f"claim / target at most 1, in the target's notion (relative rounding {TARGET_ROUNDING:g}); of a study's "
    "mechanisms whose small versions differ in numbers only three have rows, with the largest share of all",
    variant=SHIPPED,
)
def within_target(audit):
    recorded = audit[audit.source == "records"]
    yield from number("recorded settings", len(recorded))
    yield from number("not examined", (audit.verdict == "not examined").sum())
    yield from number("largest", audit.share_of_target.max())
    words = f"{len(audit)} claims, of which {len(recorded)} are recorded, are within their targets"
    yield from none(audit[audit.share_of_target > 1 + TARGET_ROUNDING], words, recorded)
