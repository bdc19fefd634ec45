"""Rebuilds in temporary clones: what runs again, what stays, and the comparison with what is published."""

from __future__ import annotations

import contextlib
import functools
import hashlib
import os
import re
import shutil
import subprocess
from pathlib import Path

import pandas as pd
import pytest

from privpost.commands import cli
from privpost.commands import reproduce as rebuilding
from privpost.lab import grid, plan, provenance

QUICK = "geumlek2017/rdp_curves"
CLOSED = "geumlek2017/dirichlet"
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


# What is edited -> the digests that change: of settings, of the code of cells and tables, of the code of figures.
RENYI = "src/privpost/privacy/divergences/renyi.py"
EDITS = {
    "a comment": (YAML, "alpha: 6 # paper", "alpha: 6 # from the paper", set()),
    "settings": (YAML, "n: 100", "n: 90", {"settings"}),
    "seed": ("conf/config.yaml", "seed: ", "seed: 1", {"settings"}),
    "code": (MODULE, "np.nan)", "np.inf)", {"code"}),
    "a sampler's import": (RENYI, "import numpy as np", "import numpy as np\n\nEDITED = 1", {"code"}),
    "style": ("src/privpost/drawing/style.py", "import gc", "import gc\n\nEDITED = 1", {"figures"}),
    "another study's code": (
        "src/privpost/experiments/zhang2016/bounds/study.py",
        "import",
        "EDITED = 1\nimport",
        set(),
    ),
}


def edit(clone, case: str) -> None:
    under_an_old_time_stamp(clone, *EDITS[case][:3])


@contextlib.contextmanager
def within(clone):
    """Within the block, the clone stands for the checkout, in this process."""
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(clone.folder)
        patch.setattr(provenance, "PACKAGE", clone / "src/privpost")
        for function in (plan.find, plan._settings):
            patch.setattr(plan, function.__name__, functools.cache(function.__wrapped__))
        yield patch


@pytest.fixture(scope="module")
def edited(pristine, tmp_path_factory):
    """A clone that each test leaves as it was."""
    return pristine.copy(tmp_path_factory.mktemp("edited") / "clone")


def digests(clone) -> dict[str, str]:
    with within(clone):
        study = plan.find(QUICK, "smoke")
        code, figures = plan.code_of(study), plan.figure_code_of(study)
        return {"settings": plan.settings_digest(QUICK, "smoke"), "code": code, "figures": figures}


@pytest.mark.parametrize("case", EDITS)
def test_an_edit_changes_the_digests_of_what_depends_on_it(edited, case):
    """Snakemake's rules have these digests: the next test sees what they make run again."""
    file, text, before = edited / EDITS[case][0], (edited / EDITS[case][0]).read_text(), digests(edited)
    edit(edited, case)
    after = digests(edited)
    file.write_text(text)
    assert {name for name in before if before[name] != after[name]} == EDITS[case][-1]


def _nothing_that_counts(clone) -> None:
    edit(clone, "a comment")
    edit(clone, "another study's code")
    # The store is a cache: tables and figures are whole without it.
    shutil.rmtree(clone / "build/smoke/cells")


# What is done to a built clone -> the jobs that run then.
CASES = {
    "nothing that counts": (_nothing_that_counts, []),
    "style edited": (lambda c: edit(c, "style"), [DRAW]),
    "tables deleted": (lambda c: shutil.rmtree((c / TABLE).parent), [DRAW, TABULATE]),
}


@pytest.mark.parametrize("case", CASES)
def test_exactly_what_changed_runs_again(smoke, case):
    """Edits keep the time of their file, as those of rsync -a, tar and cp -p do."""
    change, rules = CASES[case]
    change(smoke)
    assert smoke.planned() == rules


def test_a_study_is_a_target_and_the_reason_of_its_job_names_what_changed(smoke):
    edit(smoke, "a sampler's import")
    edit(smoke, "settings")
    reasons = smoke.reasons(targets=[f"build/smoke/figures/{QUICK}"])
    assert sorted(reasons) == [COMPUTE, DRAW, TABULATE]
    for kind in ("code", "settings"):
        assert re.search(rf"before: [^:]*'{kind} \w+'[^:]* now: [^:]*'{kind} \w+'", reasons[COMPUTE]), reasons


def rebuilt(clone) -> list[str]:
    """Return the jobs that Snakemake would run within make reproduce."""
    planned = []
    with within(clone) as patch:
        patch.setattr(rebuilding, "_snakemake", lambda *given: planned.extend(clone.planned()) or 0)
        assert cli.main(["reproduce", QUICK, "--scale", "smoke"]) == 1
    return planned


@pytest.mark.parametrize(
    ("gone", "jobs"), [(TABLE, [COMPUTE, DRAW, TABULATE]), (FIGURE, [DRAW])], ids=["table", "figure"]
)
def test_a_file_that_is_gone_from_a_folder_is_made_again(smoke, gone, jobs):
    """Snakemake knows of folders only; make reproduce looks into them."""
    (smoke / gone).unlink()
    assert rebuilt(smoke) == jobs


def test_other_settings_make_other_tables_whatever_snakemake_remembers(smoke):
    """Who unlocks a checkout by removing .snakemake, or copies build/, loses Snakemake's records of the settings."""
    shutil.rmtree(smoke / ".snakemake")
    edit(smoke, "settings")
    assert rebuilt(smoke) == [COMPUTE, DRAW, TABULATE]


@pytest.mark.slow
def test_of_all_studies_what_changed_and_the_audit_are_computed(everything, tmp_path):
    """The audit reads all ledgers. Then come scorecard and report, and no cell of another study."""
    # A copy: tests in other processes read the clone at the same time.
    clone = everything[0].copy(tmp_path / "clone")
    assert clone.planned(None) == []
    with within(clone):
        of_abalone = {study.name for study in grid.load_studies(None, "smoke") if "abalone" in study.datasets}
    edit(clone, "code")
    under_an_old_time_stamp(clone, "conf/dataset/abalone.yaml", "rev: 1", "rev: 2")
    jobs = clone.reasons(None)
    assert "prepare abalone" in jobs and len(of_abalone) > 1
    computed = {job.split()[1]: reason for job, reason in jobs.items() if job.startswith("cells ")}
    assert set(computed) == {QUICK, *of_abalone, "audit/audit"}
    assert {name for name, reason in computed.items() if "before: 'code" in reason} == {QUICK}
    assert {name for name, reason in computed.items() if "prepared/abalone.npz" in reason} == of_abalone
    assert {"scorecard", "report"} <= set(jobs)


def test_snakemake_reports_on_a_study(smoke):
    smoke.run("snakemake", f"build/smoke/figures/{QUICK}", "--report", "report.html")
    page = (smoke / "report.html").read_text()
    assert "fig1_rdp_curves.svg" in page and "RDP curves of diffused and concentrated" in page


def test_a_wrong_configuration_of_snakemake_is_named(smoke):
    output = smoke.run("snakemake", "--cores", "1", "--dry-run", "--config", "stdies=x", status=1)
    assert "stdies" in output
    with pytest.raises(OSError, match="scale is 'smok', but must be one of paper, smoke"), within(smoke):
        plan.chosen(None, "smok", OSError)


def test_a_new_point_computes_its_own_cell_only_and_its_reversal_gives_the_same_bytes(smoke):
    """The commands are those of Snakemake's jobs."""

    def build() -> None:
        with within(smoke):
            for words in (
                ["-m", f"study={QUICK}", "scale=smoke", "shard=1/1"],
                ["build", QUICK, "--scale", "smoke"],
                ["draw", QUICK, "--built", "--scale", "smoke"],
            ):
                assert cli.main(words) == 0

    before, times = smoke.contents("build/smoke"), {path: path.stat().st_mtime_ns for path in cells(smoke)}
    smoke.edit(YAML, POINTS, "coefficient: [0.5, 0.7, 1.0]")
    build()
    after = smoke.contents("build/smoke")
    assert {file for file in before if before[file] != after[file]} >= {TABLE, FIGURE}
    assert len(after[TABLE].splitlines()) > len(before[TABLE].splitlines())
    assert len(cells(smoke)) == len(times) + 1
    assert all(path.stat().st_mtime_ns == time for path, time in times.items())
    smoke.edit(YAML, "coefficient: [0.5, 0.7, 1.0]", POINTS)
    build()
    assert smoke.contents("build/smoke") == before


def test_cells_of_other_code_are_named_before_anything_is_tabulated_and_computed_again_on_request(smoke, capsys):
    edit(smoke, "a sampler's import")

    def said(*words: str) -> str:
        assert cli.main([*words]) == 0
        return "".join(capsys.readouterr())

    status = ("status", QUICK, "--scale", "smoke")
    run = ("-m", f"study={QUICK}", "scale=smoke")
    with within(smoke):
        first = said(*status)
        assert "2 of 2 cells in the store, 2 of them by other code" in first
        assert "privacy/divergences/renyi.py changed" in first
        line = f"{QUICK}: 2 of 2 cells were computed by other code (privacy/divergences/renyi.py changed); "
        line += "they are computed again by"
        assert line in said(*run)
        assert line in said(*run, "coefficient=0.5,1.0")
        assert "other code" not in said(*run, "fresh=true")
        assert "0 of them by other code" in said(*status)


def test_a_rebuild_of_the_paper_says_that_it_equals_what_is_published(paper):
    output = (paper / "build/said").read_text()
    # Another processor rounds otherwise.
    assert re.search("Compared with what is published: 1 table: 1 (equal|within tolerance)", output)
    assert "Verdicts: none changed." in output
    assert git_status(paper) == ""


def test_a_difference_is_told_with_its_place_and_decides_the_exit_status(paper, capsys):
    """A number within tolerance, and one outside; test_compare.py has the rest."""
    name = f"{CLOSED}/{CLOSED.split('/')[1]}"
    published = paper / f"results/{name}.csv"
    table = pd.read_csv(published, keep_default_na=False, na_values=[""])
    column = "epsilon"
    row = table.index[table[column].between(0.1, 10)][0]

    def compared(factor: float) -> tuple[int, str]:
        far = table.copy()
        far.loc[row, column] *= factor
        far.to_csv(published, index=False, lineterminator="\n")
        sums = paper / "results/SHA256SUMS"
        lines = [line for line in sums.read_text().splitlines() if not line.endswith(f"  {name}.csv")]
        digest = hashlib.sha256(published.read_bytes()).hexdigest()
        sums.write_text("\n".join([*lines, f"{digest}  {name}.csv"]) + "\n")
        with within(paper) as patch:
            # Snakemake finds nothing to do, and no figure is asked for.
            patch.setattr(rebuilding, "_snakemake", lambda *given: 0)
            patch.setattr(rebuilding, "figure_files", lambda study: [])
            return cli.main(["reproduce", CLOSED]), capsys.readouterr().out

    status, said = compared(1 + 1e-8)
    assert status == 0
    assert f"1 within tolerance (largest difference: {name}, epsilon in row" in said
    status, said = compared(1.01)
    assert status == 1
    assert f"{name}: epsilon in row {row + 1}: " in said


def test_publish_takes_over_what_was_built_and_says_what_changes(paper, capsys):
    """Another table changes its figure and the sums; test_rebuilt.py has what is refused."""
    name = f"{CLOSED}/{CLOSED.split('/')[1]}"
    built, edited = (paper / f"{home}results/{name}.csv" for home in ("build/paper/", ""))
    edited.write_text(edited.read_text().replace("0", "1", 1))
    with within(paper) as patch:
        module = grid.load_study(CLOSED).module()
        made = module.tabulate
        patch.setattr(module, "tabulate", lambda cells: ({**row, "epsilon": 2 * row["epsilon"]} for row in made(cells)))
        for command in ("build", "publish"):
            assert cli.main([command, CLOSED]) == 0
    output = capsys.readouterr().out
    assert f"outside tolerance: results/{name}.csv is not what results/SHA256SUMS has" in output
    assert output.count(f"{name}: outside tolerance") == 1
    assert edited.read_bytes() == built.read_bytes()
    changed = {line[3:] for line in git_status(paper).splitlines()}
    figure = f"figures/{CLOSED}/appendix_dirichlet.svg"
    assert {f"results/{name}.csv", "results/SHA256SUMS", figure} <= changed
    subprocess.run(["sha256sum", "--check", "--quiet", "SHA256SUMS"], cwd=paper / "results", check=True)


def test_everything_is_built_at_smoke_scale(everything):
    clone, said = everything
    assert "Not built" not in said, said
    assert f"{len(list(clone.folder.glob('conf/study/*/*.yaml')))} studies" in said
    assert (clone / "build/smoke/report.html").is_file()
    assert git_status(clone) == ""
