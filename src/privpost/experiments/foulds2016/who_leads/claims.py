"""Who leads where, on events of a known hidden Markov model: the paper's sentence, and where the leads cross."""

from privpost.evaluation.rows import select
from privpost.experiments.claim_helpers import above, below, ends
from privpost.lab.claims import check, claim, number, untestable

# Standard errors of a difference paired over data sets.
THRESHOLD = 5.0
# How far from the place where the lead should change, as a factor, it has to be right.
FACTOR = 3.0
SCORES = {"joint": "difference", "predictive": "predictive_difference"}


@claim(
    "F25",
    "section 4.2",
    "The Laplace release is useful where aggregate statistics are large relative to the noise: there it is ahead of "
    "Gibbs sampling that pays for every update, and elsewhere not.",
    f"held-out loss, paid updates less clipped Laplace, by either score: above {THRESHOLD:g} standard errors where a "
    f"level's events in a cell exceed {FACTOR:g} noise scales 2D/epsilon, and not above where they are below a "
    f"{FACTOR:g}rd of one; all chains count, converged or not",
)
def condition(who_leads_pairs):
    rows = select(who_leads_pairs, method="private_gibbs", less="laplace")
    yield untestable("no setting is that far from the noise")
    for score, column in SCORES.items():
        ahead = above(rows, column, THRESHOLD)
        for words, part, passed in (("is ahead beyond the noise", rows.noise_scales > FACTOR, True),
                                    ("is not ahead below it", rows.noise_scales < 1 / FACTOR, False)):  # fmt: skip
            if part.any():
                right, name = ahead[part] == passed, f"Laplace {words}, {score} score"
                yield check(f"{name}, at every setting", right.all())
                yield from number(f"settings where {name}", f"{int(right.sum())} of {len(right)}")
                yield from number(f"leads of Laplace, {name}", ends(rows[part][f"{column}_mean"]))


@claim(
    "F26",
    "ours",
    "Laplace and OPS cross where a level has m = 4D²/(Δ epsilon) events in a cell.",
    f"sign of OPS's loss less clipped Laplace's beyond {THRESHOLD:g} standard errors, by either score, where the chains "
    f"of both have converged: never against Laplace at more than {FACTOR:g} times that m, never against OPS at less "
    f"than a {FACTOR:g}rd of it",
)
def crossing(who_leads_pairs):
    rows = select(who_leads_pairs, method="ops", less="laplace", converged=True)
    yield untestable("no setting with converged chains is that far from the crossing")
    for score, column in SCORES.items():
        for words, part, wrong in (("OPS not ahead above the crossing", rows.crossings > FACTOR, below),
                                   ("Laplace not ahead below it", rows.crossings < 1 / FACTOR, above)):  # fmt: skip
            if part.any():
                against = wrong(rows[part], column, THRESHOLD)
                yield check(f"{words}, {score} score", not against.any())
                yield from number(f"settings against it: {words}, {score} score", f"{int(against.sum())} of {len(against)}")
                yield from number(f"leads of Laplace, {words}, {score} score", ends(rows[part][f"{column}_mean"]))
