"""Held-out likelihood of private naive Bayes and hidden Markov models on war logs (Foulds et al. 2016, figure 6)."""

import math

from privpost.evaluation.rows import select
from privpost.experiments.claim_helpers import above, below, ends, undecided
from privpost.experiments.foulds2016.war_log_claims import OWN_SELECTION, THRESHOLD, described, reached
from privpost.lab.claims import among, check, claim, number, numbers, untestable, word

# The difference that decides, in the columns of the table.
LEAD = "laplace_minus_ops"
SPARSE = ("afghanistan",)
# Powers of epsilon that variances follow.
ORDERS = {"laplace": -2, "ops": -1}
# How near to them a measured power has to be.
RATE = 0.25
PLACE = "{ours}section 5, figure 6"
PAIRED = "held-out log-likelihood per event, paired over splits: "


def leads(differences, dataset, model, sampler="collapsed"):
    """Return a model's differences on a data set: of the paper's chains, or exact and of chains that have converged."""
    rows = select(differences, dataset=dataset, model=model)
    published = rows["sampler"] == "paper"
    return rows[published if sampler == "paper" else ~published & rows.converged.astype(bool)]


def evidence(rows):
    """Yield every difference, those of the paper's truncation first."""
    for row in rows.sort_values("variant", ascending=False, kind="stable").itertuples():
        name = f"{row.variant}, M = {row.truncation:g}, epsilon = {row.epsilon:g}"
        difference, error = row.laplace_minus_ops_mean, row.laplace_minus_ops_sem
        yield from number(f"Laplace minus OPS per event, {name}", difference, error, of=name)


def others(likelihoods, rows):
    """Yield where Laplace is not ahead: OPS's leads, and what releases lose where neither leads."""
    behind, opened = rows[below(rows, LEAD, THRESHOLD)], rows[undecided(rows, LEAD, THRESHOLD)]
    yield from numbers({"settings": len(rows), "with OPS ahead": len(behind), "undecided": len(opened)})
    if len(behind):
        yield from number("OPS's lead, smallest and largest", ends(-behind.laplace_minus_ops_mean))
    keys = ["dataset", "model", "sampler", "epsilon"]
    losses = likelihoods[likelihoods.variant != "corrected"].fillna({"sampler": ""})
    losses = losses.merge(opened.fillna({"sampler": ""})[keys].drop_duplicates(), on=keys)
    lost = losses[(losses.method == "laplace") | losses.truncation.isin(opened.truncation)].per_event_loss_mean
    if len(lost):
        yield from number("most that a release loses where undecided", lost.max())


def ahead(row):
    """Return whether Laplace is ahead in a setting."""
    return check(f"Laplace ahead at epsilon = {row.epsilon:g} (M = {row.truncation:g})", above(row, LEAD, THRESHOLD))


@claim(
    "F7-{dataset}",
    PLACE,
    "{data}: with naive Bayes the Laplace mechanism is ahead of OPS at every epsilon.",
    f"{PAIRED}Laplace minus OPS above {THRESHOLD:g} standard errors at every epsilon, against both truncations",
    cases=among("war_logs_differences", "dataset", model="naive_bayes"),
)
def naive_bayes(war_logs_differences, war_logs_likelihood, dataset):
    rows = leads(war_logs_differences, dataset, "naive_bayes")
    paper = select(rows, variant="paper")
    yield from described(dataset)
    for row in paper.itertuples():
        yield ahead(row)
    yield from evidence(rows)
    yield from others(war_logs_likelihood, paper)


def chains(likelihoods, dataset, sampler="collapsed"):
    """Yield what the hidden Markov model's chains by a sampler have reached."""
    return reached(select(likelihoods, dataset=dataset, model="hmm", sampling="mcmc", sampler=sampler))


DENSE = (
    f"{PAIRED}Laplace minus OPS above {THRESHOLD:g} standard errors at every epsilon against both truncations, and "
    "largest at the smallest epsilon. "
)
FEW_EVENTS = (
    f"{PAIRED}at every epsilon, for at least one truncation, Laplace minus OPS is not above {THRESHOLD:g} standard "
    "errors. "
)
PROCEDURE = "Ten states, chains as published: a random start, 200 iterations, 100 of them burn-in, OPS's final sample"
PUBLISHED = among("war_logs_differences", "dataset", "sampler", model="hmm", sampler="paper")


def converged(tables):
    """Return a case for each data set, about our chains."""
    return ({**case, "sampler": "collapsed"} for case in among("war_logs_differences", "dataset", model="hmm")(tables))


def always_ahead(part):
    """Yield whether Laplace is ahead at every epsilon, most at the smallest, against each truncation."""
    for truncation, rows in part.sort_values("epsilon").groupby("truncation"):
        for row in rows.itertuples():
            yield ahead(row)
        gaps = rows.laplace_minus_ops_mean.to_numpy()
        yield check(f"its lead is largest at the smallest epsilon (M = {truncation:g})", gaps[0] == max(gaps) > 0)


def competes(part):
    """Yield whether OPS, with the better of its truncations, is nowhere behind."""
    for epsilon, rows in part.groupby("epsilon"):
        yield check(f"OPS not behind at epsilon = {epsilon:g}", not above(rows, LEAD, THRESHOLD).all())


# Of two claims over one function the lower one is scored first.
@claim(
    "F8-converged-{dataset}",
    "ours",
    "{data}: by chains that have converged, the HMM's Laplace release is ahead of OPS, most at small epsilon.",
    DENSE + "{reached}",
    cases=converged,
)
@claim(
    "F8-{dataset}",
    PLACE,
    "{data}: where cells hold many events, the HMM's Laplace release is ahead of OPS, most at small epsilon{selected}.",
    DENSE + PROCEDURE,
    cases=PUBLISHED,
)
def dense(war_logs_differences, war_logs_likelihood, dataset, sampler):
    if dataset in SPARSE:
        return
    rows = leads(war_logs_differences, dataset, "hmm", sampler)
    paper = select(rows, variant="paper")
    yield from described(dataset)
    yield word("selected", ", as the paper says of Iraq" if dataset in OWN_SELECTION else "")
    # The paper's own chains count whether or not they have converged.
    which = "are there" if sampler == "paper" else "have converged"
    yield untestable(f"both methods' chains {which} at fewer than two epsilons, or not at the smallest one")
    yield from evidence(rows)
    yield from chains(war_logs_likelihood, dataset, sampler)
    several = paper.groupby("truncation").epsilon.transform("nunique") > 1
    if select(war_logs_likelihood, dataset=dataset).epsilon.min() not in set(paper.epsilon) or not several.any():
        return
    yield from always_ahead(paper[several])
    yield from others(war_logs_likelihood, paper)


@claim(
    "F9-converged-{dataset}",
    "ours",
    "{data}: by chains that have converged, OPS competes with the HMM's Laplace release.",
    FEW_EVENTS + "{reached}",
    cases=converged,
)
@claim(
    "F9-{dataset}",
    PLACE,
    "{data}: with few events per cell, OPS competes with the HMM's Laplace release.",
    FEW_EVENTS + PROCEDURE,
    cases=PUBLISHED,
)
def sparse(war_logs_differences, war_logs_likelihood, dataset, sampler):
    if dataset not in SPARSE:
        return
    rows = leads(war_logs_differences, dataset, "hmm", sampler)
    yield from described(dataset)
    yield untestable("at no setting have the chains of both methods converged")
    yield from competes(select(rows, variant="paper"))
    yield from evidence(rows)
    yield from chains(war_logs_likelihood, dataset, sampler)


@claim(
    "F23-{dataset}",
    "ours, beside figure 6",
    "{data}: as epsilon falls, the loss of the HMM's Laplace release grows like 1/epsilon^2, as the variance of noise "
    "on counts does, and that of OPS like 1/epsilon, as the variance of tempering.",
    "held-out log-likelihood per event less than without privacy: slope of its logarithm in that of epsilon, from the "
    "smallest to the largest epsilon at which chains have converged and the loss is above "
    f"{THRESHOLD:g} standard errors, within {RATE:g} of −2 and −1, and {THRESHOLD:g} standard errors. {{reached}}",
    cases=among("war_logs_likelihood", "dataset", model="hmm"),
)
def orders(war_logs_likelihood, dataset):
    yield from described(dataset)
    yield untestable("no method has two epsilons at which its chains have converged and its loss is beyond chance")
    yield from chains(war_logs_likelihood, dataset)
    rows = select(war_logs_likelihood, dataset=dataset, model="hmm", sampler="collapsed")
    rows = rows[rows.converged.astype(bool) & above(rows, "per_event_loss", THRESHOLD)].sort_values("epsilon")
    rows = rows.fillna({"variant": "", "truncation": 0})
    for method, order in ORDERS.items():
        for (variant, truncation), part in select(rows, method=method).groupby(["variant", "truncation"]):
            first, last, name = part.iloc[0], part.iloc[-1], f"{method}, {variant or f'M = {truncation:g}'}"
            if len(part) > 1:
                span = math.log(last.epsilon / first.epsilon)
                slope = math.log(last.per_event_loss_mean / first.per_event_loss_mean) / span
                relative = (row.per_event_loss_sem / row.per_event_loss_mean for row in (first, last))
                error = math.hypot(*relative) / span
                near = abs(slope - order) < RATE + THRESHOLD * error
                yield check(f"the loss goes like epsilon^{order} ({name})", near)
                yield from number(f"exponent of the loss, {name}", slope, error)
                yield from number(f"smallest and largest epsilon, {name}", [first.epsilon, last.epsilon])


@claim(
    "F20",
    "ours",
    "Gibbs sampling that pays for every update needs no convergence, and costs likelihood for it: one sample of OPS is "
    "ahead.",
    f"{PAIRED}OPS minus paid updates above {THRESHOLD:g} standard errors at every setting where OPS's chains have "
    "converged",
)
def paid_updates(war_logs_likelihood):
    table, keys = war_logs_likelihood, ["dataset", "truncation", "epsilon"]
    # A chain that pays for its updates has the paper's sampler only.
    known = table[(table.method == "private_gibbs") | (table["sampler"] == "collapsed")]
    known = known[(known.model == "hmm") & known.converged.astype(bool)]
    paid = select(known, method="private_gibbs")
    if not len(paid):
        return
    yield untestable("no chain of OPS has converged")
    yield from number("iterations that each budget is shared by", sorted(set(paid.iterations.astype(int))))
    for row in paid.merge(select(known, method="ops")[keys], on=keys).itertuples():
        name = f"{row.dataset}, M = {row.truncation:g}, epsilon = {row.epsilon:g}"
        yield check(f"one sample of OPS is ahead ({name})", above(row, "ops_minus_paid", THRESHOLD), row.stand_in)
        gap, error = row.ops_minus_paid_mean, row.ops_minus_paid_sem
        yield from number(f"OPS less paid updates per event, {name}", gap, error, of=name)
