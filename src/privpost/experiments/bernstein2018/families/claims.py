"""Calibration of both algorithms for families that the paper does not try (ours)."""

from privpost.evaluation.claims import Claim, from_checks
from privpost.experiments.bernstein2018.calibration.claims import TEST, calibrated_by_model


def claims(tables) -> list[Claim]:
    """Score B15, for the samplers and for the posteriors without a chain."""
    table = tables["families"]
    checks, evidence = {}, {}
    for method, words in (("gibbs", "Gibbs"), ("exact", "the posterior without a chain")):
        own, found = calibrated_by_model(table, method, words)
        checks, evidence = checks | own, evidence | found
    statement = "Algorithms 1 and 2 are calibrated for families that the paper does not try, given by one file each."
    fields = {"variant": ", ".join(sorted(table.variant.unique())), "untestable": "no rows to compare"}
    return [from_checks("B15", "ours", statement, TEST, checks, evidence, **fields)]
