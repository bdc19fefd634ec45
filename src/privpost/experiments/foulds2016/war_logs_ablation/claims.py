"""Why one posterior sample can beat the Laplace mechanism on war logs: one change of the experiment at a time."""

import numpy as np

from privpost.evaluation.rows import select
from privpost.experiments.claim_helpers import undecided
from privpost.experiments.foulds2016.war_log_claims import THRESHOLD, reached
from privpost.lab.claims import check, claim, number, untestable

# The cases that are compared: variant of the Laplace mechanism, and settings that differ from those in `curve`.
CHANGES = {
    "paper": ("paper", {}),
    "corrected": ("corrected", {}),
    "without the category": ("paper", {"fields": "no_category"}),
}
# Which method leads is the sign of this difference; the columns of the table begin with its name.
LEAD = "laplace_minus_ops"
# Nats per event: a tenth of what Laplace and OPS differ by at the smallest epsilon.
LITTLE = 0.1
# Number of fields of an event, by the value of the column `fields`.
N_FIELDS = {"all": 5, "no_category": 4}


def curve(table, method, **changes):
    """Return a method's rows by ε, at the usual settings except for `changes`."""
    usual = {"fields": "all", "prior": "tempered", "replication": 1}
    return select(table, method=method, **{**usual, **changes}).set_index("epsilon").sort_index()


def gap(first, second):
    """Return one curve less another at the ε that both have, and its standard error.

    The standard error treats the curves as independent, so it is larger than that of the paired difference.
    """
    both = first.merge(second, left_index=True, right_index=True, suffixes=("", "_other"))
    errors = np.hypot(both.per_event_sem, both.per_event_sem_other)
    return both.per_event_mean - both.per_event_mean_other, errors


@claim(
    "F8-why",
    "ours",
    "OPS's lead at small epsilon shrinks as epsilon grows and with fewer levels; the prior's temperature does not make "
    "it.",
    "held-out log-likelihood per event: the prior's temperature moves it by less than 0.1; Laplace minus OPS grows "
    "from the smallest to the largest epsilon, and at the smallest with fewer levels; each at the epsilons where the "
    "chains of both sides have converged. {reached}",
    variant="paper, corrected",
)
def what_the_lead_depends_on(war_logs_ablation):
    table = war_logs_ablation
    yield untestable("at no epsilon have the chains of both sides of a check converged")
    yield from reached(table[table.sampling == "mcmc"])
    for dataset, rows in table.groupby("dataset"):
        converged, stand_in = rows.converged.astype(bool), rows.stand_in.any()
        yield from number(f"share of settings whose chains converged, {dataset}", converged.mean())
        yield from prior(rows[converged], dataset, stand_in)
        yield from leads(rows[converged], dataset, stand_in)


def prior(table, dataset, stand_in):
    """Yield what the temperature of OPS's prior changes."""
    change, errors = gap(curve(table, "ops"), curve(table, "ops", prior="untempered"))
    if len(change):
        change = change.abs()
        nothing = f"the prior's temperature changes nothing that matters ({dataset})"
        yield check(nothing, (change < LITTLE).all(), stand_in)
        largest = f"largest change by the prior's temperature, {dataset}"
        yield from number(largest, change.max(), errors[change.idxmax()])


def leads(table, dataset, stand_in):
    """Yield how Laplace minus OPS depends on ε and the levels."""
    lead = {}
    for name, (variant, changes) in CHANGES.items():
        laplace, ops = curve(table, "laplace", variant=variant, **changes), curve(table, "ops", **changes)
        lead[name], errors = gap(laplace, ops)
        for words, values in (("", lead[name]), ("unpaired standard error of ", errors)):
            by_epsilon = {f"{epsilon:g}": value for epsilon, value in values.items()}
            yield from number(f"{words}Laplace minus OPS by epsilon, {name}, {dataset}", by_epsilon)
    paper = lead["paper"]
    fewer = lead["without the category"]
    common = fewer.index.intersection(paper.index)
    if len(common):
        least = common.min()
        less = f"without the category: OPS leads by less at epsilon = {least:g} ({dataset})"
        yield check(less, fewer[least] > paper[least], stand_in)
    if len(paper) > 1:
        span = f"from {paper.index.min():g} to {paper.index.max():g}"
        grows = f"Laplace gains on OPS as epsilon grows {span} ({dataset})"
        yield check(grows, paper.iloc[-1] > paper.iloc[0], stand_in)


@claim(
    "F8-crossover",
    "ours",
    "Noise and tempering blur a level's count equally at m = 4D²/(Delta epsilon) events of it in a cell: Laplace leads "
    "where most of an event's levels are above that, OPS where most are below.",
    f"Laplace minus OPS, beyond {THRESHOLD:g} standard errors, by data set, fields and processing of noisy counts: of "
    "the predicted sign at every epsilon where it is decided and the chains of both have converged",
    variant="paper, corrected",
)
def crossover(war_logs_ablation_differences):
    table = select(war_logs_ablation_differences, prior="tempered", replication=1)
    table = table[table.converged.astype(bool) & ~undecided(table, LEAD, THRESHOLD)]
    yield untestable("at no epsilon have the chains of both sides converged, with a lead beyond chance")
    for (dataset, fields, variant), rows in table.groupby(["dataset", "fields", "variant"]):
        predicted = rows.rare_levels_per_event < N_FIELDS[fields] / 2
        right, case = predicted == (rows.laplace_minus_ops_mean > 0), f"{dataset}, {fields}, {variant}"
        yield check(f"the critical count says who leads ({case})", right.all(), rows.stand_in.any())
        yield from number(f"leads of the predicted sign, {case}", f"{int(right.sum())} of {len(right)}")
        yield from number(f"fields, {case}", N_FIELDS[fields])
        behind = rows[rows.laplace_minus_ops_mean < 0].sort_values("rare_levels_per_event")
        for row in behind[:1].itertuples():
            fewest, lead = f"fewest rare levels of an event where OPS leads, {case}", f"Laplace minus OPS there, {case}"
            yield from number(fewest, row.rare_levels_per_event)
            yield from number(lead, row.laplace_minus_ops_mean, row.laplace_minus_ops_sem)
