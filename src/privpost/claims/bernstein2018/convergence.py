"""Convergence of the noise-aware Gibbs sampler (Bernstein and Sheldon 2018, supplement)."""

from __future__ import annotations

from privpost.evaluation.claims import Claim, Why, from_checks


def claims(tables) -> list[Claim]:
    """Score B9, that the paper's run length suffices."""
    table = tables["convergence"]
    checks, evidence, draws = {}, {}, {}
    for (model, epsilon), rows in table.groupby(["model", "epsilon"]):
        worst = rows.loc[rows.rhat.idxmax()]
        fewest = rows.loc[rows.ess_bulk.idxmin()]
        # Per release: the median over trials is for all chains, the paper runs one.
        per_chain = float(fewest.ess_bulk / fewest.n_chains)
        evidence[f"largest R-hat, {model}, epsilon={epsilon:g} (n={worst.n:g})"] = worst.rhat
        evidence[f"fewest effective draws of one chain, {model}, epsilon={epsilon:g} (n={fewest.n:g})"] = per_chain
        checks[f"{model}, epsilon={epsilon:g}"] = (rows.rhat_median < 1.01).all() and per_chain >= 100
        draws[f"{model}, epsilon={epsilon:g}"] = per_chain
    return [
        from_checks(
            "B9",
            "section 4, supplement",
            "2000 sweeps of burn-in and 5000 draws of one chain are enough.",
            "per model and epsilon, at every n: median over releases of the rank-normalised R-hat of 4 chains below "
            "1.01, and of the bulk effective sample size at least 100 per chain",
            checks,
            evidence,
            whys=[
                Why(
                    "The sampler imputes the statistics, and so mixes at the rate of the share of their information "
                    f"that the release keeps: at epsilon = {table.epsilon.min():g} the {table.n_draws.max():.0f} draws "
                    f"of one chain are worth as few as {min(draws.values()):.0f} independent ones "
                    f"({min(draws, key=draws.get).split(',')[0]}).",
                    (f"*, epsilon={table.epsilon.min():g}",),
                    "docs/bernstein2018.md#do-7000-sweeps-suffice-convergence",
                    when=min(draws, key=draws.get).endswith(f"epsilon={table.epsilon.min():g}"),
                )
            ],
            variant=", ".join(sorted(table.variant.unique())),
        )
    ]
