"""The published ledger of a study: accounts grouped by kind, and mechanisms that can be rebuilt from it."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np

from privpost import discovery
from privpost.lab import grid, ledgers
from privpost.mechanisms.draws.posterior import PosteriorDraw
from privpost.models.conjugate.beta_bernoulli import BetaBernoulli
from privpost.privacy.accounting.costs import Cost
from privpost.privacy.ledger.gate import Ledger


def ledger_row(account, epsilon, budget, releases=1, order=None, data=None):
    notion = "pure" if order is None else "rdp"
    cost = {"notion": notion, "order": order, "delta": None}
    return {
        "account": account, "mechanism": None, "settings": None, **cost, "epsilon": epsilon, "releases": releases,
        "repeats": 1, "accounting": "stated", "data": data,
        "published": {**cost, "epsilon": 3 * releases * float(epsilon)},
        "spent": {**cost, "epsilon": releases * epsilon}, "budget": {**cost, "epsilon": budget},
    }  # fmt: skip


def test_the_ledger_is_gathered_by_kind_and_notion(checkout, tmp_path):
    study = grid.load_study("geumlek2017/tradeoff", home=tmp_path)
    cells = [
        [ledger_row("ops/a", 0.5, 1.0), ledger_row("ops/b", 0.1, 2.0, releases=10, data="adult")],
        [ledger_row("ops/a", 0.25, 1.0), ledger_row("gaussian", "inf", "inf", order=2.0)],
    ]
    results = [SimpleNamespace(record={"ledger": rows, "digest": str(i)}) for i, rows in enumerate(cells)]
    study.ledger_path.parent.mkdir(parents=True)
    study.ledger_path.write_text(ledgers.describe(study, results))
    gaussian, ops = ledgers.read(study)
    assert ops["accounts"] == 3
    assert ops["epsilon"] == [0.1, 0.5]
    assert ops["releases"] == [1, 10]
    assert ops["budget_epsilon"] == [1.0, 2.0]
    assert ops["largest_share_spent"] == 0.5
    assert (ops["data"], ops["published_epsilon"]) == (["adult"], [0.75, 3.0])
    assert gaussian["data"] == []
    assert gaussian["epsilon"] == ["inf", "inf"]
    assert (gaussian["notion"], gaussian["order"]) == ("rdp", 2.0)
    assert ledgers.read(study, "mechanisms") == []


def test_the_published_ledger_names_mechanisms_that_can_be_made_again(checkout, tmp_path):
    study = grid.load_study("geumlek2017/tradeoff", home=tmp_path)
    ledger, used = (
        Ledger(),
        [PosteriorDraw(BetaBernoulli(6, 12), 8, 2.0, r / 7, weighting="diffused") for r in range(1, 6)],
    )
    for number, mechanism in enumerate(used):
        ledger.open(f"diffused/{number}", mechanism.cost(), mechanism)
        ledger.release(f"diffused/{number}", mechanism, np.array([3.0, 5.0]), np.random.default_rng(1))
    record = {"ledger": ledger.record(), "mechanisms": ledger.mechanisms(), "digest": "1"}
    study.ledger_path.parent.mkdir(parents=True)
    study.ledger_path.write_text(ledgers.describe(study, [SimpleNamespace(record=record)]))
    (row,) = ledgers.read(study, "mechanisms")
    assert [discovery.rebuild(each["mechanism"]) for each in ledgers.unfolded(row)] == used
    rows = ledgers.contents([study])[study.name]["mechanisms"]
    assert [discovery.rebuild(row["mechanism"]) for row in rows] == used[::2]
    assert all(discovery.rebuild(each["mechanism"]).cost().within(Cost(**each["budget"])) for each in rows[0]["alike"])
