"""What docs/audit.md shows: shares of the claims that are spent, and which mechanisms are unbeaten."""

from collections.abc import Mapping

from privpost.evaluation.rows import markdown
from privpost.experiments.fair_axis import calibration
from privpost.lab.study import Study
from privpost.models.beta_bernoulli import BetaBernoulli
from privpost.report.documents import release
from privpost.report.templates import number

# Shares from here on count as the whole claim.
WHOLE = 0.999


def values(published) -> Mapping[str, str]:
    """Return the tables by name."""
    audit = published.tables("audit/audit")["audit"]
    study = published.studies[release.BITS]
    bits = published.tables(release.BITS)
    return {
        "audit/shares": shares(audit),
        "audit/bits": release.bits_table(bits),
        "audit/left_out": left_out(study, bits["beta_bernoulli"]),
    }


def left_out(study: Study, table) -> str:
    """Return which mechanisms are left out of the comparison for bits, or of a part of it, and why."""
    config = study.config
    reasons: dict[tuple[str, str], list[str]] = {}
    for name, why in calibration.left_out(BetaBernoulli(config["alpha"], config["beta"]), a0=config["a0"]).items():
        reasons.setdefault(("all", why), []).append(name)
    private = table[table.accounting.notna()]
    for what, rows, why in (
        ("KL", private[private.metric == "kl"], "neither its posterior nor its density is known"),
        ("exact accounting", private[private.accounting == "exact"], "it has no privacy curve"),
    ):
        if lacking := sorted({*private.method} - {*rows.method}):
            reasons[what, why] = lacking
    lines = [(what, ", ".join(f"`{name}`" for name in names), why) for (what, why), names in reasons.items()]
    return markdown(("left out of", "mechanisms", "because"), lines)


def shares(audit) -> str:
    """Return, for each mechanism and variant that spends less than its claim, the largest share that it spends."""
    known = audit[audit.exact.notna()]
    spent = (known.exact / known.claimed_epsilon).groupby([known.mechanism, known.variant.fillna("")]).max()
    rows = [(*names, number(float(share), ".2f")) for names, share in spent.items() if share < WHOLE]
    return markdown(("mechanism", "variant", "largest share of the claim that is spent"), rows)
