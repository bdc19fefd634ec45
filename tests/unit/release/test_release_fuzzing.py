"""Random specifications and CSV files: a clear refusal that costs nothing, or a whole statement that is paid for."""

from __future__ import annotations

import copy
import json
import random
import signal
import time

import pytest
import yaml
from release_cases import HEADER, ROWS, SPECS, YES_NO, content

GAUSSIAN = {"mechanism": "gaussian", "delta": 1e-6}
LOGISTIC = {
    "model": "logistic_regression", "n": 4, "epsilon": 1.0, "prior": {"precision": 1},
    "columns": {"minutes": {"low": 0, "high": 4}, "smokes": {"levels": YES_NO, "role": "label"}},
}  # fmt: skip
BASES = [
    *(content(model) for model in SPECS),
    content("beta_bernoulli", **GAUSSIAN),
    LOGISTIC | GAUSSIAN,
    {**LOGISTIC, "mechanism": "ops"},
    *(
        {**{k: v for k, v in content(model).items() if k != "posterior"}, "mechanism": "diffused", "delta": 1e-6,
         "epsilon": 5.0, "bits": 8}
        for model in ("beta_bernoulli", "dirichlet_categorical", "gamma_exponential")
    ),
]  # fmt: skip
VALUES = [
    0, 1, 2, -1, 3, 4, 5, 50, 10**7, 2**40, 2**63, 10**40, 0.5, 1e-12, 1e-300, 1e300, float("nan"), float("inf"), True,
    False, None, "", "a", "yes", "no", "smokes", "minutes", "diet", "laplace", "gaussian", "ops", "direct", "secure",
    "simulation", "refuse", "redact", "label", "class", "\x00", "\ud800", "ε", "x" * 300, "1e400", "0x10", "12:30",
    {"impute": "a"}, {"impute": 1}, "level", [], [1], ["a", "b"], ["a", "a"],
    [[]], {}, {"a": 1}, {"levels": ["a", "b"]},
]  # fmt: skip
KEYS = [
    "model", "n", "epsilon", "allow_large_epsilon", "delta", "allow_large_delta", "mechanism", "bits", "a0", "noise",
    "seed", "sigma", "data", "columns", "prior", "posterior", "budget", "levels", "low", "high", "resolution",
    "parents", "role", "outside", "missing", "missing_texts", "draws", "ledger", "alpha", "shape",
    "", "épsilon", "nobody",
]  # fmt: skip
CELLS = ["", " ", "yes", "a", "1e400", "nan", "-0", "٣", "1,5", '"', "\x00", "x" * 9000, "=1+1", "0x1", "\n", "2.25 "]
# Seconds after which a case hangs: the first may compile the samplers, others take a tenth of one.
HANGS = 120


def places(value, at=()):
    """The ways to all values inside."""
    yield at
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, item in inner:
        yield from places(item, (*at, key))


def specification(rng: random.Random) -> bytes:
    found = copy.deepcopy(rng.choice(BASES))
    found["budget"] = {"ledger": "ledger.jsonl", "epsilon": 6.0, "delta": 1e-5}
    for _ in range(rng.choice([0, 0, 0, 1, 1, 2])):
        *way, key = rng.choice([at for at in places(found) if at])
        owner = found
        for step in way:
            owner = owner[step]
        kind = rng.randrange(4)
        if kind == 0:
            del owner[key]
        elif kind == 1 and isinstance(owner, dict):
            owner[rng.choice(KEYS)] = copy.deepcopy(rng.choice(VALUES))
        else:
            owner[key] = copy.deepcopy(rng.choice(VALUES))
    text = json.dumps(found) if rng.random() < 0.5 else yaml.safe_dump(found, sort_keys=False)
    return damaged(rng, text.encode("utf-8", "surrogatepass"), 0.15)


def table(rng: random.Random) -> bytes:
    rows = [list(HEADER), *map(list, ROWS)]
    for _ in range(rng.choice([0, 0, 0, 1, 2])):
        row = rng.choice(rows)
        kind = rng.randrange(4)
        if kind == 0 and len(row) > 1:
            row.pop(rng.randrange(len(row)))
        elif kind == 1:
            rows.append(list(row))
        elif kind == 2 and len(rows) > 1:
            rows.remove(row)
        else:
            row[rng.randrange(len(row))] = rng.choice(CELLS)
    return damaged(rng, ("\n".join(map(",".join, rows)) + "\n").encode(), 0.1)


def damaged(rng: random.Random, content: bytes, share: float) -> bytes:
    """In a share of cases a few bytes are put in, taken out or changed."""
    found = bytearray(content)
    for _ in range(rng.choice([1, 2, 5]) if rng.random() < share else 0):
        place = rng.randrange(len(found) + 1)
        found[place : place + rng.randrange(2)] = rng.randbytes(rng.randrange(3))
    return bytes(found)


def attempt(folder, number: int) -> int:
    """Try one case, the same one in every run; returns the exit status."""
    rng = random.Random(number)
    for path in folder.path.iterdir():
        path.unlink()
    (folder.path / "spec.yaml").write_bytes(specification(rng))
    (folder.path / "data.csv").write_bytes(table(rng))
    to_file = rng.random() < 0.5
    status, out, err = folder.run(*["--output", "out.json"] * to_file, *["--dry-run"] * (rng.random() < 0.1))
    what = f"case {number}: {err}"
    assert status in (0, 1, 2), what
    assert "Traceback" not in err, what
    if status == 2:
        assert err.startswith("privpost: "), what
        assert len(err) < 3000, what
        assert out == "", what
        assert folder.files() == {"spec.yaml", "data.csv"}, what
        return status
    if status == 1:
        assert "there is no posterior" in err, what
    # Of dry runs, which go to standard output, nothing is paid.
    file = folder.path / "out.json"
    content = json.loads(file.read_text() if file.exists() else out)
    paid = [path for path in folder.path.iterdir() if b'"privpost ledger' in path.read_bytes()]
    if "ledger" in content:
        assert content["ledger"]["release"] == 1, what
        assert len(paid) == 1, what
        assert content["privacy"]["private"] or {"allow_large_epsilon", "allow_large_delta"} & {
            key for key in KEYS if key.encode() in (folder.path / "spec.yaml").read_bytes()
        }, what
    else:
        assert not paid, what
    return status


def run_all(folder, cases: range) -> list[int]:
    def hangs(*_):
        raise AssertionError("hangs")

    previous = signal.signal(signal.SIGALRM, hangs)
    try:
        found = []
        for number in cases:
            signal.alarm(HANGS)
            found.append(attempt(folder, number))
        return found
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, previous)


def test_a_random_release_is_whole_and_paid_for_or_refused_and_free(folder):
    found = run_all(folder, range(80))
    assert min(found.count(0), found.count(2)) > 15


@pytest.mark.by_hand
def test_three_thousand_random_releases(folder):
    """Each takes at most five seconds of processor time; twenty run before, to import and compile."""
    run_all(folder, range(20))
    found, slow = [], []
    for number in range(3000):
        start = time.process_time()
        found += run_all(folder, range(number, number + 1))
        taken = time.process_time() - start
        if taken > 5:
            slow.append((number, round(taken, 1)))
    print(f"{found.count(0)} statements, {found.count(1)} without a posterior, {found.count(2)} refusals; slow: {slow}")
    assert not slow
