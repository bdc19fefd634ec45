"""Temporary clones of the checkout's last commit, in which the workflow tests run Snakemake and privpost.

They use the environment of the tests, with the clone's own sources first on the path. Slow builds run once, for all
workers of a parallel run.
"""

from __future__ import annotations

import contextlib
import fcntl
import filecmp
import os
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

import pytest

from privpost.datasets import catalogue
from privpost.lab import provenance
from privpost.samplers import compiled

ROOT = Path(__file__).resolve().parents[2]
QUICK = "geumlek2017/rdp_curves"
# A study of a second at paper scale.
CLOSED = "geumlek2017/dirichlet"
# A checkout may be anywhere: every workflow test runs in a folder with blanks in its name.
CLONE = "a clone with blanks"
# A slowed study writes its process id, and waits while the file that `hold` names is there.
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
        return found | {"PYTHONPATH": str(self.folder / "src")} | extra

    def start_command(self, module: str, *arguments: str, prefix=()) -> list[str]:
        return [*prefix, sys.executable, "-m", module, *arguments]

    def start(self, module: str, *arguments: str, prefix=(), **extra: str) -> subprocess.Popen:
        return subprocess.Popen(
            self.start_command(module, *arguments, prefix=prefix),
            cwd=self.folder,
            env=self.environment(**extra),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )

    def run(self, module: str, *arguments: str, status: int = 0, prefix=(), **extra: str) -> str:
        """Run a module and return its output; fail the test if the exit status is not the expected one."""
        process = self.start(module, *arguments, prefix=prefix, **extra)
        output, _ = process.communicate(timeout=600)
        assert process.returncode == status, output
        return output

    def snakemake(
        self, *arguments: str, studies: str | None = QUICK, scale: str = "smoke", config=(), **options
    ) -> str:
        config = [f"scale={scale}", *([f"studies={studies}"] if studies else []), *config]
        return self.run("snakemake", "--cores", "2", *arguments, "--config", *config, **options)

    def reasons(self, studies: str | None = QUICK, scale: str = "smoke", targets: Sequence[str] = ()) -> dict[str, str]:
        """Return the jobs that Snakemake would run: a rule, its study or data set where it has one, and the reason."""
        output = self.snakemake(*targets, "--dry-run", "--quiet", "host", studies=studies, scale=scale)
        jobs = {}
        for rule, lines in re.findall(r"^(?:local)?rule (\w+):\n((?: .*\n)*)", output, re.MULTILINE):
            named = re.search(r"wildcards: .*(?:study|dataset)=([^,\s]+)", lines)
            jobs[f"{rule} {named[1]}" if named else rule] = re.search("reason: (.*)", lines)[1]
        assert jobs or "Nothing to be done" in output, output
        return {job: reason for job, reason in jobs.items() if job not in ("all", "everything")}

    def planned(self, studies: str | None = QUICK, scale: str = "smoke") -> list[str]:
        """Return the jobs that Snakemake would run."""
        return sorted(self.reasons(studies, scale))

    def edit(self, file: str, old: str, new: str) -> None:
        text = (self / file).read_text()
        assert old in text, f"{file} has no {old!r}"
        (self / file).write_text(text.replace(old, new, 1))

    def take_away(self, *datasets: str) -> None:
        """Remove all that there is of some data sets."""
        for name in datasets:
            place = catalogue.load(name, self / "conf").place
            for folder in (f"data/original/{place}", f"data/raw/{name}"):
                shutil.rmtree(self / folder, ignore_errors=True)
            (self / f"data/prepared/{name}.npz").unlink(missing_ok=True)

    def copy(self, folder: Path) -> Clone:
        """Return a copy of the clone whose files keep their times."""
        # Thousands of files: shutil.copytree takes three times as long.
        folder.parent.mkdir(parents=True, exist_ok=True)
        subprocess.run(["cp", "-a", self.folder, folder], check=True)
        return Clone(folder)

    def contents(self, *folders: str) -> dict[str, bytes]:
        """Return every file in the folders, except cells, their times, and what Snakemake marks."""
        return {
            str(path.relative_to(self.folder)): path.read_bytes()
            for folder in folders
            for path in sorted((self / folder).rglob("*"))
            if path.is_file() and not {"cells", "parts", "times.csv", ".snakemake_timestamp"} & set(path.parts)
        }

    # Slow cells

    def make_slow(self) -> None:
        # Jobs are what the tests stop; a figure would only cost seaborn's start.
        (self / f"src/privpost/experiments/{QUICK}/figures.py").unlink()
        module = f"src/privpost/experiments/{QUICK}/study.py"
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
        """Wait until `number` slow cells are in the middle of their work; return their process ids."""
        return until(lambda: (found := self._processes(token)) and len(found) >= number and found)

    def gone(self, token: str) -> None:
        """Wait until no slow cell of a token is left."""
        until(lambda: not any(_alive(process) for process in self._processes(token)))

    def _processes(self, token: str) -> list[int]:
        return [int(path.name.split("-")[-1]) for path in self.folder.glob(f"pid-{token}-*")]


def _alive(process: int) -> bool:
    try:
        state = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0]
    except (FileNotFoundError, ProcessLookupError):
        return False
    return state != "Z"


def until(condition, seconds: float = 120):
    """Return the first true value of a condition; fail if there is none in time."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if value := condition():
            return value
        time.sleep(0.05)
    raise AssertionError("waited in vain")


@pytest.fixture(scope="session")
def without_network() -> tuple[str, ...]:
    """A command prefix that cuts off the network; where that is not allowed, it sets a proxy that does not answer."""
    with contextlib.suppress(OSError):
        if subprocess.run(["unshare", "-rn", "true"], check=False, capture_output=True).returncode == 0:
            return ("unshare", "-rn")
    return ("env", *(f"{name}=http://127.0.0.1:9" for name in ("http_proxy", "https_proxy")))


@pytest.fixture(scope="session")
def once(tmp_path_factory):
    """A function of a name and of a function that fills a folder: the first worker makes the clone, others reuse it."""
    base = tmp_path_factory.getbasetemp()
    base = base.parent if "PYTEST_XDIST_WORKER" in os.environ else base

    def made(name: str, fill) -> Clone:
        place = base / f"{name}-made" / CLONE
        place.parent.mkdir(exist_ok=True)
        with (place.parent / "lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            if not (place.parent / "whole").exists():
                shutil.rmtree(place, ignore_errors=True)
                fill(place)
                (place.parent / "whole").touch()
        return Clone(place)

    return made


@pytest.fixture(scope="session")
def pristine(once) -> Clone:
    """A fresh clone of the checkout's last commit; tests must not change it."""
    if not (ROOT / ".git").exists():
        pytest.skip("not a git checkout, so there is nothing to clone")
    return once("pristine", _cloned)


def _cloned(place: Path) -> None:
    # It reads the checkout's objects: thousands of files need not be copied with each clone.
    subprocess.run(["git", "clone", "--quiet", "--shared", ROOT, place], check=True)
    # Commands in copies of the clone need not compile its sources each; by content, whatever time an edit has.
    kinds = ("-q", "--invalidation-mode", "checked-hash")
    subprocess.run([sys.executable, "-m", "compileall", *kinds, place / "src"], check=True)
    # Nor digest each of them, nor compose each study: what the checkout knows fits files of the same content only.
    (place / "build").mkdir()
    if (digests := ROOT / provenance.DIGESTS).is_file():
        shutil.copyfile(digests, place / provenance.DIGESTS)
    for compositions in ROOT.glob("build/*/configurations"):
        shutil.copytree(compositions, place / compositions.relative_to(ROOT))
    # Compiled loops are stored by the state of their sources, in whichever folder: all clones share them.
    kept = Path("src/privpost/samplers/__pycache__") / compiled.folder()
    (ROOT / kept).mkdir(parents=True, exist_ok=True)
    (place / kept).parent.mkdir(exist_ok=True)
    (place / kept).symlink_to(ROOT / kept)


@pytest.fixture
def clone(pristine, tmp_path) -> Clone:
    """A fresh clone of this test's own."""
    return pristine.copy(tmp_path / CLONE)


@pytest.fixture
def slow(clone):
    """A clone whose quick study waits in the middle of a cell until it is told to go on, and draws nothing."""
    clone.make_slow()
    yield clone
    # Processes that a failed test left waiting end by themselves now.
    for path in clone.folder.glob("hold-*"):
        path.unlink()


@pytest.fixture(scope="session")
def _smoke(once, pristine) -> Clone:
    return once("smoke", lambda place: pristine.copy(place).snakemake())


@pytest.fixture
def smoke(_smoke, tmp_path) -> Clone:
    """A clone with the quick study built at smoke scale."""
    return _smoke.copy(tmp_path / CLONE)


def _take_over(clone) -> None:
    """Copy to a clone the results of the checkout's smoke rebuild, such as the one that precedes the tests in CI.

    Snakemake compares times and its records of the code, and rebuilds what does not fit the last commit.
    """
    for folder in ("build/smoke", "data/raw", "data/prepared", ".snakemake/metadata"):
        if (ROOT / folder).is_dir():
            shutil.copytree(ROOT / folder, clone / folder, dirs_exist_ok=True)
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=clone.folder, check=True, capture_output=True, text=True)
    for name in listed.stdout.split("\0"):
        if (
            (ROOT / name).is_file()
            and (clone / name).is_file()
            and filecmp.cmp(ROOT / name, clone / name, shallow=False)
        ):
            shutil.copystat(ROOT / name, clone / name)


@pytest.fixture(scope="session")
def everything(once, pristine):
    """A clone in which every study has been rebuilt at smoke scale, and the output of the rebuild.

    It starts from the checkout's own smoke rebuild, such as the one that precedes the tests in CI.
    """

    def rebuild(place):
        clone = pristine.copy(place)
        _take_over(clone)
        process = clone.start("privpost", "reproduce", "--scale", "smoke")
        output, _ = process.communicate(timeout=900)
        (clone / "build/said").write_text(output)

    clone = once("everything", rebuild)
    return clone, (clone / "build/said").read_text()


@pytest.fixture(scope="session")
def _paper(once, pristine) -> Clone:
    def rebuild(place):
        clone = pristine.copy(place)
        # Publishing draws the figure; here it would only cost seaborn's start.
        figures = clone / f"src/privpost/experiments/{CLOSED}/figures.py"
        aside = figures.rename(place.with_name("figures.py"))
        (clone / "build/said").write_text(clone.run("privpost", "reproduce", CLOSED))
        aside.rename(figures)

    return once("paper", rebuild)


@pytest.fixture
def paper(_paper, tmp_path) -> Clone:
    """A clone with a study of closed forms rebuilt at paper scale, and the output of the rebuild."""
    return _paper.copy(tmp_path / CLONE)
