"""What all releases of a ledger cost together: the line in a release's summary and in `privpost ledger check`."""

from __future__ import annotations

import math
import re

import pytest
from release_cases import content, lines

from privpost.commands import cli
from privpost.lab.schema import SettingError
from privpost.privacy.accounting import composition
from privpost.privacy.ledger import file as ledger_file

BUDGET = {"ledger": "ledger.jsonl", "epsilon": 9, "delta": 1e-5}
COUNT = content("beta_bernoulli", budget=BUDGET)
LEVELS = content("dirichlet_categorical", budget=BUDGET)


def draw(model: str, mechanism: str, **settings) -> dict:
    """A specification of one posterior draw."""
    return {key: value for key, value in content(model, mechanism=mechanism, budget=BUDGET, **settings).items()
            if key != "posterior"}  # fmt: skip


def released(folder, *specifications) -> list[str]:
    """Make a release of each; returns the lines about all of them that were printed."""
    found = []
    for number, specification in enumerate(specifications, start=1):
        folder.specify(specification)
        status, out, err = folder.run("--output", f"{number}.json")
        assert (status, err) == (0, "")
        found += [line for line in out.splitlines() if " together: " in line]
    return found


def told(folder, *argv: str) -> list[str]:
    folder.capsys.readouterr()
    assert cli.call("ledger", ["check", "ledger.jsonl", *argv]) == 0
    return folder.capsys.readouterr()[0].splitlines()


def number(line: str) -> tuple[int, float, float]:
    """Releases, ε and δ in a line."""
    found = re.fullmatch(
        r"  (\d+) releases? together: epsilon (\S+) at delta (\S+) if no earlier result .* or the decision to stop; .*",
        line,
    )
    return int(found[1]), float(found[2]), float(found[3])


def test_the_summary_and_the_check_say_what_all_cost_together(folder):
    """Binomial sums of randomised responses: counts of ε = 1, and of levels twice 1/2 each, rounded up to 4 digits."""
    budget = {**BUDGET, "delta": 1e-2}
    count, levels = ({**specification, "budget": budget} for specification in (COUNT, LEVELS))
    first, second, third = released(folder, count, count, levels, count)
    assert told(folder)[1:] == [third]
    for line, times in ((first, (2, 0)), (second, (2, 2)), (third, (3, 2))):
        releases, epsilon, delta = number(line)
        assert (releases, delta) == (sum(times) - times[1] // 2, 1e-2)
        assert epsilon < releases
        exact = lost(times, epsilon)
        assert exact <= delta < lost(times, epsilon * (1 - 2e-3)), line
    assert number(told(folder, "--delta", "1e-5")[1])[1] > number(third)[1]
    # Drawn again a statement says what it said.
    folder.specify(levels)
    assert f"{second}\n" in folder.run("--again", "3.json", "--output", "again.json")[1]


def lost(times: tuple[int, int], epsilon: float) -> float:
    """δ(ε) of some responses of ε = 1 and some of ε = 1/2."""
    true = [1 / (1 + math.exp(-loss)) for loss in (1.0, 0.5)]
    delta = 0.0
    for one in range(times[0] + 1):
        for other in range(times[1] + 1):
            loss = 2 * one - times[0] + 0.5 * (2 * other - times[1])
            mass = math.comb(times[0], one) * true[0] ** one * (1 - true[0]) ** (times[0] - one)
            mass *= math.comb(times[1], other) * true[1] ** other * (1 - true[1]) ** (times[1] - other)
            delta += mass * max(0.0, 1 - math.exp(epsilon - loss))
    return delta


def test_every_kind_of_release_has_its_law_in_the_ledger(folder):
    bits, waiting = {"n": 4, "prior": {"alpha": 3, "beta": 4}}, {"n": 4, "prior": {"shape": 2, "rate": 9}}
    released(
        folder,
        draw("beta_bernoulli", "ops", a0=0.1, **bits),
        draw("beta_bernoulli", "diffused", delta=1e-7, **bits),
        draw("dirichlet_categorical", "concentrated", delta=1e-7),
        draw("gamma_exponential", "diffused", delta=1e-7, **waiting),
        content("beta_bernoulli", mechanism="gaussian", delta=1e-7, budget=BUDGET),
        content("bounded_sum", budget=BUDGET),
        content("naive_bayes", budget=BUDGET),
    )
    laws = [entry["loss"] for entry in lines(folder)[1:]]
    assert [law["law"] for law in laws] == ["beta", "beta", "beta", "gamma", "normal", "response", "response"]
    assert [law.get("others") for law in laws[:3]] == [3, 3, 0]
    assert laws[0]["ends"] == [0.1, 0.9]
    # A sum moves by more than one; of naive Bayes two attributes move two counts each.
    assert [law["times"] for law in laws[5:]] == [1, 4]
    assert number(told(folder)[1])[1] < 5


def test_a_ledger_without_laws_is_taken_by_its_budgets(folder):
    """Lines as they were before: ε and δ alone; at a δ below what they may lose nothing is known."""
    released(folder, COUNT)
    with ledger_file.locked(folder.path / "ledger.jsonl") as ledger:
        old = {key: value for key, value in lines(folder)[1].items() if key not in ("loss", "digest", "previous")}
        ledger.append([{**old, "release": 2, "epsilon": 0.5, "delta": 1e-6}])
    assert number(told(folder)[1])[1] == pytest.approx(1.5, rel=1e-3)
    assert told(folder, "--delta", "1e-7")[1:] == ["  2 releases together: no epsilon is known at delta 1e-07"]


def test_a_line_whose_law_is_none_is_refused(folder):
    released(folder, COUNT)
    with ledger_file.locked(folder.path / "ledger.jsonl") as ledger:
        old = {key: value for key, value in lines(folder)[1].items() if key not in ("digest", "previous")}
        ledger.append([{**old, "release": 2, "loss": {"law": "beta", "prior": [1, 0], "weight": 1, "others": 3}}])
    with pytest.raises(SettingError, match=r"ledger\.jsonl: line 3 is no entry of a ledger"):
        cli.call("ledger", ["check", "ledger.jsonl"])


def test_a_release_is_refused_by_the_sum_whatever_all_cost_together(folder):
    """Ten responses of ε = 0.1 cost less than 0.9 together at δ = 1e-3; a budget of 1 does not cover an eleventh."""
    folder.specify(content("beta_bernoulli", epsilon=0.1, budget={"ledger": "ledger.jsonl", "epsilon": 1.0}))
    for release in range(10):
        assert folder.run("--output", f"{release}.json")[0] == 0
    assert number(told(folder, "--delta", "1e-3")[1])[1] < 0.9
    status, _, err = folder.run("--output", "more.json")
    assert status == 2 and "would exceed epsilon 1" in err


def test_a_sum_that_fails_makes_no_failure_of_a_release(folder, monkeypatch):
    def failing(*_):
        raise ImportError("no such package")

    monkeypatch.setattr(composition, "together", failing)
    assert released(folder, COUNT, COUNT) == []
    assert len(lines(folder)) == 3


@pytest.mark.parametrize("text", ["0", "1", "-1e-6", "nan", "inf", "1e-6x", ""])
def test_a_delta_out_of_range_is_refused_in_one_line(folder, text):
    released(folder, COUNT)
    with pytest.raises(SettingError) as refused:
        cli.call("ledger", ["check", "ledger.jsonl", f"--delta={text}"])
    assert str(refused.value) == f"--delta is {text!r}, but must be a number in (0, 1)."


def test_a_ledger_that_went_away_costs_no_release(folder):
    """The line is left out where the specification or the ledger is another one by the time of the summary."""
    released(folder, COUNT, COUNT)
    (folder.path / "ledger.jsonl").unlink()
    status, out, _ = folder.run("--again", "2.json", "--output", "again.json")
    assert status == 0 and " together: " not in out
    folder.specify({**COUNT, "budget": {**BUDGET, "ledger": "other.jsonl"}})
    status, out, _ = folder.run("--again", "2.json", "--output", "more.json")
    assert status == 0 and " together: " not in out
    # A ledger of as many releases, which are others.
    (folder.path / "1.json").rename(folder.path / "old1.json")
    (folder.path / "2.json").rename(folder.path / "old2.json")
    assert len(released(folder, COUNT, COUNT)) == 1
    status, out, _ = folder.run("--again", "old2.json", "--output", "last.json")
    assert status == 0 and " together: " not in out
