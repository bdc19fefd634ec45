"""Held-out likelihood of noise-aware naive Bayes and hidden Markov models on war logs, beside the noise-naive ones."""

from dataclasses import replace

from privpost.evaluation.claims import Claim, from_checks
from privpost.evaluation.rows import select
from privpost.experiments.claim_helpers import above, below, convergence, estimate, student_limit
from privpost.experiments.foulds2016.chain_checks import LIMIT
from privpost.experiments.foulds2016.war_logs import title
from privpost.experiments.noise_aware.war_logs.study import OTHERS

# Standard errors of a paired difference over splits. At 9 degrees of freedom chance goes beyond them, on one side, in
# 0.04 % of cases; evidence gives the largest loss that the splits leave possible.
THRESHOLD = 5.0
# Confidence of that loss, joint over the ε of a comparison.
CONFIDENCE = 0.95
NAMES = {"naive_bayes": "naive Bayes", "hmm": "HMM"}


def claims(tables) -> list[Claim]:
    """Score N9 (naive Bayes) and N10 (hidden Markov models, by their number of states) on every data set."""
    table, pairs = tables["war_logs"], tables["war_logs_pairs"]
    scored = []
    for (dataset, model, n_states), rows_of_model in pairs.groupby(["dataset", "model", "n_states"], sort=True):
        chains = select(table, dataset=dataset, model=model, n_states=n_states)
        scored.append(_claim(dataset, model, n_states, rows_of_model, chains))
    return sorted(scored, key=lambda claim: (len(claim.id.split("-")[0]), claim.id))


def _claim(dataset, model, n_states, rows_of_model, chains) -> Claim:
    checks, evidence, found = {}, {}, {}
    smallest = rows_of_model.epsilon.min()
    only = rows_of_model.epsilon.nunique() == 1
    place = f"at epsilon = {smallest:g}, the only one" if only else "at the smallest epsilon"
    for method, part in select(chains, sampling="mcmc", score="joint").groupby("method"):
        reached = part.converged.astype(bool)
        evidence[f"settings with chains that converged, {method}"] = f"{reached.sum()} of {len(part)}"
        found[method] = reached.sum(), len(part)
    near = "" if model == "naive_bayes" else " and every chain comes near the best log joint that any of them met"
    kept = rows_of_model[rows_of_model.converged.astype(bool)]
    for (score, variant), part in kept.groupby(["score", "variant"]):
        other = OTHERS[variant]
        if (part.epsilon == smallest).any():
            checks[f"ahead of {other} counts {place} ({score} score)"] = above(
                part[part.epsilon == smallest], "gain", THRESHOLD
            ).all()
        if not only:
            checks[f"behind {other} counts at no epsilon ({score} score)"] = not below(part, "gain", THRESHOLD).any()
        evidence[f"largest loss per event that the splits leave possible, {score} score, {other}"] = loss_bound(part)
        for row in part.itertuples():
            name = f"{score} score, {other}, epsilon = {row.epsilon:g}"
            evidence |= estimate(f"gain per event, {name}", row.gain_mean, row.gain_sem, of=name)
    kind = NAMES[model] if model == "naive_bayes" else f"the {NAMES[model]} of {n_states} states"
    claim = from_checks(
        f"N9-{dataset}" if model == "naive_bayes" else f"N10-{dataset}-{n_states}",
        "ours",
        f"{title(dataset)}: noise-aware inference of {kind} gains held-out likelihood over noisy counts taken for "
        f"counts {place}{'' if only else ', and no loss is detected at any'}.",
        "score per held-out event, noise-aware minus noise-naive, paired over splits, against clipped and projected "
        f"counts, by the likelihood of all held-out cells (joint) and by each field of each event (predictive): above "
        f"{THRESHOLD:g} standard errors {place}"
        + ("" if only else f", at none below -{THRESHOLD:g} of them (smaller losses stay undetected)")
        + f". Chains count as converged where R-hat is below {LIMIT:g}{near}. {convergence(found)}",
        checks if (kept.epsilon == smallest).any() else {},
        evidence,
        variant="paper, corrected",
        stand_in=bool(chains.stand_in.any()),
        untestable=f"{place} not both methods' chains have converged",
    )
    if not claim.failed:
        return claim
    naive = chains[(chains.method == "laplace") & (chains.epsilon == smallest)]
    measured = (
        f"Measured at epsilon = {smallest:g}: gains of {_span(kept[kept.epsilon == smallest].gain_mean)} nats per "
        f"event, where the noise costs the noise-naive model {_span(naive.per_event_loss_mean)}; largest loss at any "
        f"epsilon {max(0.0, -kept.gain_mean.min()):.1g}"
    )
    return replace(claim, reason=f"{claim.reason}. {measured}")


def loss_bound(part) -> float:
    """Return the largest loss in nats per event, at any ε, that the rows of a comparison do not exclude.

    Student's t over the splits, `CONFIDENCE` jointly over the rows (Bonferroni), one-sided.
    """
    reach = student_limit(int(part.n_splits.min()), (1 - CONFIDENCE) / len(part))
    return float((reach * part.gain_sem - part.gain_mean).clip(lower=0).max())


def _span(values) -> str:
    """Return the smallest and the largest of some values in words."""
    return f"{values.min():+.3f} to {values.max():+.3f}"
