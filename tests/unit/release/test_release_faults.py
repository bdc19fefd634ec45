"""`privpost release`: faults that once gave a release away, charged for nothing, or let the ledger lie."""

from __future__ import annotations

import errno
import fcntl
import hashlib
import io
import itertools
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from release_cases import BITS, LEDGER, PAID, exit_with, lines

from privpost.commands import cli
from privpost.privacy.ledger import file as ledger_file
from privpost.release import delivery, models


def user(folder, *argv: str, **options) -> subprocess.CompletedProcess:
    """The command in a process of its own."""
    return subprocess.run(
        [sys.executable, "-m", "privpost", "release", "spec.yaml", "--data", "data.csv", *argv],
        cwd=folder.path,
        env={**os.environ, "PYTHONPATH": str(Path(cli.__file__).parents[2]), **options.pop("env", {})},
        check=False,
        **options,
    )


@pytest.mark.parametrize(("n", "delta"), [(4, 2e-6), (4, 0.5), (400_000, 5e-7)])
def test_a_large_delta_is_refused_or_not_called_private(folder, n, delta):
    """With ε = 10, δ = 0.5 and 50 records the exact count came out."""
    found = {**BITS, "n": n, "mechanism": "gaussian", "delta": delta}
    folder.specify(found)
    status, out, err = folder.run("--dry-run")
    assert (status, out) == (2, "")
    assert f"delta is {delta:g}, but must be at most" in err
    folder.specify({**found, "allow_large_delta": True})
    privacy = json.loads(folder.run("--dry-run")[1])["privacy"]
    assert privacy["private"] is False
    assert privacy["covers"][0].startswith("NOT A PRIVATE RELEASE: with probability up to delta")


def test_a_ledger_that_is_replaced_while_its_lock_is_waited_for_gets_the_entry(folder, monkeypatch):
    folder.specify(PAID)
    assert folder.run("--output", "first.json")[0] == 0
    ledger, flock = folder.path / "ledger.jsonl", fcntl.flock

    def replaced(handle, kind):
        monkeypatch.setattr(fcntl, "flock", flock)
        other = folder.path / "other"
        other.write_bytes(ledger.read_bytes())
        other.rename(ledger)
        return flock(handle, kind)

    monkeypatch.setattr(fcntl, "flock", replaced)
    assert folder.run("--output", "second.json")[0] == 0
    assert [line.get("release") for line in lines(folder)] == [None, 1, 2]


def test_another_budget_needs_another_ledger(folder):
    folder.specify(PAID)
    assert folder.run("--output", "first.json")[0] == 0
    folder.specify({**PAID, "budget": {**LEDGER, "epsilon": 100}})
    before = (folder.path / "ledger.jsonl").read_bytes()
    status, out, err = folder.run()
    assert (status, out) == (2, "")
    assert "budget: epsilon 100, delta 0, but the ledger ledger.jsonl was opened with epsilon 2.5" in err
    assert (folder.path / "ledger.jsonl").read_bytes() == before


def test_a_statement_has_its_place_in_the_ledger(folder):
    folder.specify(PAID)
    shown = [json.loads(folder.run()[1])["ledger"] for _ in range(2)]
    assert [one["release"] for one in shown] == [1, 2]
    assert [one["spent"]["epsilon"] for one in shown] == [1.0, 2.0]
    raw = (folder.path / "ledger.jsonl").read_bytes().splitlines()
    assert [one["entry_sha256"] for one in shown] == [json.loads(line)["digest"] for line in raw[1:]]
    bodies = [line[: line.index(b', "digest"')] + b"}" for line in raw[1:]]
    assert [one["entry_sha256"] for one in shown] == [hashlib.sha256(body).hexdigest() for body in bodies]
    specification = (folder.path / "spec.yaml").read_bytes()
    assert lines(folder)[1]["sha256"] == hashlib.sha256(specification).hexdigest()


@pytest.mark.parametrize("edit", ["drop", "cheaper", "swap", "headless"])
def test_an_edited_ledger_is_refused(folder, edit):
    folder.specify({**PAID, "budget": {**LEDGER, "epsilon": 10}})
    for _ in range(3):
        assert folder.run()[0] == 0
    path = folder.path / "ledger.jsonl"
    raw = path.read_bytes().splitlines(keepends=True)
    if edit == "drop":
        del raw[1]
    elif edit == "cheaper":
        raw[1] = raw[1].replace(b'"epsilon": 1.0', b'"epsilon": 0.1')
    elif edit == "swap":
        raw[1], raw[2] = raw[2], raw[1]
    else:
        del raw[0]
    path.write_bytes(b"".join(raw))
    status, out, err = folder.run()
    assert (status, out) == (2, "")
    assert ("is no ledger of this version" if edit == "headless" else "does not follow from the line before it") in err


@pytest.mark.parametrize("place", ["name", "level", "column", "ledger"])
def test_what_cannot_be_written_is_found_before_the_charge(folder, place):
    argv = ["--output", "x" * 300] if place == "name" else []
    found = json.loads(json.dumps(PAID))
    if place == "level":
        found["columns"]["smokes"]["levels"] = ["no", "\ud800"]
    elif place == "column":
        found["columns"] = {"\ud800": found["columns"]["smokes"]}
    elif place == "ledger":
        found["budget"]["ledger"] = "a\x00"
    (folder.path / "spec.yaml").write_text(json.dumps(found))
    status, out, err = folder.run(*argv)
    assert (status, out) == (2, "")
    assert err.startswith("privpost: ")
    if place != "name":
        assert folder.run("--dry-run")[0] == 2
    assert folder.files() == {"spec.yaml", "data.csv"}


def test_an_output_name_of_250_characters_is_no_trouble(folder):
    folder.specify(PAID)
    assert folder.run("--output", "x" * 250)[0] == 0


def test_a_posterior_that_fails_loses_nothing_and_is_drawn_again_for_free(folder, monkeypatch):
    def exhausted(*_):
        raise MemoryError

    folder.specify(PAID)
    kind = models.KINDS["beta_bernoulli"]
    working = type(kind).posterior
    monkeypatch.setattr(type(kind), "posterior", exhausted)
    assert folder.run("--output", "first.json")[0] == 1
    first = json.loads((folder.path / "first.json").read_text())
    assert first["posterior"]["failed"].startswith("not enough memory")
    monkeypatch.setattr(type(kind), "posterior", working)
    status, out, _ = folder.run("--again", "first.json")
    second = json.loads(out)
    assert status == 0
    assert len(second.pop("posterior")["draws"]["P(smokes = yes)"]) == 3
    del first["posterior"]
    assert second == first
    assert len(lines(folder)) == 2
    folder.specify({**PAID, "epsilon": 2})
    assert folder.run("--again", "first.json")[0] == 2


def test_statements_are_utf8_whatever_standard_output_is(folder):
    folder.specify({**BITS, "columns": {"smokes": {"levels": ["nein", "jäß"]}}})
    folder.data("smokes\njäß\nnein\njäß\nnein\n")
    done = user(folder, capture_output=True, env={"PYTHONIOENCODING": "latin-1", "PYTHONUTF8": "0"})
    assert done.returncode == 0
    assert "jäß" in json.loads(done.stdout.decode("utf-8"))["statistics"]["counts"]["smokes"]


def test_a_statement_that_no_disk_takes_is_printed_in_utf8(folder, monkeypatch):
    """A standard output in Latin-1 lost it."""
    folder.specify({**PAID, "columns": {"smokes": {"levels": ["no", "да"]}}})
    folder.data("smokes\nда\nno\nда\nno\n")
    write, calls = delivery.Delivery._write, itertools.count()

    def full(self, content):
        if next(calls):
            raise OSError(errno.ENOSPC, "No space left on device")
        write(self, content)

    printed = io.TextIOWrapper(io.BytesIO(), "latin-1")
    monkeypatch.setattr(delivery.Delivery, "_write", full)
    monkeypatch.setattr(sys, "stdout", printed)
    assert cli.main(["release", "spec.yaml", "--data", "data.csv", "--output", "o.json"]) == 1
    assert json.loads(printed.buffer.getvalue().decode())["ledger"]["release"] == 1
    assert "the statement is on standard output. Epsilon 1 was spent." in folder.capsys.readouterr().err


@pytest.mark.parametrize("sink", ["/dev/full", "closed pipe"])
def test_a_statement_that_cannot_be_printed_is_kept(folder, sink):
    folder.specify(PAID)
    if sink == "/dev/full":
        with Path(sink).open("wb") as handle:
            done = user(folder, stdout=handle, stderr=subprocess.PIPE)
    else:
        reading, writing = os.pipe()
        os.close(reading)
        done = user(folder, stdout=writing, stderr=subprocess.PIPE)
        os.close(writing)
    assert done.returncode == 1
    assert b"Epsilon 1 was spent." in done.stderr
    assert b"Traceback" not in done.stderr
    assert b"Exception ignored" not in done.stderr
    (place,) = folder.path.glob(".privpost.*")
    assert f"the statement is in {place.name}" in done.stderr.decode()
    kept = json.loads(place.read_text())
    assert kept["ledger"]["release"] == 1
    assert "posterior" in kept
    # Later releases name it and leave it alone.
    status, out, err = folder.run()
    assert status == 0
    assert f"{place.name} holds a release that was not delivered" in err
    assert json.loads(place.read_text()) == kept
    assert json.loads(out)["ledger"]["release"] == 2


def test_a_full_disk_leaves_the_ledger_as_it_was(folder, monkeypatch):
    folder.specify(PAID)
    assert folder.run()[0] == 0
    path = folder.path / "ledger.jsonl"
    before, fsync = path.read_bytes(), os.fsync

    def full(number):
        if os.path.samefile(f"/proc/self/fd/{number}", path):
            raise OSError(28, "No space left on device")
        return fsync(number)

    monkeypatch.setattr(os, "fsync", full)
    status, out, err = folder.run()
    assert (status, out) == (2, "")
    assert "cannot be used as a ledger: No space left on device" in err
    assert path.read_bytes() == before
    monkeypatch.setattr(os, "fsync", fsync)
    assert folder.run()[0] == 0


@pytest.mark.parametrize("cut", [1, 2, 30, 200])
def test_bytes_that_are_cut_from_a_ledger_refund_nothing(folder, cut):
    """A whole entry counts with or without its newline; what is cut further stops all releases."""
    folder.specify(PAID)
    assert folder.run()[0] == 0
    path = folder.path / "ledger.jsonl"
    os.truncate(path, path.stat().st_size - cut)
    before = path.read_bytes()
    status, out, err = folder.run()
    if cut == 1:
        assert (status, json.loads(out)["ledger"]["release"]) == (0, 2)
        assert [line.get("release") for line in lines(folder)] == [None, 1, 2]
        return
    assert (status, out) == (2, "")
    assert "line 2, the last one, is cut off. If a statement of release 1 exists" in err
    assert path.read_bytes() == before


@pytest.mark.parametrize("content", [b"my only copy", b'{"a": 1}', b"[" * 100_000, b"one\ntwo\n", b"\n", b"\x00" * 9])
def test_a_file_that_is_no_ledger_is_never_written(folder, content):
    folder.specify({**PAID, "budget": {"ledger": "notes.txt", "epsilon": 2.5}})
    path = folder.path / "notes.txt"
    path.write_bytes(content)
    status, out, err = folder.run()
    assert (status, out) == (2, "")
    assert "notes.txt is no ledger of this version" in err
    assert path.read_bytes() == content


def test_an_entry_that_nests_without_end_is_one_line(folder):
    """Its digest is right: reading it as JSON overflowed the stack."""
    folder.specify(PAID)
    assert folder.run()[0] == 0
    path = folder.path / "ledger.jsonl"
    before = json.loads(path.read_bytes().splitlines()[-1])["digest"]
    body = b'{"a": ' + b"[" * 100_000 + b', "previous": "%s"}' % before.encode()
    with path.open("ab") as handle:
        handle.write(body[:-1] + b', "digest": "%s"}\n' % hashlib.sha256(body).hexdigest().encode())
    status, out, err = folder.run()
    assert (status, out, len(err.splitlines())) == (2, "", 1)
    assert "line 3 is no entry of a ledger" in err


def test_a_ledger_without_end_is_refused_at_once(folder, monkeypatch):
    folder.specify({**PAID, "budget": {"ledger": "/dev/full", "epsilon": 2.5}})
    assert "it is no regular file" in folder.run("--output", "o.json")[2]
    monkeypatch.setattr(ledger_file, "LARGEST_LEDGER", 9)
    folder.specify(PAID)
    assert folder.run("--output", "o.json")[0] == 0
    assert "larger than a ledger of 9 bytes" in folder.run("--output", "p.json")[2]


def test_a_stopped_release_that_waits_leaves_the_ledger_alone(folder):
    """The empty ledger of a release that holds the lock was deleted by one that had to wait."""
    folder.specify(PAID)
    path = folder.path / "ledger.jsonl"
    with path.open("ab") as handle:
        fcntl.flock(handle, fcntl.LOCK_EX)
        for number in (signal.SIGINT, signal.SIGTERM):
            process = os.fork()
            if not process:
                # A shell's background commands ignore it, and tests may be one.
                signal.signal(signal.SIGINT, signal.default_int_handler)
                signal.signal(signal.SIGTERM, signal.SIG_DFL)
                os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
                exit_with("--output", "o.json")
            while f"-> FLOCK  ADVISORY  WRITE {process}" not in Path("/proc/locks").read_text():
                time.sleep(0.01)
            os.kill(process, number)
            assert os.waitstatus_to_exitcode(os.waitpid(process, 0)[1]) == {signal.SIGINT: 130}.get(number, -number)
            assert path.exists()
    assert not (folder.path / "o.json").exists()


def test_a_ledger_that_is_replaced_once_it_is_locked_gets_the_entry_too(folder, monkeypatch):
    folder.specify(PAID)
    assert folder.run("--output", "first.json")[0] == 0
    ledger, fsync = folder.path / "ledger.jsonl", os.fsync
    before = ledger.read_bytes()

    def swapped(number):
        if os.path.samestat(os.fstat(number), ledger.stat()):
            monkeypatch.setattr(os, "fsync", fsync)
            other = folder.path / "other"
            other.write_bytes(before)
            other.rename(ledger)
        return fsync(number)

    monkeypatch.setattr(os, "fsync", swapped)
    assert folder.run("--output", "second.json")[0] == 0
    assert [line.get("release") for line in lines(folder)] == [None, 1, 2]


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_signals_wait_until_what_was_paid_for_is_stored(folder, monkeypatch, number):
    folder.specify(PAID)
    store = delivery.Delivery.store

    def signalled(self, text):
        os.kill(os.getpid(), number)
        store(self, text)

    monkeypatch.setattr(delivery.Delivery, "store", signalled)
    process = os.fork()
    if not process:
        os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
        exit_with("--output", "o.json")
    os.waitpid(process, 0)
    assert json.loads((folder.path / "o.json").read_text())["ledger"]["release"] == 1


def test_of_releases_to_one_file_one_pays(folder):
    folder.specify({**PAID, "budget": {**LEDGER, "epsilon": 100}})
    processes = []
    for _ in range(6):
        process = os.fork()
        if not process:
            for stream in (1, 2):
                os.dup2(os.open(os.devnull, os.O_WRONLY), stream)
            exit_with("--output", "o.json")
        processes.append(process)
    ends = sorted(os.waitstatus_to_exitcode(os.waitpid(process, 0)[1]) for process in processes)
    assert ends == [0, 2, 2, 2, 2, 2]
    assert len(lines(folder)) == 2
    assert folder.files() == {"spec.yaml", "data.csv", "ledger.jsonl", "o.json"}


def test_the_ledger_has_the_digest_of_what_was_read(folder):
    """When the specification was a pipe, the ledger once had the digest of an empty file."""
    folder.specify(json.dumps({**PAID, "budget": {"ledger": str(folder.path / "ledger.jsonl"), "epsilon": 2.5}}))
    text = (folder.path / "spec.yaml").read_bytes()
    os.mkfifo(folder.path / "pipe")
    process = os.fork()
    if not process:
        (folder.path / "pipe").write_bytes(text)
        os._exit(0)
    assert cli.main(["release", "pipe", "--data", "data.csv"]) == 0
    os.waitpid(process, 0)
    assert lines(folder)[1]["sha256"] == hashlib.sha256(text).hexdigest()


@pytest.mark.parametrize("draws", ["e.csv", "./e.csv", "f.csv"])
def test_draws_have_a_file_of_their_own(folder, draws):
    folder.specify({**PAID, "budget": {"ledger": "f.csv", "epsilon": 2.5}})
    status, _, err = folder.run("--output", "e.csv", "--draws", draws)
    assert status == 2
    assert "name another file" in err
    assert folder.files() == {"spec.yaml", "data.csv"}


@pytest.mark.parametrize("prior", [{"alpha": 1e-310, "beta": 1}, {"alpha": 1, "beta": 5e-324}])
def test_denormal_priors_give_no_stack(folder, prior):
    folder.specify({**PAID, "prior": prior, "posterior": {"draws": 100}})
    status, out, err = folder.run()
    assert "Traceback" not in err
    assert status == ("failed" in json.loads(out)["posterior"])


def test_a_ledger_that_cannot_be_locked_is_refused(folder, monkeypatch):
    def no_locks(*_):
        raise OSError(errno.ENOLCK, "No locks available")

    folder.specify(PAID)
    monkeypatch.setattr(fcntl, "flock", no_locks)
    status, out, err = folder.run()
    assert (status, out) == (2, "")
    assert "No locks available" in err
    # What is empty may stay: without the lock it can be another's.
    left = {path for path in folder.path.iterdir() if path.name not in ("spec.yaml", "data.csv")}
    assert all(path.stat().st_size == 0 for path in left)


@pytest.mark.parametrize("ledger", ["fifo", "link to nothing"])
def test_a_ledger_that_is_no_file_is_refused_at_once_or_made(folder, ledger):
    folder.specify(PAID)
    path = folder.path / "ledger.jsonl"
    os.mkfifo(path) if ledger == "fifo" else path.symlink_to("elsewhere.jsonl")
    status, _, err = folder.run("--output", "out.json")
    if ledger == "fifo":
        assert status == 2
        assert "cannot be used as a ledger" in err
        assert not (folder.path / "out.json").exists()
    else:
        assert status == 0
        assert len(lines(folder)) == 2


@pytest.mark.parametrize("closed", [">&-", "2>&-"])
def test_a_closed_standard_output_is_said_before_the_charge(folder, closed):
    folder.specify(PAID)
    command = f"{sys.executable} -m privpost release spec.yaml --data data.csv {closed}"
    environment = {**os.environ, "PYTHONPATH": str(Path(cli.__file__).parents[2])}
    done = subprocess.run(command, shell=True, cwd=folder.path, env=environment, capture_output=True, check=False)
    if closed == ">&-":
        assert done.returncode == 1
        assert done.stderr.decode().splitlines() == [
            "privpost: standard output is closed; nothing was done. Send it to a file, or to /dev/null."
        ]
        assert folder.files() == {"spec.yaml", "data.csv"}
    else:
        assert done.returncode == 0
        assert json.loads(done.stdout)["ledger"]["release"] == 1


def test_simulated_noise_takes_no_budget(folder):
    """It was charged as if it kept something private."""
    folder.specify({**PAID, "noise": "simulation", "seed": 1})
    status, out, err = folder.run()
    assert (status, out) == (2, "")
    assert "noise is 'simulation', which keeps nothing private; leave the budget out" in err
    assert folder.files() == {"spec.yaml", "data.csv"}
