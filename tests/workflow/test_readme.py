"""README.md's pictures are small, its commands run, and none changes what is published."""

from __future__ import annotations

import re
import shlex
import shutil
import subprocess
from pathlib import Path

import pytest

from privpost.commands import cli
from privpost.report import scorecard

ROOT = Path(__file__).resolve().parents[2]
# Bytes of all published figures together.
LARGEST_FIGURES = 8_000_000
# What the README promises to take long; the tests of the workflow run them at smoke scale.
MAIN_COMMANDS = {"make reproduce", "make test"}
# The tests run in an environment of their own.
ACTIVATE = ". .venv/bin/activate"


def commands() -> list[str]:
    """Return the commands of the README's fenced blocks, without their comments."""
    blocks = re.findall(r"```sh\n(.*?)```", (ROOT / "README.md").read_text(), re.DOTALL)
    lines = [line.split("#")[0].strip() for block in blocks for line in block.splitlines()]
    return [line for line in lines if line]


def tracked(pattern: str = ".") -> list[Path]:
    command = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard", pattern]
    listed = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    if listed.returncode:
        pytest.skip("not a git checkout")
    return [Path(name) for name in listed.stdout.split("\0") if name and (ROOT / name).is_file()]


def test_the_readme_has_the_commands_and_small_pictures():
    assert set(commands()) >= MAIN_COMMANDS
    pictures = re.findall(r"\((figures/[\w/.]+)\)", (ROOT / "README.md").read_text())
    assert pictures
    assert all((ROOT / path).stat().st_size < 150_000 for path in pictures)


def test_published_figures_are_light():
    files = tracked("figures")
    assert {path.suffix for path in files} <= {".svg", ".png"}
    assert sum((ROOT / path).stat().st_size for path in files) < LARGEST_FIGURES


def test_the_commands_of_the_readme_run_and_change_nothing_that_is_published(tmp_path, monkeypatch, capsys):
    files = tracked()
    for name in files:
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / name, tmp_path / name)
    monkeypatch.chdir(tmp_path)
    # Where the scorecard is written matters here; test_scorecard_complete.py scores all studies.
    score = scorecard.score
    monkeypatch.setattr(scorecard, "score", lambda studies: score(studies[:1]))
    quick = {"make figures": "privpost draw geumlek2017/dirichlet"}
    # And the others that only read.
    others = ("privpost list", "privpost claims geumlek2017/rdp_curves --evidence", "privpost scorecard")
    for line in (*commands(), *others):
        if line in {*MAIN_COMMANDS, ACTIVATE}:
            continue
        program, *arguments = shlex.split(quick.get(line, line))
        assert program == "privpost"
        assert cli.main(arguments) == 0, capsys.readouterr()
    assert (tmp_path / "build/published/results/scorecard.csv").is_file()
    assert [name for name in files if (tmp_path / name).read_bytes() != (ROOT / name).read_bytes()] == []
