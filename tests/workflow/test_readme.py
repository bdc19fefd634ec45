"""README.md is short, its pictures are small, and its commands run."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest

from privpost.lab.plan import Plan
from privpost.report import build, documents, scorecard

ROOT = Path(__file__).resolve().parents[2]
# What the README promises to take long; the tests of the workflow run them at smoke scale.
# Bytes of all shipped figures together.
LARGEST_FIGURES = 8_000_000
MAIN_COMMANDS = {"make reproduce", "make test"}


@pytest.fixture
def plan(monkeypatch) -> Plan:
    monkeypatch.chdir(ROOT)
    return Plan()


def commands() -> list[str]:
    """Return the commands of the README's fenced blocks, without their comments."""
    blocks = re.findall(r"```sh\n(.*?)```", (ROOT / "README.md").read_text(), re.DOTALL)
    lines = [line.split("#")[0].strip() for block in blocks for line in block.splitlines()]
    return [line for line in lines if line]


def test_the_front_page_is_short_and_its_picture_small():
    assert (ROOT / "README.md").stat().st_size <= 8 * 1024
    assert (ROOT / "figures/scorecard.png").stat().st_size < 150_000


def test_the_shipped_scorecard_is_what_the_shipped_tables_give(plan):
    fresh = scorecard.table(scorecard.score(plan.studies.values()))
    shipped = scorecard.read(ROOT / "results/scorecard.csv")
    assert fresh.astype(str).to_csv() == shipped.to_csv(), "score anew with: snakemake scorecard"


def test_tracked_figures_are_light():
    """One vector file for each figure, and of pixels what README.md shows."""
    listed = subprocess.run(["git", "ls-files", "figures"], cwd=ROOT, capture_output=True, text=True, check=False)
    if listed.returncode:
        pytest.skip("not a git checkout")
    files = [ROOT / name for name in listed.stdout.split()]
    assert {path.suffix for path in files} <= {".svg", ".png"}
    assert [path.name for path in files if path.suffix == ".png"] == ["scorecard.png"]
    assert sum(path.stat().st_size for path in files) < LARGEST_FIGURES


def test_the_readme_has_the_two_commands():
    assert set(commands()) >= MAIN_COMMANDS


def run(folder: Path, words: list[str]) -> None:
    """Run a command of the README in a folder, with that folder's sources."""
    program, *arguments = words
    assert program in ("privpost", "snakemake")
    environment = {**os.environ, "PYTHONPATH": str(folder / "src")}
    command = [sys.executable, "-m", program, *arguments]
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def _studies_without_tables(listed: list[str]) -> list[str]:
    names = {name.removeprefix("results/").removesuffix(".grid.json") for name in listed if name.endswith(".grid.json")}
    studies = (path.relative_to(ROOT / "conf/study") for path in ROOT.glob("conf/study/*/*.yaml"))
    return sorted(name for name in (str(path.with_suffix("")) for path in studies) if name not in names)


@pytest.fixture(scope="module")
def clone(tmp_path_factory) -> Path:
    """The checkout's files in a folder of their own: as a clone, with figures and scores up to date."""
    folder = tmp_path_factory.mktemp("readme") / "privpost"
    listed = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT,
        capture_output=True,
        check=False,
    )
    if listed.returncode:
        pytest.skip("not a git checkout, so there is no list of files to copy")
    # What is not shipped would be computed, at paper scale.
    if lacking := _studies_without_tables(listed.stdout.decode().split("\0")):
        pytest.skip(f"no shipped tables of {', '.join(lacking)}")
    now = time.time()
    scores = {str(path) for path in build.score_files(Path("results"))}
    rendered = set(map(str, documents.files()))
    for name in listed.stdout.decode().split("\0"):
        if not name or not (ROOT / name).is_file():
            continue
        target = folder / name
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / name, target)
        # What is drawn is newer than the scores, and those than the tables.
        age = 900 if name.startswith("figures/") or name in rendered else 1800 if name in scores else 3600
        os.utime(target, (now - age, now - age))
    # The first start of Snakemake makes the stamps, which count as new; here they are to count as old.
    run(folder, ["snakemake", "--dry-run", "--quiet"])
    for stamp in (folder / ".snakemake/privpost").rglob("*"):
        os.utime(stamp, (0, 0))
    return folder


@pytest.mark.slow
@pytest.mark.parametrize("command", [line for line in commands() if line not in MAIN_COMMANDS])
def test_a_command_of_the_readme_runs(clone, command):
    run(clone, shlex.split(command))
    if command == "snakemake report":
        assert (clone / "build/report.html").stat().st_size > 100_000
    # Nothing that the README calls quick computes a cell at paper scale.
    assert not list(clone.glob("results/cells/**/*.npz"))
