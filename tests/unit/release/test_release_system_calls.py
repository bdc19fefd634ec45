"""`privpost release` where one system call fails, as SQLite tests: any call, with an error or the process's end.

No statement is delivered that the ledger lacks; no statement is charged and lost unless the process was killed; and the
ledger can be read.
"""

from __future__ import annotations

import collections
import errno
import hashlib
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import yaml
from release_cases import BITS, HEADER, ROWS

from privpost.commands import cli
from privpost.privacy.ledger import file as ledger_file

COMPILER = shutil.which("cc") or shutil.which("gcc")
HERE, KILL = Path(__file__).parent, -1
MODES = (errno.EIO, errno.ENOSPC, errno.EINTR, KILL)
# To a file, to two files or to standard output, with a new ledger or one that has an entry.
OUTPUTS = (("--output", "out.json"), (), ("--output", "out.json", "--draws", "draws.csv"))
WAYS = [(out, old) for out in OUTPUTS for old in (False, True)]
PAID = {**BITS, "budget": {"ledger": "ledger.jsonl", "epsilon": 100}}


@pytest.fixture
def server(tmp_path):
    """A process that releases with faults, one after the other."""
    if COMPILER is None:
        pytest.skip("no C compiler")
    library = tmp_path / "faults.so"
    subprocess.run([COMPILER, "-shared", "-fPIC", "-o", library, HERE / "faults.c", "-ldl"], check=True)
    environment = {**os.environ, "LD_PRELOAD": str(library), "PYTHONPATH": str(Path(cli.__file__).parents[2])}
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    with subprocess.Popen([sys.executable, HERE / "injected.py"], env=environment, **pipes) as process:
        yield process
        process.stdin.close()


def attempt(server, folder: Path, call: int, error: int, way) -> tuple[int, int]:
    """Release into a new folder; returns the exit status and the number of calls."""
    output, old = way
    folder.mkdir()
    (folder / "data.csv").write_text("\n".join(map(",".join, [HEADER, *ROWS])) + "\n")
    (folder / "spec.yaml").write_text(yaml.safe_dump(PAID))
    (folder / "warm.yaml").write_text(yaml.safe_dump({**PAID, "budget": {"ledger": "warm.jsonl", "epsilon": 100}}))
    if old:
        shutil.copy(folder.parent / "old.jsonl", folder / "ledger.jsonl")
    server.stdin.write(json.dumps([str(folder), call, error, list(output)]) + "\n")
    server.stdin.flush()
    return tuple(json.loads(server.stdout.readline()))


def statements(folder: Path) -> list[dict]:
    """All whole statements that somebody could find."""
    found = []
    for path in folder.iterdir():
        if path.suffix not in (".jsonl", ".yaml", ".csv") and not path.name.startswith("warm"):
            try:
                found.append(json.loads(path.read_bytes()))
            except ValueError:
                continue
    return found


def check(folder: Path, status: int, error: int, old: bool) -> str:
    """Return what came out, and check that it is consistent with the ledger."""
    ledger = folder / "ledger.jsonl"
    entries = ledger_file.read(ledger).entries if ledger.exists() and ledger.stat().st_size else []
    digests = [entry["digest"] for entry in entries]
    found, said = statements(folder), (folder / "stderr").read_text()
    for one in found:
        assert digests[one["ledger"]["release"] - 1] == one["ledger"]["entry_sha256"], "delivered uncharged"
    charged = len(digests) > old
    assert "Traceback" not in said, said
    if status == 0:
        assert charged
        assert found
        place = folder / "out.json"
        draws = json.loads((place if place.exists() else folder / "stdout").read_bytes())["posterior"]["draws"]
        if "sha256" in draws:
            assert hashlib.sha256((folder / "draws.csv").read_bytes()).hexdigest() == draws["sha256"]
        assert draws
        return "delivered"
    if error == KILL:
        assert status == -9
        return f"killed, {'charged' if charged else 'free'}, {'kept' if found else 'nothing drawn'}"
    assert said.startswith("privpost: "), said
    assert not charged or found, f"charged and lost: {said}"
    return "charged and kept" if charged else "refused, free"


def old_ledger(server, tmp_path: Path) -> dict:
    """A ledger with one entry, and the number of calls of each way."""
    assert attempt(server, tmp_path / "first", 0, 0, (("--output", "out.json"), False))[0] == 0
    shutil.copy(tmp_path / "first" / "ledger.jsonl", tmp_path / "old.jsonl")
    calls = {}
    for place, way in enumerate(WAYS):
        status, calls[way] = attempt(server, tmp_path / f"count{place}", 0, 0, way)
        assert status == 0
        assert calls[way] > 50
    return calls


def run_all(server, tmp_path: Path, cases) -> collections.Counter:
    outcomes: collections.Counter = collections.Counter()
    for number, (way, call, error) in enumerate(cases):
        folder = tmp_path / str(number)
        status, _ = attempt(server, folder, call, error, way)
        try:
            outcome = check(folder, status, error, way[1])
        except Exception as problem:
            raise AssertionError(f"call {call} of {way}, error {error}, status {status}: {problem}") from problem
        outcomes[outcome] += 1
        shutil.rmtree(folder)
    return outcomes


def test_a_failing_system_call_loses_nothing_and_gives_nothing_away(server, tmp_path):
    """Some sixty of the calls, each with an error or an end in turn."""
    calls = old_ledger(server, tmp_path)
    every = [(way, call) for way in WAYS for call in range(1, calls[way] + 1)]
    cases = [(*one, MODES[place % 4]) for place, one in enumerate(every[:: len(every) // 60])]
    outcomes = run_all(server, tmp_path, cases)
    assert {"delivered", "refused, free"} <= set(outcomes)


@pytest.mark.by_hand
def test_every_failing_system_call(server, tmp_path):
    calls = old_ledger(server, tmp_path)
    cases = [(way, call, error) for way in WAYS for call in range(1, calls[way] + 1) for error in MODES]
    print(len(cases), dict(run_all(server, tmp_path, cases)))
