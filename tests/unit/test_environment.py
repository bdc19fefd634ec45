"""The environment's three descriptions agree: pyproject.toml, requirements.lock, environment.yml."""

from __future__ import annotations

import os
import platform
import re
import shutil
import subprocess
import sys
import tomllib
from importlib import metadata

import pytest
import yaml
from packaging.markers import Marker
from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet
from packaging.utils import canonicalize_name
from packaging.version import Version


@pytest.fixture
def project(checkout) -> dict:
    return tomllib.loads((checkout / "pyproject.toml").read_text())


class Entry:
    """One pinned package: its version, the marker that says where it applies, and the lines below."""

    def __init__(self, line: str):
        self.version = Version(re.search(r"==([^ ;\\]+)", line)[1])
        marker = line.partition(";")[2].rstrip(" \\").strip()
        self.marker = Marker(marker) if marker else None
        self.lines: list[str] = []

    def applies(self, python: str) -> bool:
        return self.marker is None or self.marker.evaluate({"python_version": python, "python_full_version": python})


@pytest.fixture
def lock(checkout) -> dict[str, list[Entry]]:
    """The lock's entries by name; a package may have one for each range of Python versions."""
    entries: dict[str, list[Entry]] = {}
    for line in (checkout / "requirements.lock").read_text().splitlines():
        if line.startswith("#") or not line.strip():
            continue
        if not line.startswith(" "):
            found = entries.setdefault(canonicalize_name(re.split(r"[=\[ ;]", line)[0]), [])
            found.append(Entry(line))
        else:
            found[-1].lines.append(line)
    return entries


# Extras that `make lock` resolves, and those that are installed by hand.
LOCKED, BY_HAND = ("test", "secure", "slurm", "docs", "check"), ("arviz", "bench", "sbi")


def requirements(project: dict) -> list[Requirement]:
    texts = [*project["project"]["dependencies"], *project["build-system"]["requires"]]
    for group in LOCKED:
        texts += project["project"]["optional-dependencies"][group]
    return [Requirement(text) for text in texts]


def pythons(project: dict) -> list[str]:
    specifier = SpecifierSet(project["project"]["requires-python"])
    return [f"3.{minor}" for minor in range(8, 20) if f"3.{minor}" in specifier]


def test_every_dependency_is_locked_at_a_version_that_satisfies_it(project, lock):
    for requirement in requirements(project):
        name = canonicalize_name(requirement.name)
        assert name in lock, f"{name} is not in requirements.lock; run make lock"
        for entry in lock[name]:
            assert entry.version in requirement.specifier, f"{requirement}: {entry.version}"


def test_every_extra_is_locked_or_installed_by_hand(project, lock, checkout):
    """`make lock` names the locked ones; of the others nothing is locked, so that no test may need them."""
    extras = project["project"]["optional-dependencies"]
    assert set(extras) == {*LOCKED, *BY_HAND}
    (command,) = re.findall(r"^\tuv pip compile .*$", (checkout / "Makefile").read_text(), re.MULTILINE)
    assert re.findall(r"--extra (\S+)", command) == list(LOCKED)
    for text in (text for group in BY_HAND for text in extras[group]):
        assert canonicalize_name(Requirement(text).name) not in lock


def test_the_advice_where_an_extra_is_missing_is_its_requirement(project):
    from privpost.distributions import exact_draws, noise
    from privpost.evaluation import inference_data
    from privpost.inference_benchmark.optional import neural_posterior

    extras = project["project"]["optional-dependencies"]
    for group, module in (
        ("arviz", inference_data),
        ("secure", noise),
        ("secure", exact_draws),
        ("sbi", neural_posterior),
    ):
        asked, extra = re.findall(r"pip install '([^']+)'", module.INSTALL)
        assert extra == f".[{group}]"
        (wanted,) = [text for text in extras[group] if Requirement(text).name == Requirement(asked).name]
        assert Requirement(wanted).specifier == Requirement(asked).specifier


def test_every_allowed_python_gets_exactly_one_version(project, lock):
    assert pythons(project) == ["3.11", "3.12", "3.13"]
    for requirement in requirements(project):
        for python in pythons(project):
            entries = lock[canonicalize_name(requirement.name)]
            assert sum(entry.applies(f"{python}.1") for entry in entries) == 1, f"{requirement.name}, Python {python}"


def test_the_build_backend_is_locked(project, lock):
    backend = project["build-system"]["build-backend"].split(".")[0]
    assert canonicalize_name(backend) in lock


def test_every_locked_package_has_hashes(lock):
    for name, entries in lock.items():
        for entry in entries:
            hashes = [line for line in entry.lines if re.fullmatch(r"    --hash=sha256:[0-9a-f]{64}( \\)?", line)]
            assert hashes, f"{name} has no hash"
            others = [line for line in entry.lines if line not in hashes and not line.startswith("    #")]
            assert others == [], f"{name}: {others}"


def test_the_lock_names_no_address_index_or_path(checkout):
    text = (checkout / "requirements.lock").read_text()
    for word in ("http:", "https:", "--index", "--extra-index", "--find-links", "file:", "@ ", "-e ", "/home", "/work"):
        assert word not in text, word


def test_environment_yml_is_what_conda_reads(checkout, project):
    environment = yaml.safe_load((checkout / "environment.yml").read_text())
    assert set(environment) == {"name", "channels", "dependencies"}
    assert environment["name"] == "privpost"
    assert environment["channels"] == ["conda-forge"]
    *plain, last = environment["dependencies"]
    assert all(re.fullmatch(r"[a-z][a-z0-9-]*( [<>=!0-9.,]+)?", line) for line in plain)
    assert "pip" in plain
    assert last == {"pip": ["--require-hashes", "-r requirements.lock"]}
    (python,) = [line.removeprefix("python ") for line in plain if line.startswith("python")]
    assert SpecifierSet(python) == SpecifierSet(project["project"]["requires-python"])


def test_the_shell_script_takes_the_same_pythons(checkout, project):
    text = (checkout / "tools" / "environment.sh").read_text()
    listed = re.search(r"^([0-9. |]+)\) ;;$", text, re.MULTILINE)[1].split(" | ")
    allowed = [
        f"3.{minor}" for minor in range(8, 20) if f"3.{minor}" in SpecifierSet(project["project"]["requires-python"])
    ]
    assert listed == allowed


def test_an_environment_of_the_user_is_moved_and_none_that_was_moved_before_is_deleted(checkout, tmp_path):
    for name in ("tools/environment.sh", "requirements.lock", "pyproject.toml"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        shutil.copy(checkout / name, tmp_path / name)
    for folder in (".venv", ".venv.before"):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "mine").write_text(folder)
    # Nothing is installed: this uv only fails.
    (tmp_path / "uv").write_text("#!/bin/sh\nexit 7\n")
    (tmp_path / "uv").chmod(0o755)
    environment = {**os.environ, "PATH": f"{tmp_path}:{os.environ['PATH']}", "PYTHON": sys.executable}
    done = subprocess.run(
        ["sh", "tools/environment.sh"], cwd=tmp_path, env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 7
    assert "moved to .venv.before.2" in done.stderr
    assert (tmp_path / ".venv.before/mine").read_text() == ".venv.before"
    assert (tmp_path / ".venv.before.2/mine").read_text() == ".venv"


def test_workflows_run_every_python_with_actions_pinned_by_commit(checkout, project):
    files = sorted((checkout / ".github/workflows").glob("*.yml"))
    used = [line for file in files for line in file.read_text().splitlines() if "uses:" in line]
    assert len(used) >= 6
    assert [line for line in used if not re.search(r"uses: [\w/-]+@[0-9a-f]{40} # v[\d.]+$", line)] == []
    matrix = yaml.safe_load((checkout / ".github/workflows/ci.yml").read_text())["jobs"]["check"]["strategy"]["matrix"]
    assert matrix["python"] == pythons(project)


def test_the_installed_packages_are_those_of_the_lock(lock):
    """The environment that runs the tests is the locked one."""
    for name in ("numpy", "scipy", "pandas", "matplotlib", "snakemake", "hydra-core", "seaborn"):
        (entry,) = [entry for entry in lock[name] if entry.applies(platform.python_version())]
        assert Version(metadata.version(name)) == entry.version


def test_nothing_is_built_by_tools_that_are_not_locked(checkout, lock):
    """Packages without a wheel run their build tool at installation: it is installed from the lock before them."""
    assert len(lock["setuptools"]) == 1
    installs = [
        line.strip()
        for line in (checkout / "tools" / "environment.sh").read_text().splitlines()
        if re.search(r"pip install\b", line)
    ]
    # Build tools, everything, the package itself; with uv and with pip.
    assert len(installs) == 6
    for tools, everything, package in (installs[:3], installs[3:]):
        assert "--require-hashes" in tools and not re.search(r"-r requirements\.lock", tools)
        assert "--require-hashes" in everything and "--no-build-isolation" in everything
        assert "--no-deps" in package and "--no-build-isolation" in package
