"""`privpost release`: what it tries, asks and writes to disk before the draws that are charged."""

from __future__ import annotations

import os
import secrets
from pathlib import Path

import pytest
from release_cases import PAID

from privpost.distributions import noise
from privpost.release import delivery


@pytest.mark.parametrize("source", ["posterior draw", "noise"])
def test_randomness_is_asked_for_before_the_charge(folder, monkeypatch, source):
    """One line, and nothing charged, whatever type the error of the source has."""

    def none(*_):
        raise Exception("\n  FailedFunction(no entropy)\n" + "9" * 9999)

    if source == "noise":
        folder.specify(PAID)
        monkeypatch.setattr(noise.SecureNoise, "laplace", none)
    else:
        draw = {"mechanism": "diffused", "delta": 1e-6}
        folder.specify({key: value for key, value in PAID.items() if key != "posterior"} | draw)
        monkeypatch.setattr(secrets, "randbits", none)
    status, out, err = folder.run()
    assert (status, out) == (2, "")
    assert err.splitlines() == [
        "privpost: spec.yaml: nothing can be drawn, and nothing was charged: FailedFunction(no entropy)"
    ]
    assert folder.files() == {"spec.yaml", "data.csv"}


def test_names_of_new_files_are_on_the_disk_too(folder, monkeypatch):
    """A folder is synchronised after its file: the ledger's before anything is drawn, then the output's."""
    for name in ("ledgers", "statements"):
        (folder.path / name).mkdir()
    ledger, out = folder.path / "ledgers/l.jsonl", folder.path / "statements/o.json"
    folder.specify({**PAID, "budget": {"ledger": "ledgers/l.jsonl", "epsilon": 2.5}})
    fsync, store, done = os.fsync, delivery.Delivery.store, []

    def synced(number):
        fsync(number)
        place = Path(f"/proc/self/fd/{number}").resolve()
        done.append((place.name, ledger.exists() and ledger.stat().st_size > 0, out.exists()))

    monkeypatch.setattr(os, "fsync", synced)
    monkeypatch.setattr(delivery.Delivery, "store", lambda *given: (done.append("store"), store(*given)))
    assert folder.run("--output", "statements/o.json")[0] == 0
    # Once the statistics alone, then with their posterior.
    first, second = (place for place, what in enumerate(done) if what == "store")
    charged = done[:first]
    assert charged.index(("l.jsonl", True, False)) < charged.index(("ledgers", True, False))
    assert ("statements", True, True) in done[first:second]
    assert ("statements", True, True) in done[second:]


def test_room_for_the_whole_statement_is_tried_before_the_charge(folder, monkeypatch):
    """Only that of the terms was: statistics of many levels are not among them."""
    levels = [f"level {number} of {'x' * 60}" for number in range(3000)]
    folder.specify({**PAID, "model": "dirichlet_categorical", "prior": {"concentration": 1}, "posterior": {"draws": 1},
                    "columns": {"diet": {"levels": levels}}})  # fmt: skip
    folder.data("diet\n" + "\n".join(levels[:4]) + "\n")
    write, sizes = delivery.Delivery._write, []
    monkeypatch.setattr(
        delivery.Delivery, "_write", lambda self, content: (sizes.append(len(content)), write(self, content))
    )
    assert folder.run("--output", "o.json")[0] == 0
    tried, stored = sizes
    assert stored > 400_000
    assert tried > 1.2 * stored
