"""`outside: redact` leaves out values beyond the bounds, not texts that are no record of the model."""

from __future__ import annotations

import pytest
from release_cases import content
from test_release_columns import counted

COLUMNS = {"minutes": {"low": 0, "high": 4, "resolution": 0.5, "outside": "redact"}}


@pytest.mark.parametrize("model", ["gamma_exponential", "bounded_sum"])
def test_values_beyond_the_bounds_are_left_out(tmp_path, model):
    # In steps of 0.5: 1 and 3 are 2 and 6.
    assert counted(tmp_path, content(model, columns=COLUMNS), "minutes\n1\n3\n4.5\n100\n") == [8]


@pytest.mark.parametrize("text", ["nan", "NaN", "inf", "-0.5"])
def test_a_value_that_no_exponential_record_has_is_refused(tmp_path, text):
    with pytest.raises(Exception, match="row 3, column 'minutes' must hold a number of at least 0"):
        counted(tmp_path, content("gamma_exponential", columns=COLUMNS), f"minutes\n1\n3\n{text}\n1\n")


def test_a_sum_of_no_family_leaves_negative_values_out(tmp_path):
    assert counted(tmp_path, content("bounded_sum", columns=COLUMNS), "minutes\n1\n3\n-1\n1\n") == [10]
