"""A hidden Markov model of war logs chosen among public candidates (ours, beside figure 6 of Foulds et al. 2016)."""

from privpost.evaluation.multiplicity import FALSE_ALARM, critical_value
from privpost.experiments.claim_helpers import unpaired
from privpost.lab.claims import check, claim, number, word


@claim(
    "F21",
    "ours, beside figure 6",
    "A hidden Markov model that is chosen among public candidates by tempered likelihood, whose guarantee needs no "
    "convergence, gets better with their number, but is behind naive Bayes with Laplace noise at all affordable "
    "numbers.",
    "held-out log-likelihood per event, less that of non-private naive Bayes on the same split, at the largest number "
    "of candidates against the smallest and against Laplace; gaps beyond {z:.2g} standard errors (joint false-alarm "
    f"rate {FALSE_ALARM:g})",
)
def candidates(war_logs_candidates):
    table, keys, leads = war_logs_candidates, ["dataset", "n_states", "epsilon"], []
    laplace = table[table.method == "laplace"].set_index(keys)
    groups = table[table.method == "candidates"].sort_values("candidates").groupby(keys)
    z = critical_value(2 * len(groups))
    yield word("z", z)
    for key, rows in groups:
        name = "{}, K = {}, epsilon {:g}".format(*key)
        fewest, most = rows.iloc[0], rows.iloc[-1]
        lead, gain = unpaired(most, laplace.loc[key], "loss"), unpaired(fewest, most, "loss")
        leads.append(lead)
        ahead = f"Laplace ahead of {most.candidates:g} candidates ({name})"
        yield check(ahead, lead[0] > z * lead[1], most.stand_in)
        yield check(f"more candidates lose less ({name})", gain[0] > z * gain[1], most.stand_in)
        yield from number(f"Laplace's lead in nats per event, {name}", *lead)
        yield from number(f"gain from more candidates in nats per event, {name}", *gain)
    yield from number("smallest lead of Laplace", min(leads)[0])
    yield from number("its standard error", min(leads)[1])
    yield from number("largest lead of Laplace", max(leads)[0])
    yield from number("splits", int(table.n_splits.max()))
