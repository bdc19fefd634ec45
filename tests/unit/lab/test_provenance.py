"""Source digests: code counts, comments and docstrings do not; what a study does not import does not either."""

from __future__ import annotations

import functools
import json
import os
import shutil
import time
import types
from pathlib import Path

import pytest

from privpost.lab import cells, grid, plan, provenance, store

STUDY = '''
"""A study."""
from privpost.helper import double  # imported

SETTINGS = Schema(epsilon=Real(above=0, says="budget"))
TABLES = {"curve": {"x": "place " "[count]"}}


def simulate(x):
    """Return twice x."""
    # twice
    return double(x)


NAMES = ["x"]


def tabulate(cells):
    return _rows(cells, double(1))


def _rows(cells, size):
    return [NAMES for cell in cells]
'''


@pytest.fixture
def package(tmp_path, monkeypatch) -> Path:
    """A package of its own in place of the project's."""
    monkeypatch.setattr(provenance, "PACKAGE", tmp_path)
    for name, text in {
        "__init__.py": "",
        "study.py": STUDY,
        "helper.py": "from privpost import deeper\n\ndef double(x):\n    return deeper.two() * x\n",
        "deeper.py": "def two():\n    return 2\n",
        "stranger.py": "VALUE = 1\n",
        "kinds/__init__.py": "from privpost import lookup\n",
        "kinds/one.py": "class One:\n    pass\n",
        "kinds/two.py": "class Two:\n    pass\n",
        "kinds/deep/three.py": "class Three:\n    pass\n",
        "lab/streams.py": "SEED = 1\n",
        "lab/grid.py": "GRID = 1\n",
        "privacy/ledger/gate.py": "GATE = 1\n",
    }.items():
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return tmp_path


def edit(path: Path, old: str, new: str) -> None:
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new))


@pytest.mark.parametrize(
    ("file", "old", "new"),
    [
        ("study.py", "# twice", "# two times"),
        ("study.py", "Return twice x.", "Double x."),
        ("study.py", '"""A study."""', '"""Another text."""'),
        ("study.py", "# imported", ""),
        ("study.py", "\n\n\ndef", "\n\ndef"),
        ("study.py", "place", "site"),
        ("study.py", "budget", "ε"),
        ("stranger.py", "1", "2"),
        ("lab/grid.py", "1", "2"),
    ],
)
def test_words_layout_and_unrelated_files_do_not_count(package, file, old, new):
    before = provenance.source_digest("privpost.study")
    edit(package / file, old, new)
    assert provenance.source_digest("privpost.study") == before


@pytest.mark.parametrize(
    ("file", "old", "new"),
    [
        ("study.py", "return double(x)", "return double(x) + 0"),
        ("study.py", '"x"', '"y"'),
        ("study.py", '"curve"', '"line"'),
        ("study.py", "above=0", "above=1"),
        ("helper.py", "two() * x", "x * deeper.two()"),
        ("deeper.py", "return 2", "return 2.0"),
    ],
)
def test_code_counts_also_of_what_is_imported_indirectly(package, file, old, new):
    before = provenance.source("privpost.study")
    edit(package / file, old, new)
    after = provenance.source("privpost.study")
    assert {name for name in before if before[name] != after[name]} == {file}


@pytest.mark.parametrize(
    ("old", "new", "counts"),
    [
        ("double(1)", "double(2)", False),
        ("for cell in cells", "for cell in cells[1:]", False),
        ('NAMES = ["x"]', 'NAMES = ["y"]', False),
        ('{"x": "place "', '{"y": "", "x": "place "', False),
        ("return double(x)", "return double(x) + 0", True),
        ("return double(x)", "return double(x) * len(NAMES)", True),
        ("above=0", "above=1", True),
    ],
)
def test_what_only_makes_tables_counts_for_tables_and_not_for_cells(package, old, new, counts):
    before, tables = provenance.of_cell("privpost.study", None), provenance.source_digest("privpost.study")
    edit(package / "study.py", old, new)
    assert bool(provenance.changes(before, provenance.of_cell("privpost.study", None))) is counts
    assert provenance.source_digest("privpost.study") != tables


def test_what_a_cell_uses_too_counts_though_tables_do(package):
    edit(package / "study.py", "return double(x)", "return double(x) * len(NAMES)")
    before = provenance.of_cell("privpost.study", None)
    edit(package / "study.py", 'NAMES = ["x"]', 'NAMES = ["y"]')
    assert provenance.changes(before, provenance.of_cell("privpost.study", None)) == ["study.py changed"]


def test_a_class_that_is_imported_from_its_package_counts_by_its_own_module(package):
    edit(package / "study.py", "from privpost.helper import double", "from privpost.kinds import One as double")
    assert {"kinds/one.py", "kinds/__init__.py"} <= set(provenance.source("privpost.study"))
    assert "kinds/two.py" not in provenance.source("privpost.study")


def test_a_class_of_a_sub_folder_that_is_imported_from_its_package_counts_by_its_own_module(package):
    edit(package / "study.py", "from privpost.helper import double", "from privpost.kinds import Three as double")
    assert "kinds/deep/three.py" in provenance.source("privpost.study")


def test_of_a_file_that_was_edited_during_the_run_nobody_knows_what_ran(package, monkeypatch):
    monkeypatch.setattr(grid, "read_by", lambda study: ())
    origin, start = cells.Origin(types.SimpleNamespace(package="privpost")), time.time()
    for path in package.rglob("*.py"):
        os.utime(path, (start - 5, start - 5))
    assert origin.of(None) == (now := provenance.of_cell("privpost.study", None))
    os.utime(package / "helper.py", (start + 5, start + 5))
    edited = origin.of(None)
    assert edited["source"] == now["source"] | {"helper.py": "edited meanwhile"}
    assert provenance.changes(edited, now) == ["helper.py changed"]


def test_random_streams_and_the_ledger_count_for_every_cell(package):
    assert {"lab/streams.py", "privacy/ledger/gate.py"} <= set(provenance.of_cell("privpost.study", None)["source"])
    assert "lab/grid.py" not in provenance.of_cell("privpost.study", None)["source"]


def test_changes_are_said_in_words(package):
    before = provenance.of_cell("privpost.study", None)
    edit(package / "deeper.py", "return 2", "return 3")
    now = provenance.of_cell("privpost.study", None)
    now["versions"] = {**now["versions"], "numpy": "9.9.9"}
    numpy = before["versions"]["numpy"]
    assert provenance.changes(before, now) == ["deeper.py changed", f"numpy {numpy} became 9.9.9"]
    assert provenance.changes(now, now) == []


def test_a_patch_release_of_python_does_not_count(package):
    before = provenance.of_cell("privpost.study", None)
    major = ".".join(before["versions"]["python"].split(".")[:2])
    patched = {**before, "versions": {**before["versions"], "python": f"{major}.99"}}
    assert provenance.changes(before, patched) == []


# Digests that the build keeps


@pytest.fixture
def parsed(package, tmp_path_factory, monkeypatch) -> list[str]:
    """The names of the files whose text was parsed, in a folder of its own that keeps digests."""
    names, by_parsing = [], provenance._code_digest
    monkeypatch.chdir(tmp_path_factory.mktemp("project"))
    monkeypatch.setattr(
        provenance, "_code_digest", lambda text, path, *how: names.append(path.name) or by_parsing(text, path, *how)
    )
    provenance._digests.cache_clear()
    yield names
    provenance._digests.cache_clear()


def anew() -> dict[str, str]:
    """The digests of a cell in a process that starts now."""
    provenance._digests.cache_clear()
    return provenance.of_cell("privpost.study", None)["source"]


def test_a_process_parses_only_what_no_other_has_parsed(package, parsed):
    first = anew()
    assert set(parsed) == {"study.py", "helper.py", "deeper.py", "streams.py", "gate.py"}
    parsed.clear()
    assert anew() == first and parsed == []
    edit(package / "deeper.py", "return 2", "return 3")
    changed = anew()
    assert parsed == ["deeper.py"] and {name for name in first if first[name] != changed[name]} == {"deeper.py"}
    # Both versions are kept.
    edit(package / "deeper.py", "return 3", "return 2")
    assert anew() == first and parsed == ["deeper.py"]


def test_what_another_process_keeps_meanwhile_stays(package, parsed):
    anew()
    record = json.loads(provenance.DIGESTS.read_text())
    record["value"]["its"] = "digest"
    provenance.DIGESTS.write_text(json.dumps(record))
    edit(package / "deeper.py", "return 2", "return 3")
    provenance.source("privpost.study")
    assert json.loads(provenance.DIGESTS.read_text())["value"]["its"] == "digest"


def test_digests_of_other_code_or_of_another_python_are_computed_anew(parsed, monkeypatch):
    first = anew()
    for place, value in (("sys.version", "4.0"), ("__file__", __file__)):
        monkeypatch.setattr(f"privpost.lab.provenance.{place}", value)
        provenance._state.cache_clear()
        parsed.clear()
        assert anew() == first and "study.py" in parsed
        parsed.clear()
        assert anew() == first and parsed == []
    monkeypatch.undo()
    provenance._state.cache_clear()


@pytest.mark.parametrize("text", ["", "{", "[]", "null", '{"state": "x"}'])
def test_where_digests_are_damaged_or_cannot_be_kept_they_are_computed(parsed, text):
    first = anew()
    whole = provenance.DIGESTS.read_text()
    provenance.DIGESTS.write_text(text)
    assert anew() == first and provenance.DIGESTS.read_text() == whole
    shutil.rmtree("build")
    Path("build").write_text("no folder")
    assert anew() == first


# What is behind after an edit of the real package


@pytest.fixture(scope="module")
def sources(tmp_path_factory) -> Path:
    """A copy of the package's sources: one for all edits, since each file of it is parsed once."""
    folder = tmp_path_factory.mktemp("copy") / "privpost"
    shutil.copytree(provenance.PACKAGE, folder, ignore=shutil.ignore_patterns("__pycache__"))
    return folder


@pytest.fixture
def copied(sources, monkeypatch):
    """Return the function that edits a file of the copy, which stands in for the package; undone at the end."""
    monkeypatch.setattr(provenance, "PACKAGE", sources)
    versions = provenance.versions()
    monkeypatch.setattr(provenance, "versions", lambda: versions)
    undo = {}

    def change(file, old="", new=""):
        path = sources / file
        text = undo.setdefault(path, path.read_text() if path.is_file() else None) or ""
        path.write_text(text.replace(old, new, 1) if old else f"{text}\nEXTRA = 1\n")

    yield change
    for path, text in undo.items():
        path.unlink() if text is None else path.write_text(text)


LOGISTIC = ("geumlek2017/logistic", "fair_axis/logistic")
WAR_LOGS = ("foulds2016/war_logs_states", "foulds2016/war_logs_likelihood")
# Study → its data set, and what its ledger recorded beside what the study imports by name.
USED = {
    "geumlek2017/logistic": ("abalone", ("privpost.mechanisms.draws.logistic_sampling",)),
    "fair_axis/logistic": (
        "abalone",
        ("privpost.mechanisms.draws.logistic_sampling", "privpost.mechanisms.draws.logistic_ops"),
    ),
    "fair_axis/beta_bernoulli": (None, ("privpost.mechanisms.draws.linear",)),
    "zhang2016/naive_bayes": ("adult", ()),
    "foulds2016/posterior_shapes": (None, ()),
    **{name: ("war_logs_iraq", ()) for name in WAR_LOGS},
}
EDITS = {
    "a claim": ("experiments/geumlek2017/logistic/claims.py", ()),
    "how claims are scored": ("lab/claims.py", ()),
    "a figure": ("experiments/geumlek2017/logistic/figures.py", ()),
    "the style of figures": ("drawing/style.py", ()),
    "the report": ("report/scorecard.py", ()),
    "a command": ("commands/publish.py", ()),
    "the grid": ("lab/grid.py", ()),
    "discovery and calibration": ("discovery.py", ("fair_axis/logistic", "fair_axis/beta_bernoulli")),
    "how classes are found": ("lookup.py", ()),
    "accounts": ("privacy/ledger/account.py", USED),
    "how mechanisms are recorded": ("privacy/ledger/described.py", USED),
    "the package's version": ("__init__.py", ()),
    "random streams": ("lab/streams.py", USED),
    "the ledger": ("privacy/ledger/gate.py", USED),
    "one mechanism": ("mechanisms/draws/logistic_sampling.py", LOGISTIC),
    "a mechanism found by discovery": ("mechanisms/draws/linear.py", ("fair_axis/beta_bernoulli",)),
    "a mechanism imported by name": ("mechanisms/noise/fourier.py", ("zhang2016/naive_bayes",)),
    "a new mechanism": ("mechanisms/brand_new.py", ()),
    "a sampler": ("samplers/hidden_markov/gibbs.py", WAR_LOGS),
    "a model": ("models/regression/logistic.py", LOGISTIC),
    "a study": ("experiments/geumlek2017/logistic/study.py", ("geumlek2017/logistic",)),
    "what studies share": ("experiments/foulds2016/convergence.py", WAR_LOGS),
    "a data set's loader": ("datasets/adult.py", ("zhang2016/naive_bayes",)),
    "downloads": ("datasets/fetch.py", ()),
}


# Studies that take every mechanism.
ALL_MECHANISMS = ("audit/audit", "fair_axis/beta_bernoulli", "fair_axis/logistic")


@pytest.mark.parametrize("name", ALL_MECHANISMS)
def test_an_edit_of_any_mechanism_in_whichever_folder_makes_studies_of_all_of_them_run_again(copied, name):
    study = grid.load_study(name, "smoke")
    before = plan.code_of(study)
    files = sorted(path for path in (provenance.PACKAGE / "mechanisms").rglob("*.py") if path.name != "__init__.py")
    assert len(files) > 25
    for path in [*files, provenance.PACKAGE / "mechanisms/draws/logistic/brand_new.py"]:
        path.parent.mkdir(parents=True, exist_ok=True)
        copied(path.relative_to(provenance.PACKAGE))
        after = plan.code_of(study)
        assert after != before, path
        before = after


def behind() -> set[str]:
    return {name for name in USED if provenance.changes(unedited()[name], origin(name))}


@functools.cache
def unedited() -> dict[str, dict]:
    return {name: origin(name) for name in USED}


def origin(name: str) -> dict:
    return provenance.of_cell(f"privpost.experiments.{name.replace('/', '.')}.study", *USED[name])


@pytest.mark.parametrize(("file", "expected"), EDITS.values(), ids=EDITS)
def test_an_edit_marks_the_studies_that_use_the_file_and_no_others(copied, file, expected):
    unedited()
    copied(file)
    assert behind() == set(expected)


def test_a_docstring_marks_no_study(copied):
    assert not behind()
    copied("mechanisms/base.py", '"""The interface', '"""Now the interface')
    assert not behind()


def test_a_cell_is_behind_when_a_mechanism_changes_that_it_found_and_released_through(toy, copied):
    """The toy names no mechanism: what it used stands in its record alone."""
    text = (toy.package / "curve/study.py").read_text()
    release = """
    from privpost import discovery
    from privpost.models.conjugate.beta_bernoulli import BetaBernoulli
    kinds = discovery.mechanisms()["laplace"]
    mechanism = next(m for kind in kinds for m in kind.examples if isinstance(m.model, BetaBernoulli))
    ledger.open("release", mechanism.cost())
    statistics = np.array([mechanism.n, 0.0])
    ledger.release("release", mechanism, statistics, streams("mechanism"))
"""
    (toy.package / "curve/study.py").write_text(text.replace('    return {"mean"', release + '    return {"mean"'))
    study = toy.study()
    cell = grid.expand(study)[0]
    cells.compute(study, cell)
    assert "privpost.mechanisms.noise.laplace" in store.read(cell.path).record["modules"]

    for file, state in (
        ("mechanisms/noise/fourier.py", "current"),
        ("mechanisms/noise/gaussian.py", "current"),
        ("mechanisms/noise/laplace.py", "behind"),
    ):
        copied(file)
        found = cells.look(study, [cell])
        assert bool(found.behind) == (state == "behind"), (file, found)
