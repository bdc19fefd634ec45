"""War logs: loaders, public levels, and that nothing finer than counts per cell leaves them."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import numpy as np
import pytest

from privpost.datasets import catalogue, war_logs
from privpost.datasets.fetch import fetch
from privpost.datasets.prepared import prepare

ROOT = Path(__file__).resolve().parents[3]
CONF = ROOT / "conf"
ORIGINAL = (ROOT / "data" / "original",)
NAMES = ("afghanistan", "afghanistan_dense", "iraq_sigact", "iraq_simulated")

HEADER = (
    "date,type,category,region,affiliation,FriendlyWIA,FriendlyKIA,HostNationWIA,HostNationKIA,"
    "CivilianWIA,CivilianKIA,EnemyWIA,EnemyKIA,EnemyDetained\n"
)


def load(name: str, folder: Path) -> war_logs.WarLogs:
    dataset = catalogue.load(name, CONF)
    fetch(dataset, raw=folder / "raw", folders=ORIGINAL)
    prepare(dataset, folder / "raw", folder / "prepared")
    return war_logs.load(name, folder / "prepared", CONF)


@pytest.mark.parametrize(
    ("name", "events", "cells", "median"),
    [
        # Events, non-empty cells and median events per cell as counted from the files by other means.
        ("afghanistan", 75_907, 355, 59),
        ("afghanistan_dense", 59_824, 84, 647.5),
        ("iraq_sigact", 189_919, 488, 195),
    ],
)
def test_originals_have_the_known_sizes(name, events, cells, median, tmp_path: Path) -> None:
    logs = load(name, tmp_path)
    per_field = [field.sum() for field in np.split(logs.counts, np.cumsum(logs.sizes)[:-1], axis=1)]
    assert per_field == [events] * len(logs.sizes)
    of_cells = logs.counts[:, : logs.sizes[0]].sum(axis=1)
    assert (len(logs.counts), np.median(of_cells)) == (cells, median)
    assert logs.truth is None
    order = logs.region * 1000 + logs.month
    assert np.all(np.diff(order) > 0)


def test_afghan_casualty_shares_are_the_known_ones(tmp_path: Path) -> None:
    logs = load("afghanistan", tmp_path)
    ends = np.cumsum(logs.sizes)
    shares = {
        field: logs.counts[:, end - size].sum() / logs.counts[:, end - size : end].sum()
        for field, end, size in zip(logs.levels, ends, logs.sizes, strict=True)
    }
    # Of all 76,209 events; ours are without the 302 of two further region codes.
    for field, share in {"friendly_or_host": 0.100, "civilian": 0.047, "enemy": 0.080}.items():
        assert abs(shares[field] - share) < 0.001


def test_simulated_logs_have_the_published_facts_and_their_states(tmp_path: Path) -> None:
    logs = load("iraq_simulated", tmp_path)
    of_cells = logs.counts[:, : logs.sizes[0]].sum(axis=1)
    # The median of 432 log-normal sizes with spread 0.4: standard error 1.25 * 0.4 / sqrt(432) = 2.4 %; 4 of them.
    assert abs(np.log(np.median(of_cells) / 972)) < 4 * 0.024
    assert len(logs.counts) == len(logs.truth) == 6 * 72
    from privpost.datasets.iraq_simulated import emissions

    dataset = catalogue.load("iraq_simulated", CONF)
    start = 0
    for field in emissions(dataset):
        assert np.allclose(field.sum(axis=1), 1, rtol=1e-12)
        for state in range(2):
            counts = logs.counts[logs.truth == state, start : start + field.shape[1]].sum(axis=0)
            expected = counts.sum() * field[state]
            # Multinomial counts: 5 standard deviations, plus 1 for levels that expect less than one event.
            assert np.all(np.abs(counts - expected) < 5 * np.sqrt(expected) + 1)
        start += field.shape[1]


def test_declared_levels_agree_and_unknown_ones_count_as_other() -> None:
    levels = [catalogue.load(name, CONF).public["levels"] for name in NAMES if name != "iraq_sigact"]
    assert levels[0] == levels[1] == levels[2]
    assert all("other" in levels[0][field] for field in ("type", "category"))


def small(tmp_path: Path, lines: str):
    path = tmp_path / "afghanistan_events_reduced.csv"
    path.write_text(HEADER + lines)
    dataset = catalogue.load("afghanistan", CONF)
    return path, dataset


def test_a_small_file_is_counted_by_hand(tmp_path: Path) -> None:
    path, dataset = small(
        tmp_path,
        "2004-01-05,Enemy Action,Direct Fire,RC EAST,ENEMY,0,0,0,0,0,0,0,3,0\n"
        "2004-01-31,ENEMY  ACTION,direct fire,RC EAST,ENEMY,,,,,1,,,,\n"
        "2004-03-01,Counter-Insurgency,No Such Thing,RC EAST,FRIEND,0,1,0,0,0,0,0,0,0\n"
        "2004-03-01,,,RC WEST,FRIEND,0,0,0,0,0,0,0,0,0\n"
        "2003-12-31,Enemy Action,Direct Fire,RC EAST,ENEMY,0,0,0,0,0,0,0,3,0\n"
        "2004-01-05,Enemy Action,Direct Fire,UNKNOWN,ENEMY,0,0,0,0,0,0,0,3,0\n",
    )
    arrays = dataset.loader().parse({path.name: path}, dataset)
    regions = dataset.settings["regions"]
    cells = [(regions[r], m) for r, m in zip(arrays["region"], arrays["month"], strict=True)]
    assert cells == [("RC EAST", 0), ("RC EAST", 2), ("RC WEST", 2)]
    levels = dataset.public["levels"]
    names = [(field, level) for field in levels for level in levels[field]]
    found = [{names[i]: int(n) for i, n in enumerate(row) if n} for row in arrays["counts"]]
    assert found[0] == {
        ("type", "enemy action"): 2,
        ("category", "direct fire"): 2,
        ("friendly_or_host", "none"): 2,
        ("civilian", "casualties"): 1,
        ("civilian", "none"): 1,
        ("enemy", "casualties"): 1,
        ("enemy", "none"): 1,
    }
    assert found[1][("type", "counter insurgency")] == found[1][("category", "other")] == 1
    assert found[1][("friendly_or_host", "casualties")] == 1
    assert found[2][("type", "other")] == found[2][("category", "other")] == 1
    assert set(arrays) == {"counts", "region", "month"}


def test_malformed_files_are_refused(tmp_path: Path) -> None:
    path, dataset = small(tmp_path, "2004-01-05,Enemy Action,Direct Fire,RC EAST,ENEMY,x,0,0,0,0,0,0,3,0\n")
    with pytest.raises(ValueError, match=r"line 2: a count of casualties is not a number"):
        dataset.loader().parse({path.name: path}, dataset)
    sigact = catalogue.load("iraq_sigact", CONF)
    path = tmp_path / "sigact.csv"
    path.write_text(
        "governorate,year_month,SIGACT,SIG_1,df,idf,suicide,ied_attack,ied_clear,ied_total\n"
        "Anbar,2004-02,5,5,3,1,0,2,0,2\n"
    )
    with pytest.raises(ValueError, match=r"line 2: the types of attack exceed the total"):
        sigact.loader().parse({path.name: path}, sigact)


def test_other_data_sets_and_impossible_shares_are_refused(tmp_path: Path) -> None:
    dataset = catalogue.load("iraq_simulated", CONF)
    months = war_logs.months(dataset)
    assert (months[0], months[-1], len(months)) == ("2004-01", "2009-12", 72)
    states = [{**state, "civilian": {"wounded": 0.1}} for state in dataset.settings["states"]]
    wrong = dataclasses.replace(dataset, settings={**dataset.settings, "states": states})
    with pytest.raises(ValueError, match=r"civilian = .*: must be shares of its levels"):
        wrong.loader().parse({}, wrong)
    swapped = {**dataset.settings, "first_month": "2010-01"}
    with pytest.raises(ValueError, match="last_month is before first_month"):
        war_logs.months(dataclasses.replace(dataset, settings=swapped))
