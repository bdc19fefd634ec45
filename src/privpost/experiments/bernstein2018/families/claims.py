"""Calibration of both algorithms for families that the paper does not try (ours)."""

from privpost.experiments.bernstein2018.calibration.claims import NO_CHAIN, TEST, calibrated_by_model
from privpost.lab.claims import about, claim, untestable


@claim(
    "B15",
    "ours",
    "Algorithms 1 and 2 are calibrated for families that the paper does not try, given by one file each.",
    TEST,
)
def other_families(families):
    yield untestable("no rows to compare")
    yield from calibrated_by_model(families, "gibbs", "Gibbs")
    yield from calibrated_by_model(families, "exact", NO_CHAIN)
    yield from about(variant=", ".join(sorted(families.variant.unique())))
