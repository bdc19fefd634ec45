"""Loaders read small files and refuse malformed ones, naming file and line."""

from __future__ import annotations

import gzip
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from dataset_cases import sized


def write(folder: Path, contents: dict[str, str | bytes]) -> dict[str, Path]:
    paths = {}
    for name, content in contents.items():
        paths[name] = folder / name
        paths[name].write_bytes(content.encode() if isinstance(content, str) else content)
    return paths


ABALONE_ROW = "M,0.455,0.365,0,0.514,0.2245,0.101,0.15,15"


def test_abalone_reads_a_small_file(tmp_path: Path) -> None:
    dataset = sized("abalone", train_rows=1, test_rows=1)
    text = f"{ABALONE_ROW}\nF,1,2,3,4,5,6,7,9\n"
    arrays = dataset.loader().parse(write(tmp_path, {"abalone.data": text}), dataset)
    assert arrays["sex"].tolist() == [2, 0]
    assert arrays["height"].tolist() == [0, 3]
    assert arrays["shell_weight"].tolist() == [0.15, 7]
    assert arrays["rings"].tolist() == [15, 9]


@pytest.mark.parametrize(
    ("second", "message"),
    [
        ("M,1,1,1,1,1,1,9", r" line 2: 8 fields, expected 9"),
        ("", r" line 2: 1 fields, expected 9"),
        ("X,1,1,1,1,1,1,1,9", r" line 2: sex = 'X': must be one of F, I, M"),
        ("M,1,1,one,1,1,1,1,9", r" line 2: height = 'one': could not convert"),
        ("M,1,1,1,1,1,1,1,9.5", r" line 2: rings = '9\.5': .* not a whole number"),
        ("M,1,1,nan,1,1,1,1,9", r" line 2: height = 'nan': .* not a finite number"),
        ("M,1,1,-1,1,1,1,1,9", r" line 2: height = '-1': .* below 0"),
        ("M,1,1,1,1,1,1,1,0", r" line 2: rings = '0': .* at least 1"),
        ("\xe9,1,1,1,1,1,1,1,9", r" line 2: sex = .*: must be one of F, I, M"),
        (f"{ABALONE_ROW}\n{ABALONE_ROW}", r": 3 rows, expected 2"),
    ],
)
def test_abalone_refuses_a_malformed_file(tmp_path: Path, second: str, message: str) -> None:
    dataset = sized("abalone", train_rows=1, test_rows=1)
    paths = write(tmp_path, {"abalone.data": f"{ABALONE_ROW}\n{second}\n"})
    with pytest.raises(ValueError, match=rf"abalone\.data{message}"):
        dataset.loader().parse(paths, dataset)


ADULT_FIELDS = (
    "39, State-gov, 77516, Bachelors, 13, Never-married, Adm-clerical, Not-in-family, White, Male, 2174, 0, 40, Cuba"
)


ADULT_HEADER = "|1x3 Cross validator\n"


def test_adult_reads_small_files(tmp_path: Path) -> None:
    dataset = sized("adult", train_rows=2, test_rows=1)
    contents = {
        "adult.data": f"{ADULT_FIELDS}, <=50K\n{ADULT_FIELDS.replace('State-gov', '?')}, >50K\n\n",
        "adult.test": f"{ADULT_HEADER}{ADULT_FIELDS}, >50K.\n\n",
    }
    arrays = dataset.loader().parse(write(tmp_path, contents), dataset)
    levels = dataset.public["levels"]
    assert [levels["workclass"][code] for code in arrays["workclass"]] == ["State-gov", "?", "State-gov"]
    assert levels["native_country"][arrays["native_country"][0]] == "Cuba"
    assert arrays["capital_gain"].tolist() == [2174] * 3
    assert arrays["over_50k"].tolist() == [False, True, True]
    assert arrays["is_test"].tolist() == [False, False, True]


@pytest.mark.parametrize(
    ("data", "test", "message"),
    [
        (f"{ADULT_FIELDS}\n", None, r"adult\.data line 1: 14 fields, expected 15"),
        (f"{ADULT_FIELDS}, <=50K\n\n{ADULT_FIELDS}, <=50K\n", None, r"adult\.data line 2: 1 fields"),
        (f"{ADULT_FIELDS}, <=50K.\n", None, r"adult\.data line 1: label = '<=50K\.': must be one of <=50K, >50K"),
        (None, f"{ADULT_HEADER}{ADULT_FIELDS}, <=50K\n", r"adult\.test line 2: label = '<=50K'"),
        (None, f"{ADULT_FIELDS}, <=50K.\n", r"adult\.test line 1: expected the remark"),
        (f"{ADULT_HEADER}{ADULT_FIELDS}, <=50K\n", None, r"adult\.data line 1: 1 fields"),
        (f"{ADULT_FIELDS.replace('White', '?')}, <=50K\n", None, r"line 1: race = '\?': must be one of"),
        (f"{ADULT_FIELDS.replace('39', '3.9')}, <=50K\n", None, r"line 1: age = '3\.9': .* not a whole number"),
        (f"{ADULT_FIELDS.replace('39', '-9')}, <=50K\n", None, r"line 1: age = '-9': .* not a whole number"),
        (f"{ADULT_FIELDS}, <=50K\n" * 2, None, r"adult\.data: 2 rows, expected 1"),
        (None, ADULT_HEADER, r"adult\.test: 0 rows, expected 1"),
    ],
)
def test_adult_refuses_a_malformed_file(tmp_path: Path, data: str | None, test: str | None, message: str) -> None:
    dataset = sized("adult", train_rows=1, test_rows=1)
    contents = {
        "adult.data": data or f"{ADULT_FIELDS}, <=50K\n\n",
        "adult.test": test or f"{ADULT_HEADER}{ADULT_FIELDS}, <=50K.\n\n",
    }
    with pytest.raises(ValueError, match=message):
        dataset.loader().parse(write(tmp_path, contents), dataset)


def idx(array: np.ndarray) -> bytes:
    sizes = b"".join(size.to_bytes(4, "big") for size in array.shape)
    return gzip.compress(bytes([0, 0, 8, array.ndim]) + sizes + array.astype(np.uint8).tobytes())


IMAGES = np.arange(4 * 784).reshape(4, 28, 28) % 256


LABELS = np.array([3, 1, 8, 3])


def small_mnist(folder: Path, images: bytes, labels: bytes) -> dict[str, Path]:
    return write(folder, {"train-images-idx3-ubyte.gz": images, "train-labels-idx1-ubyte.gz": labels})


def test_mnist_keeps_the_two_digits(tmp_path: Path) -> None:
    dataset = sized("mnist", images=4, train_rows=2, test_rows=1)
    arrays = dataset.loader().parse(small_mnist(tmp_path, idx(IMAGES), idx(LABELS)), dataset)
    assert arrays["digit"].tolist() == [3, 8, 3]
    assert np.array_equal(arrays["pixels"], IMAGES.reshape(4, 784)[[0, 2, 3]])


@pytest.mark.parametrize(
    ("images", "labels", "settings", "message"),
    [
        (idx(IMAGES)[:-9], idx(LABELS), {}, r"train-images.*: not a whole gzip archive"),
        (b"<html>", idx(LABELS), {}, r"train-images.*: not a whole gzip archive"),
        (idx(IMAGES.reshape(4, 784)), idx(LABELS), {}, r"train-images.*: header 00000802"),
        (idx(IMAGES), idx(LABELS[:3]), {}, r"train-labels.*: header 0000080100000003"),
        (gzip.compress(gzip.decompress(idx(IMAGES)) + b"x"), idx(LABELS), {}, r"train-images.*: 3153 bytes unpacked"),
        (idx(IMAGES), idx(LABELS + 2), {}, r"train-labels.*: label 10: must be 0 to 9"),
        (idx(IMAGES), idx(LABELS), {"train_rows": 3}, r"3 images of the digits \[3, 8\], expected 4"),
        (idx(IMAGES), idx(LABELS), {"digits": [3, 3]}, r"digits = \[3, 3\]: must be two different digits"),
        (idx(IMAGES), idx(LABELS), {"digits": [3, 10]}, r"digits = \[3, 10\]: must be two different digits"),
    ],
    ids=["cut", "page", "axes", "count", "trailing", "label", "sizes", "one digit", "no digit"],
)
def test_mnist_refuses_a_malformed_file(
    tmp_path: Path, images: bytes, labels: bytes, settings: dict[str, Any], message: str
) -> None:
    dataset = sized("mnist", **{"images": 4, "train_rows": 2, "test_rows": 1, **settings})
    with pytest.raises(ValueError, match=message):
        dataset.loader().parse(small_mnist(tmp_path, images, labels), dataset)
