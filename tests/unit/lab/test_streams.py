"""Random streams: by name and block, never by position."""

from __future__ import annotations

import numpy as np
import pytest

from privpost.lab import cells, store
from privpost.lab.streams import Streams


def streams(point, common=(), trials=40, block=10, seed=1, study="toy/curve"):
    return Streams(study, seed, point, common, trials, block)


def draw(found, role="data", block=0, **point):
    return tuple(found(role, block, **point).random(3))


def test_equal_names_give_equal_numbers():
    assert draw(streams({"a": 1.0})) == draw(streams({"a": 1.0}))


@pytest.mark.parametrize(
    "other",
    [
        draw(streams({"a": 1.0}), role="mechanism"),
        draw(streams({"a": 1.0}), block=1),
        draw(streams({"a": 1.0}), order=2.0),
        draw(streams({"a": 2.0})),
        draw(streams({"b": 1.0})),
        draw(streams({"a": 1.0}, seed=2)),
        draw(streams({"a": 1.0}, study="toy/other")),
    ],
)
def test_role_block_point_seed_and_study_give_other_numbers(other):
    assert draw(streams({"a": 1.0})) != other


def test_common_axes_share_their_numbers():
    one, other = (streams({"method": m, "a": 1.0}, common=("method", "order")) for m in "xy")
    assert draw(one) == draw(other)
    with pytest.raises(ValueError, match=r"toy/curve: the stream .* names order, common to all points"):
        draw(one, order=2.0)
    assert draw(one, variant="v") != draw(one, variant="w")


def test_the_number_of_trials_does_not_enter():
    assert draw(streams({}, trials=40), block=3) == draw(streams({}, trials=4000), block=3)


def test_blocks_partition_the_trials():
    blocks = list(streams({}).blocks())
    assert [block.index for block in blocks] == [0, 1, 2, 3]
    covered = np.concatenate([np.arange(40)[block.trials] for block in blocks])
    assert np.array_equal(covered, np.arange(40))
    assert all(block.size == 10 for block in blocks)


def test_streams_of_roles_and_blocks_are_uncorrelated():
    """Largest of 66 correlations of 10^4 uniforms; beyond 4.5 standard errors by chance less than once in 2000."""
    found = streams({})
    sample = [found(role, block).random(10_000) for role in ("data", "mechanism", "sampler") for block in range(4)]
    correlations = np.corrcoef(sample)[np.triu_indices(12, 1)]
    assert np.abs(correlations).max() < 4.5 / np.sqrt(10_000)


def test_more_trials_append_blocks(toy):
    def draws():
        study, cell = toy.study(), toy.cells()[0]
        return store.read(cells.compute(study, cell)).arrays["draws"]

    before = draws()
    toy.edit("trials: 20", "trials: 50")
    after = draws()
    assert after.shape[1] == 50
    assert np.array_equal(after[:, :20], before)


def test_a_new_grid_point_changes_no_other(toy):
    study, cell = toy.study(), toy.cells()[1]
    before = store.read(cells.compute(study, cell)).arrays["draws"]
    cell.path.unlink()
    toy.edit("level: [1, 2]", "level: [0.5, 1, 2]")
    toy.edit("method: [a, b]", "method: [b, a]")
    (same,) = [other for other in toy.cells() if other.point == cell.point]
    assert same.digest == cell.digest
    after = store.read(cells.compute(toy.study(), same)).arrays["draws"]
    assert np.array_equal(after, before)


def test_a_within_value_added_changes_no_other_value(toy):
    """The digest is another (all of a cell's axes are in it), the numbers of the values that stayed are not."""
    before = store.read(cells.compute(toy.study(), toy.cells()[0])).arrays["draws"]
    toy.edit("order: {start: 2, stop: 4, num: 3}", "order: [1.5, 2, 3, 4]")
    after = store.read(cells.compute(toy.study(), toy.cells()[0])).arrays["draws"]
    assert np.array_equal(after[1:], before)


def test_methods_that_share_data_are_paired(toy):
    """With `common: [method]` the cells of both methods draw the same numbers."""
    study, found = toy.study(), toy.cells()
    a, b = (store.read(cells.compute(study, cell)).arrays["draws"] for cell in (found[0], found[2]))
    assert np.array_equal(a, b)
