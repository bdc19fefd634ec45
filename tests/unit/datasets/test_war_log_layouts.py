"""The war logs' three layouts give equal arrays: the release, an extract with a header, and counts."""

from __future__ import annotations

import csv
import dataclasses
import gzip
import hashlib
import io
import random
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
from dataset_cases import CONF

from privpost.datasets import catalogue, prepared, war_logs
from privpost.datasets.catalogue import Dataset
from privpost.datasets.fetch import fetch

# The release's 32 columns as its readers list them, in words of our own.
LAYOUT = (
    *("key", "day", "type", "category", "tracking", "title", "summary", "region", "attack", "complex", "unit", "name"),
    *("kind", "f_wia", "f_kia", "h_wia", "h_kia", "c_wia", "c_kia", "e_wia", "e_kia", "e_det", "mgrs", "lat", "lon"),
    *("origin", "updated", "ccir", "sigact", "affiliation", "colour", "classification"),
)
SIDES = {
    "friendly_or_host": ("f_wia", "f_kia", "h_wia", "h_kia"),
    "civilian": ("c_wia", "c_kia"),
    "enemy": ("e_wia", "e_kia", "e_det"),
}
HEADER = {
    "date": "day", "type": "type", "category": "category", "region": "region", "affiliation": "affiliation",
    "FriendlyWIA": "f_wia", "FriendlyKIA": "f_kia", "HostNationWIA": "h_wia", "HostNationKIA": "h_kia",
    "CivilianWIA": "c_wia", "CivilianKIA": "c_kia", "EnemyWIA": "e_wia", "EnemyKIA": "e_kia", "EnemyDetained": "e_det",
}  # fmt: skip
# Spellings of the file, and the level that each counts as.
TYPES = {"Enemy Action": "enemy action", "ENEMY  ACTION": "enemy action", "Counter-Insurgency": "counter insurgency",
         "Friendly Fire": "friendly fire", "": "other", "Parade": "other"}  # fmt: skip
CATEGORIES = {"Direct Fire": "direct fire", "MEDEVAC": "medevac", "Medevac": "medevac", "No Such Thing": "other"}


def invented(number: int = 400) -> list[dict[str, str]]:
    """Return events with texts of several lines, letters beyond ASCII, empty counts, and places outside the country."""
    rng = random.Random(7)
    events = []
    for i in range(number):
        event = dict.fromkeys(LAYOUT, "")
        hurt = {column: rng.choice(["", "0", "0", "0", "2"]) for side in SIDES.values() for column in side}
        outside = rng.random() < 0.1
        lat, lon = rng.choice([("", ""), ("51.5", "65.0"), ("34.0", "7.5")]) if outside else ("34.25", "69.5")
        event |= hurt | {
            "key": f"{i:08X}", "type": rng.choice([*TYPES]), "category": rng.choice([*CATEGORIES]),
            "region": rng.choice(["RC EAST", "RC SOUTH", "RC WEST", "UNKNOWN", "NONE SELECTED"]),
            "day": f"{rng.choice([2003, 2004])}-{rng.choice([1, 2, 12]):02d}-{rng.randint(1, 28):02d} 06:00:00",
            "summary": 'a "quoted" text,\nof two lines, caf\u00e9', "title": "x, y", "lat": lat, "lon": lon,
        }  # fmt: skip
        events.append(event)
    return events


def inside(event: dict[str, str]) -> bool:
    return event["lat"] == "34.25"


def as_release(events: list[dict[str, str]]) -> bytes:
    text = io.StringIO()
    writer = csv.writer(text, quoting=csv.QUOTE_ALL, lineterminator="\n")
    writer.writerows([event[column] for column in LAYOUT] for event in events)
    return text.getvalue().encode("latin-1")


def as_extract(events: list[dict[str, str]]) -> bytes:
    lines = [",".join(HEADER)]
    lines += [",".join(e[c][:10] if c == "day" else e[c] for c in HEADER.values()) for e in events if inside(e)]
    return ("\n".join(lines) + "\n").encode()


def as_counts(events: list[dict[str, str]], regions: list[str]) -> bytes:
    """Count by hand: one line per region, month, field and level."""
    counts: Counter[tuple[str, ...]] = Counter()
    for e in events:
        if not inside(e) or e["region"] not in regions or not e["day"].startswith("2004"):
            continue
        levels = {"type": TYPES[e["type"]], "category": CATEGORIES[e["category"]]}
        for side, columns in SIDES.items():
            levels[side] = "casualties" if any(e[c] not in ("", "0") for c in columns) else "none"
        counts.update((e["region"], e["day"][:7], *level) for level in levels.items())
    lines = ["region,month,field,level,events", *(f"{','.join(key)},{n}" for key, n in sorted(counts.items()))]
    return ("\n".join(lines) + "\n").encode()


@pytest.fixture
def diary(tmp_path: Path) -> Dataset:
    """The Afghan data set, as if the invented events were all that happened; its counts are in the user's folder."""
    dataset = catalogue.load("afghanistan", CONF)
    counts = as_counts(invented(), dataset.settings["regions"])
    path = tmp_path / "mirror/afghanistan/afghanistan_counts.csv"
    path.parent.mkdir(parents=True)
    path.write_bytes(counts)
    arrays = war_logs.read_counts(path, dataset)
    size, sha256 = len(counts), hashlib.sha256(counts).hexdigest()
    *others, shipped = dataset.instead
    shipped = dataclasses.replace(shipped, bytes=size, sha256=sha256)
    extract = as_extract(invented())
    own = dataclasses.replace(dataset.files[0], bytes=len(extract), sha256=hashlib.sha256(extract).hexdigest())
    return dataclasses.replace(dataset, files=(own,), instead=(*others, shipped), arrays=prepared.sum_of(arrays))


def made(dataset: Dataset, folder: Path) -> dict[str, np.ndarray]:
    fetch(dataset, folder / "raw", [folder / "mirror"])
    prepared.prepare(dataset, folder / "raw", folder / "prepared")
    return prepared.read(dataset.name, dataset, folder / "prepared")


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("afghanistan_counts.csv", None),
        ("afg.csv", as_release(invented())),
        ("afg.csv.gz", gzip.compress(as_release(invented()))),
        ("afghanistan_events_reduced.csv", as_extract(invented())),
    ],
)
def test_each_layout_gives_the_arrays_that_are_counted_by_hand(diary, tmp_path, name, content) -> None:
    if content:
        (tmp_path / "mirror/afghanistan" / name).write_bytes(content)
    arrays = made(diary, tmp_path)
    assert (tmp_path / "raw/afghanistan" / name.removesuffix(".gz")).is_file()
    assert arrays["counts"].sum() == 5 * sum(
        inside(e) and e["region"] in diary.settings["regions"] and e["day"].startswith("2004") for e in invented()
    )
    assert prepared.sum_of(arrays) == diary.arrays


def moved(events: list[dict[str, str]]) -> list[dict[str, str]]:
    place = next(i for i, e in enumerate(events) if inside(e) and e["day"] < "2004-02" and e["region"] == "RC EAST")
    events[place]["day"] = "2004-02-03 00:00:00"
    return events


def hurt(events: list[dict[str, str]]) -> list[dict[str, str]]:
    event = next(e for e in events if inside(e) and "2004-02" <= e["day"] < "2004-12" and e["region"] == "RC EAST")
    event["type"] = "Friendly Fire" if TYPES[event["type"]] == "other" else ""
    return events


@pytest.mark.parametrize(
    ("events", "said"),
    [
        (
            moved([e for e in invented() if e["day"] >= "2004"]),
            "2004-01 has 1 events fewer, 2004-02 has 1 events more;",
        ),
        (hurt(invented()), "2004-02 has 2 other counts;"),
        ([{**e, "lat": "34.25", "lon": "69.5"} for e in invented()], "2004-01 has .* events more, 2004-02 has .* more"),
    ],
    ids=["another month", "another level", "without the box"],
)
def test_other_events_are_refused_in_one_line_that_names_the_months(diary, tmp_path, events, said) -> None:
    (tmp_path / "mirror/afghanistan/afg.csv").write_bytes(as_release(events))
    with pytest.raises(ValueError, match=f"afg.csv: not the declared counts: {said}") as caught:
        made(diary, tmp_path)
    assert "\n" not in str(caught.value)
    assert not (tmp_path / "prepared").exists()


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("enemy action", "enemy  action", "line .*: 'enemy  action' is no field or level"),
        (",1\n", ",x\n", "line .*: events = 'x' is not a whole number"),
        (",1\n", ",2\n", "the fields have different numbers of events"),
    ],
)
def test_malformed_counts_are_refused(diary, tmp_path, old, new, said) -> None:
    path = tmp_path / "mirror/afghanistan/afghanistan_counts.csv"
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new, 1))
    with pytest.raises(ValueError, match=said):
        war_logs.read_counts(path, diary)
    path.write_text(text + text.splitlines()[-1] + "\n")
    with pytest.raises(ValueError, match="the same region, month, field and level as before"):
        war_logs.read_counts(path, diary)


def test_counts_are_written_as_they_are_read(diary, tmp_path) -> None:
    arrays = made(diary, tmp_path)
    path = tmp_path / "written.csv"
    path.write_text("".join(f"{line}\n" for line in war_logs.count_lines(arrays, diary)))
    again = war_logs.read_counts(path, diary)
    assert prepared.sum_of(again) == diary.arrays


def test_a_release_with_a_broken_row_is_refused_with_its_line(diary, tmp_path) -> None:
    (tmp_path / "mirror/afghanistan/afg.csv").write_bytes(as_release(invented(3)) + b'"a","b"\n')
    with pytest.raises(ValueError, match=r"afg\.csv line 7: 2 fields, expected 32"):
        made(diary, tmp_path)
