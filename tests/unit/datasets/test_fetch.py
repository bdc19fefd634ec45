"""Fetching: sources, the raw folder, and what is shown."""

from __future__ import annotations

import errno
import gzip
import io
import os
import sys
import time
from pathlib import Path

import pytest
from fetch_cases import CONTENT, NAME, OTHER, Server, body, get, left, sha256, status, toy, zipped

from privpost import atomic
from privpost.datasets import fetch as fetching
from privpost.datasets.catalogue import Dataset, File
from privpost.datasets.fetch import FetchError, fetch


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


@pytest.mark.parametrize("place", ["data/original", "data/mirror"])
def test_the_folders_lie_in_the_working_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, place: str) -> None:
    (tmp_path / place / "toy").mkdir(parents=True)
    (tmp_path / place / "toy" / NAME).write_bytes(CONTENT)
    monkeypatch.chdir(tmp_path)
    assert fetch(toy()) == [Path("data/raw/toy") / NAME]
    assert Path("data/raw/toy", NAME).read_bytes() == CONTENT


def test_nothing_outside_the_working_directory_is_looked_at(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "checkout").mkdir()
    for place in ("data/original", "data/mirror", "shared/data"):
        (tmp_path / place / "toy").mkdir(parents=True)
        (tmp_path / place / "toy" / NAME).write_bytes(CONTENT)
    monkeypatch.setenv("PRIVPOST_MIRRORS", str(tmp_path / "data/mirror"))
    monkeypatch.chdir(tmp_path / "checkout")
    assert not fetching.findable(toy())
    with pytest.raises(FetchError, match="it is not here"):
        fetch(toy())


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
    assert "a (Toy) could not be fetched" in message
    assert "c (Toy) could not be fetched" in message
    assert "b (Toy)" not in message


def test_licensed_data_are_asked_of_the_user(raw: Path, mirror: Path) -> None:
    with pytest.raises(FetchError) as caught:
        get(toy(access="bring-your-own"), raw, (mirror,))
    assert caught.value.access == "bring-your-own"
    message = str(caught.value)
    assert "licence:  CC0; it is not downloaded, each user has to obtain it" in message
    assert f"put it into {mirror / 'toy'}/ (plain, as {NAME}.gz or in a zip)" in message


def test_the_error_of_public_data_says_so(raw: Path) -> None:
    with pytest.raises(FetchError) as caught:
        get(toy(), raw)
    assert caught.value.access == "public"
    assert "licence" not in str(caught.value)


@pytest.mark.parametrize(
    ("setting", "value"),
    [("timeout", 0.0), ("timeout", float("nan")), ("retries", -1), ("retries", 1.5)],
)
def test_settings_out_of_range_are_refused(raw: Path, setting: str, value: float) -> None:
    with pytest.raises(ValueError, match=f"{setting} = "):
        get(toy(), raw, **{setting: value})


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_progress_is_a_bar_on_a_terminal_and_nothing_in_a_log(
    server: Server, raw: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    url = server.add("/good", body(CONTENT))
    for stream, bars in ((Terminal(), True), (io.StringIO(), False)):
        monkeypatch.setattr(sys, "stderr", stream)
        get(toy(url), raw.with_name(str(bars)))
        text = stream.getvalue()
        assert ("200k/200k" in text) is bars
        said = text.rpartition("\r")[2].strip().splitlines()[-1]
        assert said == f"{raw.with_name(str(bars)) / 'toy' / NAME}: fetched from {url}"


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
    (tmp_path / "data/mirror/present").mkdir(parents=True)
    (tmp_path / "data/mirror/present" / NAME).write_bytes(CONTENT)
    monkeypatch.chdir(tmp_path)
    assert fetching.main(["present"]) == 0
    assert capsys.readouterr().out == f"data/raw/present/{NAME}  {len(CONTENT)} bytes, sha256 verified\n"
    assert fetching.main(["absent", "absnt", "present"]) == 1
    shown = capsys.readouterr()
    assert shown.out == f"data/raw/present/{NAME}  {len(CONTENT)} bytes, sha256 verified\n"
    assert f"error: {NAME} (absent) could not be fetched" in shown.err
    assert "error: dataset = 'absnt': unknown, known are absent, present; did you mean 'absent'?" in shown.err


@pytest.mark.parametrize("access", ["public", "bring-your-own"])
def test_a_data_set_that_is_nowhere_cannot_be_had_whatever_its_access(
    raw: Path, mirror: Path, tmp_path: Path, access: str
) -> None:
    prepared = tmp_path / "prepared"
    dataset = toy("https://example.org/x", access=access, names=("a", "b"))

    def findable() -> bool:
        return fetching.findable(dataset, raw=raw, prepared=prepared, folders=(mirror,))

    assert not findable()
    (mirror / "toy" / "a").write_bytes(CONTENT)
    assert not findable()
    (raw / "toy").mkdir(parents=True)
    (raw / "toy" / "b").write_bytes(CONTENT)
    assert findable()
    (raw / "toy" / "b").rename(mirror / "toy" / "b.gz")
    assert findable()
    (mirror / "toy" / "b.gz").unlink()
    assert not findable()
    (mirror / "toy" / "all.zip").write_bytes(zipped({"folder/b": CONTENT}))
    assert findable()
    (mirror / "toy" / "all.zip").write_bytes(zipped({"folder/c": CONTENT}))
    assert not findable()
    prepared.mkdir()
    (prepared / "toy.npz").touch()
    assert findable()


def test_a_zip_as_a_publisher_gives_it_is_looked_into(raw: Path, mirror: Path) -> None:
    (mirror / "toy" / "download.zip").write_bytes(zipped({"Index": b"other", f"folder/{NAME}": CONTENT}))
    get(toy(), raw, (mirror,))
    assert (raw / "toy" / NAME).read_bytes() == CONTENT
    assert left(raw) == [NAME]


def test_a_file_without_a_declared_sum_is_not_called_verified(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "data/mirror/toy").mkdir(parents=True)
    (tmp_path / "data/mirror/toy" / NAME).write_bytes(CONTENT)
    file = File(NAME, len(CONTENT), sha256(CONTENT), (), declared=False)
    monkeypatch.setattr(
        fetching.catalogue, "load", lambda name: Dataset(**{**vars(toy(access="bring-your-own")), "files": (file,)})
    )
    assert fetching.main(["toy"]) == 0
    said = capsys.readouterr().out
    assert "no sum is declared" in said
    assert "verified\n" in said and "sha256 verified" not in said


def test_of_files_that_stand_in_for_others_the_first_that_is_here_is_taken(raw: Path, mirror: Path) -> None:
    counts = File("counts", len(OTHER), sha256(OTHER), ())
    dataset = Dataset(**{**vars(toy()), "instead": (File("any", 0, "absent", (), declared=False), counts)})
    (mirror / "toy" / "counts.gz").write_bytes(gzip.compress(OTHER))
    assert get(dataset, raw, (mirror,)) == [raw / "toy" / "counts"]
    (mirror / "toy" / "any").write_bytes(b"whatever")
    assert get(dataset, raw, (mirror,)) == [raw / "toy" / "any"]
    (mirror / "toy" / NAME).write_bytes(CONTENT)
    assert get(dataset, raw, (mirror,)) == [raw / "toy" / NAME]
    assert left(raw) == ["any", "counts", NAME]
