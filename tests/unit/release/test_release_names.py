"""Names of parameters in a release: as many as there are parameters, or the specification is refused."""

from __future__ import annotations

import json

import numpy as np
import pytest
from release_cases import SPECS, YES_NO, content, specification

from privpost.distributions import noise
from privpost.release import models

# Column `a` with the level `b = c`, beside column `a = b` with the level `c`: P(a = b = c) twice.
CHILDREN = content(
    "naive_bayes",
    columns={
        "smokes": {"levels": YES_NO, "role": "class"},
        "a": {"levels": ["b = c", "x"]},
        "a = b": {"levels": ["c", "y"]},
    },
)
# The parents' levels coincide: x = "1, y = 2" without y's, and so do the counts.
PARENTS = content(
    "bayesian_network",
    columns={
        "x": {"levels": ["0", "1, y = 2"]},
        "x = 0, y": {"levels": ["1", "2"]},
        "y": {"levels": ["1", "1, y = 2"]},
        "a": {"levels": YES_NO, "parents": ["x", "y"]},
        "a | x": {"levels": YES_NO},
    },
)
LABELS = content(
    "naive_bayes",
    columns={"c": {"levels": ["a", "b | c = b"], "role": "class"}, "c = b": {"levels": ["a", "b"]}},
)
WEIGHTS = {
    "model": "logistic_regression", "n": 4, "epsilon": 1, "mechanism": "ops", "prior": {"precision": 1},
    "columns": {"intercept": {"low": 0, "high": 1}, "smokes": {"levels": YES_NO, "role": "label"}},
}  # fmt: skip


@pytest.mark.parametrize(
    ("found", "name"),
    [(CHILDREN, "P(a = b = c | smokes = no)"), (WEIGHTS, "intercept")],
    ids=["attributes", "weights"],
)
def test_parameters_of_one_name_are_refused_before_anything_is_charged(folder, monkeypatch, found, name):
    monkeypatch.setattr(noise, "_variates", None)
    folder.specify({**found, "budget": {"ledger": "ledger.jsonl", "epsilon": 9}})
    before = folder.files()
    status, out, err = folder.run("--output", "out.json")
    assert (status, out, folder.files()) == (2, "", before)
    assert f"two parameters would have the name {name!r}: rename a column or a level" in err


@pytest.mark.parametrize("model", SPECS)
def test_a_release_names_every_parameter(folder, tmp_path, model):
    """As many series of draws as the model has parameters, under the names that were checked."""
    found = content(model)
    folder.specify(found)
    status, out, err = folder.run()
    assert status in (0, 1), err
    posterior = json.loads(out).get("posterior", {"draws": {}})
    spec, kind = specification(tmp_path, found)
    assert list(posterior["draws"]) == (kind.parameters(spec) if spec.draws else [])


def test_draws_that_would_overwrite_each_other_are_not_made():
    with pytest.raises(ValueError, match="two parameters have the name 'a'"):
        models.base.by_name(["a", "b", "a"], np.zeros((5, 3)))
