"""A ledger that was written by hand, with laws of numbers that no release has; and one that takes a while."""

from __future__ import annotations

import json

import pytest

from privpost.commands import cli
from privpost.lab.schema import SettingError
from privpost.privacy.ledger import file as ledger_file
from privpost.privacy.ledger.file import FORMAT

OPS = {"law": "beta", "weight": 0.5, "others": 40, "ends": [0.1, 0.9]}


def written(path, losses, epsilon=0.1) -> None:
    """A ledger with right digests whose releases have these laws."""
    with ledger_file.locked(path) as ledger:
        lines = [{"format": FORMAT, "budget": {"epsilon": 1e6, "delta": 0.5}}]
        lines += [
            {"release": number, "model": "m", "mechanism": "ops", "epsilon": epsilon, "delta": 0.0, "loss": loss}
            for number, loss in enumerate(losses, start=1)
        ]
        assert ledger.append(lines)


@pytest.mark.parametrize(
    "loss",
    [
        {"law": "beta", "prior": [1, 1], "weight": 1, "others": 10, "ends": [0, 1e-300]},
        {"law": "beta", "prior": [1e-150, 1], "weight": 1, "others": 10**400, "ends": [0.1, 0.9]},
        {"law": "response", "epsilon": 1, "times": 10**400},
        {"law": "response", "epsilon": 10**400},
        {"law": "normal", "shift": 1e-300},
        {"law": "gamma", "shape": 5, "rates": [1e-300, 1e300]},
        {"law": "gamma", "shape": 5, "rates": [1]},
        {"law": "beta", "prior": "ab", "weight": 1, "others": 3},
        {"law": "beta", "prior": [1, 1], "weight": "1", "others": 3},
        {"law": "summed", "epsilons": [1]},
        {"law": 3},
        [],
        3,
    ],
)
def test_an_absurd_law_is_refused_in_one_line(tmp_path, loss):
    path = tmp_path / "ledger.jsonl"
    good = {**OPS, "prior": [1, 1]}
    written(path, [good, good, loss])
    with pytest.raises(
        SettingError, match=r"ledger.jsonl: (line 4 is|line 4, the last one|the laws of release 3)"
    ) as told:
        cli.call("ledger", ["check", str(path)])
    assert "\n" not in str(told.value)
    assert len(str(told.value)) < 400


def test_many_different_laws_say_how_far_they_are(tmp_path, capsys, monkeypatch):
    """200 of them take minutes; here three of them, without a pause between two lines."""
    monkeypatch.setattr("privpost.progress.PAUSE", 0.0)
    path = tmp_path / "ledger.jsonl"
    written(path, [{**OPS, "prior": [1 + k, 1]} for k in range(3)])
    assert cli.call("ledger", ["check", str(path)]) == 0
    told = capsys.readouterr().err
    assert "3 of 9 steps of composing laws done" in told
    assert "9 of 9 steps" in told


def test_the_sum_is_still_there(tmp_path, capsys):
    path = tmp_path / "ledger.jsonl"
    written(path, [{**OPS, "prior": [1, 1]}, json.loads('{"law": "response", "epsilon": 0.1}')])
    assert cli.call("ledger", ["check", str(path), "--delta", "1e-300"]) == 0
    assert "2 releases together: epsilon 0.2" in capsys.readouterr().out
