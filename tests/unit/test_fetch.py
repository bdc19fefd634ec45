"""Fetching: every source, every fault, and nothing half-written afterwards.

The publisher is a server on 127.0.0.1; no test needs a network.
"""

from __future__ import annotations

import contextlib
import errno
import gzip
import hashlib
import io
import os
import random
import signal
import socket
import subprocess
import sys
import threading
import time
import zipfile
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from privpost import atomic
from privpost.datasets import fetch as fetching
from privpost.datasets import sources
from privpost.datasets.catalogue import Dataset, File
from privpost.datasets.fetch import FetchError, fetch

# Several chunks of the reader, and not compressible, so that packed copies are long enough to be cut.
CONTENT = random.Random(1).randbytes(200_000)
OTHER = random.Random(2).randbytes(len(CONTENT))
NAME = "toy.data"

Respond = Callable[[BaseHTTPRequestHandler, int], None]


def sha256(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def toy(*urls: str, access: str = "public", names: tuple[str, ...] = (NAME,)) -> Dataset:
    files_ = tuple(File(name, len(CONTENT), sha256(CONTENT), urls) for name in names)
    return Dataset(
        name="toy",
        title="Toy",
        access=access,
        stand_in=False,
        licence="CC0",
        citation="nobody",
        origin="https://example.org/toy",
        rev=1,
        files=files_,
        public={},
        settings={},
    )


class Server:
    """Answers each path with the function registered for it, which gets the handler and the number of the request."""

    def __init__(self) -> None:
        self.answers: dict[str, Respond] = {}
        self.hits: dict[str, int] = {}
        self.released = threading.Event()
        outer = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                outer.hits[self.path] = outer.hits.get(self.path, 0) + 1
                # A client that gives up closes the connection while the answer is under way.
                with contextlib.suppress(ConnectionError):
                    outer.answers[self.path](self, outer.hits[self.path])

            def log_message(self, *args: object) -> None:
                pass

        self.http = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.thread = threading.Thread(target=self.http.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
        self.thread.start()

    def add(self, path: str, respond: Respond) -> str:
        self.answers[path] = respond
        return f"http://127.0.0.1:{self.http.server_port}{path}"

    def close(self) -> None:
        self.released.set()
        self.http.shutdown()
        self.http.server_close()
        self.thread.join()


@pytest.fixture
def server() -> Iterator[Server]:
    running = Server()
    yield running
    running.close()


@pytest.fixture
def raw(tmp_path: Path) -> Path:
    return tmp_path / "raw"


@pytest.fixture
def mirror(tmp_path: Path) -> Path:
    folder = tmp_path / "mirror"
    (folder / "toy").mkdir(parents=True)
    return folder


def body(content: bytes, declared: int | None = None) -> Respond:
    def respond(handler: BaseHTTPRequestHandler, request: int) -> None:
        handler.send_response(200)
        handler.send_header("Content-Length", str(len(content) if declared is None else declared))
        handler.end_headers()
        handler.wfile.write(content)

    return respond


def status(code: int) -> Respond:
    return lambda handler, request: handler.send_error(code)


def in_turn(*responses: Respond) -> Respond:
    return lambda handler, request: responses[min(request, len(responses)) - 1](handler, request)


def get(dataset: Dataset, raw: Path, mirrors: tuple[Path, ...] = (), **settings: float) -> list[Path]:
    return fetch(dataset, raw=raw, mirrors=mirrors, **{"timeout": 5.0, "retries": 2, "backoff": 0.0, **settings})


def failure(dataset: Dataset, raw: Path, mirrors: tuple[Path, ...] = (), **settings: float) -> str:
    """Fetch in vain, check that nothing half-written stays, and return the message."""
    with pytest.raises(FetchError) as caught:
        get(dataset, raw, mirrors, **settings)
    assert left(raw) == []
    message = str(caught.value)
    for file in dataset.files:
        assert file.name in message
        assert f"expected: {file.bytes} bytes, sha256 {file.sha256}" in message
        assert f"put it at {raw / 'toy' / file.name}" in message
    return message


def left(raw: Path) -> list[str]:
    return sorted(path.name for path in (raw / "toy").iterdir())


def zipped(members: dict[str, bytes]) -> bytes:
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in members.items():
            archive.writestr(name, content)
    return packed.getvalue()


# Sources that work


def test_fetches_from_the_first_address_that_has_the_file(server: Server, raw: Path) -> None:
    gone = server.add("/gone", status(404))
    good = server.add("/good", body(CONTENT))
    never = server.add("/never", body(CONTENT))
    assert get(toy(gone, good, never), raw) == [raw / "toy" / NAME]
    assert (raw / "toy" / NAME).read_bytes() == CONTENT
    assert left(raw) == [NAME]
    # A missing page is not asked for again.
    assert server.hits == {"/gone": 1, "/good": 1}


def test_keeps_a_verified_file_without_touching_it(server: Server, raw: Path, mirror: Path) -> None:
    (raw / "toy").mkdir(parents=True)
    (raw / "toy" / NAME).write_bytes(CONTENT)
    (mirror / "toy" / NAME).write_bytes(CONTENT)
    before = (raw / "toy" / NAME).stat()
    get(toy(server.add("/good", body(CONTENT))), raw, (mirror,))
    after = (raw / "toy" / NAME).stat()
    assert (after.st_ino, after.st_mtime_ns) == (before.st_ino, before.st_mtime_ns)
    assert server.hits == {}


@pytest.mark.parametrize(
    ("name", "content"),
    [
        (NAME, CONTENT),
        (NAME + ".gz", gzip.compress(CONTENT)),
        (NAME + ".gz", gzip.compress(CONTENT[:70_000]) + gzip.compress(CONTENT[70_000:])),
    ],
    ids=["plain", "gzipped", "gzipped in two members"],
)
def test_mirrors_come_before_addresses(server: Server, raw: Path, mirror: Path, name: str, content: bytes) -> None:
    (mirror / "toy" / name).write_bytes(content)
    get(toy(server.add("/good", body(CONTENT))), raw, (mirror / "absent", mirror))
    assert (raw / "toy" / NAME).read_bytes() == CONTENT
    assert left(raw) == [NAME]
    assert (mirror / "toy" / name).read_bytes() == content
    assert server.hits == {}


def test_an_archive_that_is_itself_the_original_is_not_unpacked(server: Server, raw: Path, mirror: Path) -> None:
    packed = gzip.compress(CONTENT)
    file = File("toy.gz", len(packed), sha256(packed), (server.add("/toy.gz", body(packed)),))
    dataset = Dataset(**{**vars(toy()), "files": (file,)})
    get(dataset, raw)
    assert (raw / "toy" / "toy.gz").read_bytes() == packed
    (mirror / "toy" / "toy.gz").write_bytes(packed)
    get(dataset, raw.with_name("second"), (mirror,))
    assert server.hits == {"/toy.gz": 1}


@pytest.mark.parametrize(
    ("path", "content"),
    [
        (f"/{NAME}.gz", gzip.compress(CONTENT)),
        ("/all.zip", zipped({"Index": b"other", f"folder/{NAME}": CONTENT})),
    ],
    ids=["gz", "zip"],
)
def test_an_address_may_be_an_archive(server: Server, raw: Path, path: str, content: bytes) -> None:
    get(toy(server.add(path, body(content))), raw)
    assert (raw / "toy" / NAME).read_bytes() == CONTENT
    assert left(raw) == [NAME]


def test_the_file_gets_ordinary_permissions(server: Server, raw: Path) -> None:
    previous = os.umask(0o027)
    try:
        get(toy(server.add("/good", body(CONTENT))), raw)
    finally:
        os.umask(previous)
    assert (raw / "toy" / NAME).stat().st_mode & 0o777 == 0o640


def test_the_environment_replaces_the_default_mirrors(
    tmp_path: Path, raw: Path, mirror: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (mirror / "toy" / NAME).write_bytes(CONTENT)
    monkeypatch.setenv("PRIVPOST_MIRRORS", os.pathsep.join([str(tmp_path / "absent"), str(mirror)]))
    fetch(toy(), raw=raw)
    assert (raw / "toy" / NAME).read_bytes() == CONTENT
    monkeypatch.setenv("PRIVPOST_MIRRORS", "")
    with pytest.raises(FetchError, match="tried:    nothing"):
        fetch(toy(), raw=tmp_path / "second")


@pytest.mark.parametrize("place", ["checkout/data/mirror", "shared/data"])
def test_the_default_mirrors_lie_in_and_beside_the_working_directory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, place: str
) -> None:
    (tmp_path / "checkout").mkdir()
    (tmp_path / place / "toy").mkdir(parents=True)
    (tmp_path / place / "toy" / NAME).write_bytes(CONTENT)
    monkeypatch.delenv("PRIVPOST_MIRRORS", raising=False)
    monkeypatch.chdir(tmp_path / "checkout")
    assert fetch(toy()) == [Path("data/raw/toy") / NAME]
    assert Path("data/raw/toy", NAME).read_bytes() == CONTENT


# Faults of a publisher


def test_a_passing_server_error_is_asked_again(server: Server, raw: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pauses: list[float] = []
    monkeypatch.setattr(fetching.time, "sleep", pauses.append)
    url = server.add("/flaky", in_turn(status(500), status(503), body(CONTENT)))
    get(toy(url), raw, backoff=0.5)
    assert (raw / "toy" / NAME).read_bytes() == CONTENT
    assert server.hits == {"/flaky": 3}
    assert pauses == [0.5, 1.0]


def test_lasting_statuses_are_reported_per_address(server: Server, raw: Path) -> None:
    broken, gone = server.add("/broken", status(500)), server.add("/gone", status(404))
    message = failure(toy(broken, gone), raw)
    assert f"{broken}: HTTP status 500 Internal Server Error (asked 3 times)" in message
    assert f"{gone}: HTTP status 404 Not Found\n" in message
    assert server.hits == {"/broken": 3, "/gone": 1}


def test_a_truncated_answer_is_asked_again_and_then_reported(server: Server, raw: Path) -> None:
    cut = body(CONTENT[:70_000], declared=len(CONTENT))
    get(toy(server.add("/once", in_turn(cut, body(CONTENT)))), raw)
    assert (raw / "toy" / NAME).read_bytes() == CONTENT
    url = server.add("/always", cut)
    message = failure(toy(url), raw.with_name("second"))
    assert f"{url}: short read: 70000 of {len(CONTENT)} bytes (asked 3 times)" in message


def test_a_truncated_chunked_answer_is_reported(server: Server, raw: Path) -> None:
    def chunked(handler: BaseHTTPRequestHandler, request: int) -> None:
        handler.protocol_version = "HTTP/1.1"
        handler.send_response(200)
        handler.send_header("Transfer-Encoding", "chunked")
        handler.end_headers()
        handler.wfile.write(b"%x\r\n" % len(CONTENT) + CONTENT[:1000])
        handler.close_connection = True

    assert "connection lost after" in failure(toy(server.add("/chunked", chunked)), raw)


def test_wrong_content_is_reported_with_both_sums_and_the_next_address_is_tried(server: Server, raw: Path) -> None:
    wrong = server.add("/wrong", body(OTHER))
    message = failure(toy(wrong), raw)
    assert f"{wrong}: wrong content: found {len(OTHER)} bytes, sha256 {sha256(OTHER)}\n" in message
    get(toy(wrong, server.add("/good", body(CONTENT))), raw)
    assert (raw / "toy" / NAME).read_bytes() == CONTENT
    # Asking the same address again would give the same bytes.
    assert server.hits["/wrong"] == 2


@pytest.mark.parametrize(
    ("content", "kind"),
    [(CONTENT[:-1], "too short"), (CONTENT + b"\n", "too long"), (b"", "too short")],
    ids=["one byte less", "one byte more", "empty"],
)
def test_another_length_is_reported_with_its_sum(server: Server, raw: Path, content: bytes, kind: str) -> None:
    message = failure(toy(server.add("/other", body(content))), raw)
    assert f"{kind}: found {len(content)} bytes, sha256 {sha256(content)}" in message


def test_an_endless_answer_is_given_up(server: Server, raw: Path) -> None:
    def endless(handler: BaseHTTPRequestHandler, request: int) -> None:
        handler.send_response(200)
        handler.end_headers()
        # 20 MB stand for endless: more than is read of a file of 0.2 MB, and a broken limit fails instead of hanging.
        for _ in range(100):
            handler.wfile.write(CONTENT)

    assert "too long: more than" in failure(toy(server.add("/endless", endless)), raw)


@pytest.mark.parametrize("begun", [False, True], ids=["no answer", "stops midway"])
def test_a_hanging_server_is_left_after_the_timeout(server: Server, raw: Path, begun: bool) -> None:
    def hang(handler: BaseHTTPRequestHandler, request: int) -> None:
        if begun:
            body(CONTENT[:1000], declared=len(CONTENT))(handler, request)
        server.released.wait(30)

    start = time.monotonic()
    message = failure(toy(server.add("/hang", hang)), raw, timeout=0.2, retries=1)
    # Two attempts of 0.2 s; the server would hold on for 30 s.
    assert time.monotonic() - start < 10
    assert f"no answer within 0.2 s after {1000 if begun else 0} bytes (asked 2 times)" in message


def test_a_trickle_is_left_after_the_timeout(server: Server, raw: Path) -> None:
    def trickle(handler: BaseHTTPRequestHandler, request: int) -> None:
        body(b"", declared=len(CONTENT))(handler, request)
        for _ in range(250):
            server.released.wait(0.02)
            handler.wfile.write(b"x")

    assert "too slow: " in failure(toy(server.add("/trickle", trickle)), raw, timeout=0.3, retries=0)


def test_a_refused_connection_is_reported(raw: Path) -> None:
    with socket.socket() as taken:
        # Bound but not listening: nobody else can take the port, and connections are refused.
        taken.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{taken.getsockname()[1]}/{NAME}"
        message = failure(toy(url), raw)
    assert f"{url}: no connection; is there a network? ([Errno {errno.ECONNREFUSED}]" in message
    assert "(asked 3 times)" in message


def test_no_network_is_reported(raw: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def unresolvable(*args: object, **kwargs: object) -> None:
        raise socket.gaierror(socket.EAI_AGAIN, "Temporary failure in name resolution")

    monkeypatch.setattr(socket, "getaddrinfo", unresolvable)
    message = failure(toy(f"http://publisher.invalid/{NAME}"), raw)
    assert "no connection; is there a network?" in message
    assert "Temporary failure in name resolution" in message


@pytest.mark.parametrize(
    ("path", "content", "outcome"),
    [
        (f"/{NAME}.gz", gzip.compress(CONTENT)[:-9], "truncated gzip file"),
        (f"/{NAME}.gz", gzip.compress(CONTENT)[:-6] + bytes(6), "damaged gzip file"),
        (f"/{NAME}.gz", b"<html>", "damaged gzip file"),
        ("/all.zip", zipped({NAME: CONTENT})[:-30], "damaged or unreadable zip archive"),
        ("/all.zip", b"<html>", "damaged or unreadable zip archive"),
        ("/all.zip", zipped({"other": CONTENT}), f"0 members called {NAME} in the archive"),
        ("/all.zip", zipped({f"a/{NAME}": CONTENT, f"b/{NAME}": OTHER}), f"2 members called {NAME} in the archive"),
        ("/all.zip", zipped({NAME: OTHER}), f"wrong content: found {len(OTHER)} bytes, sha256 {sha256(OTHER)}"),
    ],
    ids=["cut gz", "gz sum", "page for gz", "cut zip", "page for zip", "no member", "two members", "other member"],
)
def test_a_damaged_archive_is_reported(server: Server, raw: Path, path: str, content: bytes, outcome: str) -> None:
    url = server.add(path, body(content))
    assert f"{url}: {outcome}" in failure(toy(url), raw)


def test_an_archive_that_is_too_long_is_given_up(server: Server, raw: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sources, "LARGEST_ARCHIVE", 100_000)
    url = server.add("/all.zip", body(zipped({NAME: CONTENT})))
    assert "archive too long: more than 100000 bytes" in failure(toy(url), raw)


# Faults of a mirror


@pytest.mark.parametrize(
    ("name", "content", "outcome"),
    [
        (NAME, OTHER, f"wrong content: found {len(OTHER)} bytes, sha256 {sha256(OTHER)}"),
        (NAME, CONTENT[:99], f"too short: found 99 bytes, sha256 {sha256(CONTENT[:99])}"),
        (NAME + ".gz", gzip.compress(OTHER), f"wrong content: found {len(OTHER)} bytes, sha256 {sha256(OTHER)}"),
        (NAME + ".gz", gzip.compress(CONTENT)[:100_000], "truncated gzip file"),
        (NAME + ".gz", CONTENT, "damaged gzip file"),
        (NAME + ".gz", b"", "truncated gzip file"),
    ],
    ids=["other", "short", "other gz", "cut gz", "not gz", "empty gz"],
)
def test_a_damaged_mirror_is_passed_over(
    server: Server, raw: Path, mirror: Path, name: str, content: bytes, outcome: str
) -> None:
    (mirror / "toy" / name).write_bytes(content)
    message = failure(toy(), raw, (mirror,))
    assert f"{mirror / 'toy' / name}: {outcome}" in message
    get(toy(server.add("/good", body(CONTENT))), raw, (mirror,))
    assert (raw / "toy" / NAME).read_bytes() == CONTENT
    assert left(raw) == [NAME]


def test_a_damaged_plain_file_does_not_hide_the_gzipped_one(raw: Path, mirror: Path) -> None:
    (mirror / "toy" / NAME).write_bytes(OTHER)
    (mirror / "toy" / f"{NAME}.gz").write_bytes(gzip.compress(CONTENT))
    get(toy(), raw, (mirror,))
    assert (raw / "toy" / NAME).read_bytes() == CONTENT


def test_a_folder_in_place_of_a_mirrored_file_is_reported(raw: Path, mirror: Path) -> None:
    (mirror / "toy" / NAME).mkdir()
    assert "not readable (Is a directory)" in failure(toy(), raw, (mirror,))


# What is in the raw folder


def test_a_wrong_raw_file_is_moved_aside_and_replaced(
    server: Server, raw: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    dataset = toy(server.add("/good", body(CONTENT)))
    (raw / "toy").mkdir(parents=True)
    for content, rejected in ((OTHER, f"{NAME}.rejected"), (CONTENT[:50], f"{NAME}.rejected.2")):
        (raw / "toy" / NAME).write_bytes(content)
        get(dataset, raw)
        assert (raw / "toy" / NAME).read_bytes() == CONTENT
        assert (raw / "toy" / rejected).read_bytes() == content
        said = capsys.readouterr().err
        assert f"found {len(content)} bytes, sha256 {sha256(content)}; moved aside to {rejected}" in said


def test_a_wrong_raw_file_is_never_used(raw: Path) -> None:
    (raw / "toy").mkdir(parents=True)
    (raw / "toy" / NAME).write_bytes(OTHER)
    with pytest.raises(FetchError, match=r"moved aside to toy\.data\.rejected"):
        get(toy(), raw)
    assert left(raw) == [f"{NAME}.rejected"]


def test_a_right_file_that_appears_while_a_wrong_one_is_moved_aside_is_kept(
    raw: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    target = raw / "toy" / NAME
    target.parent.mkdir(parents=True)
    target.write_bytes(OTHER)
    rename = os.rename

    def overtaken(source: Path, destination: Path) -> None:
        target.write_bytes(CONTENT)
        rename(source, destination)

    monkeypatch.setattr(fetching.os, "rename", overtaken)
    get(toy(), raw)
    assert target.read_bytes() == CONTENT
    assert left(raw) == [NAME]


def test_leftovers_of_a_killed_process_go_and_those_of_a_live_one_stay(server: Server, raw: Path) -> None:
    (raw / "toy").mkdir(parents=True)
    dead, live = raw / "toy" / ".toy.0123abcd.data", raw / "toy" / ".toy.4567cdef.data"
    for path in (dead, live):
        path.write_bytes(b"half")
    long_ago = time.time() - atomic.ABANDONED - 60
    os.utime(dead, (long_ago, long_ago))
    get(toy(server.add("/good", body(CONTENT))), raw)
    assert left(raw) == [live.name, NAME]


def test_a_full_disk_is_one_clear_error(server: Server, raw: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(descriptor: int) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(atomic.os, "fsync", full)
    url = server.add("/good", body(CONTENT))
    with pytest.raises(FetchError, match=rf"{NAME} \(Toy\): cannot use .*{NAME}: No space left on device"):
        get(toy(url), raw)
    assert left(raw) == []
    # The disk is not the publisher's fault: asking again would not help.
    assert server.hits == {"/good": 1}


def test_every_missing_file_is_named_and_the_others_are_fetched(raw: Path, mirror: Path) -> None:
    (mirror / "toy" / "b").write_bytes(CONTENT)
    with pytest.raises(FetchError) as caught:
        get(toy(names=("a", "b", "c")), raw, (mirror,))
    assert left(raw) == ["b"]
    message = str(caught.value)
    assert "a (Toy) could not be had" in message
    assert "c (Toy) could not be had" in message
    assert "b (Toy)" not in message


def test_licensed_data_are_asked_of_the_user(raw: Path, mirror: Path) -> None:
    with pytest.raises(FetchError) as caught:
        get(toy(access="bring-your-own"), raw, (mirror,))
    assert caught.value.access == "bring-your-own"
    message = str(caught.value)
    assert "licence:  CC0; it is not downloaded, each user has to obtain it" in message
    assert f"put it at {raw / 'toy' / NAME} or into {mirror / 'toy'}/ (plain or as {NAME}.gz)" in message


def test_the_error_of_public_data_says_so(raw: Path) -> None:
    with pytest.raises(FetchError) as caught:
        get(toy(), raw)
    assert caught.value.access == "public"
    assert "licence" not in str(caught.value)


@pytest.mark.parametrize(
    ("setting", "value"),
    [("timeout", 0.0), ("timeout", float("nan")), ("retries", -1), ("retries", 1.5), ("backoff", -1)],
)
def test_settings_out_of_range_are_refused(raw: Path, setting: str, value: float) -> None:
    with pytest.raises(ValueError, match=f"{setting} = "):
        get(toy(), raw, **{setting: value})


# Interruption and concurrency

CHILD = """
import sys
from privpost.datasets import fetch
from privpost.datasets.catalogue import Dataset, File
url, size, sha256 = sys.argv[1], int(sys.argv[2]), sys.argv[3]
toy = Dataset("toy", "Toy", "public", False, "CC0", "-", "-", 1, (File("toy.data", size, sha256, (url,)),), {}, {})
fetch.catalogue.load = lambda name: toy
sys.exit(fetch.main(["toy"]))
"""


def child(url: str, folder: Path) -> subprocess.Popen[str]:
    command = [sys.executable, "-c", CHILD, url, str(len(CONTENT)), sha256(CONTENT)]
    environment = {**os.environ, "PRIVPOST_MIRRORS": ""}
    return subprocess.Popen(command, cwd=folder, env=environment, stdout=-1, stderr=-1, text=True)


def wait_until(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 20
    while not condition():
        assert time.monotonic() < deadline, "waited for 20 s"
        time.sleep(0.01)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interruption_leaves_nothing(server: Server, tmp_path: Path, number: signal.Signals) -> None:
    def half(handler: BaseHTTPRequestHandler, request: int) -> None:
        body(CONTENT[:150_000], declared=len(CONTENT))(handler, request)
        server.released.wait(30)

    process = child(server.add("/half", half), tmp_path)
    folder = tmp_path / "data" / "raw" / "toy"
    wait_until(lambda: any(path.stat().st_size > 0 for path in folder.glob(".toy.*")))
    process.send_signal(number)
    process.communicate(timeout=20)
    assert process.returncode != 0
    assert list(folder.iterdir()) == []


def test_two_processes_fetching_the_same_file_do_not_disturb_each_other(server: Server, tmp_path: Path) -> None:
    both = threading.Barrier(2, timeout=20)

    def interleaved(handler: BaseHTTPRequestHandler, request: int) -> None:
        body(CONTENT[:100_000], declared=len(CONTENT))(handler, request)
        # Each answer is halfway when the other one has begun.
        both.wait()
        handler.wfile.write(CONTENT[100_000:])

    url = server.add("/slow", interleaved)
    processes = [child(url, tmp_path) for _ in range(2)]
    for process in processes:
        out, err = process.communicate(timeout=30)
        assert process.returncode == 0, err
        assert f"{NAME}  {len(CONTENT)} bytes, sha256 verified" in out
    folder = tmp_path / "data" / "raw" / "toy"
    assert [path.name for path in folder.iterdir()] == [NAME]
    assert (folder / NAME).read_bytes() == CONTENT
    assert server.hits == {"/slow": 2}


# What is shown


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_progress_on_a_terminal_is_one_changing_line(
    server: Server, raw: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    terminal = Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)
    get(toy(server.add("/good", body(CONTENT))), raw)
    progress, said, rest = terminal.getvalue().split("\n")
    assert rest == ""
    assert progress.split("\r")[-1].startswith(f"{NAME}: 200,000 of 200,000 bytes, ")
    assert progress.rstrip().endswith("MB/s")
    assert said.startswith(f"{raw / 'toy' / NAME}: fetched from http://127.0.0.1:")


def test_progress_in_a_log_is_sparse(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    clock = iter(range(0, 10_000, 2))
    monkeypatch.setattr(sources.time, "monotonic", lambda: float(next(clock)))
    with sources._progress(NAME, 1_000_000) as show:
        for size in range(0, 1_000_000, 50_000):
            show(size)
    lines = capsys.readouterr().err.splitlines()
    # Twenty calls two seconds apart, one line each ten seconds.
    assert len(lines) == 4
    assert lines[0] == f"{NAME}: 200,000 of 1,000,000 bytes, 0.02 MB/s"


def test_main_reports_each_file_and_goes_on_after_a_failure(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    text = f"""
access: public
stand_in: false
licence: CC0
citation: nobody
origin: https://example.org
rev: 1
files: [{{name: {NAME}, bytes: {len(CONTENT)}, sha256: "{sha256(CONTENT)}", urls: ["http://127.0.0.1:1/x"]}}]
public: {{}}
settings: {{}}
"""
    (tmp_path / "conf" / "dataset").mkdir(parents=True)
    for name in ("present", "absent"):
        (tmp_path / "conf" / "dataset" / f"{name}.yaml").write_text(f"name: {name}\ntitle: {name}\n{text}")
    (tmp_path / "mirror" / "present").mkdir(parents=True)
    (tmp_path / "mirror" / "present" / NAME).write_bytes(CONTENT)
    monkeypatch.setenv("PRIVPOST_MIRRORS", "mirror")
    monkeypatch.setattr(fetching.time, "sleep", lambda seconds: None)
    monkeypatch.chdir(tmp_path)
    handler = signal.getsignal(signal.SIGTERM)
    assert fetching.main(["present"]) == 0
    assert capsys.readouterr().out == f"data/raw/present/{NAME}  {len(CONTENT)} bytes, sha256 verified\n"
    assert fetching.main(["absent", "absnt", "present"]) == 1
    shown = capsys.readouterr()
    assert shown.out == f"data/raw/present/{NAME}  {len(CONTENT)} bytes, sha256 verified\n"
    assert f"error: {NAME} (absent) could not be had" in shown.err
    assert "error: dataset = 'absnt': unknown, known are absent, present; did you mean 'absent'?" in shown.err
    assert signal.getsignal(signal.SIGTERM) is handler


# What can be had without asking


def test_only_a_bring_your_own_data_set_that_is_nowhere_cannot_be_had(raw: Path, mirror: Path, tmp_path: Path) -> None:
    prepared = tmp_path / "prepared"
    owned = toy(access="bring-your-own", names=("a", "b"))

    def findable(dataset: Dataset) -> bool:
        return fetching.findable(dataset, raw=raw, prepared=prepared, mirrors=(mirror,))

    assert findable(toy())
    assert not findable(owned)
    (mirror / "toy" / "a").write_bytes(CONTENT)
    assert not findable(owned)
    (raw / "toy").mkdir(parents=True)
    (raw / "toy" / "b").write_bytes(CONTENT)
    assert findable(owned)
    (raw / "toy" / "b").rename(mirror / "toy" / "b.gz")
    assert findable(owned)
    (mirror / "toy" / "b.gz").unlink()
    assert not findable(owned)
    prepared.mkdir()
    (prepared / "toy.npz").touch()
    assert findable(owned)
