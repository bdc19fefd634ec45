"""Convergence of the noise-aware Gibbs sampler (Bernstein and Sheldon 2018, supplement)."""

from privpost.evaluation.claims import Claim, Why, from_checks
from privpost.evaluation.diagnostics import LARGEST_RHAT

# Effective draws that one chain should be worth, and the median R-hat that chains should have.
ENOUGH, MIXED = 100, 1.01


def claims(tables) -> list[Claim]:
    """Score B9, that the paper's run length suffices, in the paper's setting."""
    table = tables["convergence"]
    checks, evidence, draws = {}, {}, {}
    for (model, variant, epsilon), rows in table[table.sampler == "gibbs"].groupby(["model", "variant", "epsilon"]):
        # The models whose variant is the paper's alone, and redacted sums with the paper's bounds and with public ones.
        bounds = "" if variant == "corrected" else ", bounds of the paper"
        name = f"{model}{bounds}, epsilon={epsilon:g}"
        worst, fewest = rows.loc[rows.rhat.idxmax()], rows.loc[rows.ess_bulk.idxmin()]
        # Per release: the median over trials is for all chains, the paper runs one.
        per_chain = float(fewest.ess_bulk / fewest.n_chains)
        stuck = rows.loc[rows.stuck_share.idxmax()]
        evidence[f"largest R-hat, {name} (n={worst.n:g})"] = worst.rhat
        evidence[f"largest share of releases with stuck chains, {name} (n={stuck.n:g})"] = stuck.stuck_share
        evidence[f"largest share of releases with a biased chain, {name}"] = rows.biased_share.max()
        evidence[f"fewest effective draws of one chain, {name} (n={fewest.n:g})"] = per_chain
        checks[name] = (rows.rhat_median < MIXED).all() and per_chain >= ENOUGH
        draws[name] = per_chain
    least, low = min(draws, key=draws.get), f"epsilon={table.epsilon.min():g}"
    return [
        from_checks(
            "B9",
            "section 4, supplement",
            "2000 sweeps of burn-in and 5000 draws of one chain are enough.",
            f"per model, bounds and epsilon, at every n: median over releases of the rank-normalised R-hat of 4 chains "
            f"below {MIXED}, and of the bulk effective sample size at least {ENOUGH} per chain; stuck: R-hat above "
            f"{LARGEST_RHAT:g}; biased: mean of a chain off by half a posterior standard deviation",
            checks,
            evidence,
            whys=[
                Why(
                    "The sampler imputes the statistics, and so mixes at the rate of the share of their information "
                    f"that the release keeps: at {low} the {table[table.sampler == 'gibbs'].n_draws.max():.0f} draws "
                    f"of one chain are worth {draws[least]:.0f} independent ones ({least.rsplit(', ', 1)[0]}).",
                    (f"*, {low}",),
                    "docs/bernstein2018.md#do-7000-sweeps-suffice-convergence",
                    when=least.endswith(low),
                )
            ],
            variant=", ".join(sorted(table.variant.unique())),
        )
    ]
