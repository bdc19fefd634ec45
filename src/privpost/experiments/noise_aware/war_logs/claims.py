"""Held-out likelihood of noise-aware naive Bayes and hidden Markov models on war logs, beside the noise-naive ones."""

from privpost.evaluation.rows import select
from privpost.experiments.claim_helpers import above, below, ends, student_limit
from privpost.experiments.foulds2016.chain_checks import APART, LIMIT
from privpost.experiments.foulds2016.war_log_claims import THRESHOLD, described, reached
from privpost.experiments.noise_aware.war_logs.study import OTHERS
from privpost.lab.claims import among, check, claim, number, untestable, word

# Confidence of the largest loss that the splits leave possible, joint over the ε of a comparison.
CONFIDENCE = 0.95


def loss_bound(part) -> float:
    """Return the largest loss in nats per event, at any ε, that the rows of a comparison do not exclude.

    Student's t over the splits, `CONFIDENCE` jointly over the rows (Bonferroni), one-sided.
    """
    reach = student_limit(int(part.n_splits.min()), (1 - CONFIDENCE) / len(part))
    return float((reach * part.gain_sem - part.gain_mean).clip(lower=0).max())


# At 9 degrees of freedom chance goes beyond the threshold, on one side, in 0.04 % of cases.
TEST = (
    "score per held-out event, noise-aware minus noise-naive, paired over splits, against clipped and projected "
    "counts, by the likelihood of all held-out cells (joint) and by each field of each event (predictive): above "
    f"{THRESHOLD:g} standard errors {{where}}{{elsewhere}}. Chains count as converged where R-hat is below {LIMIT:g}"
)


@claim(
    "N9-{dataset}",
    "ours",
    "{title}: noise-aware inference of naive Bayes gains held-out likelihood over noisy counts taken for counts "
    "{where}{no_loss}.",
    f"{TEST}. {{reached}}",
    cases=among("war_logs_pairs", "dataset", model="naive_bayes"),
    variant="paper, corrected",
)
def naive_bayes(war_logs, war_logs_pairs, dataset):
    return gain(*(select(table, dataset=dataset, model="naive_bayes") for table in (war_logs_pairs, war_logs)))


@claim(
    "N10-{dataset}-{n_states}",
    "ours",
    "{title}: noise-aware inference of the HMM of {n_states} states gains held-out likelihood over noisy counts taken "
    "for counts {where}{no_loss}.",
    f"{TEST} and the partitions of any two differ on less than {100 * APART:g} % of the pairs of cells that they put "
    "into one state. {reached}",
    cases=among("war_logs_pairs", "dataset", "n_states", model="hmm"),
    variant="paper, corrected",
)
def hidden_markov(war_logs, war_logs_pairs, dataset, n_states):
    setting = {"dataset": dataset, "model": "hmm", "n_states": n_states}
    return gain(*(select(table, **setting) for table in (war_logs_pairs, war_logs)))


def gain(pairs, chains):
    """Yield where the noise-aware model is ahead of the noise-naive one, and whether it is behind anywhere."""
    smallest, several = pairs.epsilon.min(), pairs.epsilon.nunique() > 1
    where = "at the smallest epsilon" if several else f"at epsilon = {smallest:g}, the only one"
    below_it = f", at none below -{THRESHOLD:g} of them (smaller losses stay undetected)"
    yield from described(pairs.dataset.iloc[0])
    yield word("where", where)
    yield word("no_loss", ", and no loss is detected at any" * several)
    yield word("elsewhere", below_it * several)
    yield untestable(f"{where} not both methods' chains have converged")
    yield from reached(select(chains, sampling="mcmc", score="joint"))
    converged = pairs[pairs.converged.astype(bool)]
    first = select(converged, epsilon=smallest)
    for (score, variant), part in converged.groupby(["score", "variant"]):
        other, least = OTHERS[variant], select(part, epsilon=smallest)
        if len(least):
            yield check(f"ahead of {other} counts {where} ({score} score)", above(least, "gain", THRESHOLD).all())
        if several and len(first):
            behind = below(part, "gain", THRESHOLD).any()
            yield check(f"behind {other} counts at no epsilon ({score} score)", not behind)
        largest = f"largest loss per event that the splits leave possible, {score} score, {other}"
        yield from number(largest, loss_bound(part))
        for row in part.itertuples():
            name = f"{score} score, {other}, epsilon = {row.epsilon:g}"
            yield from number(f"gain per event, {name}", row.gain_mean, row.gain_sem, of=name)
    if len(first):
        lost = select(chains, method="laplace", epsilon=smallest).per_event_loss_mean
        yield from number("smallest epsilon", smallest)
        yield from number("gain there in nats per event, smallest and largest", ends(first.gain_mean))
        yield from number("gain there in standard errors, smallest and largest", ends(first.gain_mean / first.gain_sem))
        yield from number("what the noise costs the noise-naive model there, smallest and largest", ends(lost))
        yield from number("largest loss at any epsilon", max(0.0, -converged.gain_mean.min()))
