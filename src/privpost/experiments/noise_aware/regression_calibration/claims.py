"""Claims on calibration of noise-aware linear regression on one feature, with quadrature as reference (ours)."""

from privpost.evaluation.calibration import LEVEL
from privpost.evaluation.rows import select
from privpost.experiments import width_claims
from privpost.lab.claims import check, claim, number, numbers

# Distances vary by a third between releases. For eight releases, 1.5 is four standard errors above the floor of 1.
LIMIT = 1.5
KEYS = ["n", "epsilon"]
# At the smallest epsilon the noise-aware posterior has to be wider than the naive posterior by this factor.
WIDER = 1.5


def place(row) -> str:
    """Return a row's n and ε as text."""
    return f"n = {row.n}, epsilon = {row.epsilon:g}"


@claim(
    "N18",
    "ours",
    "On data from its prior the noise-aware posterior of a regression's weight is calibrated at every epsilon.",
    f"tests of U in every row (n, epsilon) where the non-private posterior passes: {width_claims.BOTH}; {{seen}}",
)
def aware(regression_calibration):
    counted = width_claims.sound(regression_calibration, "gibbs", KEYS)
    yield width_claims.power(counted)
    yield from numbers(width_claims.evidence(counted, "the noise-aware posterior"))
    for row in counted.itertuples():
        yield check(f"calibrated ({place(row)})", not row.rejected)


@claim(
    "N19",
    "ours",
    "If noisy moments are taken for exact, the posterior of the weight is not calibrated, as it is far narrower "
    "than the noise-aware one.",
    f"at the smallest epsilon the p-value of z² is below {LEVEL:g} over the number of rows, and the standard "
    f"deviation of the noise-aware posterior is at least {WIDER:g} times as large",
)
def naive(regression_calibration):
    rows = select(regression_calibration, method="naive")
    for row in rows[rows.epsilon == rows.epsilon.min()].itertuples():
        yield check(f"not calibrated ({place(row)})", row.z2_p < LEVEL / len(rows))
        yield from number(f"mean z², {place(row)}", row.z2)
    sd = regression_calibration.set_index(["method", *KEYS]).sd_of_prior
    for row in rows.itertuples():
        aware, exact = (sd[method, row.n, row.epsilon] for method in ("gibbs", "non_private"))
        if row.epsilon == rows.epsilon.min():
            yield check(f"narrower ({place(row)})", bool(aware >= WIDER * row.sd_of_prior))
        ratios = {"naive": row.sd_of_prior / exact, "noise-aware": aware / exact}
        yield from number(f"posterior sd over that without privacy, {place(row)}", ratios)


@claim(
    "N20",
    "ours",
    "The chain has the law of the integrated posterior. So has, as far as its draws tell, the chain with the "
    "paper's normal proposals. Random walks of the moments make a chain move where noise is large.",
    f"largest distance of distribution functions, mean over releases: at most {LIMIT:g} times that of as many "
    "independent draws as the chain's are worth; at the smallest epsilon and largest n more effective draws with "
    "random walks than without",
)
def oracle(regression_calibration):
    rows = regression_calibration[regression_calibration.n_oracles > 0]
    for row in rows[rows.method.isin(["gibbs", "gibbs_normal"])].itertuples():
        name = f"{row.method.replace('_', ' ')}, {place(row)}"
        yield check(f"the integrated law ({name})", row.oracle_distance <= LIMIT * row.oracle_floor)
        yield from number(f"distance over its floor, {name}", row.oracle_distance / row.oracle_floor)
    hardest = rows[(rows.epsilon == rows.epsilon.min()) & (rows.n == rows.n.max())].set_index("method").ess_median
    if {"gibbs", "gibbs_normal"} <= set(hardest.index):
        yield check("walks help", bool(hardest["gibbs"] > hardest["gibbs_normal"]))
        yield from numbers({"effective draws with walks": hardest["gibbs"], "without": hardest["gibbs_normal"]})
