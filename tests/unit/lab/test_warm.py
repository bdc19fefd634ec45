"""Jobs forked from a process that has loaded the libraries are those that Python itself would have run."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from privpost.lab import warm

JOB = """
import json, os, sys
if __name__ == "__main__":
    print(json.dumps([sys.argv, os.getcwd(), os.environ["COLOUR"], sys.path[:2], sys.stdin.read()]), flush=True)
    print("trouble", file=sys.stderr, flush=True)
    end = sys.argv[1]
    os.kill(os.getpid(), int(end)) if end in ("9", "15") else sys.exit(end if end == "words" else int(end))
"""


@pytest.fixture(scope="module")
def python():
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(warm, "LIBRARIES", ("json",))
        patch.delenv(warm.RUNNING, raising=False)
        return warm.start()


@pytest.fixture
def folder(tmp_path) -> Path:
    (tmp_path / "own").mkdir()
    (tmp_path / "own" / "job.py").write_text(JOB)
    (tmp_path / "at work").mkdir()
    return tmp_path


def run(folder: Path, *command: str):
    environment = {**os.environ, "COLOUR": "blå", "PYTHONPATH": str(folder / "own")}
    return subprocess.run(
        command, cwd=folder / "at work", env=environment, input="given", capture_output=True, text=True, check=False
    )


@pytest.mark.parametrize("end", ["0", "3", "words", "9", "15"])
def test_a_forked_job_is_the_one_that_python_runs(python, folder, end):
    """Words, folder, environment, search path, the three streams, and how it ends: also killed."""
    forked, started = (run(folder, program, "-m", "job", end) for program in (python, sys.executable))
    assert forked.stdout == started.stdout != ""
    assert forked.stderr == started.stderr
    killed = -signal.SIGKILL if end in ("9", "15") else None
    assert forked.returncode == (killed or started.returncode)


def test_a_job_that_raises_shows_its_traceback(python, folder):
    (folder / "own" / "job.py").write_text("raise RuntimeError('seeded')")
    done = run(folder, python, "-m", "job")
    assert done.returncode == 1
    assert done.stderr.endswith("RuntimeError: seeded\n")


@pytest.mark.skipif(sys.platform != "linux", reason="settings of the C library of Linux")
def test_a_job_keeps_the_memory_of_its_arrays(python, folder):
    """The same fifty megabytes are given back and taken again, which Python itself asks of the system each time."""
    pages = "import resource; faults = lambda: resource.getrusage(resource.RUSAGE_SELF).ru_minflt; "
    take = "[bytes(5 * 10**7).count(1) for _ in range(5)]; "
    (folder / "own" / "job.py").write_text(pages + take + "before = faults(); " + take + "print(faults() - before)")
    forked, started = (int(run(folder, program, "-m", "job").stdout) for program in (python, sys.executable))
    assert forked < 100 < started


def test_a_job_ends_as_python_does(python, folder):
    """A pool of processes is closed at the end; its processes would hold the streams open."""
    (folder / "own" / "job.py").write_text("import atexit; atexit.register(print, 'closed')")
    assert run(folder, python, "-m", "job").stdout == "closed\n"


def test_a_job_ends_without_being_taken_apart(python, folder):
    """Python itself deletes what is left at its end, object by object, which takes a tenth of a second."""
    code = "import builtins\nclass Left:\n    def __del__(self):\n        print('deleted')\nbuiltins.left = Left()\n"
    (folder / "own" / "job.py").write_text(code)
    forked, started = (run(folder, program, "-m", "job").stdout for program in (python, sys.executable))
    assert (forked, started) == ("", "deleted\n")


def test_what_a_job_imports_is_read_anew(python, folder):
    assert run(folder, python, "-m", "job", "0").returncode == 0
    (folder / "own" / "job.py").write_text("import sys; sys.exit(5)")
    assert run(folder, python, "-m", "job", "0").returncode == 5


def test_a_call_without_a_server_is_python(folder):
    done = run(folder, sys.executable, "-I", "-S", warm.__file__, "call", str(folder / "socket"), "-m", "job", "4")
    assert done.returncode == 4
    assert "given" in done.stdout


def test_a_request_to_end_reaches_the_job(python, folder):
    (folder / "own" / "job.py").write_text("import time; print('begun', flush=True); time.sleep(60)")
    environment = {**os.environ, "PYTHONPATH": str(folder / "own")}
    process = subprocess.Popen([python, "-m", "job"], env=environment, stdout=subprocess.PIPE, text=True)
    assert process.stdout.readline() == "begun\n"
    process.terminate()
    assert process.wait(timeout=20) == -signal.SIGKILL


def test_the_server_ends_with_the_process_that_started_it():
    code = "from privpost.lab import warm; warm.LIBRARIES = (); print(warm.start())"
    environment = {key: value for key, value in os.environ.items() if key != warm.RUNNING}
    done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True)
    place = Path(done.stdout.strip()).parent
    end = time.monotonic() + 30
    while place.exists() and time.monotonic() < end:
        time.sleep(0.05)
    assert not place.exists()


def test_a_server_that_runs_already_is_used(monkeypatch):
    monkeypatch.setenv(warm.RUNNING, "/some/python")
    assert warm.start() == "/some/python"
