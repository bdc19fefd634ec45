"""The grid: expansion, pinning, the smoke section, digests, and the way from a cell to its command and back."""

from __future__ import annotations

import dataclasses
import json
import resource
import subprocess
import sys
from pathlib import Path

import pytest

from privpost.configurations import CHECKOUT as CONF
from privpost.datasets import catalogue, fetch
from privpost.lab import compose, grid, plan, request
from privpost.lab.project import built
from privpost.lab.schema import SettingError
from privpost.lab.study import findable

ROOT = Path(__file__).resolve().parents[3]


def digests(toy, scale="paper"):
    return {json.dumps(cell.point, sort_keys=True): cell.digest for cell in toy.cells(scale)}


def test_a_sweep_is_the_product_of_its_axes_in_order(toy):
    assert [cell.point for cell in toy.cells()] == [
        {"method": method, "level": level} for method in "ab" for level in (1.0, 2.0)
    ]
    assert toy.cells()[0].within == {"order": [2.0, 3.0, 4.0], "variant": ["x", "y"]}


def test_a_list_of_maps_is_a_ragged_grid_that_may_pin_a_within_axis(toy):
    toy.edit(
        "sweep:\n  method: [a, b]\n  level: [1, 2]\n",
        "sweep:\n  - {method: [a], level: [1, 3]}\n  - {method: [b], order: [5, [6, 7]]}\n",
    )
    cells = toy.cells()
    assert [(cell.point["method"], cell.point["level"]) for cell in cells] == [("a", 1), ("a", 3), ("b", 1), ("b", 1)]
    assert [cell.within["order"] for cell in cells] == [[2, 3, 4], [2, 3, 4], [5], [6, 7]]


def test_equal_points_are_one_cell(toy):
    toy.edit("level: [1, 2]", "level: [1, 1.0, 2]")
    assert len(toy.cells()) == 4


def test_a_study_without_a_sweep_is_one_cell(toy):
    toy.edit("sweep:\n  method: [a, b]\n  level: [1, 2]\n", "")
    toy.edit("common: [method]\n", "")
    toy.edit("  sweep:\n    method: [a]\n", "")
    (cell,) = toy.cells()
    assert cell.slug == "all"


def test_the_smoke_section_replaces_sweep_and_sizes_and_merges_within(toy):
    (cell,) = toy.cells("smoke")
    assert cell.within == {"order": [2.0], "variant": ["x", "y"]}
    assert cell.sizes["trials"] == 10
    assert cell.sizes["block"] == 10
    assert str(cell.path).startswith("build/smoke/cells/toy/curve/")


def test_a_size_has_one_normal_form(toy):
    assert grid.make_cell(toy.study(), {"trials": 20.0}).digest == grid.make_cell(toy.study(), {}).digest


def test_an_override_wins_over_the_smoke_section(toy):
    cell = grid.make_cell(toy.study("smoke"), {"trials": 30, "order": [3]})
    assert cell.sizes["trials"] == 30
    assert cell.within["order"] == [3.0]


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("level: 1\n", "level: 1 # a comment\n"),
        ("level: 1\nmethod: a\n", "method: a\nlevel: 1\n"),
        ("level: 1\n", "level: 1.0\n"),
        ("level: [1, 2]", "level: [1.0, 2]"),
        ("trials: 20", "trials: 2e1"),
        ("title: A toy", "title: Another title"),
        ("claim: None.", "claim: Some."),
        ("start: 2, stop: 4, num: 3", "num: 3, stop: 4.0, start: 2.0"),
        ("order: {start: 2, stop: 4, num: 3}", "order: [2, 3, 4]"),
        ("common: [method]", "common: [method, method]"),
    ],
)
def test_digests_do_not_depend_on_the_way_a_study_is_written(toy, old, new):
    before = digests(toy)
    toy.edit(old, new)
    if "common" not in old:
        assert digests(toy) == before
    else:
        assert set(digests(toy)) == set(before)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("note: n", "note: m"),
        ("rev: 1", "rev: 2"),
        ("rev: 1", "rev: 1\nseed: 7"),
        ("trials: 20", "trials: 40"),
        ("block: 10", "block: 20"),
        ("num: 3", "num: 5"),
        ("variant: [x, y]", "variant: [y, x]"),
        ("common: [method]", "common: [method, level]"),
    ],
)
def test_whatever_defines_the_numbers_changes_every_digest(toy, old, new):
    before = digests(toy)
    toy.edit(old, new)
    after = digests(toy)
    assert after.keys() == before.keys()
    assert all(after[point] != before[point] for point in before)


def test_adding_or_removing_a_point_leaves_the_other_digests(toy):
    before = digests(toy)
    toy.edit("level: [1, 2]", "level: [1, 2, 5]")
    after = digests(toy)
    assert len(after) == 6
    assert before.items() <= after.items()


def test_the_digest_covers_the_data(checkout):
    study = next(s for s in grid.load_studies() if "dataset" in s.schema)
    cell = grid.expand(study)[0]
    other = dataclasses.replace(cell, data={**cell.data, "rev": cell.data["rev"] + 1})
    assert cell.data["sha256"]
    assert other.digest != cell.digest


def test_the_path_covers_the_scale(toy):
    paper = grid.make_cell(toy.study(), {})
    smoke = grid.make_cell(toy.study("smoke"), {"trials": 20, "order": [2, 3, 4]})
    assert paper.digest == smoke.digest
    assert paper.path != smoke.path


@pytest.mark.parametrize(
    ("axis", "values"),
    [
        ({"start": 1, "stop": 2, "num": 3}, [1.0, 1.5, 2.0]),
        ({"start": 1, "stop": 100, "num": 3, "spacing": "log"}, [1.0, 10.0, 100.0]),
        ([3, 1], [3, 1]),
    ],
)
def test_axes_are_lists_or_spaced(axis, values):
    assert grid.axis_values(axis, "here") == values


@pytest.mark.parametrize(
    ("axis", "part"),
    [
        ({"start": 1, "stop": 2}, "needs start, stop, num"),
        ({"start": 1, "stop": 2, "num": 3, "space": 1}, "needs start, stop, num"),
        ({"start": 1, "stop": 2, "num": 1}, "num is 1, but must be a whole number of at least 2"),
        ({"start": 1, "stop": 2, "num": 3, "spacing": "lin"}, "spacing is 'lin', but must be one of linear, log"),
        ({"start": 0, "stop": 2, "num": 3, "spacing": "log"}, "needs both above 0"),
        ([], "a list of at least one value"),
        (3, "a list of at least one value"),
    ],
)
def test_an_impossible_axis_is_an_error_that_says_where(axis, part):
    with pytest.raises(SettingError, match="here") as error:
        grid.axis_values(axis, "here")
    assert part in str(error.value)


@pytest.mark.parametrize(
    ("old", "new", "part"),
    [
        ("note: n", "note: n\nlevl: 2", "there is no setting 'levl'. Did you mean 'level'?"),
        ("note: n\n", "", "the setting 'note' is missing; it must be one of n, m"),
        ("note: n", "note: nn", "note is 'nn', but must be one of n, m. Did you mean 'n'?"),
        ("level: [1, 2]", "level: [0, 2]", "level is 0, but must be a number in (0, inf)"),
        ("level: [1, 2]", "levels: [1, 2]", "there is no setting 'levels'. Did you mean 'level'?"),
        ("num: 3", "num: 1", "within.order"),
        ("variant: [x, y]", "variant: [x, x]", 'within.variant has the value "x" twice'),
        ("block: 10", "block: 15", "trials is 20, but must be a multiple of block, which is 15, for instance 15"),
        ("block: 10\n", "", "give both or neither"),
        ("rev: 1", "rev: 0", "the key 'rev' is missing"),
        ("rev: 1", "rev: x", "rev is 'x', but must be a whole number of at least 1"),
        ("common: [method]", "common: [methd]", "common names 'methd', which is no axis. Did you mean 'method'?"),
        ("common: [method]", "common: [[method]]", "common names ['method'], which is no axis."),
        ("common: [method]", "common: 3", "common is 3, but must be a list of axes."),
        ("title: A toy\n", "", "the key 'title' is missing"),
        ("note: n", "note: n\norder: 3", "'order' is both a setting and a within axis"),
        ("within:\n  order: {", "withn:\n  order: {", "there is no setting 'withn'. Did you mean 'within'?"),
    ],
)
def test_a_mistake_in_the_yaml_names_file_key_and_what_is_allowed(toy, old, new, part):
    toy.edit(old, new)
    with pytest.raises(SettingError) as error:
        toy.cells()
    assert part in str(error.value)
    assert "conf/study/toy/curve.yaml" in str(error.value)


def test_a_mistyped_study_or_scale_suggests_the_nearest(toy):
    with pytest.raises(SettingError, match="Did you mean 'toy/curve'"):
        grid.load_study("toy/curves")
    with pytest.raises(SettingError, match="Did you mean 'smoke'"):
        grid.load_study("toy/curve", "smok")


def test_a_paper_is_no_study_and_a_mistyped_one_suggests_the_nearest_paper(toy):
    assert [study.name for study in grid.load_studies(["toy"])] == ["toy/curve"]
    with pytest.raises(SettingError, match="'toy', which is a paper: name one of its studies: toy/curve"):
        grid.load_study("toy")
    with pytest.raises(SettingError, match="Did you mean 'toy'"):
        grid.load_studies(["toys"])


@pytest.mark.parametrize(
    "value",
    [None, True, False, 0, -3, 1e-7, 1e22, 0.1, "a", "two words", "it's", "null", "true", "1e5", "12e4567890", "nan",
     "a/b-c.d", "x=1", "back\\slash", "end\\", "\\'", "", "-1", [1, 2.5], ["a", None], ["x,y"], "${a}"],
)  # fmt: skip
def test_hydra_reads_a_value_back_as_it_was_written(value):
    from hydra.core.override_parser.overrides_parser import OverridesParser

    text = f"key={compose.hydra_value(value)}"
    if value == "${a}":
        # An interpolation in quotes is still resolved by OmegaConf; the parser itself keeps the text.
        assert OverridesParser.create().parse_override(text).value() == value
        return
    override = OverridesParser.create().parse_override(text)
    assert not override.is_sweep_override()
    found = override.value()
    assert found == value
    assert type(found) is type(value)


@pytest.mark.parametrize("scale", ["smoke", "paper"])
def test_every_cells_command_gives_its_digest_again(checkout, scale):
    """The command of a cell, read as from a shell, has the digest that was planned; Hydra takes its words too.

    One cell of each entry of a sweep is enough: the entries decide which keys are overridden. At paper scale, whose
    entries are mostly the same, every fifth stands for the others.
    """
    from hydra import compose as hydra_compose
    from hydra import initialize_config_dir

    commands = []
    for study in grid.load_studies(scale=scale, home=built(scale)):
        cells = grid.expand(study)
        chosen = list({tuple(map(request.key_of, cell.overrides)): cell for cell in cells}.values())
        for cell in chosen[:: 5 if scale == "paper" else 1]:
            commands.append(cell.command())
            (again,) = request.understand(commands[-1]).cells
            assert again.digest == cell.digest, f"{study.name}: {' '.join(commands[-1])}"
    with initialize_config_dir(version_base="1.3", config_dir=str(CONF.resolve())):
        for words in commands[::20]:
            hydra_compose("config", overrides=words)


@pytest.fixture(scope="module")
def whole() -> dict:
    """Each cell of the paper's grids, whether or not its data can be had, by its digest."""
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(ROOT)
        return {cell.digest: cell for study in grid.load_studies() for cell in grid.expand(study)}


@pytest.mark.parametrize("missing", [name for name in catalogue.names(ROOT / CONF) if name != "iraq_simulated"])
def test_each_data_set_may_be_missing_and_takes_away_its_cells_alone(checkout, monkeypatch, whole, missing):
    """A cell, the audit's too, has one digest: by its command, as a rebuild plans it and in `status`.

    Cells of a study share the digest of what they read, so that one of them stands for all.
    """
    found = fetch.findable
    monkeypatch.setattr(fetch, "findable", lambda dataset: dataset.name != missing and found(dataset))
    findable.cache_clear()
    try:
        studies = {study.name: study for study in grid.load_studies(home=built("paper"))}
        cells = [cell for study in studies.values() for cell in grid.expand(study)]
        lost = {digest for digest, cell in whole.items() if cell.dataset == missing}
        reading = {study.name for study in studies.values() if study.text.get("reads")}
        left = {digest for digest, cell in whole.items() if cell.study not in reading} - lost
        assert {cell.digest for cell in cells if cell.study not in reading} == left
        assert missing not in {cell.dataset for cell in cells}
        first = next(cell for cell in cells if cell.study in reading)
        (again,) = request.understand(first.command()).cells
        assert again.digest == first.digest, " ".join(first.command())
        # The audit goes without what is missing, and its cells are planned anew where it is not.
        audit = [cell.digest for cell in grid.expand(studies["audit/audit"])]
        assert len(audit) == sum(cell.study == "audit/audit" for cell in whole.values())
        assert set(audit).isdisjoint(whole) is bool(lost)
        assert len(plan.lacking(*studies.values())) == bool(lost)
        assert grid.left_out(studies["audit/audit"]) == ([missing] if lost else [])
    finally:
        findable.cache_clear()


def test_smoke_scale_reads_every_data_set_that_can_be_had(checkout):
    """So that continuous integration unpacks and parses each of them."""
    studies = grid.load_studies(None, "smoke", built("smoke"))
    read = {name for study in studies for name in study.datasets}
    assert read == {name for name in catalogue.names() if catalogue.load(name).access != "bring-your-own"}


def test_the_first_lines_of_a_study_file_are_its_package_and_its_command(checkout):
    for name in grid.study_names():
        lines = (CONF / "study" / f"{name}.yaml").read_text().splitlines()
        assert lines[:2] == ["# @package _global_", f"# privpost -m study={name}"]


def test_configurations_depend_on_nothing_but_their_files(checkout):
    """A digest stands for the numbers, so no configuration may read the environment, the clock or another file."""
    for path in CONF.rglob("*.yaml"):
        assert "${oc." not in path.read_text(), path
        assert "${now" not in path.read_text(), path


def test_planning_all_studies_stays_under_two_seconds(checkout):
    """Everything that Snakemake's parse asks of the package, in a process of its own.

    In processor time, so that what else the machine does plays no part.
    """

    def seconds() -> float:
        used = resource.getrusage(resource.RUSAGE_CHILDREN)
        return used.ru_utime + used.ru_stime

    code = (
        "from privpost.lab import grid, plan; "
        "[(plan.table_files(s), plan.code_of(s)) for s in plan.possible(grid.load_studies())]"
    )
    command = [sys.executable, "-c", code]
    before = seconds()
    subprocess.run(command, check=True)
    assert seconds() - before < 2


def test_an_axis_without_a_base_value_is_told_what_it_lacks(toy):
    toy.edit("method: a\n", "")
    with pytest.raises(SettingError, match="'method' is swept, so it needs a base value among the settings"):
        toy.cells()
