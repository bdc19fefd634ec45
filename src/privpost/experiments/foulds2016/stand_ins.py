"""What data that stand in for the paper's say of its claims: what was seen on them, and never that one is wrong."""

from dataclasses import replace

from privpost.evaluation.claims import Claim
from privpost.experiments.foulds2016.war_logs import title

# Drawn from a model that has the published facts: what it has, these data have.
MADE_UP = ("iraq_simulated",)
# A part of the paper's data that we have chosen: the paper says nothing of it by itself.
OWN_SELECTION = ("afghanistan_dense",)
_REASONS = {
    True: "the data are drawn from a model with the published marginal facts; what is seen on them says nothing of the "
    "paper's",
    False: "the data stand in for the paper's, which could not be had; what fails on them says nothing of those",
}


def placed(place: str, dataset: str) -> str:
    """Return where a claim on a data set stands: what is asked of our own selection is our claim."""
    return f"ours, after {place}" if dataset in OWN_SELECTION else place


def headed(dataset: str) -> str:
    """Return a data set's title at the head of a claim, marked where it is our own selection."""
    return title(dataset) + (" (our selection)" if dataset in OWN_SELECTION else "")


def seen_only(claim: Claim, made_up: bool) -> Claim:
    """Return a claim without a verdict on the paper, with its checks as evidence."""
    return replace(
        claim,
        verdict="not testable",
        reason=_REASONS[made_up],
        checks={},
        why="",
        unexplained=(),
        see="",
        evidence={**claim.evidence, **{f"seen: {check}": passed for check, passed in claim.checks.items()}},
    )


def qualified_by_data(claim: Claim, dataset: str = "") -> Claim:
    """Return a claim of the paper on a stand-in without its verdict if something fails there; others as they are.

    On a data set that is made up nothing has a verdict.
    """
    if dataset in MADE_UP:
        return seen_only(claim, made_up=True)
    if claim.stand_in and claim.verdict in ("holds in part", "does not hold") and not claim.place.startswith("ours"):
        return seen_only(claim, made_up=False)
    return claim
