"""Every catalogued data set: contracts, and the sizes that the papers give."""

from __future__ import annotations

import dataclasses
import gzip
import inspect
import json
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import yaml
from dataset_cases import CONF, ROUNDING

from privpost.datasets import catalogue, encoding
from privpost.datasets.catalogue import Dataset, File

NAMES = catalogue.names(CONF)


@pytest.fixture(scope="session")
def arrays_of(original: Callable) -> Callable[[str], tuple[Dataset, dict[str, np.ndarray]]]:
    parsed: dict[str, dict[str, np.ndarray]] = {}

    def parse(name: str) -> tuple[Dataset, dict[str, np.ndarray]]:
        dataset, paths = original(name)
        if name not in parsed:
            parsed[name] = dataset.loader().parse(paths, dataset)
        return dataset, parsed[name]

    return parse


@pytest.mark.parametrize("name", NAMES)
def test_the_declaration_is_whole_and_both_yaml_readers_see_the_same(name: str) -> None:
    from omegaconf import OmegaConf

    dataset = catalogue.load(name, CONF)
    path = CONF / "dataset" / f"{name}.yaml"
    assert OmegaConf.to_container(OmegaConf.load(path), resolve=False) == yaml.safe_load(path.read_text())
    assert "${" not in path.read_text()
    assert dataset.origin.startswith(("http://", "https://"))
    assert all(bool(file.urls) == (dataset.access == "public" and not dataset.instead) for file in dataset.files)


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


def design(dataset: Any, arrays: dict, bounds: str, dropped_level: str = "first") -> tuple[np.ndarray, np.ndarray]:
    """Return all rows' features and labels, as `load_design` makes them."""
    task = dataset.loader().task(arrays, dataset)
    settings = {"bounds": bounds, "dropped_level": dropped_level, "dataset": dataset}
    return encoding.encode(task.numeric, task.categorical, **settings), task.labels


@pytest.mark.parametrize("name", NAMES)
def test_the_loader_has_the_functions_of_its_task(name: str) -> None:
    loader = catalogue.load(name, CONF).loader()
    assert list(inspect.signature(loader.parse).parameters) == ["paths", "dataset"]
    if hasattr(loader, "task"):
        assert list(inspect.signature(loader.task).parameters) == ["arrays", "dataset"]


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


def test_the_census_has_the_published_profile(arrays_of: Callable) -> None:
    _, arrays = arrays_of("census_1980")
    income = arrays["income"]
    assert len(income) == 334_535
    assert (income == 0).sum() == 13_655
    assert len(np.unique(income)) == 7_832
    assert income.mean() == pytest.approx(37_401, abs=1)
    assert income.std(ddof=1) == pytest.approx(24_529, abs=1)
    # 1,051 in the whole file, of which these have an income.
    assert (arrays["mother_education"] < 0).sum() == 865


@pytest.mark.parametrize("dropped_level", ["first", "last", "none"])
@pytest.mark.parametrize("bounds", ["data", "public"])
@pytest.mark.parametrize("name", NAMES)
def test_a_design_has_rows_of_norm_one_and_binary_labels(
    name: str, bounds: str, dropped_level: str, arrays_of: Callable
) -> None:
    dataset, arrays = arrays_of(name)
    if not hasattr(dataset.loader(), "task"):
        pytest.skip(f"{name} has no classification task")
    features, labels = design(dataset, arrays, bounds, dropped_level)
    assert features.dtype == np.float64
    assert set(np.unique(labels)) == {0, 1}
    norms = np.linalg.norm(features, axis=1)
    assert np.all((np.abs(norms - 1) < ROUNDING) | (norms == 0))
    train, test = encoding.split(dataset.loader().task(arrays, dataset), dataset, np.random.default_rng(1))
    assert np.array_equal(np.sort(np.concatenate([train, test])), np.arange(len(labels)))


@pytest.mark.parametrize("name", NAMES)
def test_public_bounds_make_each_example_independent_of_the_others(name: str, arrays_of: Callable) -> None:
    dataset, arrays = arrays_of(name)
    if not hasattr(dataset.loader(), "task"):
        pytest.skip(f"{name} has no classification task")
    # A few rows alone: with public bounds their features are the same, with the data's bounds they are not.
    few = {key: array[10:15] for key, array in arrays.items()}
    for bounds, same in (("public", True), ("data", False)):
        whole, _ = design(dataset, arrays, bounds)
        alone, _ = design(dataset, few, bounds)
        assert (alone.shape[1] == whole.shape[1] and np.array_equal(alone, whole[10:15])) is same


@pytest.mark.parametrize(
    ("name", "dimensions", "undropped", "train_rows", "test_rows"),
    [("abalone", 9, 10, 2784, 1393), ("adult", 100, 108, 32561, 16281), ("mnist", 784, 784, 7988, 3994)],
)
def test_dimensions_and_sizes_are_those_of_the_paper(
    name: str, dimensions: int, undropped: int, train_rows: int, test_rows: int, arrays_of: Callable
) -> None:
    dataset, arrays = arrays_of(name)
    for bounds in ("data", "public"):
        for dropped_level, expected in (("first", dimensions), ("last", dimensions), ("none", undropped)):
            features, _ = design(dataset, arrays, bounds, dropped_level)
            assert features.shape == (train_rows + test_rows, expected)
    train, test = encoding.split(dataset.loader().task(arrays, dataset), dataset, np.random.default_rng(1))
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
    _, labels = design(dataset, arrays, "data")
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
    _, labels = design(dataset, arrays, "data")
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
    by_data, _ = design(dataset, arrays, "data")
    by_public, _ = design(dataset, arrays, "public")
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
    features, labels = design(dataset, arrays, "data")
    np.testing.assert_allclose(features, pandas_design(frame.iloc[:, :-1]), rtol=0, atol=ROUNDING)
    assert np.array_equal(labels, (frame[8] < 10).astype(int))


def test_adult_is_encoded_as_pandas_would(arrays_of: Callable, original: Callable) -> None:
    import pandas as pd

    dataset, arrays = arrays_of("adult")
    _, paths = original("adult")
    options = {"header": None, "skipinitialspace": True}
    train, test = pd.read_csv(paths["adult.data"], **options), pd.read_csv(paths["adult.test"], skiprows=1, **options)
    frame = pd.concat([train, test], ignore_index=True)
    features, labels = design(dataset, arrays, "data")
    np.testing.assert_allclose(features, pandas_design(frame.iloc[:, :-1]), rtol=0, atol=ROUNDING)
    assert np.array_equal(labels, frame[14].str.startswith(">").astype(int))
