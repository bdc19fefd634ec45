"""Rebuilds in temporary clones: what runs, what stays, and that results are those that are shipped."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest

from privpost.lab import tables

QUICK = "geumlek2017/rdp_curves"
YAML = f"conf/study/{QUICK}.yaml"
MODULE = f"src/privpost/experiments/{QUICK}/study.py"
DRAWING = "src/privpost/experiments/geumlek2017/rdp_curves/figures/fig1_rdp_curves.py"
POINTS = "coefficient: [0.5, 1.0]"
FIGURE = "build/smoke/figures/geumlek2017/fig1_rdp_curves.svg"


def first_cell(clone) -> Path:
    return sorted((clone / "build/smoke/cells" / QUICK).glob("*.npz"))[0]


def touch(clone, *paths: str) -> None:
    for path in paths:
        os.utime(clone / path)


def remove(path: Path) -> None:
    shutil.rmtree(path) if path.is_dir() else path.unlink()


ALL = {"cell": 2, "tabulate": 1, "draw": 1}
# What is done to a built clone -> the jobs that run then.
CASES = {
    "nothing": (lambda c: None, {}),
    "comment edited": (lambda c: c.edit(YAML, "alpha: 6 # paper", "alpha: 6 # from the paper"), {}),
    "key order edited": (lambda c: c.edit(YAML, "n: 100 # paper\n\ncoefficient: 1.0", "coefficient: 1.0\nn: 100"), {}),
    "1 instead of 1.0": (lambda c: c.edit(YAML, POINTS, "coefficient: [0.5, 1]"), {}),
    "value edited": (lambda c: c.edit(YAML, "n: 100", "n: 90"), ALL),
    "rev raised": (lambda c: c.edit(YAML, "rev: 1", "rev: 2"), ALL),
    "seed edited": (lambda c: c.edit("conf/config.yaml", "seed: ", "seed: 1"), ALL),
    "point added": (lambda c: c.edit(YAML, POINTS, "coefficient: [0.5, 0.7, 1.0]"), {**ALL, "cell": 1}),
    "point removed": (lambda c: c.edit(YAML, POINTS, "coefficient: [1.0]"), {"tabulate": 1, "draw": 1}),
    "cell deleted": (lambda c: first_cell(c).unlink(), {**ALL, "cell": 1}),
    "table deleted": (lambda c: (c / f"build/smoke/{QUICK}.csv").unlink(), {"tabulate": 1, "draw": 1}),
    "grid file deleted": (lambda c: (c / f"build/smoke/{QUICK}.grid.json").unlink(), {"tabulate": 1, "draw": 1}),
    "table altered": (lambda c: (c / f"build/smoke/{QUICK}.csv").write_text("a\n"), {"tabulate": 1, "draw": 1}),
    "figure deleted": (lambda c: (c / FIGURE).unlink(), {"draw": 1}),
    "figure module edited": (
        lambda c: c.edit(DRAWING, "TOP = 2.0", "TOP = 2.5"),
        {"draw": 1},
    ),
    "figure style edited": (
        lambda c: c.edit("src/privpost/drawing/style.py", '"font.size": 8', '"font.size": 9'),
        {"draw": 1},
    ),
    "comment of a figure module edited": (
        lambda c: c.edit(DRAWING, "# the paper's axis", "# The axis"),
        {},
    ),
    # Reported as `behind` by privpost status; rewording a function must not redo hours.
    "source edited": (lambda c: c.edit(MODULE, "np.nan)", "np.inf)"), {}),
    "configuration, source and figure touched": (
        lambda c: touch(c, YAML, "conf/config.yaml", MODULE, FIGURE),
        {},
    ),
    "without .snakemake, cells kept": (lambda c: remove(c / ".snakemake"), {"draw": 1}),
    "without .snakemake, value edited": (
        lambda c: (remove(c / ".snakemake"), c.edit(YAML, "n: 100", "n: 90")),
        ALL,
    ),
    "store deleted": (lambda c: remove(c / "build/smoke/cells"), ALL),
}  # fmt: skip


@pytest.fixture(scope="module")
def jobs_after(planned) -> dict[str, dict[str, int]]:
    return planned({case: change for case, (change, _) in CASES.items()})


@pytest.mark.parametrize("case", CASES)
def test_exactly_what_changed_runs_again(jobs_after, case):
    assert jobs_after[case] == CASES[case][1]


def test_a_source_edit_is_reported_as_behind_and_redone_on_request(smoke):
    smoke.edit("src/privpost/privacy/renyi.py", "import numpy as np", "import numpy as np\n\nEDITED = True")
    report = smoke.run("privpost", "status", QUICK, "--scale", "smoke")
    assert report.splitlines()[1].split()[1:6] == ["2", "0", "2", "0", "0"]
    assert "privacy/renyi.py changed since 2 cells were computed" in report
    output = smoke.run("privpost", "reproduce", QUICK, "--scale", "smoke", "--behind")
    assert "2 cells behind the present code: computed again" in output
    report = smoke.run("privpost", "status", QUICK, "--scale", "smoke")
    assert report.splitlines()[1].split()[1:6] == ["2", "2", "0", "0", "0"]


def test_a_deleted_cell_comes_back_and_the_next_run_has_nothing_to_do(smoke):
    before = smoke.contents("build/smoke")
    kept = sorted((smoke / "build/smoke/cells" / QUICK).glob("*.npz"))[1]
    time = kept.stat().st_mtime_ns
    first_cell(smoke).unlink()
    smoke.snakemake()
    assert smoke.contents("build/smoke") == before
    assert kept.stat().st_mtime_ns == time
    assert smoke.planned() == {}


def test_an_edit_and_its_reversal_come_back_to_the_same_bytes(smoke):
    before = smoke.contents("build/smoke")
    smoke.edit(YAML, "n: 100", "n: 90")
    smoke.snakemake()
    changed = smoke.contents("build/smoke")
    assert changed[f"build/smoke/{QUICK}.csv"] != before[f"build/smoke/{QUICK}.csv"]
    smoke.edit(YAML, "n: 90", "n: 100")
    assert smoke.planned() == {"tabulate": 1, "draw": 1}
    smoke.snakemake()
    assert smoke.contents("build/smoke") == before


def test_smoke_never_writes_into_the_shipped_results(smoke):
    output = subprocess.run(
        ["git", "status", "--porcelain"], cwd=smoke.folder, capture_output=True, text=True, check=True
    )
    assert output.stdout == ""
    assert not (smoke / "results/cells").exists()


def test_hydra_and_snakemake_leave_no_litter(smoke):
    smoke.run("privpost", "-m", f"study={QUICK}", "scale=smoke", "coefficient=0.5,0.7")
    assert not list(smoke.folder.rglob("multirun.yaml"))
    assert not list(smoke.folder.rglob(".hydra"))
    assert not (smoke / "outputs").exists()
    assert not (smoke / "multirun").exists()


# The shipped results


def test_figures_of_a_clone_are_redrawn_without_cells_data_or_network(clone, without_network):
    """Every shipped figure comes out byte by byte, and no cell is computed."""
    shipped = clone.contents("figures")
    assert shipped
    grids = sorted((clone / "results").glob("*/*.grid.json"))
    studies = ",".join(f"{path.parent.name}/{path.name.removesuffix('.grid.json')}" for path in grids)
    options = {"studies": studies, "scale": "paper", "prefix": without_network, "PRIVPOST_MIRRORS": ""}
    output = clone.snakemake("figures", **options)
    drawn = clone.contents("figures")
    assert {name: drawn[name] for name in shipped} == shipped
    assert "Job" in output
    assert "Compute" not in output
    assert not (clone / "results/cells").exists()
    assert not (clone / "data").exists()


@pytest.mark.parametrize("data", ["none", "raw", "prepared", "prepared before any start of Snakemake"])
def test_shipped_tables_stand_whatever_is_newer_than_they_are(clone, data):
    """Ledgers in whatever order Git wrote them, data that another study has asked for: no cell is computed."""
    for number, path in enumerate(sorted((clone / "results").glob("*/*.ledger.json")), 1):
        os.utime(path, (time.time() + number, time.time() + number))
    if not data.endswith("Snakemake"):
        clone.run("snakemake", "figures", "--dry-run")
    if data != "none":
        clone.run("privpost", "prepare", "abalone")
    if data == "raw":
        (clone / "data/prepared/abalone.npz").unlink()
    output = clone.run("snakemake", "figures", "--dry-run")
    assert "Draw the figures of audit/audit" in output
    assert "Draw the figures of geumlek2017/logistic" in output
    assert not re.search("Compute|Parse|Fetch", output)


def test_data_that_an_edited_loader_did_not_prepare_are_prepared_again_without_any_stamp(clone):
    clone.run("privpost", "prepare", "abalone")
    (clone / "src/privpost/datasets/abalone.py").open("a").write("\nEDITED = True\n")
    assert "Parse the raw data of abalone" in clone.run("snakemake", "figures", "--dry-run")


def test_a_clone_rebuilds_what_is_shipped_and_then_has_nothing_to_do(paper, pristine):
    """Cells, table and figures of the quick study; the closed form agrees to 1e-9, whatever the processor."""
    import numpy as np

    assert len(list((paper / "results/cells" / QUICK).glob("*.npz"))) == 6
    rebuilt, shipped = (tables.read_table(clone / f"results/{QUICK}.csv") for clone in (paper, pristine))
    assert list(rebuilt.columns) == list(shipped.columns)
    for column in shipped:
        if shipped[column].dtype == float:
            np.testing.assert_allclose(rebuilt[column], shipped[column], rtol=1e-9)
        else:
            assert (rebuilt[column] == shipped[column]).all()
    assert json.loads((paper / f"results/{QUICK}.grid.json").read_text())["study"] == QUICK
    assert paper.planned(scale="paper") == {}


def test_a_rebuild_leaves_the_checkout_clean(paper):
    """Built twice from nothing, tables and figures come out the same, and times of this machine stay out of the way."""

    def git(*words):
        options = ["-c", "user.name=test", "-c", "user.email=test@example.org", "-c", "core.hooksPath=/dev/null"]
        return subprocess.run(
            ["git", *options, *words], cwd=paper.folder, capture_output=True, text=True, check=True
        ).stdout

    git("add", "--all")
    git("commit", "--quiet", "--allow-empty", "--message", "built")
    times = paper / f"build/timing/{QUICK.replace('/', '_')}.csv"
    before = times.read_bytes()
    shutil.rmtree(paper / "results/cells")
    paper.snakemake(scale="paper")
    assert times.read_bytes() != before
    assert git("status", "--porcelain") == ""


def test_verify_says_identical_or_what_moved(paper):
    """The clone's own rebuild is identical to itself; after a falsified shipped value its cell is named."""
    output = paper.run("privpost", "verify", QUICK)
    assert f"{QUICK}: identical" in output
    table = paper / f"results/{QUICK}.csv"
    header, first, *rest = table.read_text().splitlines(keepends=True)
    cells = first.split(",")
    place = header.split(",").index("epsilon")
    cells[place] = repr(float(cells[place]) * 2)
    table.write_text("".join([header, ",".join(cells), *rest]))
    (paper / "build/verify.py").write_text(
        "from privpost.commands import verify; print(*verify.compare('geumlek2017/rdp_curves').differences)"
    )
    output = subprocess.run(
        [sys.executable, "build/verify.py"], cwd=paper.folder, env=paper.environment(), capture_output=True, text=True,
        check=True,
    )  # fmt: skip
    assert "coefficient=0.1: epsilon moved in 1 of 1520 rows, by at most 0.5 relative" in output.stdout


@pytest.mark.parametrize("step", ["tabulate", "draw"])
def test_a_failing_job_leaves_the_shipped_files(paper, step):
    """Also when the job dies after Snakemake has begun it, with tables and figures of an earlier run in place."""
    before = paper.contents("results", "figures")
    if step == "tabulate":
        paper.edit(MODULE, "    for cell in cells:", '    raise RuntimeError("seeded")\n    for cell in cells:')
        paper.edit(YAML, "coefficient: [0.1, 0.3, 0.5, 0.7, 0.9, 1.0]", "coefficient: [0.1, 0.3, 0.5, 0.7, 0.9]")
    else:
        paper.edit(DRAWING, "    return figure", "    return figure.seeded")
    output = paper.snakemake(scale="paper", status=1)
    assert "seeded" in output
    assert paper.contents("results", "figures") == before


def test_make_clean_leaves_shipped_results_and_raw_data(paper):
    before = paper.contents("results", "figures")
    (paper / "data/raw").mkdir(parents=True)
    (paper / "data/raw/kept").write_text("raw")
    subprocess.run(["make", "--silent", "clean"], cwd=paper.folder, check=True)
    assert paper.contents("results", "figures") == before
    assert (paper / "data/raw/kept").exists()
    assert not (paper / "results/cells").exists()
    assert not (paper / ".snakemake").exists()


def test_drawing_twice_gives_the_same_bytes(smoke):
    """In two fresh processes, SVG, and what `make figures` makes beside it: PDF and PNG."""
    folder = "build/smoke/figures"
    rebuilt = smoke.contents(folder)
    assert {Path(name).suffix for name in rebuilt} == {".svg"}
    smoke.snakemake("figures", config=("printed=1",))
    before = smoke.contents(folder)
    assert {Path(name).suffix for name in before} == {".pdf", ".png", ".svg"}
    assert {name: before[name] for name in rebuilt} == rebuilt
    smoke.run("privpost", "draw", QUICK, "--scale", "smoke", PYTHONHASHSEED="7", TZ="Asia/Tokyo", LC_ALL="C")
    assert smoke.contents(folder) == before


# Sweeps and Snakemake share the store


def test_snakemake_finds_the_cells_of_a_sweep(clone):
    clone.run("privpost", "-m", f"study={QUICK}", "scale=smoke")
    assert clone.planned() == {"tabulate": 1, "draw": 1}


def test_a_sweep_finds_the_cells_of_snakemake(smoke):
    output = smoke.run("privpost", "-m", f"study={QUICK}", "scale=smoke")
    assert "2 of 2 cells are in the store already" in output
    assert "build/sweeps/geumlek2017_rdp_curves__scale=smoke/fig1_rdp_curves.png" in output


def test_the_launchers_give_the_same_cells(clone, tmp_path):
    """joblib runs a sweep in several processes; the arrays are those of the basic launcher."""
    from privpost.lab import store

    sweep = ["-m", f"study={QUICK}", "scale=smoke", "coefficient=0.5,0.7,1"]
    other = clone.copy(tmp_path / "other")
    clone.run("privpost", *sweep)
    output = other.run("privpost", *sweep, "hydra/launcher=joblib", "hydra.launcher.n_jobs=2")
    assert "3 cells; the sweep's table and figure" in output
    one, two = (
        {path.name: store.read(path).record["checksum"] for path in (c / "build/smoke/cells").rglob("*.npz")}
        for c in (clone, other)
    )
    assert len(one) == 3
    assert one == two
    assert not list(other.folder.rglob("multirun.yaml"))


def test_a_failing_cell_under_joblib_is_reported(clone):
    clone.edit(
        MODULE,
        "    epsilon = np.full",
        '    if config.coefficient == 0.7:\n        raise RuntimeError("seeded")\n    epsilon = np.full',
    )
    sweep = ["-m", f"study={QUICK}", "scale=smoke", "coefficient=0.5,0.7", "hydra/launcher=joblib"]
    output = clone.run("privpost", *sweep, status=1)
    assert "seeded" in output
    assert "1 of 2 cells could not be computed" in output
