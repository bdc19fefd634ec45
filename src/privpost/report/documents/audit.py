"""What docs/audit.md shows: shares of the claims that are spent, and which mechanisms are unbeaten."""

from __future__ import annotations

from collections.abc import Mapping

from privpost.pipeline import tables
from privpost.pipeline.plan import Plan
from privpost.report.documents import release
from privpost.report.quotes import markdown, number

# Shares from here on count as the whole claim.
WHOLE = 0.999


def values(plan: Plan) -> Mapping[str, str]:
    """Return the tables by their placeholders."""
    audit = tables.read_tables(plan.studies["audit/audit"])["audit"]
    return {
        "audit/shares": shares(audit),
        "audit/bits": release.bits_table(tables.read_tables(plan.studies[release.BITS])),
    }


def shares(audit) -> str:
    """Return, for each mechanism and variant that spends less than its claim, the largest share that it spends."""
    known = audit[audit.exact.notna()]
    spent = (known.exact / known.claimed_epsilon).groupby([known.mechanism, known.variant.fillna("")]).max()
    rows = [(*names, number(float(share), ".2f")) for names, share in spent.items() if share < WHOLE]
    return markdown(("mechanism", "variant", "largest share of the claim that is spent"), rows)
