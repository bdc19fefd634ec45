"""Compiled loops: one process compiles, the others wait and read."""

from __future__ import annotations

import fcntl
import importlib.util
import shutil
import subprocess
import sys
import threading

import pytest

from privpost.samplers import compiled


@pytest.fixture
def place(tmp_path, monkeypatch):
    """The folder of compiled loops, as if the sources stood in a temporary folder."""
    name = compiled.folder()
    monkeypatch.setattr(compiled, "__file__", str(tmp_path / "sources" / "compiled.py"))
    return tmp_path / "sources" / "__pycache__" / name


def compile_one():
    """Compile a small loop in a thread; returns the event that it is compiled, and the thread."""
    done = threading.Event()

    def work():
        loop = compiled.outer()(lambda n: n + 1)
        assert loop(1) == 2
        done.set()

    thread = threading.Thread(target=work, daemon=True)
    thread.start()
    return done, thread


def test_a_loop_that_another_process_compiles_is_waited_for(place):
    place.mkdir(parents=True)
    lock = place / f"{__name__}.compile_one.<locals>.work.<locals>.<lambda>.lock"
    with lock.open("a") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        done, thread = compile_one()
        assert not done.wait(1)
    assert done.wait(60)
    thread.join()


def test_without_a_folder_for_locks_a_loop_is_compiled_anyway(place):
    place.parent.parent.touch()
    done, thread = compile_one()
    assert done.wait(60)
    thread.join()


def test_a_loop_that_takes_seconds_is_announced_when_it_is_compiled_and_not_when_it_is_read(place, tmp_path, capsys):
    """In a module of a file, as only such loops are kept; what the loop calls is compiled without a line of its own."""
    file = tmp_path / "sources" / "kept.py"
    file.parent.mkdir(parents=True)
    file.write_text(
        "from privpost.samplers.compiled import inner, outer\n"
        "@inner\ndef one(n):\n    return n + 1\n"
        "@outer(seconds=7)\ndef two(n):\n    return one(one(n))\n"
        "@outer()\ndef three(n):\n    return one(one(one(n)))\n"
    )
    for said in ["privpost: compiling kept.two once, about 7 s\n", ""]:
        spec = importlib.util.spec_from_file_location("kept", file)
        module = importlib.util.module_from_spec(spec)
        sys.modules["kept"] = module
        spec.loader.exec_module(module)
        assert (module.two(1), module.three(1)) == (3, 4)
        assert capsys.readouterr().err == said
    del sys.modules["kept"]


def test_a_changed_helper_in_a_sub_folder_is_compiled_anew(tmp_path):
    """numba itself checks the loop's own file only, and would read the loop with the old helper in it."""
    package = tmp_path / "copied"
    (package / "part").mkdir(parents=True)
    shutil.copy(compiled.__file__, package / "compiled.py")
    helper, loop = package / "part" / "helper.py", package / "part" / "loop.py"
    helper.write_text("from copied.compiled import bare\n@bare\ndef step(n):\n    return n + 1\n")
    loop.write_text(
        "from copied.compiled import outer\nfrom copied.part.helper import step\n"
        "@outer(seconds=3)\ndef two(n):\n    return step(step(n))\nprint(two(1))\n"
    )

    def run():
        command = [sys.executable, "-m", "copied.part.loop"]
        done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=True, timeout=60)
        return int(done.stdout), done.stderr

    said = "privpost: compiling __main__.two once, about 3 s\n"
    assert [run(), run()] == [(3, said), (3, "")]
    helper.write_text(helper.read_text().replace("n + 1", "n + 5"))
    assert run() == (11, said)
    # Beside the locks, under the sub-folder's name.
    assert len(list((package / "__pycache__").glob("compiled_*/part/loop.two*.nbi"))) == 2
