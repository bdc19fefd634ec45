"""`privpost fetch` and `privpost prepare`: the command that made the counts in the repository makes them again."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest

from privpost.commands import cli
from privpost.lab.schema import SettingError

ROOT = Path(__file__).resolve().parents[3]


@pytest.fixture
def elsewhere(tmp_path, monkeypatch) -> Path:
    """A folder with the checkout's settings and original data, and nothing made of them."""
    (tmp_path / "data").mkdir()
    for name in ("conf", "data/original"):
        (tmp_path / name).symlink_to(ROOT / name)
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize("name", ["afghanistan", "iraq_sigact"])
def test_counts_are_written_as_the_repository_has_them(elsewhere, name, capsys):
    assert cli.call("prepare", [name, "--counts", "counts.csv"]) == 0
    assert capsys.readouterr().out.splitlines()[-1] == "counts.csv"
    packed = (ROOT / f"data/original/{name}/{name}_counts.csv.gz").read_bytes()
    assert (elsewhere / "counts.csv").read_bytes() == gzip.decompress(packed)


def test_counts_are_of_war_logs_only(elsewhere):
    with pytest.raises(SettingError, match="--counts is of war logs, but abalone serves classification"):
        cli.call("prepare", ["abalone", "--counts", "counts.csv"])


def test_a_refused_extract_is_one_line_and_prepares_nothing(elsewhere):
    own = elsewhere / "data/mirror/ipums_us/ipums_us.csv"
    own.parent.mkdir(parents=True)
    columns = (
        "age,sex,single,married,education,disability,native,hours,years_residing,own_dwelling,family_size,children"
    )
    rows = ["0,0,0,0,0,0,0,0,0,0,1,0,0,100", "1,1,1,1,1,1,1,1,1,1,2,1,1,9999999"]
    own.write_text("\n".join([f"{columns},automobiles,income", *rows]) + "\n")
    with pytest.raises(
        SettingError, match=r"income is 9999999 \(1 times\), beyond \[0, 75000\]: probably the code"
    ) as caught:
        cli.call("prepare", ["ipums_us"])
    assert "\n" not in str(caught.value)
    assert not (elsewhere / "data/prepared").exists()
