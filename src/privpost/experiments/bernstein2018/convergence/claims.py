"""Claims on convergence of the noise-aware Gibbs sampler (Bernstein and Sheldon 2018, supplement)."""

import math

from privpost.evaluation.diagnostics import LARGEST_RHAT
from privpost.lab.claims import about, check, claim, number

# Effective sample size that one chain should reach.
ENOUGH = 100
# Largest median R-hat of chains that count as mixed.
MIXED = 1.01


@claim(
    "B9",
    "section 4, supplement",
    "2000 sweeps of burn-in and 5000 draws of one chain are enough.",
    f"per model, bounds and epsilon, at every n: median over releases of the rank-normalised R-hat of 4 chains "
    f"below {MIXED}, and of the bulk effective sample size at least {ENOUGH} per chain; stuck: R-hat above "
    f"{LARGEST_RHAT:g}; biased: mean of a chain off by half a posterior standard deviation",
)
def run_length(convergence):
    gibbs = convergence[convergence.sampler == "gibbs"]
    for (model, variant, epsilon), rows in gibbs.groupby(["model", "variant", "epsilon"]):
        # Models of counts have the variant `paper` only. Redacted sums have the paper's bounds or public bounds.
        bounds = "" if variant == "corrected" else ", bounds of the paper"
        name = f"{model}{bounds}, epsilon={epsilon:g}"
        worst, fewest = rows.loc[rows.rhat.fillna(math.inf).idxmax()], rows.loc[rows.ess_bulk.idxmin()]
        # The table's value is for all chains of a release together, while the paper runs one chain.
        per_chain = float(fewest.ess_bulk / fewest.n_chains)
        stuck = rows.loc[rows.stuck_share.idxmax()]
        yield from number(f"largest R-hat, {name} (n={worst.n:g})", worst.rhat)
        yield from number(f"largest share of releases with stuck chains, {name} (n={stuck.n:g})", stuck.stuck_share)
        yield from number(f"largest share of releases with a biased chain, {name}", rows.biased_share.max())
        yield from number(f"fewest effective draws of one chain, {name} (n={fewest.n:g})", per_chain)
        yield check(name, (rows.rhat_median < MIXED).all() and per_chain >= ENOUGH, of=model)
    yield from number("draws of one chain", gibbs.n_draws.max())
    yield from about(variant=", ".join(sorted(convergence.variant.unique())))
