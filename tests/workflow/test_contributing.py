"""The worked examples of CONTRIBUTING.md, followed literally in a temporary clone."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

from privpost.lab import store

# Studies that take every mechanism, and the audit, which takes them, too.
TAKING_EVERY_MECHANISM = ("foulds2016/efficiency", "fair_axis/beta_bernoulli")
AUDIT = "audit/audit"
EXAMPLES = re.compile(r"^`([a-z][\w./]+)`\n\n```(?:python|yaml)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def examples(text: str, title: str) -> dict[str, str]:
    """Return path to content of the files in one section of the guide."""
    section = text.split(f"\n## {title}\n")[1].split("\n## ", maxsplit=1)[0]
    return dict(EXAMPLES.findall(section))


def follow(clone, title: str) -> list[str]:
    """Write the files that a section names, and nothing else; return their paths."""
    files = examples((clone / "CONTRIBUTING.md").read_text(), title)
    for name, content in files.items():
        path = clone / name
        assert not path.exists()
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content)
    return sorted(files)


def changed(clone) -> list[str]:
    command = ["git", "status", "--porcelain", "--untracked-files=all"]
    return sorted(line[3:] for line in subprocess.check_output(command, cwd=clone.folder, text=True).splitlines())


# One process for several commands, each with the exit status that it should have.
TOGETHER = """
import json, sys
import privpost.__main__
from privpost.commands import cli

for words, status in json.loads(sys.argv[1]):
    found = cli.main(words)
    assert found == status, f"{words} ended with {found}"
"""


def together(clone, *commands: tuple[str, ...], statuses=()) -> str:
    """Run commands of privpost one after another in one process; return their output."""
    words = json.dumps(list(zip(commands, statuses or [0] * len(commands), strict=True)))
    done = subprocess.run(
        [sys.executable, "-c", TOGETHER, words],
        cwd=clone.folder, env=clone.environment(), stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
        check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout
    return done.stdout


NOISE = ("tutorial/noise", "--scale", "smoke")
# One point of a study's smoke scale in place of four.
FEWER = "conf/study/fair_axis/beta_bernoulli.yaml"


@pytest.fixture(scope="module")
def followed(pristine, tmp_path_factory):
    """A clone with the guide's mechanism, model and study, their paths, a rebuild's jobs, and what commands said."""
    clone = pristine.copy(tmp_path_factory.mktemp("followed") / "clone")
    paths = [follow(clone, f"Add a {title}") for title in ("mechanism", "model", "study")]
    planned = clone.planned(NOISE[0])
    clone.edit(FEWER, "epsilon: [0.1, 1]\n    delta: [0.0001, 0.01]", "epsilon: [1]\n    delta: [0.01]")
    studies = (*TAKING_EVERY_MECHANISM, *NOISE)
    # Of the audit, the cell of the mechanism alone, without a figure. That it takes all mechanisms, test_audit.py sees.
    audited = (f"study={AUDIT}", "scale=smoke", "source=examples", "mechanisms=[LogisticNoise]", "shard=1/1")
    said = together(
        clone,
        ("mechanisms",),
        ("list",),
        *(("build", study, "--scale", "smoke") for study in (*TAKING_EVERY_MECHANISM, NOISE[0])),
        ("draw", *studies, "--built"),
        ("-m", *audited),
        ("claims", *NOISE),
        ("-m", "study=tutorial/noise", "scale=smoke", "n=50,200"),
    )
    return clone, paths, planned, said


@pytest.fixture
def tutorial(followed, tmp_path):
    """A copy of that clone."""
    return followed[0].copy(tmp_path / "clone")


def test_mechanisms_models_and_studies_are_files_that_the_tests_of_all_take_in(followed):
    clone, paths, *_ = followed
    assert [len(files) for files in paths] == [1, 1, 4]
    tests = ("mechanisms/test_mechanisms.py", "models/test_models.py", "lab/test_grid.py")
    chosen = ("LogisticNoise", "BetaRepeated", "first_lines", "depend_on_nothing")
    plain = ("-v", "-p", "no:cacheprovider", "-p", "no:hypothesispytest")
    output = clone.run("pytest", *plain, *(f"tests/unit/{test}" for test in tests), "-k", " or ".join(chosen))
    for test in tests:
        assert re.search(rf"^tests/unit/{test}::.* PASSED", output, re.MULTILINE), output
    files = [name for names in paths for name in names]
    assert changed(clone) == sorted([FEWER, *files])
    ruff = [sys.executable, "-m", "ruff"]
    python = [name for name in files if name.endswith(".py")]
    for check in (["check"], ["format", "--check"]):
        subprocess.run([*ruff, *check, *python], cwd=clone.folder, check=True, capture_output=True)


def test_a_mechanism_is_one_file(followed):
    """It is listed, its guarantee is checked, and every study that takes all mechanisms takes it too."""
    clone, *_, said = followed
    assert re.search("^logistic_noise +LogisticNoise ", said, re.MULTILINE)
    for study in TAKING_EVERY_MECHANISM:
        text = (clone / f"build/smoke/results/{study}/{study.split('/')[1]}.csv").read_text()
        assert "logistic_noise" in text, f"{study} has no new mechanism"
    rows = [line for line in text.splitlines() if line.startswith("logistic_noise,")]
    # From its density alone.
    assert {"exact", "converted"} <= {word for line in rows for word in line.split(",")}
    assert any(",kl," in line for line in rows)
    (cell,) = (clone / f"build/smoke/cells/{AUDIT}").glob("*.npz")
    audited = store.read(cell).arrays
    assert {*audited["method"]} == {"logistic_noise"}
    assert (audited["counts"] > 0).all()


def test_a_study_is_four_files(followed):
    """It is listed, planned, tabulated, drawn and scored without touching any other file."""
    clone, _, planned, said = followed
    assert planned == [f"{rule} tutorial/noise" for rule in ("cells", "draw", "tabulate")]
    assert re.search("^tutorial/noise +new ", said, re.MULTILINE)
    assert (clone / "build/smoke/figures/tutorial/noise/noise_error.svg").stat().st_size > 5000
    assert "T1  holds" in said
    # The sweep over n has several cells.
    assert re.search(r"^(?!1 )\d+ cells; tables, figure and record:", said, re.MULTILINE)


def test_a_data_set_is_one_description_and_one_loader(clone):
    files = follow(clone, "Add a data set")
    assert len(files) == 2
    mirror = clone / "data/mirror/coins"
    mirror.mkdir(parents=True)
    (mirror / "coins.csv").write_text("".join("1\n" if (i * i + i // 3) % 7 < 3 else "0\n" for i in range(200)))
    clone.run("privpost", "fetch", "coins")
    assert "data/prepared/coins.npz" in clone.run("privpost", "prepare", "coins")
    code = (
        "from privpost.datasets import catalogue, prepared\n"
        "print(prepared.read('coins', catalogue.load('coins'))['tosses'].shape)"
    )
    command = [sys.executable, "-c", code]
    assert subprocess.check_output(command, cwd=clone.folder, env=clone.environment(), text=True) == "(200,)\n"
    assert changed(clone) == files


def test_a_study_runs_on_data_of_ones_own(clone):
    """And what newcomers leave out first is said in one line, whichever command meets it."""
    files = follow(clone, "Try a study on your own data")
    assert len(files) == 2
    command = re.search(
        "^    privpost (-m study=.* dataset=pebbles .*)$", (clone / "CONTRIBUTING.md").read_text(), re.MULTILINE
    )
    words = [*command[1].split(), "scale=smoke"]
    # Copies of the description, each with one thing wrong.
    wrong = {
        "pebbles_1": ("bytes: null, sha256: null, ", "", "files[0]: missing bytes, sha256"),
        "pebbles_2": ("train_rows: 200, ", "", "settings.train_rows = None: must be a positive integer"),
        "pebbles_3": ("bounds: {", "bounds: {height: [1, 0], ", "public.bounds.height = [1, 0]: must be [low, high]"),
    }
    tried, text = [words], (clone / files[0]).read_text()
    for name, (old, new, _) in wrong.items():
        (clone / f"conf/dataset/{name}.yaml").write_text(text.replace("name: pebbles\n", f"name: {name}\n"))
        clone.edit(f"conf/dataset/{name}.yaml", old, new)
        tried += [[word.replace("=pebbles", f"={name}") for word in words], ["prepare", name]]
    said = together(clone, *tried, statuses=[1, *(2, 1) * len(wrong)])
    assert "pebbles.csv (Pebbles) could not be fetched: it is not here" in said
    assert "put it into data/mirror/pebbles/" in said
    lines = said.partition("8 of 8 cells could not be computed\n")[2].splitlines()
    expected = [f"conf/dataset/{name}.yaml: {line}" for name, (*_, line) in wrong.items() for _ in range(2)]
    assert [found in line for line, found in zip(lines, expected, strict=True)] == [True] * len(expected), said
    for name in wrong:
        (clone / f"conf/dataset/{name}.yaml").unlink()
    own = clone / "data/mirror/pebbles/pebbles.csv"
    own.parent.mkdir(parents=True)
    rows = [f"{20 + i * 7 % 60},{10 + i * 11 % 50},{100 + i * 13 % 300},{int(i * i % 7 < 3)}" for i in range(300)]
    own.write_text("\n".join(["length,width,weight,smooth", *rows]) + "\n")
    said = clone.run("privpost", *words)
    assert "8 cells; tables, figure and record" in said
    (table,) = clone.folder.glob("build/sweeps/*/logistic.csv")
    assert "pebbles" in table.read_text()
    assert changed(clone) == files


def scores(said: str) -> dict[tuple[str, str], str]:
    """Return what `privpost bench score` prints after task, method, n and ε, by task and method."""
    rows = (line.split(maxsplit=4) for line in said.splitlines() if not line.startswith("task "))
    return {(task, method): rest for task, method, _, _, rest in rows}


def commands(clone, title: str) -> list[list[str]]:
    """Return the words of the commands of `privpost` that a section shows."""
    section = (clone / "CONTRIBUTING.md").read_text().split(f"\n## {title}\n")[1].split("\n## ", maxsplit=1)[0]
    return [line.split(" #")[0].split() for line in re.findall("^    privpost (.*)$", section, re.MULTILINE)]


def test_a_method_of_inference_and_a_task_of_the_benchmark_are_one_file_each(clone):
    """They are scored where they are, and belong to the study and the package once they lie beside the others."""
    method, task = (follow(clone, f"Add a {title}") for title in ("method of inference", "task of the benchmark"))
    assert [method, task] == [["rejection.py"], ["coins.py"]]
    outside, study = commands(clone, "Add a method of inference")
    (command,) = commands(clone, "Add a task of the benchmark")
    # A task with a wrong noise is seen.
    (clone / "wrong.py").write_text((clone / "coins.py").read_text().replace('{"coins": ', '{"wrong": '))
    clone.edit("wrong.py", "/ self.scale", "/ (4 * self.scale)")
    said = scores(together(clone, outside, command, [word.replace("coins.py", "wrong.py") for word in command]))
    accuracy = {key: float(line.split()[0]) for key, line in said.items() if not line.startswith("refused")}
    assert accuracy["binomial", "rejection"] < 0.53 < accuracy["multinomial", "naive"]
    assert said["multinomial", "rejection"].startswith("refused: of 200,000 simulations fewer than 1000 are kept")
    # The task's grid agrees with weighted simulations; the release taken for data does not.
    assert {name for task, name in said if task == "coins"} == {"exact", "simulation", "naive"}
    assert max(accuracy["coins", name] for name in ("exact", "simulation")) < 0.53 < accuracy["coins", "naive"]
    assert accuracy["wrong", "simulation"] > 0.55
    (clone / "wrong.py").unlink()
    assert changed(clone) == ["coins.py", "rejection.py"]
    places = [f"src/privpost/inference_benchmark/{place}" for place in ("methods/rejection.py", "tasks/coins.py")]
    for place in places:
        (clone / Path(place).name).rename(clone / place)
    # One point of the study, in place of its grid.
    point = (*study, "task=binomial", "n=10", "methods=[rejection,exact]")
    said = together(clone, point, ("bench", "list", "--tasks", "coins,binomial"))
    (table,) = clone.folder.glob("build/sweeps/*/leaderboard.csv")
    assert "rejection," in table.read_text()
    assert "\ncoins " in said
    assert changed(clone) == places


DIFF = re.compile(r"^In `([a-z][\w./]+)`.*?^```diff\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def apply(clone, title: str) -> None:
    """Make the replacements that a section shows: runs of lines with a minus become those with a plus after them."""
    section = (clone / "CONTRIBUTING.md").read_text().split(f"\n## {title}\n")[1].split("\n## ", maxsplit=1)[0]
    for name, diff in DIFF.findall(section):
        for old, new in re.findall(r"((?:^-.*\n)+)((?:^\+.*\n)+)", diff, re.MULTILINE):
            clone.edit(name, *(re.sub(r"^[-+]", "", part, flags=re.MULTILINE) for part in (old, new)))


def test_a_column_is_three_lines(tutorial):
    """It is in the table and the figure, no cell is computed again, and wrong turns are told in a line."""
    stored = {path: path.stat().st_mtime_ns for path in (tutorial / "build/smoke/cells").rglob("*.npz")}
    table = tutorial / "build/smoke/results/tutorial/noise/noise.csv"
    before = table.read_text()
    figures = (tutorial / "src/privpost/experiments/tutorial/noise/figures.py").read_text()
    apply(tutorial, "Add a column")
    # The figure first: the table that is there lacks the column.
    build, draw = ("build", *NOISE), ("draw", *NOISE, "--built")
    said = together(tutorial, draw, build, draw, ("status", *NOISE), statuses=(2, 0, 0, 0))
    assert "noise has no column or row named 'far'" in said and "Traceback" not in said
    assert "No meaning for" not in said and " 0 of them by other code" in said
    assert "far" in table.read_text().splitlines()[0] and "far" not in before.splitlines()[0]
    assert {path: path.stat().st_mtime_ns for path in (tutorial / "build/smoke/cells").rglob("*.npz")} == stored
    assert "far" in (tutorial / "src/privpost/experiments/tutorial/noise/figures.py").read_text() != figures
    tutorial.edit("src/privpost/experiments/tutorial/noise/study.py", ', "far": "errors above one half [share]"', "")
    assert "No meaning for noise.far: give it in TABLES of " in tutorial.run("privpost", *build)
