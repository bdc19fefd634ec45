"""The encoding of examples, and designs for studies."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from dataset_cases import CONF, ROUNDING, sized

import privpost.datasets
from privpost.datasets import catalogue, encoding, prepared
from privpost.datasets.catalogue import Dataset


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


TWELVE = encoding.Task({}, {}, np.zeros(12))


def test_random_splits_are_reproducible_and_treat_all_rows_alike() -> None:
    dataset = sized("abalone", train_rows=8, test_rows=4)
    first, again = (encoding.split(TWELVE, dataset, np.random.default_rng(7)) for _ in range(2))
    assert all(np.array_equal(a, b) for a, b in zip(first, again, strict=True))
    rng = np.random.default_rng(7)
    repeats = 2000
    counts = np.zeros(12)
    for _ in range(repeats):
        train, test = encoding.split(TWELVE, dataset, rng)
        assert (len(train), len(test)) == (8, 4)
        counts[train] += 1
    # Each count is binomial with mean 2000 * 2/3; 12 counts beyond 5 standard deviations: false alarm below 1e-5.
    assert np.all(np.abs(counts - repeats * 2 / 3) < 5 * np.sqrt(repeats * 2 / 9))


def test_a_new_split_has_the_same_examples_in_as_many() -> None:
    features, labels = np.arange(24.0).reshape(12, 2), np.arange(12, dtype=np.int8)
    design = privpost.datasets.Design(features[:8], labels[:8], features[8:], labels[8:])
    drawn = [design.resplit(np.random.default_rng(seed)) for seed in (1, 1, 2)]
    for new in drawn:
        assert sorted([*new.train_labels, *new.test_labels]) == list(range(12)) and len(new.train_labels) == 8
        np.testing.assert_array_equal(new.train_features, features[new.train_labels])
        np.testing.assert_array_equal(new.test_features, features[new.test_labels])
    first, again, other = (tuple(new.test_labels) for new in drawn)
    assert first == again != other


def test_a_split_that_does_not_fit_is_refused() -> None:
    with pytest.raises(ValueError, match="train_rows = 2784 and test_rows = 1393 must add up to 12"):
        encoding.split(TWELVE, sized("abalone"), np.random.default_rng(7))


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
