"""Random valid specifications of every model and mechanism, with the file that fits them: sizes and extremes.

Each runs in a process of its own, with the chains' own lengths. None ends in a stack or is charged and lost, and none
takes more than five seconds of a processor unless it said how long before.
"""

from __future__ import annotations

import collections
import json
import math
import os
import random
import resource
import shutil
import sys
import warnings
from pathlib import Path

import pytest
import yaml
from release_cases import exit_with

from privpost.commands import cli
from privpost.privacy.ledger import file as ledger_file
from privpost.release import models
from privpost.release.specification import SAMPLING

# Seconds of a processor that a case may take, and one that said so.
SLOW, SLOWEST = 5, 120
# Networks of 3 to 5 columns, whose posterior is drawn by chains, and the first of them, which compiles.
NETWORKS, FIRST = (178, 250, 698), 130
# Linear regressions have numbers of their own, so that the other cases stay what they are.
LINEAR = 10_000
OTHERS = [name for name in models.KINDS if name != "linear_regression"]
# Cases of every run. In two of them the search of a coefficient overflows; the last has a prior of 1e300.
SAMPLE = (*range(40), 53, 88, FIRST, *NETWORKS, *range(LINEAR, LINEAR + 4), LINEAR + 5, LINEAR + 64)


def log_uniform(rng: random.Random, low: float, high: float) -> float:
    return math.exp(rng.uniform(math.log(low), math.log(high)))


def positive(rng: random.Random) -> float:
    """A setting of a prior, now and then one at the end of what floats hold."""
    return rng.choice([5e-324, 1e-310, 1e-100, 1e100, 1e300]) if rng.random() < 0.1 else log_uniform(rng, 1e-3, 1e3)


def levels(rng: random.Random, most: int) -> list[str]:
    return [f"level {number}" for number in range(2 if rng.random() < 0.3 else round(log_uniform(rng, 2, most)))]


def numeric(rng: random.Random, low: float) -> dict:
    resolution = rng.choice([0.5, 0.125, 0.01])
    low = round(low / resolution) * resolution
    steps = round(log_uniform(rng, 1, 1000))
    return {"low": low, "high": round(low + steps * resolution, 6), "resolution": resolution}


def columns(rng: random.Random, model: str) -> dict:
    if model == "bayesian_network":
        names = [f"c{number}" for number in range(round(log_uniform(rng, 1, 9)))]
        chosen = {name: rng.sample(names[:place], rng.randint(0, min(place, 4))) for place, name in enumerate(names)}
        return {name: {"levels": ["no", "yes"], "parents": parents} for name, parents in chosen.items()}
    if model == "naive_bayes":
        fields = {f"a{number}": {"levels": levels(rng, 30)} for number in range(round(log_uniform(rng, 1, 20)))}
        return {"class": {"levels": levels(rng, 10), "role": "class"}, **fields}
    if model == "logistic_regression":
        fields = {f"x{number}": {"low": -1, "high": 3} for number in range(round(log_uniform(rng, 1, 30)))}
        return {"label": {"levels": ["no", "yes"], "role": "label"}, **fields}
    if model == "linear_regression":
        fields = {f"x{number}": {"low": -1, "high": 3} for number in range(round(log_uniform(rng, 1, 6)))}
        return {"response": {"low": 0, "high": 50, "role": "label"}, **fields}
    if model in ("gamma_exponential", "normal_known_variance", "bounded_sum"):
        found = numeric(rng, 0.0 if model == "gamma_exponential" or rng.random() < 0.5 else rng.uniform(-9, 9))
        return {"value": {**found, "outside": rng.choice(["refuse", "redact"])}}
    return {"value": {"levels": ["no", "yes"] if model == "beta_bernoulli" else levels(rng, 400)}}


def specification(rng: random.Random, model: str) -> dict:
    kind = models.KINDS[model]
    mechanism = rng.choice(kind.mechanisms)
    found = {
        "model": model,
        "mechanism": mechanism,
        "n": round(log_uniform(rng, 1, 3000)),
        "epsilon": 1e-300 if rng.random() < 0.03 else log_uniform(rng, 1e-4, 10),
        "columns": columns(rng, model),
        "prior": {
            key: rng.uniform(-9, 9) if key == "prior_mean" else found
            for key in kind.prior.fields
            for found in [positive(rng)]
        },
    }
    if mechanism not in ("laplace", "ops"):
        found["delta"] = 1e-300 if rng.random() < 0.03 else min(1e-6, log_uniform(rng, 1e-12, 1 / (10 * found["n"])))
    if mechanism in SAMPLING and not kind.on_lattice:
        found["bits"] = rng.choice([1, 8, 16, 64])
        for column in found["columns"].values():
            column.pop("outside", None)
    elif isinstance(kind, models.base.Inferred) and rng.random() < 0.8:
        found["posterior"] = {"draws": round(log_uniform(rng, 1, 4000))}
    if mechanism == "ops" and not kind.on_lattice:
        found["a0"] = log_uniform(rng, 1e-9, 0.49)
    if rng.random() < 0.2:
        found |= {"noise": "simulation", "seed": rng.randrange(1000)}
    else:
        found["budget"] = {"ledger": "ledger.jsonl", "epsilon": 11, "delta": 1e-5}
    return found


def is_slow(found: dict) -> bool:
    """Whether a release is one draw of many levels, which runs by hand only."""
    sizes = [len(column.get("levels", ())) for column in found["columns"].values()]
    return found["mechanism"] in SAMPLING and max(sizes) > 100


def of(number: int) -> dict:
    """The specification of a case, the same one in every run."""
    model = "linear_regression" if number >= LINEAR else OTHERS[number % len(OTHERS)]
    return specification(random.Random(number), model)


def cell(rng: random.Random, column: dict) -> str:
    if "levels" in column:
        # Mostly the first ones, so that counts differ.
        return column["levels"][min(rng.randrange(len(column["levels"])), rng.randrange(len(column["levels"])))]
    return f"{rng.uniform(column['low'], column['high']):.3f}"


def write(folder: Path, number: int) -> dict:
    rng, found = random.Random(number), of(number)
    rows = [list(found["columns"]), *([cell(rng, c) for c in found["columns"].values()] for _ in range(found["n"]))]
    (folder / "data.csv").write_text("\n".join(map(",".join, rows)) + "\n")
    (folder / "spec.yaml").write_text(yaml.safe_dump(found, sort_keys=False))
    return found


def attempt(folder: Path, number: int, *argv: str) -> tuple[str, float, str]:
    """Try one case; returns what came out, the seconds that it took and what it said."""
    folder.mkdir()
    found = write(folder, number)
    process = os.fork()
    if not process:
        os.chdir(folder)
        resource.setrlimit(resource.RLIMIT_CPU, (SLOWEST, SLOWEST))
        # What numpy warns of would be said once only, and not at all under pytest.
        warnings.simplefilter("error", RuntimeWarning)
        sys.stderr = Path("stderr").open("w", buffering=1)  # noqa: SIM115
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        sys.stdout = os.fdopen(1, "w", closefd=False)
        exit_with(*argv or ("--output", "out.json"))
    _, status, used = os.wait4(process, 0)
    status, said, ledger = os.waitstatus_to_exitcode(status), (folder / "stderr").read_text(), folder / "ledger.jsonl"
    what = f"case {number}, {json.dumps(found)[:2000]}: {status}: {said[-2000:]}"
    assert status in (0, 1, 2), what
    assert "Traceback" not in said, what
    assert "encountered in" not in said, what
    charged = ledger.exists() and len(ledger_file.read(ledger).entries)
    if argv or status == 2:
        assert not charged, what
        assert (status == 2) == said.startswith("privpost: "), what
        return ("checked" if status == 0 else "refused"), used.ru_utime + used.ru_stime, said
    content = json.loads((folder / "out.json").read_text())
    assert charged == ("budget" in found), what
    if content["privacy"]["epsilon_proved"] is not None:
        assert content["privacy"]["epsilon_proved"] <= found["epsilon"], what
    assert (status == 1) == ("the statistics were released, but" in said), what
    failed = "failed" in content.get("posterior", {})
    outcome = "delivered" if status == 0 else "without a posterior" if failed else "chains disagree"
    return outcome, used.ru_utime + used.ru_stime, said


def run_all(folder: Path, cases, *argv: str) -> collections.Counter:
    outcomes, slow = collections.Counter(), []
    for number in cases:
        place = folder / f"{number}{''.join(argv)}"
        outcome, taken, said = attempt(place, number, *argv)
        shutil.rmtree(place)
        outcomes[outcome] += 1
        if taken > (SLOW if argv or "seconds or longer" not in said else SLOWEST):
            slow.append((number, round(taken, 1)))
    print(dict(outcomes))
    assert not slow
    return outcomes


@pytest.fixture(scope="module")
def warm(tmp_path_factory):
    """A folder; what one case of each model and mechanism imports, the forked processes have."""
    folder = tmp_path_factory.mktemp("fuzzing")
    cases = [number for number in range(23, -1, -1) if not is_slow(of(number))]
    kinds = {(of(number)["model"], of(number)["mechanism"]): number for number in cases}
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        for number in (*kinds.values(), FIRST, LINEAR):
            write(folder, number)
            cli.main(["release", "spec.yaml", "--data", "data.csv", "--output", f"{number}.json"])
    return folder


def test_random_releases_of_all_sizes_are_quick_and_whole(warm):
    outcomes = run_all(warm, [number for number in SAMPLE if not is_slow(of(number))])
    assert outcomes["delivered"] > 20
    assert outcomes["refused"] > 5


def test_random_dry_runs_are_as_quick_as_their_checks(warm):
    assert run_all(warm, SAMPLE, "--dry-run")["checked"] > 20


@pytest.mark.by_hand
def test_three_thousand_random_releases_of_all_sizes(warm):
    for cases in (range(3000), range(LINEAR, LINEAR + 300)):
        run_all(warm, cases)
        run_all(warm, cases, "--dry-run")
