"""Claims for the tests of scorecard, documents and report."""

from __future__ import annotations

import pytest

from privpost.lab.claims import Claim


@pytest.fixture
def claim():
    """Return a claim with some of its fields set."""

    def make(id="G1", verdict="holds", **fields):
        fields.setdefault("reason", "" if verdict == "holds" else "because")
        return Claim(id, "section 1", "It is so.", "a test", verdict, **fields)

    return make
