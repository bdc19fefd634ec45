"""A record is left out of a sum because it lies beyond the bounds, and for no other reason."""

import numpy as np
import pytest

import privpost
from privpost.privacy.redaction import redacted_sum

FAMILIES = [
    (privpost.GammaExponential(2, 2), -1.0, 0.5),
    (privpost.GammaPareto(2, 2, 1.0), 0.5, 1.5),
    (privpost.GammaPoisson(2, 2), -1.0, 1.0),
    (privpost.GammaPoisson(2, 2), 0.5, 1.0),
    (privpost.BetaGeometric(2, 2), -1.0, 1.0),
    (privpost.NormalKnownVariance(), np.inf, 0.5),
]


@pytest.mark.parametrize("family, no_record, record", FAMILIES)
def test_what_the_family_cannot_give_is_refused(family, no_record, record):
    model = privpost.RedactedSum(family, 1.0, 4.0)
    model.sufficient_statistics(np.array([record, 2.0]))
    for value in (no_record, np.nan):
        with pytest.raises(ValueError, match="data has records"):
            model.sufficient_statistics(np.array([record, value, 2.0]))
        with pytest.raises(ValueError, match="data has records"):
            model.sufficient_statistics(np.array([[record, 2.0], [2.0, value]]))


def test_records_beyond_the_bounds_are_left_out():
    # Independent: by hand.
    assert redacted_sum(np.array([0.5, 2.0, 9.0, 4.0]), 1.0, 4.0) == 6.0
    for value in (np.nan, np.inf):
        with pytest.raises(ValueError, match="not finite"):
            redacted_sum(np.array([0.5, value]), 1.0, 4.0)


@pytest.mark.parametrize("family", [family for family, *_ in FAMILIES])
def test_the_records_that_tests_take_are_records(family):
    model = privpost.RedactedSum(family, 0.5, 3.5)
    assert model.sufficient_statistics(model.records).shape == (1,)


def test_the_reported_release():
    """400 exponential records of rate 1, 100 of them nan, had a posterior around 1.39."""
    model = privpost.RedactedSum(privpost.GammaExponential(2, 2), 0.0, 5.0)
    data = np.random.default_rng(1).standard_exponential(400)
    mechanism = privpost.RedactedLaplace(model, 400, 5.0)
    release = mechanism.perturb(model.sufficient_statistics(data), np.random.default_rng(2))
    assert mechanism.posterior(release, 2000, np.random.default_rng(3)).mean() == pytest.approx(1.0, abs=0.15)
    data[::4] = np.nan
    with pytest.raises(ValueError, match="data has records that are not finite numbers"):
        model.sufficient_statistics(data)
