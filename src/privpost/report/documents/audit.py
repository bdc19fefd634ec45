"""Tables and numbers of docs/audit.md: how much of the claimed ε is spent, and which methods are near the best."""

from collections.abc import Iterable, Mapping

import pandas as pd

from privpost.drawing import style
from privpost.evaluation.calibration import LEVEL
from privpost.evaluation.rows import markdown
from privpost.experiments.claim_helpers import student_limit
from privpost.experiments.fair_axis import calibration
from privpost.lab.study import Study
from privpost.models.conjugate.beta_bernoulli import BetaBernoulli
from privpost.report.templates import number

# A mechanism that spends this share of the claimed ε counts as spending all.
WHOLE = 0.999
# A method near the best has a test error that exceeds the best by at most this margin.
WITHIN = 0.01
BALL = "OPS, smallest ball"
BITS = "fair_axis/beta_bernoulli"
LOGISTIC = "fair_axis/logistic"


def values(published) -> Mapping[str, str]:
    """Return the document's tables and numbers by the names that the template uses."""
    bits = published.tables(BITS)
    return {
        "shares": shares(published.tables("audit/audit")["audit"]),
        "logistic": logistic_table(published.tables(LOGISTIC)),
        "left_out": left_out(published.study(BITS), bits["beta_bernoulli"]),
        "repeats": str(bits["beta_bernoulli_pairs"].n_repeats.min()),
    }


def left_out(study: Study, table) -> str:
    """Return a table that says which mechanisms for bits the comparison leaves out, and why."""
    config = study.text
    reasons: dict[tuple[str, str], list[str]] = {}
    for name, why in calibration.left_out(BetaBernoulli(config["alpha"], config["beta"]), a0=config["a0"]).items():
        if not why.startswith("serves "):
            reasons.setdefault(("all", why), []).append(name)
    private = table[table.accounting.notna()]
    for what, rows, why in (
        ("KL", private[private.metric == "kl"], "neither its posterior nor its density is known"),
        ("exact accounting", private[private.accounting == "exact"], "it has no privacy curve"),
    ):
        if lacking := sorted({*private.method} - {*rows.method}):
            reasons[what, why] = lacking
    lines = [(what, ", ".join(f"`{name}`" for name in names), why) for (what, why), names in reasons.items()]
    return markdown(("left out of", "mechanisms", "because"), lines) if lines else ""


def shares(audit) -> str:
    """Return a table of the mechanisms that spend less than the claimed ε, sorted by the largest share spent."""
    known = audit[audit.exact.notna()]
    spent = (known.exact / known.claimed_epsilon).groupby([known.mechanism, known.variant.fillna("")]).max()
    rows: dict[str, list[str]] = {}
    for (mechanism, variant), share in spent[spent < WHOLE].sort_values(ascending=False).items():
        rows.setdefault(number(float(share), ".2f"), []).append(f"{mechanism} ({variant})" if variant else mechanism)
    return markdown(("largest share spent", "mechanisms"), [(share, ", ".join(names)) for share, names in rows.items()])


def near_best(pairs, margin: float) -> list[str]:
    """Return the names of the best method and of methods whose error exceeds the smallest error by at most `margin`.

    All comparisons with the best method hold jointly at the level `LEVEL`.

    Args:
        pairs: rows of one setting and metric with the columns `first`, `second`, `difference_mean` (error of the first
            less error of the second), `difference_sem` and `n_repeats`.
    """
    swapped = pairs.rename(columns={"first": "second", "second": "first"})
    both = pd.concat([pairs, swapped.assign(difference_mean=-pairs.difference_mean)])
    # The lag of a method is the largest difference between its error and another method's. The best method has the
    # smallest lag. Of several best methods, the first by name is taken.
    best = both.groupby("first").difference_mean.max().round(12).idxmin()
    others = both[both["second"] == best]
    limit = student_limit(int(pairs.n_repeats.min()), LEVEL / len(others))
    near = others.difference_mean + limit * others.difference_sem <= margin
    return sorted({best, *others["first"][near]})


def logistic_table(logistic: Mapping) -> str:
    """Return a table of test errors and of the methods near the best, by data set and ε, at the smallest δ."""
    table, pairs = logistic["logistic"], logistic["logistic_pairs"]
    delta = pairs.delta.min()
    pairs = pairs[(pairs.metric == "test_error") & (pairs.delta == delta)]
    errors = table[table.metric == "test_error"]
    near = f"within {WITHIN:g} of the best at {100 * LEVEL:g} %"
    head = ("data", f"ε at δ = {delta:g}", near, "smallest error", "OPS", "smallest ball")
    rows = []
    for (dataset, epsilon), part in pairs.groupby(["dataset", "epsilon"]):
        best = near_best(part, WITHIN)
        of_dataset = errors[errors.dataset == dataset]
        at = of_dataset[(of_dataset.epsilon == epsilon) & (of_dataset.delta == delta)]
        names = at.method.where(at.variant.isna(), "ops_smallest_ball")
        smallest = at[names.isin(best)].nsmallest(1, "mean")
        ops = at[at.method == "ops"]
        shown = [
            smallest,
            ops[ops.variant.isna()],
            ops[ops.variant == "smallest_ball"],
            of_dataset[of_dataset.method == "non_private"],
        ]
        rows.append((dataset, f"{epsilon:g}", _named(best), *map(_with_error, shown)))
    return markdown((*head, "true posterior"), rows)


def _named(methods: Iterable[str]) -> str:
    return "; ".join(BALL if method == "ops_smallest_ball" else style.look(method).label for method in methods)


def _with_error(rows) -> str:
    (row,) = rows.itertuples()
    # If all draws have the same error, the standard error is 0 but for rounding.
    error = f"{row.sem:.4f}" if row.sem >= 5e-5 else number(round(row.sem, 12), ".1g")
    return f"{row.mean:.4f} ± {error}"
