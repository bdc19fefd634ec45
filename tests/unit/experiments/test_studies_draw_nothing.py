"""No study goes round the ledger's gate: its sources call no draw of a mechanism, add no noise and set no own budget.

That a study shows what its mechanisms release, and draws through the ledger only, is proved by running it
(tests/workflow/test_sabotage.py). These tests read the sources.
"""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

STUDIES = Path(__file__).resolve().parents[3] / "src" / "privpost" / "experiments"
# Draws of mechanisms, which the ledger asks for, and the continuous noise that privacy mechanisms add.
DRAWS = {"perturb", "replicate", "draw_all", "posterior_sample"}
NOISE = {"laplace", "gumbel", "logistic", "normal", "exponential", "standard_exponential", "standard_cauchy", "rvs"}
RELEASES = {"release", "release_all"}
# Who is asked for releases: the ledger, and an experiment or a gate that hands it on.
GATES = {"ledger", "self.ledger", "trial", "gate"}
LEDGER = "Ledger()"
# The audit's gate makes a ledger where the caller has none; its examples have no data of people and no target.
AUDIT = STUDIES / "audit"


def sources() -> list[Path]:
    return [path for path in sorted(STUDIES.rglob("*.py")) if path.name not in ("claims.py", "figures.py")]


def past_the_gate(source: str) -> set[str]:
    """What a source calls that draws from private data past the ledger, as it is written."""
    calls = [node.func for node in ast.walk(ast.parse(source)) if isinstance(node, ast.Call)]
    found = {LEDGER for call in calls if ast.unparse(call).split(".")[-1] == "Ledger"}
    for call in (call for call in calls if isinstance(call, ast.Attribute)):
        owner = ast.unparse(call.value)
        if call.attr in DRAWS | NOISE or (call.attr in RELEASES and owner not in GATES):
            found.add(ast.unparse(call))
    return found


def test_no_study_draws_past_the_ledger():
    found = {
        (path.relative_to(STUDIES).as_posix(), what) for path in sources() for what in past_the_gate(path.read_text())
    }
    assert found == {("audit/audit/study.py", LEDGER)}


@pytest.mark.parametrize(
    "source",
    [
        "mechanism.release(data, rng)",
        "mechanism.perturb(statistics, rng)",
        "type(mechanism).draw_all(requests)",
        "mechanism.posterior_sample(statistics, rng)",
        "noisy = counts + rng.laplace(0, scale, counts.shape)",
        "scipy.stats.laplace.rvs()",
        "privpost.privacy.ledger.gate.Ledger().release(account, mechanism, data, rng)",
    ],
)
def test_a_draw_past_the_ledger_is_found(source):
    assert past_the_gate(source)


def budgets_in(source: str) -> list[str]:
    """What accounts are opened with, what names of budgets stand for, and what costs are made of."""
    budgets = []
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Call) and ast.unparse(node.func) == "ledger.open":
            budgets.append(node.args[1])
        elif isinstance(node, ast.Call) and ast.unparse(node.func) == "Cost":
            budgets.append(node)
        elif isinstance(node, ast.Assign) and any("budget" in ast.unparse(name) for name in node.targets):
            budgets.append(node.value)
    return [ast.unparse(node) for node in budgets]


def from_the_configuration(budget: str) -> bool:
    of_mechanism = any(name in budget for name in (".cost(", ".stated_cost", ".cost_in("))
    return not of_mechanism and not (budget.startswith("Cost(") and "mechanism." in budget)


def test_no_account_has_a_mechanisms_own_cost_for_its_budget():
    budgets = [budget for path in sources() if AUDIT not in path.parents for budget in budgets_in(path.read_text())]
    assert len(budgets) > 30
    assert [budget for budget in budgets if not from_the_configuration(budget)] == []


@pytest.mark.parametrize(
    "source",
    [
        "ledger.open('a', mechanism.cost(), mechanism)",
        "budget = mechanism.stated_cost\nledger.open('a', budget, mechanism)",
        "budgets = [made.cost_in(target) for made in mechanisms]",
        "ledger.open('a', Cost('pure', mechanism.epsilon), mechanism)",
    ],
)
def test_a_mechanisms_own_cost_is_found(source):
    assert not all(map(from_the_configuration, budgets_in(source)))
