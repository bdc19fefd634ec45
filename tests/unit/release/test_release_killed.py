"""`privpost release`: releases that are killed, and many at once; each is charged or gives nothing away."""

from __future__ import annotations

import itertools
import json
import os
import random
import time

import numpy as np
from release_cases import LEDGER, PAID, exit_with, lines

from privpost.privacy.ledger import file as ledger_file
from privpost.release import command, delivery, spending

KILLED = 9
POINTS = {
    "before the charge": (spending, "_charged"),
    "store": (delivery.Delivery, "store"),
    "posterior": (command, "_posterior"),
    "output": (delivery.Delivery, "hand_over"),
    "nowhere": None,
}


def killed(point: str, argv: list[str]) -> int:
    """Run the command in a process of its own that ends at a point, with nothing after it; returns its status."""
    process = os.fork()
    if not process:
        if POINTS[point]:
            setattr(*POINTS[point], lambda *_, **__: os._exit(KILLED))
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        exit_with(*argv)
    return os.waitstatus_to_exitcode(os.waitpid(process, 0)[1])


def test_releases_killed_anywhere_are_charged_if_they_can_have_been_seen(folder):
    """A machine of states: releases that end at random points, and what the ledger and the disk hold after each.

    From the stored statistics on, what was paid for is on the disk, and its posterior can be drawn at no cost.
    What killed releases leave is taken over by later ones.
    """
    states = list(itertools.product(POINTS, (False, True))) * 2
    random.Random(1).shuffle(states)
    charged = 0
    folder.specify({**PAID, "budget": {**LEDGER, "epsilon": 100}})
    for step, (point, to_file) in enumerate(states):
        out = folder.path / f"{step}.json"
        status = killed(point, ["--output", out.name] if to_file else [])
        assert status == (0 if point == "nowhere" else KILLED)
        charged += point != "before the charge"
        assert (len(lines(folder)) - 1 if (folder.path / "ledger.jsonl").exists() else 0) == charged
        for hidden in folder.path.glob(".privpost.*"):
            if hidden.read_bytes().strip():
                hidden.rename(out)
        # A statement that was printed needs no copy.
        assert out.exists() is (point in ("posterior", "output") or (point == "nowhere" and to_file))
        if out.exists():
            found = json.loads(out.read_text())
            assert found["ledger"]["release"] == charged
            assert ("posterior" in found) is (point == "nowhere")
            assert folder.run("--again", out.name, "--output", f"again{step}.json")[0] == 0
            again = json.loads((folder.path / f"again{step}.json").read_text())
            assert again["release"] == found["release"]
            assert len(lines(folder)) - 1 == charged


def test_of_eight_releases_at_once_the_budget_pays_two(folder):
    """Each holds what it has read of the ledger for a while, so that others would charge meanwhile if they could."""
    folder.specify(PAID)
    started, read = [], ledger_file._read

    def slowly(*given):
        found = read(*given)
        time.sleep(0.05)
        return found

    for i in range(8):
        if not (process := os.fork()):
            ledger_file._read = slowly
            for stream in (1, 2):
                os.dup2(os.open(os.devnull, os.O_WRONLY), stream)
            exit_with("--output", f"{i}.json")
        started.append(process)
    statuses = [os.waitstatus_to_exitcode(os.waitpid(process, 0)[1]) for process in started]
    assert sorted(statuses) == [0, 0, 2, 2, 2, 2, 2, 2]
    shown = [json.loads(path.read_text())["ledger"]["release"] for path in folder.path.glob("?.json")]
    assert sorted(shown) == [1, 2]
    assert np.sum([line.get("epsilon", 0) for line in lines(folder)[1:]]) == 2
