"""The store: it has whole results or none, and notices every kind of damage."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from privpost.lab import cells, store
from privpost.lab.schema import SettingError
from privpost.privacy.accounting.costs import Cost

RECORD = {"study": "toy/curve", "digest": "0123456789", "config": {"level": 1.0}, "source": {}}


@pytest.fixture
def stored(tmp_path) -> Path:
    path = tmp_path / "cell_0123456789.npz"
    store.write(path, {"b": np.arange(12.0).reshape(3, 4), "a": np.array(True)}, RECORD)
    return path


def test_what_was_written_is_read(stored):
    result = store.read(stored, "0123456789")
    assert np.array_equal(result.arrays["b"], np.arange(12.0).reshape(3, 4))
    assert result.config.level == 1.0
    assert result.record["study"] == "toy/curve"


def test_equal_results_are_equal_files(stored, tmp_path):
    other = tmp_path / "other.npz"
    store.write(other, {"b": np.arange(12.0).reshape(3, 4), "a": np.array(True)}, RECORD)
    assert other.read_bytes() == stored.read_bytes()


@pytest.mark.parametrize("key", ["config", "study", "ledger", "source"])
def test_an_edited_record_is_noticed(stored, key):
    """A coefficient that was changed in a stored cell once reached the table."""
    with np.load(stored) as archive:
        held = dict(archive)
    record = json.loads(str(held[store.RECORD]))
    record[key] = {"level": 0.123}
    np.savez(stored, **{**held, store.RECORD: np.array(json.dumps(record, sort_keys=True))})
    with pytest.raises(store.CorruptCell, match="the record does not match its checksum"):
        store.read(stored, "0123456789")


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ({"a": np.zeros(2)}, {"b": np.zeros(2)}),
        ({"a": np.zeros(2)}, {"a": np.zeros(2, np.float32)}),
        ({"a": np.zeros((1, 2))}, {"a": np.zeros((2, 1))}),
        ({"a": np.zeros(2)}, {"a": np.array([0.0, -0.0])}),
        ({"a": np.zeros(1), "b": np.ones(1)}, {"a": np.ones(1), "b": np.zeros(1)}),
    ],
)
def test_the_checksum_covers_names_types_shapes_and_bytes(one, other):
    assert store.checksum(one) != store.checksum(other)


def test_the_checksum_does_not_depend_on_order_or_memory_layout():
    array = np.arange(6.0).reshape(2, 3)
    assert store.checksum({"a": array, "b": array}) == store.checksum({"b": np.asfortranarray(array), "a": array})


def test_a_failing_write_leaves_the_old_file_and_nothing_else(stored):
    before = stored.read_bytes()
    with pytest.raises(RuntimeError), store.replacing(stored) as temporary:
        temporary.write_text("half")
        raise RuntimeError
    assert stored.read_bytes() == before
    assert os.listdir(stored.parent) == [stored.name]


def test_a_killed_write_leaves_the_old_file(stored):
    """A process killed within `replacing` leaves the file that was there, and a hidden temporary beside it."""
    before = stored.read_bytes()
    code = (
        "import os, signal, sys; from pathlib import Path; from privpost.lab import store\n"
        "with store.replacing(Path(sys.argv[1])) as t:\n    t.write_text('half'); os.kill(os.getpid(), signal.SIGKILL)"
    )
    assert subprocess.run([sys.executable, "-c", code, str(stored)], check=False).returncode == -9
    assert stored.read_bytes() == before
    assert sorted(name.startswith(".") for name in os.listdir(stored.parent)) == [False, True]


def _damage(path: Path, kind: str) -> None:
    content = path.read_bytes()
    if kind == "empty":
        path.write_bytes(b"")
    elif kind == "text":
        path.write_text("not a result")
    elif kind == "npy":
        np.save(path.with_suffix(".npy"), np.zeros(3))
        os.replace(path.with_suffix(".npy"), path)
    elif kind == "foreign":
        np.savez(path, x=np.zeros(3))
    elif kind == "compressed, truncated":
        np.savez_compressed(path, **{"x": np.arange(1000.0), store.RECORD: np.array("{}")})
        path.write_bytes(path.read_bytes()[:-300])
    elif kind == "no record":
        np.savez(path, **{store.RECORD: np.array("{}")})
    elif kind == "record is a list":
        np.savez(path, **{store.RECORD: np.array("[1]")})
    elif kind == "pickled":
        np.savez(path, x=np.array([{}], dtype=object), **{store.RECORD: np.array("{}")})
    elif kind == "other arrays":
        with np.load(path) as archive:
            arrays = {name: archive[name] for name in archive.files}
        first = next(name for name in arrays if name != store.RECORD)
        np.savez(path, **{**arrays, first: np.logical_not(arrays[first])})
    elif kind == "half":
        path.write_bytes(content[: len(content) // 2])


KINDS = ["empty", "text", "npy", "foreign", "compressed, truncated", "no record", "record is a list", "pickled",
         "other arrays", "half"]  # fmt: skip


@pytest.mark.parametrize("kind", KINDS)
def test_damaged_and_foreign_files_are_noticed(stored, kind):
    _damage(stored, kind)
    with pytest.raises(store.CorruptCell, match=stored.name):
        store.read(stored)


def test_a_missing_file_counts_as_corrupt_and_a_forbidden_one_is_an_error(stored, monkeypatch):
    with pytest.raises(store.CorruptCell):
        store.read(stored.with_name("none.npz"))

    def forbidden(*args, **kwargs):
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(np, "load", forbidden)
    with pytest.raises(PermissionError):
        store.read(stored)


def test_a_result_of_another_cell_is_noticed(stored):
    with pytest.raises(store.CorruptCell, match="holds the cell 0123456789, not 9876543210"):
        store.read(stored, "9876543210")


def test_every_truncation_is_noticed(stored):
    content = stored.read_bytes()
    for length in range(0, len(content), 17):
        stored.write_bytes(content[:length])
        with pytest.raises(store.CorruptCell):
            store.read(stored)


def test_a_flipped_bit_is_noticed_or_changes_nothing(stored):
    """Bits in the padding and in unused fields of the archive change nothing; any other flip is noticed."""
    content, truth = stored.read_bytes(), store.read(stored)
    rng = np.random.default_rng(20171204)
    noticed = 0
    for place in rng.choice(8 * len(content), 600, replace=False):
        damaged = bytearray(content)
        damaged[place // 8] ^= 1 << (place % 8)
        stored.write_bytes(damaged)
        try:
            result = store.read(stored)
        except store.CorruptCell:
            noticed += 1
            continue
        assert result.record == truth.record
        assert all(np.array_equal(result.arrays[name], array) for name, array in truth.arrays.items())
    assert noticed > 300


@pytest.mark.parametrize("kind", KINDS)
def test_a_damaged_cell_is_set_aside_computed_again_and_reported(toy, kind, capsys):
    study, cell = toy.study(), toy.cells()[0]
    truth = store.read(cells.compute(study, cell)).arrays
    _damage(cell.path, kind)
    assert cells.compute_each(study, [cell]) == {}
    assert store.checksum(store.read(cell.path).arrays) == store.checksum(truth)
    assert cell.path.with_name(cell.path.name + ".corrupt").is_file()
    message = capsys.readouterr().err
    assert str(cell.path) in message
    assert "set aside" in message


def test_a_result_that_is_there_already_stays(toy, monkeypatch):
    """A job that outlived its run stores nothing over the result of a later run."""
    study, cell = toy.study(), toy.cells()[0]
    late = study.module().simulate

    def overtaken(*args):
        store.write(cell.path, {"mean": np.array([7.0])}, {**RECORD, "digest": cell.digest})
        return late(*args)

    monkeypatch.setattr(study.module(), "simulate", overtaken)
    cells.compute(study, cell)
    assert store.read(cell.path).arrays["mean"] == 7.0


@pytest.mark.parametrize(
    ("value", "part"),
    [
        ([1], "must return a dict of arrays, not list"),
        ({}, "must return a dict of arrays"),
        ({"x": [object()]}, "'x' cannot be stored"),
        ({"record": [1.0]}, "'record' cannot be stored"),
        ({"file": [1.0]}, "'file' cannot be stored"),
    ],
)
def test_what_a_study_returns_must_be_storable(toy, monkeypatch, value, part):
    study = toy.study()
    monkeypatch.setattr(study.module(), "simulate", lambda *args: value)
    with pytest.raises(ValueError, match=part):
        cells.compute(study, toy.cells()[0])
    assert not toy.cells()[0].path.exists()


def test_a_refusal_of_the_ledger_or_a_mechanism_is_one_line_and_other_errors_are_told_whole(toy, monkeypatch):
    """BudgetExceeded is a ValueError that names account, target and cost; a ValueError of the study is a fault."""
    study, cell = toy.study(), toy.cells()[0]

    def overspends(config, streams, ledger):
        ledger.open("a", Cost("pure", 0.5))
        ledger.charge("a", Cost("pure", 0.6))

    monkeypatch.setattr(study.module(), "simulate", overspends)
    with pytest.raises(
        SettingError, match=r"account 'a': budget pure\(epsilon=0.5\), .* asked 1 x pure\(epsilon=0.6\)"
    ):
        cells.compute(study, cell)
    monkeypatch.setattr(study.module(), "simulate", lambda *args: int("a fault"))
    with pytest.raises(ValueError, match="invalid literal") as fault:
        cells.compute(study, cell)
    assert not isinstance(fault.value, SettingError)
    assert not cell.path.exists()


def test_a_result_explains_itself(toy):
    """The record holds settings, seed, versions, source, time, memory, the ledger and the command."""
    study, cell = toy.study(), toy.cells()[3]
    record = store.read(cells.compute(study, cell)).record
    assert record["config"]["level"] == 2.0
    assert record["sizes"] == {"trials": 20, "block": 10, "rev": 1, "seed": 20171204}
    assert record["digest"] == cell.digest
    assert record["asked_by"] == "grid"
    assert {"python", "numpy", "scipy", "privpost"} == set(record["versions"])
    assert "lab/streams.py" in record["source"]
    assert record["wall_seconds"] > 0
    assert record["peak_mib"] > 1
    assert record["ledger"]
    assert record["command"] == ["study=toy/curve", "method=b", "level=2.0"]
