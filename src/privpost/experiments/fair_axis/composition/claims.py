"""The joint privacy cost of several posterior draws for binary data."""

from privpost.evaluation.rows import select
from privpost.lab.claims import check, claim, number, word

# At the largest number of draws, the sum of all budgets is more than this many times the exact cost.
SAVED = 4
# Largest relative excess of a weighted posterior's Rényi cost over the exact cost.
RENYI = 0.1
# OPS's Rényi cost is more than this many times the exact cost.
OPS = 2.0
# Relative rounding error of a cost: the grid of the exact composition rounds upwards by less than a thousandth.
ROUNDING = 1e-3


@claim(
    "X8",
    "ours",
    "Several posterior draws together cost far less than the sum of their budgets: {draws} of them less than a "
    "quarter. The Rényi curves of diffused and concentrated sampling show most of that, the pure epsilon of OPS "
    "does not.",
    "exact composition of losses, with one delta for all draws together. At every n, epsilon and number of draws "
    "its epsilon is at most that of Rényi curves, and at most the sum, in which each of k draws has delta/k (the "
    f"grid rounds upwards, by less than {ROUNDING:g}). With most draws the sum is more than {SAVED} times as "
    f"large; the Rényi epsilon of diffused and concentrated sampling is at most {RENYI:.0%} larger, that of OPS "
    f"more than {OPS:g} times as large. Deterministic",
)
def exact_composition(composition):
    most = composition.draws.max()
    yield word("draws", most)
    keys = ["method", "n", "epsilon", "draws"]
    wide = composition.pivot_table(index=keys, columns="accounting", values="spent").reset_index()
    for (method, n, epsilon), rows in wide.groupby(keys[:3]):
        name = f"({method}, n = {n}, epsilon = {epsilon:g})"
        for accounting in ("renyi", "naive"):
            least = (rows.exact <= rows[accounting] * (1 + ROUNDING)).all()
            yield check(f"exact at most {accounting} {name}", least)
        last = select(rows, draws=most).iloc[0]
        yield check(f"the sum more than {SAVED} times as large {name}", last.naive > SAVED * last.exact)
        if method == "ops":
            yield check(f"Rényi more than {OPS:g} times as large {name}", last.renyi > OPS * last.exact)
        else:
            yield check(f"Rényi within {RENYI:.0%} {name}", last.renyi <= (1 + RENYI) * last.exact)
        evidence = {accounting: last[accounting] for accounting in ("exact", "renyi", "naive")}
        yield from number(f"epsilon of {most} draws {name}", evidence)
