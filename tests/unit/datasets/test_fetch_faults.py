"""Fetching: faults of publishers and mirrors, interruption and concurrency."""

from __future__ import annotations

import gzip
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler
from pathlib import Path

import pooch
import pytest
from fetch_cases import CONTENT, NAME, OTHER, Respond, Server, body, get, left, sha256, status, toy, zipped

from privpost.datasets.catalogue import Dataset, File
from privpost.datasets.fetch import FetchError


def in_turn(*responses: Respond) -> Respond:
    return lambda handler, request: responses[min(request, len(responses)) - 1](handler, request)


def failure(dataset: Dataset, raw: Path, mirrors: tuple[Path, ...] = (), **settings: float) -> str:
    """Fetch in vain, check that nothing half-written stays, and return the message."""
    with pytest.raises(FetchError) as caught:
        get(dataset, raw, mirrors, **settings)
    assert left(raw) == []
    message = str(caught.value)
    for file in dataset.files:
        assert file.name in message
        assert f"expected: {file.bytes} bytes, sha256 {file.sha256}" in message
    assert "put it into " in message
    # The first line alone says what matters.
    assert message.startswith(f"{dataset.files[0].name} ({dataset.title}) could not be fetched: ")
    return message


def test_a_passing_server_error_is_asked_again(server: Server, raw: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pauses: list[float] = []
    monkeypatch.setattr(pooch.core.time, "sleep", pauses.append)
    url = server.add("/flaky", in_turn(status(500), status(503), body(CONTENT)))
    get(toy(url), raw)
    assert (raw / "toy" / NAME).read_bytes() == CONTENT
    assert server.hits == {"/flaky": 3}
    assert pauses == [1, 2]


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
    assert f"{url}: connection lost (" in message
    assert "70000 bytes read" in message
    assert "asked 3 times)" in message


def test_a_truncated_chunked_answer_is_reported(server: Server, raw: Path) -> None:
    def chunked(handler: BaseHTTPRequestHandler, request: int) -> None:
        handler.protocol_version = "HTTP/1.1"
        handler.send_response(200)
        handler.send_header("Transfer-Encoding", "chunked")
        handler.end_headers()
        handler.wfile.write(b"%x\r\n" % len(CONTENT) + CONTENT[:1000])
        handler.close_connection = True

    assert "connection lost (" in failure(toy(server.add("/chunked", chunked)), raw)


def test_wrong_content_is_reported_with_both_sums_and_the_next_address_is_tried(server: Server, raw: Path) -> None:
    wrong = server.add("/wrong", body(OTHER))
    message = failure(toy(wrong), raw)
    assert f"{wrong}: wrong content: found sha256 {sha256(OTHER)}\n" in message
    get(toy(wrong, server.add("/good", body(CONTENT))), raw)
    assert (raw / "toy" / NAME).read_bytes() == CONTENT


@pytest.mark.parametrize("content", [CONTENT[:-1], CONTENT + b"\n", b""], ids=["one less", "one more", "empty"])
def test_another_length_is_reported_with_its_sum(server: Server, raw: Path, content: bytes) -> None:
    message = failure(toy(server.add("/other", body(content))), raw)
    assert f"wrong content: found sha256 {sha256(content)}" in message


@pytest.mark.parametrize(
    ("content", "likeness"),
    [
        (b"<!DOCTYPE html><html>Log in to this network</html>", "an HTML page"),
        (b"1,2,3\r\n4,5,6\r\n", "Windows line ends (CRLF)"),
        (gzip.compress(CONTENT), "itself a packed .gz file"),
        (zipped({NAME: CONTENT}), "itself a packed .zip file"),
    ],
    ids=["page", "line ends", "packed", "zip"],
)
def test_a_wrong_file_is_said_to_look_like_something(
    server: Server, raw: Path, mirror: Path, content: bytes, likeness: str
) -> None:
    assert likeness in failure(toy(server.add("/page", body(content))), raw)
    assert server.hits == {"/page": 1}
    (mirror / "toy" / NAME).write_bytes(content)
    message = failure(toy(), raw, (mirror,))
    assert likeness in message.splitlines()[0]
    (raw / "toy" / NAME).write_bytes(content)
    with pytest.raises(FetchError, match=likeness.replace("(", r"\(").replace(")", r"\)")):
        get(toy(), raw)


@pytest.mark.parametrize("name", [NAME, "toy.gz"])
def test_a_file_that_was_packed_twice_or_unpacked_is_said_to_be(raw: Path, mirror: Path, name: str) -> None:
    packed = gzip.compress(CONTENT)
    content = CONTENT if name == NAME else packed
    dataset = Dataset(**{**vars(toy()), "files": (File(name, len(content), sha256(content), ()),)})
    (mirror / "toy" / f"{name}.gz").write_bytes(gzip.compress(gzip.compress(content)))
    assert "itself a packed .gz file" in failure(dataset, raw, (mirror,))
    if name != NAME:
        (mirror / "toy" / name).write_bytes(CONTENT)
        (mirror / "toy" / f"{name}.gz").unlink()
        assert "unpacked: the archive itself is wanted" in failure(dataset, raw, (mirror,))


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
    assert ("connection lost (" if begun else "no answer within 0.2 s (asked 2 times)") in message
    assert "asked 2 times)" in message


def test_a_refused_connection_is_reported(raw: Path) -> None:
    with socket.socket() as taken:
        # Bound but not listening: nobody else can take the port, and connections are refused.
        taken.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{taken.getsockname()[1]}/{NAME}"
        message = failure(toy(url), raw)
    assert f"{url}: no connection; is there a network?" in message


def test_no_network_is_the_first_thing_that_is_said(
    raw: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    pauses: list[float] = []
    monkeypatch.setattr(pooch.core.time, "sleep", pauses.append)

    def unresolvable(*args: object, **kwargs: object) -> None:
        raise socket.gaierror(socket.EAI_AGAIN, "Temporary failure in name resolution")

    monkeypatch.setattr(socket, "getaddrinfo", unresolvable)
    message = failure(toy(f"http://publisher.invalid/{NAME}"), raw)
    assert "no connection; is there a network?" in message
    assert message.splitlines()[0].endswith("it is not here, and there is no connection to its publisher")
    # It is not asked again, and nothing is said before.
    assert pauses == []
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize(
    ("path", "content", "outcome"),
    [
        (f"/{NAME}.gz", gzip.compress(CONTENT)[:-9], "damaged archive ("),
        (f"/{NAME}.gz", gzip.compress(CONTENT)[:-6] + bytes(6), "damaged archive ("),
        (f"/{NAME}.gz", b"<html>", "wrong content, an HTML page"),
        ("/all.zip", zipped({NAME: CONTENT})[:-30], "damaged archive ("),
        ("/all.zip", b"<html>", "wrong content, an HTML page"),
        ("/all.zip", zipped({"other": CONTENT}), f"0 members called {NAME} in the archive"),
        ("/all.zip", zipped({f"a/{NAME}": CONTENT, f"b/{NAME}": OTHER}), f"2 members called {NAME} in the archive"),
        ("/all.zip", zipped({NAME: OTHER}), f"wrong content: found {len(OTHER)} bytes, sha256 {sha256(OTHER)}"),
    ],
    ids=["cut gz", "gz sum", "page for gz", "cut zip", "page for zip", "no member", "two members", "other member"],
)
def test_a_damaged_archive_is_reported(server: Server, raw: Path, path: str, content: bytes, outcome: str) -> None:
    url = server.add(path, body(content))
    assert f"{url}: {outcome}" in failure(toy(url), raw)


@pytest.mark.parametrize(
    ("name", "content", "outcome"),
    [
        (NAME, OTHER, f"wrong content: found {len(OTHER)} bytes, sha256 {sha256(OTHER)}"),
        (NAME, CONTENT[:99], f"too short: found 99 bytes, sha256 {sha256(CONTENT[:99])}"),
        (NAME + ".gz", gzip.compress(OTHER), f"wrong content: found {len(OTHER)} bytes, sha256 {sha256(OTHER)}"),
        (NAME + ".gz", gzip.compress(CONTENT)[:100_000], "damaged archive ("),
        (NAME + ".gz", CONTENT, "damaged archive ("),
        (NAME + ".gz", b"", "too short: found 0 bytes"),
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


CHILD = """
import signal, sys
from privpost import __main__
# A shell lets what it starts in the background ignore an interrupt.
signal.signal(signal.SIGINT, signal.default_int_handler)
# As the command line does.
signal.signal(signal.SIGTERM, __main__._stop)
from privpost.datasets import fetch
from privpost.datasets.catalogue import Dataset, File
url, size, sha256 = sys.argv[1], int(sys.argv[2]), sys.argv[3]
toy = Dataset("toy", "Toy", "public", False, "CC0", "-", "-", 1, (File("toy.data", size, sha256, (url,)),), {}, {})
fetch.catalogue.load = lambda name: toy
sys.exit(fetch.main(["toy"]))
"""


def child(url: str, folder: Path) -> subprocess.Popen[str]:
    command = [sys.executable, "-c", CHILD, url, str(len(CONTENT)), sha256(CONTENT)]
    return subprocess.Popen(command, cwd=folder, stdout=-1, stderr=-1, text=True)


def size_of(path: Path) -> int:
    """Return a file's size; 0 where it is a folder, or gone."""
    try:
        return path.stat().st_size if path.is_file() else 0
    except FileNotFoundError:
        return 0


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
    # A file may go between its listing and the look at it.
    wait_until(lambda: any(map(size_of, folder.rglob("*"))))
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
