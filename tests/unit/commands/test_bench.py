"""`privpost bench`: methods and tasks in a file, draws in files, and what a faulty one is told."""

from __future__ import annotations

import contextlib
import gzip
import io
import json
import re
import shutil
import time
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from dispatched import privpost

from privpost.inference_benchmark import methods, optional, outside, scoring, tasks

HEAD = "import numpy as np\nfrom privpost.inference_benchmark.base import Inferred, Refused\n"
INFER = "def infer(task, releases, rng, budget):\n"
PRIOR = "    drawn = task.prior(len(releases) * budget.total, rng).reshape(len(releases), 1, budget.total, -1)\n"
EXACT = HEAD + INFER + "    return Inferred(task.reference(releases, budget.total, rng)[:, None])\n"
FAULTY = {
    "raises": ("    raise RuntimeError('no luck\\nat all')\n", "failed: RuntimeError: no luck (raises.py:"),
    "no_number": (
        PRIOR + "    drawn[-1] = np.nan\n    return Inferred(drawn)\n",
        "draws of 1 of 5 releases are no numbers",
    ),
    "few": (PRIOR + "    return Inferred(drawn[:, :, :10])\n", "it gave 10 draws for each release; it must give 1000"),
    "flat": (
        PRIOR + "    return Inferred(drawn[:, 0])\n",
        "draws of shape (5, 1000, 1); the shape must be",
    ),
    "bare": (PRIOR + "    return drawn\n", "failed: TypeError: it returned a ndarray; it must return Inferred(draws)"),
    "words": (PRIOR + "    return Inferred(drawn.astype(str) + 'x')\n", "failed: ValueError: could not convert string"),
    "worth": (
        PRIOR + "    return Inferred(drawn, np.ones(3))\n",
        "effective numbers of shape (3,); the shape must be",
    ),
    "huge": (PRIOR + "    return Inferred(drawn * 1e300)\n", "draws of 5 of 5 releases are no numbers"),
    "unknown": (
        PRIOR + "    return Inferred(drawn, np.full(len(drawn), np.nan))\n",
        "its draws cannot be scored",
    ),
    "declines": ("    raise Refused('not today')\n", "refused: not today"),
}


FAULTY_TASK = ("score", "exact", "--tasks", "faulty.py")


@pytest.fixture(autouse=True)
def here(tmp_path, monkeypatch):
    """A folder that is no project, with a method whose draws are exact."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "my_method.py").write_text(EXACT)
    return tmp_path


def score(*words: str, status: int = 0) -> pd.DataFrame:
    """Return the scores of a command, by task and method."""
    assert privpost("bench", "score", *words, "--output", "scores.csv") == status
    return pd.read_csv("scores.csv").set_index(["task", "method"])


def refused(capsys, *words: str) -> str:
    """Return the one line that a mistake is told in."""
    capsys.readouterr()
    assert privpost("bench", *words) == 2
    said = capsys.readouterr()
    assert said.out == "" and said.err.count("\n") == 1 and said.err.startswith("privpost: ")
    return said.err


def test_a_file_is_scored_as_a_method_of_the_package(capsys):
    """Draws from the exact posterior cannot be told from exact ones; those of the prior can."""
    found = score("my_method.py", "exact", "prior", "--tasks", "naive_bayes,private_n_binomial")
    assert list(found.index) == [(task, method) for task in ("naive_bayes", "private_n_binomial")
                                 for method in ("my_method", "exact", "prior")]  # fmt: skip
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 1 + len(found) and lines[1].startswith("naive_bayes ")
    assert f"{found.c2st.iloc[0]:.3f} ± " in lines[1]
    own, known, prior = (found.xs(name, level="method") for name in ("my_method", "exact", "prior"))
    assert (own.distance == known.distance).all()
    assert (own.c2st < 0.53).all() and (prior.c2st > 0.65).all()
    assert found.version.str.startswith("privpost ").all() and found.machine.str.contains("core").all()
    case = scoring.case(tasks.made("naive_bayes"), 5, outside.REFERENCE)
    outcome = scoring.run(
        methods.method("exact"), case.task, case.releases, np.random.default_rng(1), outside.Setting().budget
    )
    measured = scoring.measured(outcome.inferred, case, np.random.default_rng(2))
    assert own.distance["naive_bayes"] == pytest.approx(measured["distance"].mean())
    assert own.mean_error["naive_bayes"] == pytest.approx(np.sqrt(measured["mean_error"].mean()))
    assert own.sd_error_sem["naive_bayes"] == pytest.approx(measured["sd_error"].std(ddof=1) / np.sqrt(5))


@pytest.mark.parametrize("names", [[name for name in FAULTY if name != "declines"], ["declines"]])
def test_a_faulty_method_is_one_line_and_the_others_run_on(here, capsys, names):
    for name in names:
        (here / f"{name}.py").write_text(HEAD + INFER + FAULTY[name][0])
    files, status = [f"{name}.py" for name in (*names, "my_method")], 0 if names == ["declines"] else 1
    found = score(*files, "--tasks", "binomial,exponential", status=status)
    said = capsys.readouterr()
    assert said.err == ""
    head, *lines = said.out.splitlines()
    points = [(task, method) for task in ("binomial", "exponential") for method in (*names, "my_method")]
    assert [tuple(line.split()[:2]) for line in lines] == points
    assert [line.split()[2:4] for line in (head, lines[0])] == [["n", "ε"], ["100", "1"]]
    for line, (task, method) in zip(lines, points, strict=True):
        if method == "my_method":
            assert found.c2st[task, method] < 0.53
            continue
        told = FAULTY[method][1]
        assert told in line
        assert found.status[task, method] == ("refused" if told.startswith("refused") else "failed")
        assert np.isnan(found.c2st[task, method])


def test_a_signal_that_ends_the_command_is_no_fault_of_the_method(here):
    """It arrives as SystemExit."""
    (here / "own.py").write_text(HEAD + INFER + "    raise SystemExit(143)\n")
    with pytest.raises(SystemExit, match="143"):
        privpost("bench", "score", "own.py", "--tasks", "binomial")


def test_a_method_that_writes_over_the_releases_spoils_no_other(here):
    (here / "own.py").write_text(HEAD + INFER + "    releases[:] = 0\n" + PRIOR + "    return Inferred(drawn)\n")
    assert score("own.py", "my_method.py", "--tasks", "binomial").c2st["binomial", "my_method"] < 0.53


def test_mistakes_are_one_line(here, capsys):
    assert "nothere.py is not there" in refused(capsys, "score", "nothere.py")
    (here / "empty.py").write_text("")
    assert "empty.py has no function infer(task, releases, rng, budget)" in refused(capsys, "score", "empty.py")
    (here / "broken.py").write_text("import nowhere\n")
    assert "ModuleNotFoundError: No module named 'nowhere'" in refused(capsys, "score", "broken.py")
    (here / "faulty.py").write_text(HEAD + TASK.replace("(draws, 1)", "(draws, 2)"))
    assert "task coins: ValueError: cannot reshape" in refused_after_head(
        capsys, "score", "exact", "--tasks", "faulty.py"
    )
    assert "Did you mean 'gibbs'?" in refused(capsys, "score", "gibs")
    assert "Did you mean 'naive_bayes'?" in refused(capsys, "score", "exact", "--tasks", "naive_bays")
    assert "empty.py has no TASKS" in refused(capsys, "score", "exact", "--tasks", "empty.py")
    assert "export takes one folder" in refused(capsys, "export", "one", "two")
    assert "score takes methods" in refused(capsys, "score")
    assert "--epsilon is -1.0, but must be a positive" in refused(capsys, "score", "exact", "--epsilon", "-1")
    assert "--releases is '0', but must be a whole" in refused(capsys, "score", "exact", "--releases", "0")


TASK = """
from privpost.inference_benchmark.base import Task
from privpost.inference_benchmark.tasks import Made
from privpost.mechanisms.noise.laplace import LaplaceMechanism
from privpost.models.conjugate.beta_bernoulli import BetaBernoulli


class Coins(Task):
    size = 1

    def __init__(self, name, prior, n, noise, budget):
        self.name, self.n, self.model = name, n, BetaBernoulli(*prior)
        self.mechanism = LaplaceMechanism.calibrate(self.model, n, budget, coordinates="free")

    def data(self, theta, rng):
        ones = rng.binomial(self.n, theta[:, 0])
        return np.stack([ones, self.n - ones], axis=-1).astype(float)

    def laws(self, releases):
        posterior = self.mechanism.posterior
        return [lambda draws, rng, y=y: np.reshape(posterior(y, draws, rng), (draws, 1)) for y in releases]


TASKS = {"coins": Made(Coins, (1, 1), n=30)}
"""


def test_a_task_is_one_file_too(here, capsys):
    (here / "own_task.py").write_text(HEAD + TASK)
    found = score("exact", "simulation", "prior", "data_augmentation", "--tasks", "own_task.py", "--epsilon", "2")
    assert found.c2st["coins", "simulation"] < 0.55 and found.c2st["coins", "prior"] > 0.6
    assert found.status["coins", "data_augmentation"] == "refused"
    assert (found.n == 30).all() and (found.epsilon == 2).all()
    assert privpost("bench", "export", "out", "--tasks", "own_task.py") == 0
    assert json.loads((here / "out/coins/task.json").read_text())["scale"] == 1.0


def test_an_installed_package_names_methods(monkeypatch):
    """Groups of entry points are how; no study runs them."""
    point = SimpleNamespace(name="theirs", load=lambda: methods.method("exact"))
    monkeypatch.setattr(outside, "entry_points", lambda group: [point] if group == "privpost.methods" else [])
    assert score("theirs", "--tasks", "binomial").c2st["binomial", "theirs"] < 0.53
    assert "theirs" not in methods.names()


@pytest.fixture(scope="module")
def written(tmp_path_factory):
    """A folder with two tasks in files, which tests copy."""
    folder = tmp_path_factory.mktemp("exported")
    with pytest.MonkeyPatch.context() as patch, contextlib.redirect_stdout(io.StringIO()) as said:
        patch.chdir(folder)
        assert privpost("bench", "export", "out", "--tasks", "naive_bayes,binomial_gaussian", "--releases", "3") == 0
    assert said.getvalue().split() == ["out/naive_bayes", "out/binomial_gaussian"]
    return folder / "out"


@pytest.fixture
def exported(here, written):
    return shutil.copytree(written, here / "out")


def put(folder, draws, name="theirs", task="naive_bayes", names=None, chains=False) -> None:
    """Write draws (releases, draws, p) as a method of another language would."""
    names = names or [f'"theta_{i}"' for i in range(1, draws.shape[2] + 1)]
    place = folder / "draws" / name / task
    place.mkdir(parents=True)
    for i, rows in enumerate(draws, start=1):
        lines = [",".join([*['"chain"'] * chains, *names])]
        for k, row in enumerate(rows):
            lines.append(",".join([*[str(1 + k * 4 // len(rows))] * chains, *(f"{x:.17g}" for x in row)]))
        (place / f"{i}.csv").write_text("\n".join(lines) + "\n")


def test_a_task_in_files_is_what_is_scored(exported):
    told = json.loads((exported / "naive_bayes/task.json").read_text())
    assert told["neighbours"] == "substitution" and told["scale"] == 6.0 and told["sensitivity"] == 6.0
    assert told["epsilon"] == 1.0 and told["notion"] == "pure" and told["delta"] is None and told["n"] == 100
    assert told["model"]["alpha"] == 1 and told["reference"]["kind"] == "exact" and told["draws"] == 1000
    other = json.loads((exported / "binomial_gaussian/task.json").read_text())
    assert other["notion"] == "approximate" and other["delta"] == tasks.DELTA and other["noise"] == "gaussian"
    assert "true" not in told and "theta" not in told
    case = scoring.case(tasks.made("naive_bayes"), 3, outside.REFERENCE)
    np.testing.assert_array_equal(pd.read_csv(exported / "naive_bayes/releases.csv").to_numpy(), case.releases)
    reference = pd.read_csv(exported / "naive_bayes/reference.csv.gz")
    assert (
        list(reference.columns) == ["release", *told["parameters"]] and len(reference) == 3 * told["reference"]["draws"]
    )
    np.testing.assert_allclose(reference[reference.release == 2].to_numpy()[:, 1:], case.reference[1], rtol=1e-6)
    packed = (exported / "naive_bayes/reference.csv.gz").read_bytes()
    assert privpost("bench", "export", str(exported), "--tasks", "naive_bayes", "--releases", "3") == 0
    assert (exported / "naive_bayes/reference.csv.gz").read_bytes() == packed and gzip.decompress(packed)


def test_draws_in_files_are_scored_as_in_memory(exported, capsys):
    """The same draws get the same distances; those of one release taken for another's are seen."""
    case = scoring.case(tasks.made("naive_bayes"), 3, outside.REFERENCE)
    draws = case.task.reference(case.releases, 1000, np.random.default_rng(1))
    put(exported, draws)
    put(exported, draws[::-1], name="turned")
    put(exported, draws, name="chains", chains=True)
    found = score("out", "exact", "--tasks", "naive_bayes", "--releases", "3").loc["naive_bayes"]
    for column in ("distance", "mean_error", "sd_error"):
        assert found[column]["theirs"] == pytest.approx(found[column]["exact"], rel=1e-9)
        assert found[column]["chains"] == pytest.approx(found[column]["theirs"])
    assert found.c2st["theirs"] < 0.54 and found.c2st["turned"] > 0.7
    assert found.ess["theirs"] == 1000 > found.ess["chains"] > 700
    assert found.seconds.isna()[["theirs", "turned", "chains"]].all() and found.seconds["exact"] > 0
    line = next(line for line in capsys.readouterr().out.splitlines() if " theirs " in line)
    assert line.endswith("-")


def test_faulty_files_are_one_line_each(exported, capsys):
    draws = np.full((3, 1000, 5), 0.5)
    put(exported, draws[:, :10], name="a_few")
    put(exported, draws[:2], name="b_lacks")
    put(exported, draws, name="c_names", names=["", *"abcd"])
    lost = draws.copy()
    lost[2, 7, 1] = np.nan
    put(exported, lost, name="d_nan")
    score("out", "my_method.py", "--tasks", "naive_bayes,binomial_gaussian", status=1)
    told = [line.split(maxsplit=4) for line in capsys.readouterr().out.splitlines()[1:]]
    assert [line[1] for line in told] == ["my_method", "a_few", "b_lacks", "c_names", "d_nan", "my_method"]
    assert [line[4] for line in told[1:5]] == [
        "failed: it gave 10 draws for each release; it must give 1000",
        "failed: ValueError: 3.csv is not there",
        "failed: ValueError: 1.csv has columns , a, b, c, d; they must be theta_1, theta_2, theta_3, theta_4, theta_5",
        "failed: draws of 1 of 3 releases are no numbers",
    ]


def test_a_folder_that_is_no_export_is_refused(exported, here, capsys):
    assert "there are no draws for 21 tasks in out" in refused_after_head(capsys, "score", "out")
    put(exported, np.full((3, 1000, 5), 0.5))
    path = exported / "naive_bayes/releases.csv"
    path.write_text(re.sub(r"\d", "7", path.read_text()).replace("y_7", "y"))
    assert "releases.csv has other releases than this version" in refused_after_head(capsys, "score", "out")
    (exported / "naive_bayes/task.json").write_text("{}")
    assert "task.json is not as `privpost bench export`" in refused_after_head(capsys, "score", "out")


def refused_after_head(capsys, *words: str) -> str:
    capsys.readouterr()
    assert privpost("bench", *words) == 2
    said = capsys.readouterr()
    assert said.out.count("\n") == 1 and said.err.count("\n") == 1
    return said.err


def test_every_task_can_be_scored_in_ten_seconds():
    """CPU seconds of a task with its five exact posteriors and of scoring one method on it."""
    for entry in outside.entries():
        start = time.process_time()
        found = score("naive", "--tasks", entry.label)
        assert time.process_time() - start < 10, entry.label
        assert np.isfinite(found.c2st).all()


def test_the_list_has_every_task_and_method(capsys):
    chosen = "naive_bayes,binomial_gaussian,private_n_binomial"
    assert privpost("bench", "list", "--tasks", chosen) == 0
    tables, *about, scores = capsys.readouterr().out.split("\n\n")
    assert scores.startswith("Scores, with standard errors:\n  c2st ")
    lines = tables.splitlines()
    assert lines[0].split() == ["task", "model", "n", "mechanism", "budget", "neighbours", "reference"]
    assert [line.split()[0] for line in lines[1:]] == chosen.split(",")
    assert "NetworkLaplace" in lines[1] and "ε = 1 (pure DP)" in lines[1] and lines[1].endswith("exact")
    assert "(1, 1e-06)-DP" in lines[2] and "add or remove one" in lines[3]
    assert {text.split(":")[0].strip() for text in about} == methods.names() | set(optional.names())
