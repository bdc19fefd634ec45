"""`privpost ledger check`: a ledger against the statements that it paid for."""

from __future__ import annotations

import json
import shutil

import pytest
from release_cases import BITS

from privpost.commands import cli
from privpost.lab.schema import SettingError

PAID = {**BITS, "budget": {"ledger": "ledger.jsonl", "epsilon": 9}}


@pytest.fixture
def paid(folder):
    """A folder with three releases."""
    folder.specify(PAID)
    for number in (1, 2, 3):
        assert folder.run("--output", f"{number}.json")[0] == 0
    folder.capsys.readouterr()
    return folder


def check(folder, *names: str) -> tuple[int, str, list[str]]:
    before = {path.name: path.read_bytes() for path in folder.path.iterdir()}
    status = cli.call("ledger", ["check", "ledger.jsonl", *names])
    assert {path.name: path.read_bytes() for path in folder.path.iterdir()} == before
    out, err = folder.capsys.readouterr()
    return status, out, err.splitlines()


def test_a_ledger_and_its_statements_fit(paid):
    # Drawn again a statement is the same release.
    assert paid.run("--again", "2.json", "--output", "again.json")[0] == 0
    status, out, problems = check(paid, "1.json", "2.json", "3.json", "again.json")
    assert (status, problems) == (0, [])
    assert "3 releases, chain and digests right; spent epsilon 3, delta 0 of epsilon 9" in out
    assert check(paid)[0] == 0
    (paid.path / "first.jsonl").write_bytes(b"".join((paid.path / "ledger.jsonl").read_bytes().splitlines(True)[:2]))
    assert cli.call("ledger", ["check", "first.jsonl"]) == 0
    assert "first.jsonl: 1 release, chain" in paid.capsys.readouterr()[0]


def test_a_ledger_that_was_rolled_back_is_told_by_its_statements(paid):
    ledger = paid.path / "ledger.jsonl"
    ledger.write_bytes(b"".join(ledger.read_bytes().splitlines(keepends=True)[:3]))
    status, _, (problem,) = check(paid, "1.json", "2.json", "3.json")
    assert status == 1
    assert "3.json: the ledger has no such line of release 3: it was rolled back" in problem
    # Another release took the number.
    assert paid.run("--output", "other.json")[0] == 0
    paid.capsys.readouterr()
    status, _, problems = check(paid, "1.json", "2.json", "3.json", "other.json")
    assert status == 1
    assert any("3.json: the ledger has no such line" in problem for problem in problems)
    assert any("3.json is release 3, too, but with other content" in problem for problem in problems)


def test_statements_that_are_missing_edited_or_none_are_told(paid):
    assert check(paid, "1.json", "3.json")[2] == ["privpost: no statement was given for release 2"]
    found = json.loads((paid.path / "2.json").read_text())
    found["ledger"]["spent"]["epsilon"] = 1
    (paid.path / "edited.json").write_text(json.dumps(found))
    found["release"] = [7.0]
    found["ledger"]["spent"]["epsilon"] = 2.0
    (paid.path / "twice.json").write_text(json.dumps(found))
    shutil.copy(paid.path / "spec.yaml", paid.path / "none.json")
    problems = check(paid, "1.json", "2.json", "3.json", "edited.json", "twice.json", "none.json", "gone.json")[2]
    assert len(problems) == 4
    for problem, part in zip(problems[:2], ("spent, the ledger", "other content"), strict=True):
        assert part in problem
    # Words for users, not the interpreter's.
    assert problems[2:] == [
        "privpost: none.json: it is not the statement of a release with a ledger",
        "privpost: gone.json: it cannot be read: No such file or directory",
    ]
    assert check(paid, "3.json")[2] == ["privpost: no statement was given for releases 1, 2"]


@pytest.mark.parametrize(
    ("block", "key", "value"),
    [
        ("privacy", "epsilon", 0.01),
        ("privacy", "delta", 0.5),
        ("privacy", "mechanism", "gaussian"),
        ("specification", "model", "bounded_sum"),
        ("ledger", "budget", {"epsilon": 99.0, "delta": 0.0}),
        ("ledger", "release", 1.5),
        ("ledger", "release", float("inf")),
        ("ledger", "entry_sha256", []),
    ],
)
def test_a_statement_that_says_something_else_than_its_line_is_told(paid, block, key, value):
    """Only the sum that was spent was compared."""
    found = json.loads((paid.path / "1.json").read_text())
    found[block][key] = value
    (paid.path / "1.json").write_text(json.dumps(found))
    status, _, problems = check(paid, "1.json", "2.json", "3.json")
    assert status == 1
    assert problems[0].startswith("privpost: 1.json: ")


def test_other_statistics_of_one_release_are_told(paid):
    found = json.loads((paid.path / "1.json").read_text())
    found["statistics"] = {"counts": {"smokes": {"yes": 0.5}}}
    (paid.path / "edited.json").write_text(json.dumps(found))
    problems = check(paid, "1.json", "2.json", "3.json", "edited.json")[2]
    assert problems == ["privpost: edited.json: 1.json is release 1, too, but with other content"]


def test_a_damaged_ledger_is_refused_in_one_line(paid):
    ledger = paid.path / "ledger.jsonl"
    raw = ledger.read_bytes()
    for damaged in (raw.replace(b'"epsilon": 1.0', b'"epsilon": 0.5', 1), raw[:-9], b"", b"text"):
        ledger.write_bytes(damaged)
        with pytest.raises(SettingError) as refused:
            cli.call("ledger", ["check", "ledger.jsonl"])
        assert "\n" not in str(refused.value)
