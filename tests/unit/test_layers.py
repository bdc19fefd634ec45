"""The rooms of the package and the one direction in which they import, defined only here."""

from __future__ import annotations

import ast
import re
from functools import cache
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

PACKAGE = Path(__file__).resolve().parents[2] / "src" / "privpost"
# From the top: a room imports from itself and from lower lines. Rooms of one line do not know each other. The typed
# settings lie below everything that declares some, which is all that studies and releases need of the pipeline.
LAYERS = (
    ("__main__",),
    ("commands",),
    ("report",),
    ("release", "experiments"),
    ("lab", "inference_benchmark"),
    ("drawing",),
    ("discovery",),
    ("mechanisms",),
    ("samplers",),
    ("privacy",),
    ("models", "distributions", "evaluation", "lab.schema"),
    ("datasets",),
    ("archive", "atomic", "progress", "strict_yaml"),
    ("__init__",),
    # Where classes are defined: what the package itself asks when it is asked for one.
    ("lookup", "moved", "configurations"),
)

# Rooms that import from fewer rooms than lie below them.
ONLY: dict[str, set[str]] = {}


def modules(package: Path = PACKAGE) -> dict[str, Path]:
    """Return every module, by its name without `privpost.`."""
    return {
        ".".join(path.relative_to(package).with_suffix("").parts).removesuffix(".__init__"): path
        for path in sorted(package.rglob("*.py"))
    }


@cache
def imports(package: Path = PACKAGE) -> dict[str, set[str]]:
    """Return the modules that each module imports, also inside functions and for type checkers."""
    known = modules(package)
    found = {}
    for module, path in known.items():
        names: set[str] = set()
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Import):
                names |= {alias.name for alias in node.names}
            elif isinstance(node, ast.ImportFrom):
                # A relative import counts too, though the project has none.
                parts = path.relative_to(package).parts
                above = ".".join(("privpost", *parts[: len(parts) - node.level])) if node.level else ""
                base = ".".join(filter(None, (above, node.module)))
                names |= {f"{base}.{alias.name}" for alias in node.names}
        found[module] = {_module(name, known) for name in names if f"{name}.".startswith("privpost.")} - {module}
    return found


def _module(name: str, known: dict[str, Path]) -> str:
    """Return the module that an imported name is or comes from."""
    parts = name.split(".")[1:]
    while parts and ".".join(parts) not in known:
        parts.pop()
    return ".".join(parts) or "__init__"


def room(module: str) -> str:
    """Return the room of a module: the longest entry of `LAYERS` that it lies in."""
    entries = [entry for layer in LAYERS for entry in layer if f"{module}.".startswith(f"{entry}.")]
    assert entries, f"{module} lies in no room: name its room in LAYERS"
    return max(entries, key=len)


def breaches(found: dict[str, set[str]]) -> list[str]:
    """Return the imports that the order of the rooms does not allow."""
    height = {entry: -place for place, layer in enumerate(LAYERS) for entry in layer}

    def allowed(one: str, other: str) -> bool:
        return one == other or (height[other] < height[one] and other in ONLY.get(one, height))

    return [
        f"{module} imports {other}: {room(module)} may import from {_named(room(module))} only, not {room(other)}"
        for module, others in found.items()
        for other in sorted(others)
        if not allowed(room(module), room(other))
    ]


def _named(one: str) -> str:
    return " and ".join(sorted(ONLY[one])) if one in ONLY else "lower rooms"


def test_rooms_import_downwards_only():
    assert not breaches(imports())


def test_no_modules_import_each_other_in_a_circle():
    """Within a room too; a package's own __init__ is a module like others."""
    try:
        TopologicalSorter(imports()).prepare()
    except CycleError as error:
        pytest.fail(f"circle: {' → '.join(error.args[1])}")


@pytest.mark.parametrize(
    ("file", "line", "part"),
    [
        ("lab/tables.py", "from privpost.report import page", "lab.tables imports report.page"),
        ("lab/grid.py", "def f():\n    from privpost.release import spec", "lab.grid imports release.spec"),
        ("samplers/chain.py", "import privpost.mechanisms.base", "samplers.chain imports mechanisms.base"),
        ("mechanisms/__init__.py", "from .. import discovery", "mechanisms imports discovery"),
        ("models/base.py", "from privpost import discovery", "models.base imports discovery"),
        ("report/page.py", "from privpost.commands.cli import main", "report.page imports commands.cli"),
    ],
)
def test_an_import_upwards_is_found(tmp_path, file, line, part):
    for name, path in modules().items():
        copy = tmp_path / path.relative_to(PACKAGE)
        copy.parent.mkdir(parents=True, exist_ok=True)
        # Only the faulty module keeps its text: the others need only exist.
        copy.write_text(f"{line}\n" if copy == tmp_path / file else "")
        assert name
    (breach,) = breaches(imports(tmp_path))
    assert breach.startswith(part)


def test_a_circle_within_a_room_is_found(tmp_path):
    (tmp_path / "__init__.py").touch()
    (tmp_path / "atomic.py").write_text("def f():\n    from privpost.lookup import g\n")
    (tmp_path / "lookup.py").write_text("from privpost import atomic\n")
    with pytest.raises(CycleError):
        TopologicalSorter(imports(tmp_path)).prepare()


def untold(folder: Path) -> list[str]:
    """Return the files and folders beside an `__init__.py` that its docstring does not name in backticks."""
    said = ast.get_docstring(ast.parse((folder / "__init__.py").read_text(encoding="utf-8"))) or ""
    names = {path.stem for path in folder.iterdir() if path.suffix == ".py" or (path / "__init__.py").is_file()}
    return sorted(name for name in names - {"__init__"} if not re.search(rf"`{name}(\.\w+)?`", said))


FOLDED = ("samplers", "mechanisms", "models", "privacy")
# Each class of these is found by its file's name, which needs no list.
ONE_A_FILE = PACKAGE / "models/conjugate"


def test_a_folder_says_what_its_files_are_for():
    folders = {path.parent for room in FOLDED for path in (PACKAGE / room).rglob("*.py")} - {ONE_A_FILE}
    assert len(folders) > len(FOLDED)
    assert {str(folder): untold(folder) for folder in folders if untold(folder)} == {}


def test_a_file_that_its_folder_does_not_name_is_found(tmp_path):
    (tmp_path / "inner").mkdir()
    for name in ("seeds.py", "gibbs.py", "inner/__init__.py"):
        (tmp_path / name).touch()
    (tmp_path / "__init__.py").write_text('"""A user calls `gibbs.follow`; seeds are its starts."""')
    assert untold(tmp_path) == ["inner", "seeds"]


def test_tests_stand_in_the_rooms_of_what_they_test():
    folders = {path.name for path in Path(__file__).parent.iterdir() if any(path.glob("test_*.py"))}
    assert folders <= {path.name for path in PACKAGE.iterdir() if path.is_dir()}


# Studies of war logs whose shared code has yet to move to the paper's folder.
LEANING = {
    "experiments.foulds2016.war_logs_ablation.study",
    "experiments.foulds2016.war_logs_states.study",
    "experiments.foulds2016.who_leads.figures",
    "experiments.foulds2016.who_leads.tables",
}


def test_nothing_imports_another_study_s_folder():
    """A study can be deleted: what studies share stands in their paper's folder, or in a room."""
    of = {
        module: module.rpartition(".")[0]
        for module in modules()
        if re.fullmatch(r"experiments(\.\w+){2}\.study", module)
    }
    folders = set(of.values())
    leaning = {
        (module, folder)
        for module, names in imports().items()
        for name in names
        for folder in folders
        if name.startswith(f"{folder}.") and not module.startswith(f"{folder}.")
    }
    assert {module for module, _ in leaning} - LEANING == set(), sorted(leaning)
