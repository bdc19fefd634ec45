"""A hidden Markov model of war logs chosen among public candidates (ours, beside figure 6 of Foulds et al. 2016)."""

from privpost.evaluation.claims import Claim, Why, from_checks
from privpost.evaluation.multiplicity import FALSE_ALARM, critical_value
from privpost.experiments.claim_helpers import unpaired

PLACE = "docs/release.md#what-cannot-be-released"


def claims(tables) -> list[Claim]:
    """Score F21: more public candidates help, but naive Bayes with Laplace noise is ahead of all affordable numbers."""
    table = tables["war_logs_candidates"]
    keys = ["dataset", "n_states", "epsilon"]
    laplace = table[table.method == "laplace"].set_index(keys)
    chosen = table[table.method == "candidates"]
    checks, gaps, behind = {}, [], {}
    z = critical_value(2 * chosen[keys].drop_duplicates().shape[0])
    for key, rows in chosen.sort_values("candidates").groupby(keys):
        name = f"{key[0]}, K = {key[1]}, epsilon {key[2]:g}"
        fewest, most, other = rows.iloc[0], rows.iloc[-1], laplace.loc[key]
        gaps.append(unpaired(most, other, "loss"))
        for what, check, (lead, sem) in (
            ("Laplace's lead", f"Laplace ahead of {most.candidates:g} candidates ({name})", gaps[-1]),
            ("the gain from more candidates", f"more candidates lose less ({name})", unpaired(fewest, most, "loss")),
        ):
            checks[check] = lead > z * sem
            if lead <= z * sem:
                # The same at several ε where the same candidate is chosen.
                found = f"{what} is {lead:+.2g} ± {sem:.1g} nats per event over {most.n_splits} splits"
                behind.setdefault((*key[:2], found), []).append((f"{key[2]:g}", check))
    whys = []
    for (dataset, n_states, found), cases in behind.items():
        where = f"{dataset}, K = {n_states}, epsilon {', '.join(epsilon for epsilon, _ in cases)}"
        whys.append(Why(f"At {where} {found}.", tuple(check for _, check in cases), PLACE))
    return [
        from_checks(
            "F21",
            "ours, beside figure 6",
            "A hidden Markov model that is chosen among public candidates by tempered likelihood, whose guarantee "
            "needs no convergence, gets better with their number, but is behind naive Bayes with Laplace noise at all "
            "affordable numbers.",
            "held-out log-likelihood per event, less that of non-private naive Bayes on the same split, at the largest "
            f"number of candidates against the smallest and against Laplace; gaps beyond {z:.2g} standard errors "
            f"(joint false-alarm rate {FALSE_ALARM:g})",
            checks,
            {
                "smallest lead of Laplace": min(gaps)[0],
                "its standard error": min(gaps)[1],
                "largest lead of Laplace": max(gaps)[0],
            },
            whys=whys,
        )
    ]
