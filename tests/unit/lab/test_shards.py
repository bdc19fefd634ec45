"""Shards of a sweep: together the cells, each in one process, with the same results."""

from __future__ import annotations

import errno
import itertools
import json
from collections import Counter

import numpy as np
import pytest

from privpost.commands import cli
from privpost.lab import cells, grid, request, store
from privpost.lab.project import CannotWrite
from privpost.lab.schema import SettingError

SWEEP = ("study=toy/curve", "level=range(1,8)", "method=a,b", "order=3")


def privpost(*words: str) -> int:
    return cli.main(list(words))


def understood(*words: str) -> list[str]:
    return [cell.digest for cell in request.understand(["-m", *words]).cells]


@pytest.mark.parametrize("count", [1, 2, 3, 14, 20])
def test_shards_are_the_sweep_each_cell_once(toy, count):
    shards = [understood(*SWEEP, f"shard={i}/{count}") for i in range(1, count + 1)]
    assert Counter(itertools.chain(*shards)) == Counter(understood(*SWEEP))
    assert max(map(len, shards)) - min(map(len, shards)) <= 1


@pytest.mark.parametrize("count", [1, 3, 4, 5])
def test_shards_of_a_study_are_its_grid(toy, count):
    shards = [understood("study=toy/curve", f"shard={i}/{count}") for i in range(1, count + 1)]
    assert sorted(itertools.chain(*shards)) == sorted(cell.digest for cell in toy.cells())


def test_a_shard_computes_its_cells_and_no_others_and_none_twice(toy, capsys):
    assert privpost("-m", "study=toy/curve", "shard=2/3") == 0
    expected = [cell.path for cell in toy.cells()[1::3]]
    assert [cell.path for cell in toy.cells() if cell.path.exists()] == expected
    assert "shard 2 of 3: 1 of 1 cell in the store" in capsys.readouterr().out
    times = [path.stat().st_mtime_ns for path in expected]
    assert privpost("-m", "study=toy/curve", "shard=2/3") == 0
    assert [path.stat().st_mtime_ns for path in expected] == times


def test_results_and_records_are_those_of_single_runs(toy):
    for cell in toy.cells():
        assert privpost(*cell.command()) == 0
    alone = {cell.path: store.read(cell.path) for cell in toy.cells()}
    for path in alone:
        path.unlink()
    assert privpost("-m", "study=toy/curve", "shard=1/1") == 0
    measured = {"wall_seconds", "peak_mib", "seal", "asked_by"}
    for path, before in alone.items():
        after = store.read(path)
        assert all(np.array_equal(after.arrays[name], array) for name, array in before.arrays.items())
        assert {k: v for k, v in after.record.items() if k not in measured} == {
            k: v for k, v in before.record.items() if k not in measured
        }


def test_a_study_that_changes_its_settings_does_not_change_those_of_later_cells(toy):
    module = toy.package / "curve/study.py"
    module.write_text(module.read_text().replace("    ledger.open", "    config.order.reverse()\n    ledger.open"))
    assert privpost("-m", "study=toy/curve", "shard=1/1") == 0
    # Every cell saw the axis as it is, and turned it round for itself.
    assert {tuple(store.read(cell.path).record["config"]["order"]) for cell in toy.cells()} == {(2.0, 3.0, 4.0)}


def test_a_sweep_in_shards_ends_with_the_same_table(toy, capsys):
    for number in (1, 2, 3):
        assert privpost("-m", *SWEEP, f"shard={number}/3") == 0
    capsys.readouterr()
    assert privpost("-m", *SWEEP) == 0
    assert "14 of 14 cells in the store already" in capsys.readouterr().out
    (table,) = (toy.folder / "build/sweeps").rglob("curve.csv")
    in_shards = table.read_bytes()
    for path in (toy.folder / "build/paper/cells").rglob("*.npz"):
        path.unlink()
    assert privpost("-m", *SWEEP) == 0
    assert table.read_bytes() == in_shards


def test_a_failing_cell_is_named_and_the_others_are_computed(toy, capsys):
    module = toy.package / "curve/study.py"
    failing = '    if config.level == 2 and config.method == "b":\n        raise OSError("disk full")\n    ledger.open'
    module.write_text(module.read_text().replace("    ledger.open", failing))
    assert privpost("-m", "study=toy/curve", "shard=1/1") == 1
    captured = capsys.readouterr()
    assert "privpost: method=b, level=2.0: disk full" in captured.err
    assert "Traceback" not in captured.err
    assert "1 of 4 cells could not be computed" in captured.err
    assert "[privpost study=toy/curve method=b level=2.0]" in captured.err
    assert "shard 1 of 1: 3 of 4 cells in the store" in captured.out
    assert [cell.slug for cell in toy.cells() if not cell.path.exists()] == ["b-2"]


def test_where_nothing_can_be_written_no_further_cell_is_computed(toy, capsys, monkeypatch):
    simulate, calls = toy.study().module().simulate, []
    monkeypatch.setattr(toy.study().module(), "simulate", lambda *given: (calls.append(given), simulate(*given))[1])
    write = cells.store.write

    def full(path, *given):
        if len(calls) == 2:
            raise CannotWrite(path, OSError(errno.ENOSPC, "No space left on device"))
        write(path, *given)

    monkeypatch.setattr(cells.store, "write", full)
    assert privpost("-m", "study=toy/curve", "shard=1/1") == 1
    captured = capsys.readouterr()
    assert len(calls) == 2
    assert captured.err.count("No space left on device") == 1
    assert "Traceback" not in captured.err
    assert "3 of 4 cells could not be computed" in captured.err
    assert "shard 1 of 1: 1 of 4 cells in the store" in captured.out


def test_a_cell_that_cannot_be_read_fails_alone(toy, capsys, monkeypatch):
    forbidden, read = toy.cells()[1].path, store.read

    def refused(path, *given):
        if path == forbidden:
            raise PermissionError(errno.EACCES, "Permission denied", str(path))
        return read(path, *given)

    monkeypatch.setattr(cells.store, "read", refused)
    assert privpost("-m", "study=toy/curve", "shard=1/1") == 1
    captured = capsys.readouterr()
    assert f"privpost: method=a, level=2.0: cannot use {forbidden}: Permission denied" in captured.err
    assert "shard 1 of 1: 3 of 4 cells in the store" in captured.out


@pytest.mark.parametrize("shard", ["0/3", "4/3", "3", "a/b", "1/0", "-1/3", "1/3/5", ""])
def test_what_is_no_shard_is_refused(toy, capsys, shard):
    assert privpost("-m", "study=toy/curve", f"shard={shard}") == 2
    assert f"shard is {shard!r}, but must be i/n with i from 1 to n" in capsys.readouterr().err
    assert not (toy.folder / "build").exists()


def test_a_shard_is_part_of_a_sweep(toy, capsys):
    assert privpost("study=toy/curve", "shard=1/2") == 2
    assert "shard is a part of a sweep" in capsys.readouterr().err


def test_a_dry_run_counts_checks_and_computes_nothing(toy, capsys):
    privpost("study=toy/curve", "level=1", "method=a", "order=3")
    capsys.readouterr()
    before = sorted(toy.folder.rglob("*.npz"))
    assert privpost("-m", "-n", *SWEEP) == 0
    assert "14 cells, 1 of them in the store already." in capsys.readouterr().out
    assert privpost("-m", "--dry-run", "study=toy/curve", "level=1,-2") == 2
    assert "level is -2" in capsys.readouterr().err
    assert sorted(toy.folder.rglob("*.npz")) == before


TEXTS = ["0", "-3", "12.50", "1e-07", "0.30000000000000004", "007", "1_000", ".5", "nan", "true", "a", "[1]", "'1'"]


def test_values_of_a_sweep_are_those_that_hydra_reads_one_by_one():
    from hydra.core.override_parser.overrides_parser import OverridesParser

    alone = [OverridesParser.create().parse_override(f"key={text}").value() for text in TEXTS]
    assert list(map(repr, request.values(f"key={','.join(TEXTS)}"))) == list(map(repr, alone))


def test_a_range_ends_before_its_second_number_and_has_values():
    assert request.values("key=range(0.1,0.4,0.1)") == [0.1, 0.2, 0.3]
    assert request.values("key=range(3,0,-1)") == [3, 2, 1]
    for word in ("key=range(1,0)", "key=range(1,1)"):
        with pytest.raises(SettingError, match="has no values"):
            request.values(word)


def test_many_cells_are_made_as_single_ones_are(toy):
    study = toy.study()
    points = [{"method": m, "level": v, "order": o} for m in "ab" for v in (1, 2.5) for o in (3, [2, 4])]
    points += [{"note": "m"}, {}, {"seed": 3, "trials": 40}]
    many = list(grid.make_cells(study, points))
    assert many == [grid.make_cell(study, point) for point in points]
    assert len({cell.digest for cell in many}) == len(points)


def test_a_digest_is_that_of_everything_as_sorted_json(toy):
    """The text that is hashed is put together from parts; it must be the one that defines every stored cell."""
    import hashlib

    for cell in [*toy.cells(), grid.make_cell(toy.study(), {"order": 3})]:
        names = ("study", "settings", "within", "sizes", "data")
        parts = {name: getattr(cell, name) for name in names}
        parts |= {"axes": sorted(cell.axes), "common": sorted(cell.common)}
        text = json.dumps(parts, sort_keys=True, separators=(",", ":"))
        assert cell.digest == hashlib.sha256(text.encode()).hexdigest()[:10]


@pytest.mark.parametrize("number", ["1e400", "-1e400", "1e-400", "0.5e-400", "9" * 400 + ".0"])
@pytest.mark.parametrize("word", ["key={}", "key=1,{}", "key=[0.5,{}]", "key={{a: {}}}"])
def test_a_number_that_floats_do_not_hold_is_refused(number, word):
    """Hydra reads it as infinite, or as 0."""
    with pytest.raises(SettingError, match="outside the range of floating-point numbers"):
        request.values(word.format(number))


def test_numbers_near_the_ends_of_floats_are_read():
    numbers = [1.7e308, 5e-324, 0.0, -0.0, 1e3, 12345678901234567890]
    assert request.values("key=" + ",".join(map(repr, numbers))) == numbers
    assert request.values("key=inf") == [float("inf")]
    assert request.values("key='1e400'") == ["1e400"]
    assert request.values("key=a1e400,1e400x") == ["a1e400", "1e400x"]
