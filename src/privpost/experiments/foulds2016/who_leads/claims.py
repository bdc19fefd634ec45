"""Claims on which method leads on events of a known hidden Markov model, and on where the lead changes."""

import itertools
from functools import partial

from privpost.evaluation.rows import select
from privpost.experiments.claim_helpers import above, below
from privpost.experiments.foulds2016.who_leads.study import SCORES
from privpost.lab.claims import check, claim, number, untestable

# Limit of a difference paired over data sets, in standard errors.
THRESHOLD = 5.0
# A claim judges only settings that are farther than this factor from the setting where the lead should change.
FACTOR = 3.0


def checked(rows, sides):
    """Yield for each score and side: whether all settings pass, how many pass, and the smallest and largest lead."""
    yield untestable("no setting is that far away")
    for (score, prefix), (words, part, right) in itertools.product(SCORES.items(), sides):
        if part.any():
            column = f"{prefix}difference"
            passed, name = right(rows[part], column), f"Laplace {words}, {score} score"
            yield check(name, passed.all())
            yield from number(f"settings of all: {name}", f"{int(passed.sum())} of {len(passed)}")
            yield from number(f"of these with converged chains: {name}", int(rows[part].converged.sum()))
            ordered = rows[part].sort_values(f"{column}_mean")
            for which, row in (("smallest", ordered.iloc[0]), ("largest", ordered.iloc[-1])):
                yield from number(f"{which} lead: {name}", row[f"{column}_mean"], row[f"{column}_sem"])


@claim(
    "F25",
    "section 4.2",
    "The Laplace release is useful where aggregate statistics are large relative to the noise: there, and only "
    "there, it is ahead of Gibbs sampling that is charged for every update.",
    f"held-out loss of paid updates less that of clipped Laplace, by either score: above {THRESHOLD:g} standard "
    f"errors where a cell has more events of a level than {FACTOR:g} noise scales 2D/epsilon, and not above where "
    f"it has fewer than a {FACTOR:g}rd of one; all chains count, converged or not",
)
def condition(who_leads_pairs):
    rows, ahead = select(who_leads_pairs, method="private_gibbs", less="laplace"), partial(above, limit=THRESHOLD)
    beyond = "is ahead beyond the noise", rows.noise_scales > FACTOR, ahead
    below_it = "is not ahead below it", rows.noise_scales < 1 / FACTOR, lambda *given: ~ahead(*given)
    yield from checked(rows, [beyond, below_it])


@claim(
    "F26",
    "ours",
    "Let m be 4D²/(Δ epsilon). Where a cell has more than m events of a level, OPS is nowhere clearly ahead of "
    "clipped Laplace counts; where it has fewer, they are nowhere clearly ahead of OPS.",
    f"sign of OPS's loss less clipped Laplace's beyond {THRESHOLD:g} standard errors, by either score: never against "
    f"Laplace at more than {FACTOR:g} times that m, never against OPS at less than a {FACTOR:g}rd of it; all chains "
    "count, converged or not",
)
def crossing(who_leads_pairs):
    rows = select(who_leads_pairs, method="ops", less="laplace")
    far = "is not behind above the crossing", rows.crossings > FACTOR, lambda *given: ~below(*given, THRESHOLD)
    near = "is not ahead below it", rows.crossings < 1 / FACTOR, lambda *given: ~above(*given, THRESHOLD)
    yield from checked(rows, [far, near])
