"""The original data in the repository: what they are, and that no event of a war log is among what is tracked."""

from __future__ import annotations

import csv
import gzip
import hashlib
import lzma
import re
import subprocess

import pytest
from dataset_cases import CONF, ORIGINAL, ROOT

from privpost.datasets import catalogue
from privpost.datasets.afghanistan import ASKED, RELEASE
from privpost.datasets.fetch import chosen

(FOLDER,) = ORIGINAL
README = (FOLDER / "README.md").read_text()
# | `file` | stored bytes | `sha256` | unpacked bytes | `sha256` |
ROWS = re.findall(r"^\| `([^`]+)` \| (\d+) \| `(\w{64})` \| (\d+) \| `(\w{64})` \|$", README, re.MULTILINE)
UNPACK = {".gz": gzip.decompress, ".xz": lzma.decompress}


def sum_of(content: bytes) -> tuple[str, str]:
    return str(len(content)), hashlib.sha256(content).hexdigest()


def tracked() -> list[str]:
    if not (ROOT / ".git").exists():
        pytest.skip("not a git checkout")
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, check=True, capture_output=True, text=True)
    return listed.stdout.split("\0")[:-1]


@pytest.mark.parametrize("row", ROWS, ids=[row[0] for row in ROWS])
def test_a_file_has_the_sums_that_the_readme_names(row: tuple[str, ...]) -> None:
    path = FOLDER / row[0]
    content = path.read_bytes()
    assert sum_of(content) == row[1:3]
    assert sum_of(UNPACK[path.suffix](content)) == row[3:]


def test_the_readme_names_each_file_and_says_where_it_is_from() -> None:
    files = sorted(path.relative_to(FOLDER).as_posix() for path in FOLDER.rglob("*") if path.is_file())
    assert sorted(row[0] for row in ROWS) == [name for name in files if name != "README.md"]
    for folder in {row[0].split("/")[0] for row in ROWS}:
        section = README.split(f"\n## {folder}\n")[1].split("\n## ")[0]
        for word in ("- Origin: ", "- Cite: ", "- Changed: "):
            assert word in section, f"{folder}: {word}"
        assert re.search("^- (Licence|Rights): ", section, re.MULTILINE), folder
    assert sum(int(row[1]) for row in ROWS) <= 13e6


@pytest.mark.parametrize("name", catalogue.names(CONF))
def test_every_data_set_that_may_be_passed_on_is_here(name: str, tmp_path) -> None:
    dataset = catalogue.load(name, CONF)
    assert (chosen(dataset, tmp_path, ORIGINAL) is None) is (dataset.access == "bring-your-own")
    assert (dataset.access == "bring-your-own") is (name == "ipums_us")


def events_in(name: str, content: bytes) -> str:
    """Return why a file may not be tracked: it has the columns of the events, or their layout without a header."""
    if re.search(r"t10k-|ak91|ucdp|district|(^|/)afg\.csv", name):
        return "its name"
    with_ending = next((unpack for ending, unpack in UNPACK.items() if name.endswith(ending)), None)
    try:
        text = (with_ending(content) if with_ending else content)[: 1 << 16].decode("latin-1")
    except (OSError, EOFError, lzma.LZMAError):
        return "it cannot be unpacked"
    rows = list(csv.reader(text.splitlines()[:2]))
    header = {word.strip().lower() for word in rows[0]} if rows else set()
    if {"date", "region"} <= header or len(header & {word.lower() for word in ASKED}) > 4:
        return "its header"
    if any(len(row) == len(RELEASE) and re.match(r"\d{4}-\d\d-\d\d", row[1]) for row in rows):
        return "its layout"
    finer = name.startswith("data/original") and name.endswith("_counts.csv.gz") and r"\d{4}-\d\d-\d\d"
    return "a day" if finer and re.search(finer, text) else ""


def test_no_tracked_file_has_events() -> None:
    for name in tracked():
        if (path := ROOT / name).is_file() and not path.is_symlink():
            assert events_in(name, path.read_bytes()) == "", name


@pytest.mark.parametrize(
    ("name", "text", "why"),
    [
        ("data/original/afghanistan/events.csv.gz", ",".join(ASKED) + "\n", "its header"),
        ("docs/x.csv", "Date,Type,Category,Region,note\n", "its header"),
        ("data/original/afghanistan/x.gz", ",".join(["k", "2004-01-01 00:00:00", *["x"] * 30]) + "\n", "its layout"),
        ("data/original/iraq_sigact/iraq_sigact_counts.csv.gz", "region,month\nAnbar,2004-02-01\n", "a day"),
        ("data/original/mnist/t10k-images-idx3-ubyte.gz", "x", "its name"),
        ("results/x.csv", "region,month,count\nRC EAST,2004-01,3\n", ""),
    ],
)
def test_a_file_with_events_would_be_refused(name: str, text: str, why: str) -> None:
    content = gzip.compress(text.encode()) if name.endswith(".gz") else text.encode()
    assert events_in(name, content) == why


def test_distributions_carry_no_data_and_ignored_are_all_other_folders() -> None:
    import tomllib

    built = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["hatch"]["build"]["targets"]
    assert built["sdist"]["exclude"] == ["/data/original/*/*"]
    assert set(built["wheel"]["force-include"]) == {"conf"}
    ignored = ["data/raw/x", "data/mirror/x/y", "data/prepared/x", "data/original/afghanistan/afg.csv"]
    for path in ignored if (ROOT / ".git").exists() else ():
        assert subprocess.run(["git", "check-ignore", "-q", path], cwd=ROOT, check=False).returncode == 0, path
