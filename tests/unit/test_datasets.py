"""Data sets: contracts that every catalogued one keeps, the three loaders, the encoding and the prepared files.

Tests that need the original bytes look for them in data/raw, data/mirror and ../shared/data and are skipped without.
"""

from __future__ import annotations

import dataclasses
import gzip
import hashlib
import inspect
import json
import subprocess
import sys
import types
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml

import privpost.datasets
from privpost.datasets import catalogue, encoding, prepared
from privpost.datasets.catalogue import Dataset, File
from privpost.datasets.fetch import FetchError, fetch

ROOT = Path(__file__).resolve().parents[2]
CONF = ROOT / "conf"
NAMES = catalogue.names(CONF)
MIRRORS = (ROOT / "data" / "raw", ROOT / "data" / "mirror", ROOT.parent / "shared" / "data")
# Sums, quotients and a square root of up to 784 numbers of size 1: each within a few hundred units of 2e-16.
ROUNDING = 1e-12


def sha256(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


@pytest.fixture(scope="session")
def original(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], tuple[Dataset, dict[str, Path]]]:
    """Give a data set and its raw files, copied from a mirror once, or skip the test."""
    raw = tmp_path_factory.mktemp("raw")

    def find(name: str) -> tuple[Dataset, dict[str, Path]]:
        dataset = catalogue.load(name, CONF)
        offline = dataclasses.replace(
            dataset, files=tuple(dataclasses.replace(file, urls=()) for file in dataset.files)
        )
        try:
            paths = fetch(offline, raw=raw, mirrors=MIRRORS)
        except FetchError:
            pytest.skip(f"the raw files of {name} are in none of {', '.join(map(str, MIRRORS))}")
        return dataset, {path.name: path for path in paths}

    return find


@pytest.fixture(scope="session")
def arrays_of(original: Callable) -> Callable[[str], tuple[Dataset, dict[str, np.ndarray]]]:
    parsed: dict[str, dict[str, np.ndarray]] = {}

    def parse(name: str) -> tuple[Dataset, dict[str, np.ndarray]]:
        dataset, paths = original(name)
        if name not in parsed:
            parsed[name] = dataset.loader().parse(paths, dataset)
        return dataset, parsed[name]

    return parse


# Contracts of every catalogued data set


@pytest.mark.parametrize("name", NAMES)
def test_the_declaration_is_whole_and_both_yaml_readers_see_the_same(name: str) -> None:
    from omegaconf import OmegaConf

    dataset = catalogue.load(name, CONF)
    path = CONF / "dataset" / f"{name}.yaml"
    assert OmegaConf.to_container(OmegaConf.load(path), resolve=False) == yaml.safe_load(path.read_text())
    assert "${" not in path.read_text()
    assert dataset.origin.startswith(("http://", "https://"))
    assert all(bool(file.urls) == (dataset.access == "public") for file in dataset.files)


@pytest.mark.parametrize("name", NAMES)
def test_the_identity_holds_what_moves_numbers_and_nothing_else(name: str) -> None:
    dataset = catalogue.load(name, CONF)

    def text(value: Dataset) -> str:
        return json.dumps(value.identity(), sort_keys=True)

    identity = text(dataset)
    assert json.loads(identity) == dataset.identity()
    elsewhere = tuple(dataclasses.replace(file, urls=("https://example.org/x",)) for file in dataset.files)
    for neutral in ({"title": "x"}, {"licence": "x"}, {"citation": "x"}, {"origin": "x"}, {"files": elsewhere}):
        assert text(dataclasses.replace(dataset, **neutral)) == identity
    other_sum = (File("x", 1, "0" * 64, ()), *dataset.files[1:])
    for change in ({"rev": dataset.rev + 1}, {"files": other_sum}, {"public": {"x": 1}}, {"settings": {"x": 1}}):
        assert text(dataclasses.replace(dataset, **change)) != identity


@pytest.mark.parametrize("name", NAMES)
def test_the_loader_has_the_functions_of_its_task(name: str) -> None:
    loader = catalogue.load(name, CONF).loader()
    assert list(inspect.signature(loader.parse).parameters) == ["paths", "dataset"]
    assert hasattr(loader, "design") == hasattr(loader, "split")
    if hasattr(loader, "design"):
        assert list(inspect.signature(loader.split).parameters) == ["arrays", "rng", "dataset"]
        design = inspect.signature(loader.design).parameters
        assert list(design) == ["arrays", "bounds", "dropped_level", "dataset"]
        assert all(design[key].kind is inspect.Parameter.KEYWORD_ONLY for key in list(design)[1:])


@pytest.mark.parametrize("name", NAMES)
def test_the_original_parses_to_plain_arrays(name: str, arrays_of: Callable) -> None:
    _, arrays = arrays_of(name)
    assert arrays
    for key, array in arrays.items():
        assert isinstance(array, np.ndarray), key
        assert array.size > 0, key
        assert not array.dtype.hasobject, key
        if array.dtype.kind == "f":
            assert np.all(np.isfinite(array)), key


@pytest.mark.parametrize("dropped_level", ["first", "last", "none"])
@pytest.mark.parametrize("bounds", ["data", "public"])
@pytest.mark.parametrize("name", NAMES)
def test_a_design_has_rows_of_norm_one_and_binary_labels(
    name: str, bounds: str, dropped_level: str, arrays_of: Callable
) -> None:
    dataset, arrays = arrays_of(name)
    loader = dataset.loader()
    if not hasattr(loader, "design"):
        pytest.skip(f"{name} has no classification task")
    features, labels = loader.design(arrays, bounds=bounds, dropped_level=dropped_level, dataset=dataset)
    assert features.dtype == np.float64
    assert labels.dtype == np.int8
    assert set(np.unique(labels)) == {0, 1}
    norms = np.linalg.norm(features, axis=1)
    assert np.all((np.abs(norms - 1) < ROUNDING) | (norms == 0))
    train, test = loader.split(arrays, np.random.default_rng(1), dataset)
    assert np.array_equal(np.sort(np.concatenate([train, test])), np.arange(len(labels)))


@pytest.mark.parametrize("name", NAMES)
def test_public_bounds_make_each_example_independent_of_the_others(name: str, arrays_of: Callable) -> None:
    dataset, arrays = arrays_of(name)
    loader = dataset.loader()
    if not hasattr(loader, "design"):
        pytest.skip(f"{name} has no classification task")
    # A few rows alone: with public bounds their features are the same, with the data's bounds they are not.
    few = {key: array[10:15] for key, array in arrays.items()}
    for bounds, same in (("public", True), ("data", False)):
        whole, _ = loader.design(arrays, bounds=bounds, dropped_level="first", dataset=dataset)
        alone, _ = loader.design(few, bounds=bounds, dropped_level="first", dataset=dataset)
        assert (alone.shape[1] == whole.shape[1] and np.array_equal(alone, whole[10:15])) is same


# The three data sets of geumlek2017: the paper's dimensions and sizes


@pytest.mark.parametrize(
    ("name", "dimensions", "undropped", "train_rows", "test_rows"),
    [("abalone", 9, 10, 2784, 1393), ("adult", 100, 108, 32561, 16281), ("mnist", 784, 784, 7988, 3994)],
)
def test_dimensions_and_sizes_are_those_of_the_paper(
    name: str, dimensions: int, undropped: int, train_rows: int, test_rows: int, arrays_of: Callable
) -> None:
    dataset, arrays = arrays_of(name)
    loader = dataset.loader()
    for bounds in ("data", "public"):
        for dropped_level, expected in (("first", dimensions), ("last", dimensions), ("none", undropped)):
            features, _ = loader.design(arrays, bounds=bounds, dropped_level=dropped_level, dataset=dataset)
            assert features.shape == (train_rows + test_rows, expected)
    train, test = loader.split(arrays, np.random.default_rng(1), dataset)
    assert (len(train), len(test)) == (train_rows, test_rows)


def test_abalone_agrees_with_its_publishers_tables(arrays_of: Callable) -> None:
    dataset, arrays = arrays_of("abalone")
    # abalone.names: extremes of each column and the number of animals per number of rings.
    extremes = {
        "length": (0.075, 0.815),
        "diameter": (0.055, 0.650),
        "height": (0.0, 1.130),
        "whole_weight": (0.002, 2.826),
        "shucked_weight": (0.001, 1.488),
        "viscera_weight": (0.001, 0.760),
        "shell_weight": (0.002, 1.005),
        "rings": (1, 29),
    }
    for column, (low, high) in extremes.items():
        # Printed with three decimals; the half unit itself occurs (2.8255, 0.0005).
        assert abs(arrays[column].min() - low) <= 0.0005 + ROUNDING
        assert abs(arrays[column].max() - high) <= 0.0005 + ROUNDING
    assert np.bincount(arrays["rings"])[5:13].tolist() == [115, 259, 391, 568, 689, 634, 487, 267]
    assert np.bincount(arrays["sex"]).tolist() == [1307, 1342, 1528]
    assert np.sum(arrays["height"] == 0) == 2
    _, labels = dataset.loader().design(arrays, bounds="data", dropped_level="first", dataset=dataset)
    assert labels.sum() == 2096


def test_adult_agrees_with_its_publishers_counts(arrays_of: Callable) -> None:
    _, arrays = arrays_of("adult")
    test = arrays["is_test"]
    assert [int(arrays["over_50k"][~test].sum()), int(arrays["over_50k"][test].sum())] == [7841, 3846]
    # Level 0 is "?" in the three columns that have missing answers.
    missing = (arrays["workclass"] == 0) | (arrays["occupation"] == 0) | (arrays["native_country"] == 0)
    assert [int(missing[~test].sum()), int(missing[test].sum())] == [2399, 1221]
    # adult.names: shares of the label with and without the rows that have missing answers.
    assert round(arrays["over_50k"].mean() * 100, 2) == 23.93
    assert round(arrays["over_50k"][~missing].mean() * 100, 2) == 24.78


def test_adult_has_one_level_in_training_only(arrays_of: Callable) -> None:
    dataset, arrays = arrays_of("adult")
    test = arrays["is_test"]
    for column, levels in dataset.public["levels"].items():
        in_training = {levels[code] for code in np.unique(arrays[column][~test])}
        in_test = {levels[code] for code in np.unique(arrays[column][test])}
        assert in_training == set(levels)
        assert in_training - in_test == ({"Holand-Netherlands"} if column == "native_country" else set())


def test_mnist_agrees_with_its_publishers_counts(arrays_of: Callable, original: Callable) -> None:
    dataset, arrays = arrays_of("mnist")
    assert {digit: int(np.sum(arrays["digit"] == digit)) for digit in (3, 8)} == {3: 6131, 8: 5851}
    _, labels = dataset.loader().design(arrays, bounds="data", dropped_level="first", dataset=dataset)
    assert labels.sum() == 6131
    # The third 3 or 8 of the file, found by its offset instead of the parser.
    _, paths = original("mnist")
    all_labels = gzip.decompress(paths["train-labels-idx1-ubyte.gz"].read_bytes())[8:]
    position = [index for index, label in enumerate(all_labels[:200]) if label in (3, 8)][2]
    with gzip.open(paths["train-images-idx3-ubyte.gz"]) as images:
        images.seek(16 + position * 784)
        assert images.read(784) == arrays["pixels"][2].tobytes()


def test_pixels_that_are_always_background_become_zero_unless_bounds_are_public(arrays_of: Callable) -> None:
    dataset, arrays = arrays_of("mnist")
    constant = np.all(arrays["pixels"] == 0, axis=0)
    assert 0 < constant.sum() < 784
    by_data, _ = dataset.loader().design(arrays, bounds="data", dropped_level="first", dataset=dataset)
    by_public, _ = dataset.loader().design(arrays, bounds="public", dropped_level="first", dataset=dataset)
    assert np.all(by_data[:, constant] == 0)
    assert np.all(by_public[:, constant] < 0)


def pandas_design(frame: Any) -> np.ndarray:
    """Encode as the paper does, by pandas alone."""
    import pandas as pd

    encoded = pd.get_dummies(frame, drop_first=True).astype(float)
    scaled = (encoded - encoded.min()) / (encoded.max() - encoded.min()) - 0.5
    return scaled.div((scaled**2).sum(axis=1) ** 0.5, axis=0).to_numpy()


def test_abalone_is_encoded_as_pandas_would(arrays_of: Callable, original: Callable) -> None:
    import pandas as pd

    dataset, arrays = arrays_of("abalone")
    _, paths = original("abalone")
    frame = pd.read_csv(paths["abalone.data"], header=None)
    features, labels = dataset.loader().design(arrays, bounds="data", dropped_level="first", dataset=dataset)
    np.testing.assert_allclose(features, pandas_design(frame.iloc[:, :-1]), rtol=0, atol=ROUNDING)
    assert np.array_equal(labels, (frame[8] < 10).astype(int))


def test_adult_is_encoded_as_pandas_would(arrays_of: Callable, original: Callable) -> None:
    import pandas as pd

    dataset, arrays = arrays_of("adult")
    _, paths = original("adult")
    options = {"header": None, "skipinitialspace": True}
    train, test = pd.read_csv(paths["adult.data"], **options), pd.read_csv(paths["adult.test"], skiprows=1, **options)
    frame = pd.concat([train, test], ignore_index=True)
    features, labels = dataset.loader().design(arrays, bounds="data", dropped_level="first", dataset=dataset)
    np.testing.assert_allclose(features, pandas_design(frame.iloc[:, :-1]), rtol=0, atol=ROUNDING)
    assert np.array_equal(labels, frame[14].str.startswith(">").astype(int))


# Loaders refuse what is malformed, naming file and line


def write(folder: Path, contents: dict[str, str | bytes]) -> dict[str, Path]:
    paths = {}
    for name, content in contents.items():
        paths[name] = folder / name
        paths[name].write_bytes(content.encode() if isinstance(content, str) else content)
    return paths


def sized(name: str, **settings: Any) -> Dataset:
    dataset = catalogue.load(name, CONF)
    return dataclasses.replace(dataset, settings={**dataset.settings, **settings})


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
        ("M,1,1,one,1,1,1,1,9", r" line 2: not a number"),
        ("M,1,1,1,1,1,1,1,9.5", r" line 2: not a number"),
        ("M,1,1,nan,1,1,1,1,9", r" line 2: not a number"),
        ("M,1,1,-1,1,1,1,1,9", r" line 2: measurements must not be negative"),
        ("M,1,1,1,1,1,1,1,0", r" line 2: .* rings at least 1"),
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
        (f"{ADULT_FIELDS.replace('White', '?')}, <=50K\n", None, r"line 1: race = '\?': not a declared level"),
        (f"{ADULT_FIELDS.replace('39', '3.9')}, <=50K\n", None, r"line 1: age = '3\.9': must be a non-negative"),
        (f"{ADULT_FIELDS.replace('39', '-9')}, <=50K\n", None, r"line 1: age = '-9': must be a non-negative"),
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


# The encoding


def declared(bounds: dict[str, list[float]], levels: dict[str, list[str]]) -> Dataset:
    dataset = catalogue.load("abalone", CONF)
    return dataclasses.replace(dataset, public={"bounds": bounds, "levels": levels})


def test_scale_maps_the_interval_clips_and_zeroes_constants() -> None:
    values = np.array([[0.0, 7.0, -1.0], [5.0, 7.0, 2.0], [10.0, 7.0, 9.0]])
    scaled = encoding.scale(values, np.array([0.0, 7.0, 0.0]), np.array([10.0, 7.0, 4.0]))
    assert scaled.tolist() == [[-0.5, 0.0, -0.5], [0.0, 0.0, 0.0], [0.5, 0.0, 0.5]]
    assert values[0, 2] == -1.0


@pytest.mark.parametrize(
    ("values", "low", "high", "message"), [([[1.0]], 2, 1, "exceeds"), ([[np.nan]], 0, 1, "must be finite")]
)
def test_scale_refuses_impossible_input(values: list, low: float, high: float, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        encoding.scale(np.array(values), low, high)


def test_one_hot_drops_the_level_asked_for() -> None:
    codes, levels = np.array([2, 0, 2, 5]), np.array([0, 2, 5])
    assert encoding.one_hot(codes, levels, "none").tolist() == [[0, 1, 0], [1, 0, 0], [0, 1, 0], [0, 0, 1]]
    assert encoding.one_hot(codes, levels, "first").tolist() == [[1, 0], [0, 0], [1, 0], [0, 1]]
    assert encoding.one_hot(codes, levels, "last").tolist() == [[0, 1], [1, 0], [0, 1], [0, 0]]
    with pytest.raises(ValueError, match=r"\[5\] are not among the levels"):
        encoding.one_hot(codes, levels[:2], "none")


def test_a_zero_row_stays_zero() -> None:
    assert encoding.normalise_rows(np.array([[3.0, 4.0], [0.0, 0.0]])).tolist() == [[0.6, 0.8], [0.0, 0.0]]


def test_public_bounds_clip_and_keep_levels_that_do_not_occur() -> None:
    dataset = declared({"x": [0.0, 2.0]}, {"c": ["a", "b", "d"]})
    numeric, categorical = {"x": np.array([1.0, 5.0, -5.0])}, {"c": np.array([0, 2, 2])}
    features = encoding.encode(numeric, categorical, bounds="public", dropped_level="first", dataset=dataset)
    unscaled = np.array([[0.0, -0.5, -0.5], [0.5, -0.5, 0.5], [-0.5, -0.5, 0.5]])
    np.testing.assert_allclose(features, unscaled / np.sqrt((unscaled**2).sum(axis=1, keepdims=True)), atol=ROUNDING)
    # By the data, "b" has no column, "a" is dropped, and 5 and -5 are the ends of the interval.
    features = encoding.encode(numeric, categorical, bounds="data", dropped_level="first", dataset=dataset)
    unscaled = np.array([[0.1, -0.5], [0.5, 0.5], [-0.5, 0.5]])
    np.testing.assert_allclose(features, unscaled / np.sqrt((unscaled**2).sum(axis=1, keepdims=True)), atol=ROUNDING)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"bounds": "private"}, "bounds = 'private': must be one of data, public"),
        ({"dropped_level": "second"}, "dropped_level = 'second': must be one of first, last, none"),
        ({"dataset": declared({}, {})}, r"public\.bounds\.x is not declared"),
        ({"dataset": declared({"x": [0.0, 1.0]}, {})}, r"public\.levels\.c is not declared"),
    ],
)
def test_encode_refuses_unknown_settings(settings: dict[str, Any], message: str) -> None:
    usual = {"bounds": "public", "dropped_level": "first", "dataset": declared({"x": [0.0, 1.0]}, {"c": ["a", "b"]})}
    with pytest.raises(ValueError, match=message):
        encoding.encode({"x": np.zeros(2)}, {"c": np.zeros(2, int)}, **{**usual, **settings})


def test_random_splits_are_reproducible_and_treat_all_rows_alike() -> None:
    dataset = sized("abalone", train_rows=8, test_rows=4)
    first, again = (encoding.random_split(12, dataset, np.random.default_rng(7)) for _ in range(2))
    assert all(np.array_equal(a, b) for a, b in zip(first, again, strict=True))
    rng = np.random.default_rng(7)
    repeats = 2000
    counts = np.zeros(12)
    for _ in range(repeats):
        train, test = encoding.random_split(12, dataset, rng)
        assert (len(train), len(test)) == (8, 4)
        counts[train] += 1
    # Each count is binomial with mean 2000 * 2/3; 12 counts beyond 5 standard deviations: false alarm below 1e-5.
    assert np.all(np.abs(counts - repeats * 2 / 3) < 5 * np.sqrt(repeats * 2 / 9))


def test_a_split_that_does_not_fit_is_refused() -> None:
    with pytest.raises(ValueError, match="train_rows = 2784 and test_rows = 1393 must add up to 12"):
        encoding.random_split(12, sized("abalone"), np.random.default_rng(7))


# Prepared files


@pytest.fixture
def toy(tmp_path: Path) -> Dataset:
    """Abalone with twelve rows, its raw file in place."""
    content = "".join(f"{'FIM'[i % 3]},0.{i + 1},0.1,0.1,{i},0.1,0.1,0.1,{5 + i}\n" for i in range(12)).encode()
    path = tmp_path / "raw" / "abalone" / "abalone.data"
    path.parent.mkdir(parents=True)
    path.write_bytes(content)
    file = File("abalone.data", len(content), sha256(path), ())
    return dataclasses.replace(sized("abalone", train_rows=8, test_rows=4), files=(file,))


def prepare(dataset: Dataset, folder: Path) -> Path:
    return prepared.prepare(dataset, raw=folder / "raw", prepared=folder / "prepared")


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


# Designs for studies


def test_load_design_is_fixed_by_its_generator(original: Callable, tmp_path: Path) -> None:
    dataset, paths = original("abalone")
    prepared.prepare(dataset, raw=paths["abalone.data"].parents[1], prepared=tmp_path)

    def load(seed: int) -> privpost.datasets.Design:
        rng = np.random.default_rng(seed)
        return privpost.datasets.load_design(
            "abalone", bounds="data", dropped_level="first", rng=rng, prepared=tmp_path, conf=CONF
        )

    design, again, other = load(1), load(1), load(2)
    assert [array.shape for array in design] == [(2784, 9), (2784,), (1393, 9), (1393,)]
    assert [array.dtype.str for array in design] == ["<f8", "|i1", "<f8", "|i1"]
    assert all(np.array_equal(a, b) for a, b in zip(design, again, strict=True))
    assert not np.array_equal(design.train_features, other.train_features)
    # The label belongs to the row: the nearest thing to a check is that features and labels move together.
    rows = np.column_stack([np.vstack(design[::2]), np.concatenate(design[1::2])])
    other_rows = np.column_stack([np.vstack(other[::2]), np.concatenate(other[1::2])])
    assert np.array_equal(rows[np.lexsort(rows.T)], other_rows[np.lexsort(other_rows.T)])


def test_the_official_split_draws_nothing(original: Callable, tmp_path: Path) -> None:
    dataset, paths = original("adult")
    prepared.prepare(dataset, raw=paths["adult.data"].parents[1], prepared=tmp_path)
    rng = np.random.default_rng(1)
    state = rng.bit_generator.state
    design = privpost.datasets.load_design(
        "adult", bounds="public", dropped_level="first", rng=rng, prepared=tmp_path, conf=CONF
    )
    assert rng.bit_generator.state == state
    assert [array.shape for array in design] == [(32561, 100), (32561,), (16281, 100), (16281,)]
    assert [int(design.train_labels.sum()), int(design.test_labels.sum())] == [7841, 3846]


# The catalogue


GOOD = {
    "name": "toy",
    "title": "Toy",
    "access": "public",
    "stand_in": False,
    "licence": "CC0",
    "citation": "nobody",
    "origin": "https://example.org",
    "rev": 1,
    "files": [{"name": "a.csv", "bytes": 4, "sha256": "0" * 64, "urls": ["https://example.org/a.csv"]}],
    "public": {"bounds": {"x": [0, 1]}, "levels": {"c": ["a", "b"]}},
    "settings": {},
}


def catalogue_of(folder: Path, *entries: dict[str, Any]) -> Path:
    (folder / "dataset").mkdir(parents=True, exist_ok=True)
    for entry in entries:
        (folder / "dataset" / "toy.yaml").write_text(yaml.safe_dump(entry))
    return folder


def with_file(**changes: Any) -> dict[str, Any]:
    return {**GOOD, "files": [{**GOOD["files"][0], **changes}]}


def test_a_new_data_set_is_one_declaration_and_one_module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    content = b"1\n2\n"
    entry = with_file(sha256=hashlib.sha256(content).hexdigest())
    conf = catalogue_of(tmp_path / "conf", entry)
    loader = types.ModuleType("privpost.datasets.toy")
    loader.parse = lambda paths, dataset: {"x": np.loadtxt(paths["a.csv"])}
    monkeypatch.setitem(sys.modules, "privpost.datasets.toy", loader)
    assert catalogue.names(conf) == ["toy"]
    dataset = catalogue.load("toy", conf)
    (tmp_path / "mirror" / "toy").mkdir(parents=True)
    (tmp_path / "mirror" / "toy" / "a.csv").write_bytes(content)
    fetch(dataset, raw=tmp_path / "raw", mirrors=[tmp_path / "mirror"])
    prepare(dataset, tmp_path)
    assert prepared.read("toy", dataset, prepared=tmp_path / "prepared")["x"].tolist() == [1, 2]
    with pytest.raises(ValueError, match="dataset = 'toy': has no classification task"):
        privpost.datasets.load_design(
            "toy", bounds="data", dropped_level="first", rng=np.random.default_rng(1), conf=conf
        )


def test_whole_numbers_and_fractions_give_one_identity(tmp_path: Path) -> None:
    whole = catalogue.load("toy", catalogue_of(tmp_path / "whole", GOOD))
    fractions = {**GOOD, "public": {**GOOD["public"], "bounds": {"x": [0.0, 1.0]}}}
    fraction = catalogue.load("toy", catalogue_of(tmp_path / "fraction", fractions))
    assert json.dumps(whole.identity(), sort_keys=True) == json.dumps(fraction.identity(), sort_keys=True)


@pytest.mark.parametrize(
    ("entry", "message"),
    [
        ({key: value for key, value in GOOD.items() if key != "rev"}, "missing rev"),
        ({**GOOD, "license": "CC0"}, "unknown license"),
        ({**GOOD, "name": "other"}, "name = 'other': must be 'toy'"),
        ({**GOOD, "title": ""}, "title = '': must be a non-empty string"),
        ({**GOOD, "access": "open"}, "access = 'open': must be public or bring-your-own or generated"),
        ({**GOOD, "stand_in": "no"}, "stand_in = 'no': must be true or false"),
        ({**GOOD, "rev": 0}, "rev = 0: must be an integer of 1 or more"),
        ({**GOOD, "rev": True}, "rev = True: must be an integer"),
        ({**GOOD, "files": []}, r"files = \[\]: must be a non-empty list"),
        ({**GOOD, "files": GOOD["files"] * 2}, r"files\[1\]\.name = 'a\.csv': must be unique"),
        ({**GOOD, "settings": None}, "settings = None: must be a mapping"),
        (with_file(name="../a.csv"), r"files\[0\]\.name = '\.\./a\.csv': must be a plain file name"),
        (with_file(name=".a"), r"must be a plain file name"),
        (with_file(bytes=0), r"files\[0\]\.bytes = 0: must be a positive integer"),
        (with_file(sha256="ABC"), r"files\[0\]\.sha256 = 'ABC': must be 64 lower-case hexadecimal digits"),
        (with_file(sha256="A" * 64), "must be 64 lower-case hexadecimal digits"),
        (with_file(urls=[]), "must be at least one address, as access is public"),
        (with_file(urls=["file:///etc/passwd"]), "must be an http or https address"),
        (with_file(urls=["https:///a"]), "must be an http or https address"),
        (with_file(md5="0"), r"files\[0\]: unknown md5"),
        ({**GOOD, "access": "bring-your-own"}, "must be empty, as access is bring-your-own"),
        ({**GOOD, "access": "generated"}, r"files = .*: must be empty, as access is generated"),
        ({**GOOD, "folder": "../x"}, r"folder = '\.\./x': must be a plain folder name"),
        ({**GOOD, "public": {"bounds": {"x": [1, 0]}}}, r"public\.bounds\.x = \[1, 0\]: must be \[low, high\]"),
        ({**GOOD, "public": {"bounds": {"x": [0, float("inf")]}}}, r"finite numbers"),
        ({**GOOD, "public": {"bounds": {"x": [0, "1"]}}}, r"must be \[low, high\]"),
        ({**GOOD, "public": {"levels": {"c": ["b", "a"]}}}, r"public\.levels\.c = .* in ASCII order"),
        ({**GOOD, "public": {"levels": {"c": ["a", "a"]}}}, "in ASCII order"),
        ({**GOOD, "public": {"levels": {"c": ["a"]}}}, "two or more different strings"),
        ({**GOOD, "public": {"levels": {"c": [1, 2]}}}, "two or more different strings"),
    ],
)
def test_a_wrong_declaration_is_refused(tmp_path: Path, entry: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=rf"toy\.yaml: .*{message}"):
        catalogue.load("toy", catalogue_of(tmp_path, entry))


def test_a_licensed_data_set_has_no_addresses(tmp_path: Path) -> None:
    entry = {**with_file(urls=[]), "access": "bring-your-own"}
    assert catalogue.load("toy", catalogue_of(tmp_path, entry)).files[0].urls == ()


def test_data_sets_can_share_a_mirrored_file(tmp_path: Path) -> None:
    content = b"1\n2\n"
    entry = {**with_file(sha256=hashlib.sha256(content).hexdigest()), "folder": "shared_files"}
    dataset = catalogue.load("toy", catalogue_of(tmp_path / "conf", entry))
    (tmp_path / "mirror" / "shared_files").mkdir(parents=True)
    (tmp_path / "mirror" / "shared_files" / "a.csv").write_bytes(content)
    (path,) = fetch(dataset, raw=tmp_path / "raw", mirrors=[tmp_path / "mirror"])
    assert path == tmp_path / "raw" / "toy" / "a.csv"
    assert path.read_bytes() == content
    plain = catalogue.load("toy", catalogue_of(tmp_path / "plain", {**entry, "folder": ""}))
    assert json.dumps(plain.identity(), sort_keys=True) == json.dumps(dataset.identity(), sort_keys=True)
    assert (dataset.mirror_folder, plain.mirror_folder) == ("shared_files", "toy")


def test_a_generated_data_set_has_no_files(tmp_path: Path) -> None:
    dataset = catalogue.load("toy", catalogue_of(tmp_path / "conf", {**GOOD, "access": "generated", "files": []}))
    assert fetch(dataset, raw=tmp_path / "raw", mirrors=[]) == []


def test_a_file_that_is_not_yaml_is_refused(tmp_path: Path) -> None:
    (catalogue_of(tmp_path) / "dataset" / "toy.yaml").write_text("a: [")
    with pytest.raises(ValueError, match=r"toy\.yaml: not valid YAML"):
        catalogue.load("toy", tmp_path)
    (tmp_path / "dataset" / "toy.yaml").write_text("- a")
    with pytest.raises(ValueError, match=r"must be a mapping"):
        catalogue.load("toy", tmp_path)


def test_an_unknown_name_gets_a_suggestion() -> None:
    with pytest.raises(ValueError, match=r"dataset = 'abalon': unknown, known are abalone, .*did you mean 'abalone'\?"):
        catalogue.load("abalon", CONF)
    with pytest.raises(ValueError, match=r"dataset = 'zzz': unknown, known are abalone, [^;]*$"):
        catalogue.load("zzz", CONF)


def test_a_missing_catalogue_or_loader_is_named(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"no folder .*; run from the root of the checkout"):
        catalogue.load("abalone", tmp_path)
    with pytest.raises(ValueError, match=r"dataset = 'toy': there is no loader module privpost\.datasets\.toy"):
        catalogue.load("toy", catalogue_of(tmp_path, GOOD)).loader()


def test_the_catalogue_does_not_load_numpy() -> None:
    command = "import sys, privpost.datasets.catalogue as c; c.names(); sys.exit('numpy' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", command], cwd=ROOT, check=False).returncode == 0
