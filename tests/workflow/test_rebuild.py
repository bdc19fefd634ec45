"""Rebuilds in temporary clones: what runs again, what stays, and the comparison with what is published."""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import subprocess
from pathlib import Path

import pandas as pd
import pytest

from privpost.lab import grid

QUICK = "geumlek2017/rdp_curves"
YAML = f"conf/study/{QUICK}.yaml"
MODULE = f"src/privpost/experiments/{QUICK}/study.py"
POINTS = "coefficient: [0.5, 1.0]"
TABLE = f"build/smoke/results/{QUICK}/rdp_curves.csv"
FIGURE = "build/smoke/figures/geumlek2017/rdp_curves/fig1_rdp_curves.svg"
COMPUTE, TABULATE, DRAW = (f"{rule} {QUICK}" for rule in ("cells", "tabulate", "draw"))


def cells(clone, scale: str = "smoke") -> list[Path]:
    folder = "build/smoke/cells" if scale == "smoke" else "build/paper/cells"
    return sorted((clone / folder / QUICK).glob("*.npz"))


def reproduce(clone, *words: str, status: int = 0) -> str:
    return clone.run("privpost", "reproduce", QUICK, *words, status=status)


def git_status(clone) -> str:
    return subprocess.run(
        ["git", "status", "--porcelain"], cwd=clone.folder, capture_output=True, text=True, check=True
    ).stdout


def under_an_old_time_stamp(clone, file: str, old: str, new: str) -> None:
    """Edit a file as rsync -a, tar and cp -p bring it: with its own time."""
    times = (clone / file).stat()
    clone.edit(file, old, new)
    os.utime(clone / file, ns=(times.st_atime_ns, times.st_mtime_ns))


# What is done to a built clone -> the jobs that run then.
CASES = {
    "nothing": (lambda c: None, []),
    "settings edited": (lambda c: c.edit(YAML, "n: 100", "n: 90"), [COMPUTE, DRAW, TABULATE]),
    "seed edited": (lambda c: c.edit("conf/config.yaml", "seed: ", "seed: 1"), [COMPUTE, DRAW, TABULATE]),
    "code edited": (lambda c: c.edit(MODULE, "np.nan)", "np.inf)"), [COMPUTE, DRAW, TABULATE]),
    "a sampler's import edited": (
        lambda c: c.edit(
            "src/privpost/privacy/divergences/renyi.py", "import numpy as np", "import numpy as np\n\nEDITED = 1"
        ),
        [COMPUTE, DRAW, TABULATE],
    ),
    "style edited": (lambda c: c.edit("src/privpost/drawing/style.py", "import gc", "import gc\n\nEDITED = 1"), [DRAW]),
    "settings edited under an old time stamp": (
        lambda c: under_an_old_time_stamp(c, YAML, "n: 100", "n: 90"),
        [COMPUTE, DRAW, TABULATE],
    ),
    "code edited under an old time stamp": (
        lambda c: under_an_old_time_stamp(c, MODULE, "np.nan)", "np.inf)"),
        [COMPUTE, DRAW, TABULATE],
    ),
    "a comment": (lambda c: c.edit(YAML, "alpha: 6 # paper", "alpha: 6 # from the paper"), []),
    "tables deleted": (lambda c: shutil.rmtree((c / TABLE).parent), [DRAW, TABULATE]),
    "figures deleted": (lambda c: shutil.rmtree((c / FIGURE).parent), [DRAW]),
    # The store is a cache: tables and figures are whole without it.
    "store deleted": (lambda c: shutil.rmtree(c / "build/smoke/cells"), []),
    "another study's code edited": (
        lambda c: c.edit("src/privpost/experiments/zhang2016/bounds/study.py", "import", "EDITED = 1\nimport"),
        [],
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_exactly_what_changed_runs_again(smoke, case):
    change, rules = CASES[case]
    change(smoke)
    assert smoke.planned() == rules


def test_a_file_that_is_gone_from_a_folder_is_made_again(smoke):
    """Snakemake knows of folders only; make reproduce looks into them."""
    (smoke / TABLE).unlink()
    (smoke / FIGURE).unlink()
    assert "1 of 1 cells" not in reproduce(smoke, "--scale", "smoke")
    assert (smoke / TABLE).is_file() and (smoke / FIGURE).is_file()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("file", "old", "new", "rebuilt"),
    [
        (MODULE, "np.nan)", "np.inf)", {QUICK}),
        ("conf/dataset/abalone.yaml", "rev: 1", "rev: 2", "abalone"),
    ],
)
def test_of_all_studies_what_changed_and_the_audit_are_computed(
    everything, tmp_path, monkeypatch, file, old, new, rebuilt
):
    """The audit reads all ledgers. Then come scorecard and report, and no cell of another study."""
    # A copy: tests in other processes read the clone at the same time.
    clone = everything[0].copy(tmp_path / "clone")
    assert clone.planned(None) == []
    under_an_old_time_stamp(clone, file, old, new)
    jobs = clone.planned(None)
    if isinstance(rebuilt, str):
        monkeypatch.chdir(clone.folder)
        rebuilt = {s.name for s in grid.load_studies(None, "smoke") if "abalone" in s.datasets}
        assert "prepare abalone" in jobs and len(rebuilt) > 1
    computed = {job.split()[1] for job in jobs if job.startswith("cells ")}
    assert computed == rebuilt | {"audit/audit"}
    assert {"scorecard", "report"} <= set(jobs)


def test_a_study_is_a_target_and_snakemake_reports_on_it(smoke):
    figures = f"build/smoke/figures/{QUICK}"
    assert "Nothing to be done" in smoke.run("snakemake", "--cores", "1", "--dry-run", figures)
    smoke.run("snakemake", figures, "--report", "report.html")
    page = (smoke / "report.html").read_text()
    assert "fig1_rdp_curves.svg" in page and "RDP curves of diffused and concentrated" in page


def test_the_reason_of_a_job_names_what_changed(smoke):
    smoke.edit(MODULE, "np.nan)", "np.inf)")
    output = smoke.run("snakemake", "--cores", "1", "--dry-run", f"build/smoke/figures/{QUICK}")
    assert re.search(r"before: 'code \w+' now: 'code \w+'", " ".join(output.split()))


def test_a_wrong_configuration_of_snakemake_is_named(smoke):
    for config, said in (("stdies=x", "stdies"), ("scale=smok", "scale is 'smok', but must be one of paper, smoke")):
        output = smoke.run("snakemake", "--cores", "1", "--dry-run", "--config", config, status=1)
        assert said in output


def test_a_new_point_computes_its_own_cell_only_and_its_reversal_gives_the_same_bytes(smoke):
    before, times = smoke.contents("build/smoke"), {path: path.stat().st_mtime_ns for path in cells(smoke)}
    smoke.edit(YAML, POINTS, "coefficient: [0.5, 0.7, 1.0]")
    smoke.snakemake()
    assert len(cells(smoke)) == len(times) + 1
    assert all(path.stat().st_mtime_ns == time for path, time in times.items())
    smoke.edit(YAML, "coefficient: [0.5, 0.7, 1.0]", POINTS)
    smoke.snakemake()
    assert smoke.contents("build/smoke") == before


def test_cells_of_other_code_are_named_before_anything_is_tabulated_and_computed_again_on_request(smoke):
    smoke.edit("src/privpost/privacy/divergences/renyi.py", "import numpy as np", "import numpy as np\n\nEDITED = True")
    status = smoke.run("privpost", "status", QUICK, "--scale", "smoke")
    assert "2 of 2 cells in the store, 2 of them by other code" in status
    assert "privacy/divergences/renyi.py changed" in status
    run = ("privpost", "-m", f"study={QUICK}", "scale=smoke")
    said = f"{QUICK}: 2 of 2 cells were computed by other code (privacy/divergences/renyi.py changed); "
    said += "they are computed again by"
    assert said in smoke.run(*run)
    assert said in smoke.run(*run, "coefficient=0.5,1.0")
    assert "other code" not in smoke.run(*run, "fresh=true")
    assert "0 of them by other code" in smoke.run("privpost", "status", QUICK, "--scale", "smoke")


def test_a_rebuild_of_the_paper_says_that_it_equals_what_is_published(paper):
    output = reproduce(paper)
    # Another processor rounds otherwise.
    assert re.search("Compared with what is published: 2 tables: (2 equal|[01] equal, [12] within tolerance)", output)
    assert "Verdicts: none changed." in output
    assert git_status(paper) == ""


def test_other_settings_make_other_tables_whatever_snakemake_remembers(smoke):
    """Who unlocks a checkout by removing .snakemake, or copies build/, loses Snakemake's records of the settings."""
    before, times = (smoke / TABLE).read_text(), (smoke / YAML).stat()
    shutil.rmtree(smoke / ".snakemake")
    smoke.edit(YAML, POINTS, "coefficient: [0.5, 0.7, 1.0]")
    os.utime(smoke / YAML, ns=(times.st_atime_ns, times.st_mtime_ns))
    assert "1 of 1 cells" in reproduce(smoke, "--scale", "smoke")
    assert len((smoke / TABLE).read_text().splitlines()) > len(before.splitlines())


def test_a_difference_is_told_with_its_place_and_decides_the_exit_status(paper):
    """A number within tolerance, and one outside; test_compare.py has the rest."""
    published = paper / f"results/{QUICK}/rdp_curves.csv"
    table = pd.read_csv(published, keep_default_na=False, na_values=[""])
    column = "epsilon"
    row = table.index[table[column].between(0.1, 10)][0]

    def publish(frame):
        frame.to_csv(published, index=False, lineterminator="\n")
        sums = paper / "results/SHA256SUMS"
        lines = [line for line in sums.read_text().splitlines() if not line.endswith(f"  {QUICK}/rdp_curves.csv")]
        digest = hashlib.sha256(published.read_bytes()).hexdigest()
        sums.write_text("\n".join([*lines, f"{digest}  {QUICK}/rdp_curves.csv"]) + "\n")

    near = table.copy()
    near.loc[row, column] *= 1 + 1e-8
    publish(near)
    assert "1 within tolerance (largest difference: geumlek2017/rdp_curves/rdp_curves, epsilon in row" in reproduce(
        paper
    )
    far = table.copy()
    far.loc[row, column] *= 1.01
    publish(far)
    output = reproduce(paper, status=1)
    assert f"geumlek2017/rdp_curves/rdp_curves: epsilon in row {row + 1}: " in output


def test_publish_takes_over_what_was_built_and_says_what_changes(paper):
    """Another setting changes the table, its figure and the sums; test_rebuilt.py has what is refused."""
    paper.edit(YAML, "alpha: 6 # paper", "alpha: 7 # paper")
    reproduce(paper, status=1)
    edited = paper / f"results/{QUICK}/rdp_curves.csv"
    edited.write_text(edited.read_text().replace("0", "1", 1))
    output = paper.run("privpost", "publish", QUICK)
    assert f"outside tolerance: results/{QUICK}/rdp_curves.csv is not what results/SHA256SUMS has" in output
    assert output.count(f"{QUICK}/rdp_curves: outside tolerance") == 1
    changed = {line[3:] for line in git_status(paper).splitlines()}
    figure = f"figures/{QUICK}/fig1_rdp_curves.svg"
    assert {f"results/{QUICK}/rdp_curves.csv", "results/SHA256SUMS", figure} <= changed
    subprocess.run(["sha256sum", "--check", "--quiet", "SHA256SUMS"], cwd=paper / "results", check=True)


def test_everything_is_built_at_smoke_scale(everything):
    clone, said = everything
    assert "Not built" not in said, said
    assert f"{len(list(clone.folder.glob('conf/study/*/*.yaml')))} studies" in said
    assert (clone / "build/smoke/report.html").is_file()
    assert git_status(clone) == ""
