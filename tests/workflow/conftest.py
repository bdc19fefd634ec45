"""Temporary clones of the checkout's last commit, in which the workflow tests run Snakemake and privpost.

They use the environment of the tests, with the clone's own sources in front. What takes long is built once.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
QUICK = "geumlek2017/rdp_curves"
# A checkout may stand anywhere: every workflow test runs in a folder with blanks in its name.
CLONE = "a clone with blanks"
# A study that is made slow writes its process id and waits for as long as a file of the name in `hold` is there.
WAITING = """
    import os, pathlib, time

    token = pathlib.Path("hold").read_text().strip() if pathlib.Path("hold").exists() else "nobody"
    pathlib.Path(f"pid-{token}-{os.getpid()}").touch()
    while pathlib.Path(f"hold-{token}").exists():
        time.sleep(0.05)
"""


class Clone:
    """A clone and how to run commands in it."""

    def __init__(self, folder: Path):
        self.folder = folder

    def __truediv__(self, path: str | Path) -> Path:
        return self.folder / path

    def environment(self, **extra: str) -> dict[str, str]:
        found = {key: value for key, value in os.environ.items() if not key.startswith("PRIVPOST_")}
        found |= {"PYTHONPATH": str(self.folder / "src"), "PRIVPOST_MIRRORS": mirrors()}
        return found | extra

    def start_command(self, module: str, *arguments: str) -> list[str]:
        return [sys.executable, "-m", module, *arguments]

    def start(self, module: str, *arguments: str, prefix=(), **extra: str) -> subprocess.Popen:
        return subprocess.Popen(
            [*prefix, *self.start_command(module, *arguments)],
            cwd=self.folder,
            env=self.environment(**extra),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )

    def run(self, module: str, *arguments: str, status: int = 0, prefix=(), **extra: str) -> str:
        """Run a module and return its output; fails the test when the exit status is not the expected one."""
        process = self.start(module, *arguments, prefix=prefix, **extra)
        output, _ = process.communicate(timeout=600)
        assert process.returncode == status, output
        return output

    def snakemake(self, *arguments: str, studies: str = QUICK, scale: str = "smoke", **options) -> str:
        config = [f"scale={scale}", f"studies={studies}"]
        return self.run("snakemake", "--cores", "2", *arguments, "--config", *config, **options)

    def planned(self, studies: str = QUICK, scale: str = "smoke") -> dict[str, int]:
        """Return the jobs that Snakemake would run, by kind."""
        return _jobs(self.snakemake(*PLAN, studies=studies, scale=scale))

    def edit(self, file: str, old: str, new: str) -> None:
        text = (self / file).read_text()
        assert old in text, f"{file} has no {old!r}"
        (self / file).write_text(text.replace(old, new, 1))

    def copy(self, folder: Path) -> Clone:
        """Return a copy of the clone with the times of its files."""
        shutil.copytree(self.folder, folder, symlinks=True)
        return Clone(folder)

    def contents(self, *folders: str) -> dict[str, bytes]:
        """Return every file under some folders, times and cells left out."""
        return {
            str(path.relative_to(self.folder)): path.read_bytes()
            for folder in folders
            for path in sorted((self / folder).rglob("*"))
            if path.is_file() and not {"cells", "timing"} & set(path.parts)
        }

    # Slow cells

    def make_slow(self) -> None:
        module = f"src/privpost/studies/{QUICK}.py"
        text = (self / module).read_text()
        head, place, tail = text.partition("    epsilon = np.full")
        assert place
        (self / module).write_text(head + WAITING.lstrip("\n") + place + tail)

    def hold(self, token: str) -> None:
        (self / "hold").write_text(token)
        (self / f"hold-{token}").touch()

    def release(self, token: str) -> None:
        (self / f"hold-{token}").unlink()

    def waiting(self, token: str, number: int = 1) -> list[int]:
        """Wait until a number of slow cells are in the middle of their work; return their process ids."""
        return until(lambda: (found := self._processes(token)) and len(found) >= number and found)

    def gone(self, token: str) -> None:
        """Wait until no slow cell of a token is left."""
        until(lambda: not any(_alive(process) for process in self._processes(token)))

    def _processes(self, token: str) -> list[int]:
        return [int(path.name.split("-")[-1]) for path in self.folder.glob(f"pid-{token}-*")]


PLAN = ("--dry-run", "--quiet", "host")
# Reads folders, and answers for each with what a dry run in it prints; imports take longer than planning.
PLANNER = """
import json, os, sys, tempfile
import hydra, numpy, pandas, scipy.special, yaml
from snakemake import cli, workflow

answers = []
for folder, environment, arguments in json.load(sys.stdin):
    with tempfile.TemporaryFile("w+") as output:
        if not (process := os.fork()):
            os.chdir(folder)
            os.environ.update(environment)
            sys.path.insert(0, environment["PYTHONPATH"])
            os.dup2(output.fileno(), 1)
            os.dup2(output.fileno(), 2)
            cli.main(arguments)
        status = os.waitstatus_to_exitcode(os.waitpid(process, 0)[1])
        output.seek(0)
        answers.append([status, output.read()])
json.dump(answers, sys.stdout)
"""


def plans(clones, studies: str = QUICK, scale: str = "smoke") -> list[dict[str, int]]:
    """Return for each clone the jobs that Snakemake would run, by kind: as `Clone.planned`, in one process for all."""
    arguments = ["--cores", "2", *PLAN, "--config", f"scale={scale}", f"studies={studies}"]
    asked = [(str(clone.folder), clone.environment(), arguments) for clone in clones]
    command = [sys.executable, "-c", PLANNER]
    answers = subprocess.run(command, input=json.dumps(asked), capture_output=True, text=True, check=True).stdout
    for status, output in json.loads(answers):
        assert status == 0, output
    return [_jobs(output) for _, output in json.loads(answers)]


def _jobs(output: str) -> dict[str, int]:
    # A dry run prints its table of jobs twice.
    rules = dict(re.findall(r"^((?:cell|tabulate|draw|fetch|prepare)\S*)\s+(\d+)$", output, re.MULTILINE))
    counts: dict[str, int] = {}
    for rule, count in rules.items():
        kind = rule.split("_")[0]
        counts[kind] = counts.get(kind, 0) + int(count)
    assert counts or "Nothing to be done" in output, output
    return counts


def _alive(process: int) -> bool:
    try:
        state = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0]
    except (FileNotFoundError, ProcessLookupError):
        return False
    return state != "Z"


def until(condition, seconds: float = 120):
    """Return the first true value of a condition; fails when there is none in time."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if value := condition():
            return value
        time.sleep(0.05)
    raise AssertionError("waited in vain")


def mirrors() -> str:
    """Return where raw data are looked for: where the checkout itself looks."""
    folders = os.environ.get("PRIVPOST_MIRRORS")
    if folders is not None:
        return folders
    return os.pathsep.join(str(ROOT / folder) for folder in ("data/raw", "data/mirror", "../shared/data"))


@pytest.fixture(scope="session")
def without_network() -> tuple[str, ...]:
    """A prefix for commands that cuts them off the network; where that is not allowed, a proxy that answers nobody."""
    with contextlib.suppress(OSError):
        if subprocess.run(["unshare", "-rn", "true"], check=False, capture_output=True).returncode == 0:
            return ("unshare", "-rn")
    return ("env", *(f"{name}=http://127.0.0.1:9" for name in ("http_proxy", "https_proxy")))


@pytest.fixture(scope="session")
def pristine(tmp_path_factory) -> Clone:
    """A fresh clone of the checkout's last commit; tests must not change it."""
    if not (ROOT / ".git").exists():
        pytest.skip("not a git checkout, so there is nothing to clone")
    folder = tmp_path_factory.mktemp("pristine") / CLONE
    subprocess.run(["git", "clone", "--quiet", str(ROOT), str(folder)], check=True)
    return Clone(folder)


@pytest.fixture
def clone(pristine, tmp_path) -> Clone:
    """A fresh clone of this test's own."""
    return pristine.copy(tmp_path / CLONE)


@pytest.fixture
def slow(clone):
    """A clone whose quick study waits, in the middle of a cell, for as long as it is told to."""
    clone.make_slow()
    yield clone
    # Whatever a failed test left waiting ends by itself.
    for path in clone.folder.glob("hold-*"):
        path.unlink()


@pytest.fixture(scope="session")
def _smoke(pristine, tmp_path_factory) -> Clone:
    built = pristine.copy(tmp_path_factory.mktemp("smoke") / CLONE)
    built.snakemake()
    return built


@pytest.fixture
def smoke(_smoke, tmp_path) -> Clone:
    """A clone with the quick study built at smoke scale."""
    return _smoke.copy(tmp_path / CLONE)


@pytest.fixture(scope="session")
def planned(_smoke, tmp_path_factory):
    """A function of changes by name, each done to a clone of its own with the quick study built at smoke scale.

    It returns by name the jobs that Snakemake would run then.
    """

    def plan(changes) -> dict[str, dict[str, int]]:
        clones = {name: _smoke.copy(tmp_path_factory.mktemp("changed") / CLONE) for name in changes}
        for name, change in changes.items():
            change(clones[name])
        return dict(zip(clones, plans(clones.values()), strict=True))

    return plan


@pytest.fixture(scope="session")
def _paper(pristine, tmp_path_factory) -> Clone:
    built = pristine.copy(tmp_path_factory.mktemp("paper") / CLONE)
    built.snakemake(scale="paper")
    return built


@pytest.fixture
def paper(_paper, tmp_path) -> Clone:
    """A clone with the quick study built at paper scale."""
    return _paper.copy(tmp_path / CLONE)
