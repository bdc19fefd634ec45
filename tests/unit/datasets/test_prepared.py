"""Prepared files are complete and have the requested contents."""

from __future__ import annotations

import dataclasses
import hashlib
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from dataset_cases import prepare, sized

from privpost.datasets import prepared
from privpost.datasets.catalogue import Dataset, File


def sha256(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


@pytest.fixture
def toy(tmp_path: Path) -> Dataset:
    """Abalone with twelve rows, its raw file in place."""
    content = "".join(f"{'FIM'[i % 3]},0.{i + 1},0.1,0.1,{i},0.1,0.1,0.1,{5 + i}\n" for i in range(12)).encode()
    path = tmp_path / "raw" / "abalone" / "abalone.data"
    path.parent.mkdir(parents=True)
    path.write_bytes(content)
    file = File("abalone.data", len(content), sha256(path), ())
    return dataclasses.replace(sized("abalone", train_rows=8, test_rows=4), files=(file,))


def test_prepared_arrays_come_back_as_parsed_and_the_bytes_are_reproducible(toy: Dataset, tmp_path: Path) -> None:
    path = prepare(toy, tmp_path)
    assert path == tmp_path / "prepared" / "abalone.npz"
    arrays = prepared.read("abalone", toy, prepared=tmp_path / "prepared")
    parsed = toy.loader().parse({"abalone.data": tmp_path / "raw" / "abalone" / "abalone.data"}, toy)
    assert arrays.keys() == parsed.keys()
    for key, array in parsed.items():
        assert arrays[key].dtype == array.dtype
        assert np.array_equal(arrays[key], array)
    before = path.read_bytes()
    path.unlink()
    assert prepare(toy, tmp_path).read_bytes() == before
    assert [file.name for file in path.parent.iterdir()] == ["abalone.npz"]


def test_a_raw_file_that_is_missing_wrong_or_malformed_prepares_nothing(toy: Dataset, tmp_path: Path) -> None:
    before = prepare(toy, tmp_path).read_bytes()
    raw = tmp_path / "raw" / "abalone" / "abalone.data"
    malformed = dataclasses.replace(toy, settings={**toy.settings, "train_rows": 9})
    with pytest.raises(ValueError, match=r"abalone\.data: 12 rows, expected 13"):
        prepare(malformed, tmp_path)
    raw.write_bytes(raw.read_bytes().replace(b"F", b"M"))
    with pytest.raises(ValueError, match=rf"found .* sha256 {sha256(raw)}; expected .* {toy.files[0].sha256}"):
        prepare(toy, tmp_path)
    raw.unlink()
    with pytest.raises(FileNotFoundError, match=r"abalone\.data: not there; fetch it with `snakemake data`"):
        prepare(toy, tmp_path)
    assert [path.name for path in (tmp_path / "prepared").iterdir()] == ["abalone.npz"]
    assert (tmp_path / "prepared" / "abalone.npz").read_bytes() == before


@pytest.mark.parametrize(
    ("change", "named"),
    [
        ({"rev": 2}, "rev"),
        ({"settings": {"rings_below": 11}}, "settings"),
        ({"public": {}, "rev": 3}, "public, rev"),
        ({"files": (File("abalone.data", 1, "0" * 64, ()),)}, "sha256"),
    ],
)
def test_data_prepared_for_something_else_are_refused(
    toy: Dataset, tmp_path: Path, change: dict[str, Any], named: str
) -> None:
    prepare(toy, tmp_path)
    with pytest.raises(
        ValueError, match=f"prepared for another {named} than the catalogue declares; delete it and run"
    ):
        prepared.read("abalone", dataclasses.replace(toy, **change), prepared=tmp_path / "prepared")


def test_damaged_prepared_data_are_refused(toy: Dataset, tmp_path: Path) -> None:
    path = prepare(toy, tmp_path)
    whole = path.read_bytes()
    with np.load(path) as archive:
        content = {key: archive[key] for key in archive.files}

    def refused() -> None:
        with pytest.raises(ValueError, match=r"abalone\.npz: damaged \(.*; delete it and run `snakemake data`"):
            prepared.read("abalone", toy, prepared=path.parent)

    path.write_bytes(whole[: len(whole) // 2])
    refused()
    path.write_bytes(b"")
    refused()
    # A flipped byte is noticed or, in a part of the archive that nobody reads, harmless.
    noticed = 0
    for position in range(0, len(whole), 7):
        flipped = bytearray(whole)
        flipped[position] ^= 0xFF
        path.write_bytes(flipped)
        try:
            arrays = prepared.read("abalone", toy, prepared=path.parent)
        except ValueError as error:
            assert "damaged (" in str(error)
            noticed += 1
        else:
            assert all(np.array_equal(arrays[key], content[key]) for key in content if not key.startswith("__"))
    assert noticed > len(whole) / 7 / 2
    # A valid archive with other numbers, another type, another name, or without its sum.
    rings = content["rings"]
    for other in (rings + 1, rings.astype(np.int32), rings.reshape(3, 4)):
        np.savez(path, **{**content, "rings": other})
        refused()
    np.savez(path, **{key: value for key, value in content.items() if key != prepared.CHECKSUM})
    refused()
    np.savez(path, **{"ring" if key == "rings" else key: value for key, value in content.items()})
    refused()
    path.write_bytes(whole)
    assert np.array_equal(prepared.read("abalone", toy, prepared=path.parent)["rings"], rings)


def test_unprepared_data_are_named(toy: Dataset, tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match=r"abalone\.npz: not there; prepare it with `snakemake data`"):
        prepared.read("abalone", toy, prepared=tmp_path)
