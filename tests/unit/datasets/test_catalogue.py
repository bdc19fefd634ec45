"""The catalogue of data sets."""

from __future__ import annotations

import hashlib
import json
import subprocess
import sys
import types
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml
from dataset_cases import CONF, ROOT, prepare

import privpost.datasets
from privpost.datasets import catalogue, prepared
from privpost.datasets.fetch import fetch

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
    fetch(dataset, raw=tmp_path / "raw", folders=[tmp_path / "mirror"])
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
        ({**GOOD, "serves": ["count"]}, "serves = .*: must be a list of counts, classification"),
        ({**GOOD, "rev": 0}, "rev = 0: must be an integer of 1 or more"),
        ({**GOOD, "rev": True}, "rev = True: must be an integer"),
        ({**GOOD, "serves": ["classification"]}, r"settings\.train_rows = None: must be a positive integer"),
        (
            {**GOOD, "serves": ["classification"], "settings": {"train_rows": 2}},
            r"settings\.test_rows = None: must be a positive integer",
        ),
        (with_file(bytes=None, sha256=None), r"files\[0\]\.bytes = None: must be a positive integer"),
        ({**GOOD, "instead": [{}]}, r"instead\[0\]: missing name, bytes, sha256, urls"),
        ({**GOOD, "instead": GOOD["files"]}, "arrays = '': must be 64 lower-case .*, as instead names files"),
        ({**GOOD, "arrays": "x"}, "arrays = 'x': must be 64 lower-case"),
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


def test_files_that_stand_in_for_others_are_no_part_of_the_identity(tmp_path: Path) -> None:
    without = catalogue.load("toy", catalogue_of(tmp_path / "without", GOOD))
    other = {"name": "any", "bytes": None, "sha256": None, "urls": []}
    entry = {**with_file(urls=[]), "instead": [other, {**other, "name": "b", "bytes": 1, "sha256": "0" * 64}]}
    dataset = catalogue.load("toy", catalogue_of(tmp_path, {**entry, "arrays": "1" * 64}))
    assert dataset.identity() == without.identity()
    assert [[file.name for file in files] for files in dataset.choices()] == [["a.csv"], ["any"], ["b"]]
    assert [file.declared for file in dataset.instead] == [False, True]


def test_data_sets_can_share_a_mirrored_file(tmp_path: Path) -> None:
    content = b"1\n2\n"
    entry = {**with_file(sha256=hashlib.sha256(content).hexdigest()), "folder": "shared_files"}
    dataset = catalogue.load("toy", catalogue_of(tmp_path / "conf", entry))
    (tmp_path / "mirror" / "shared_files").mkdir(parents=True)
    (tmp_path / "mirror" / "shared_files" / "a.csv").write_bytes(content)
    (path,) = fetch(dataset, raw=tmp_path / "raw", folders=[tmp_path / "mirror"])
    assert path == tmp_path / "raw" / "toy" / "a.csv"
    assert path.read_bytes() == content
    plain = catalogue.load("toy", catalogue_of(tmp_path / "plain", {**entry, "folder": ""}))
    assert json.dumps(plain.identity(), sort_keys=True) == json.dumps(dataset.identity(), sort_keys=True)
    assert (dataset.place, plain.place) == ("shared_files", "toy")


def test_a_generated_data_set_has_no_files(tmp_path: Path) -> None:
    dataset = catalogue.load("toy", catalogue_of(tmp_path / "conf", {**GOOD, "access": "generated", "files": []}))
    assert fetch(dataset, raw=tmp_path / "raw", folders=[]) == []


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
    with pytest.raises(ValueError, match=r"there is no folder .*; run from the root of the checkout"):
        catalogue.load("abalone", tmp_path)
    with pytest.raises(ValueError, match=r"dataset = 'toy': there is no loader module privpost\.datasets\.toy"):
        catalogue.load("toy", catalogue_of(tmp_path, GOOD)).loader()


def test_the_catalogue_does_not_load_numpy() -> None:
    command = "import sys, privpost.datasets.catalogue as c; c.names(); sys.exit('numpy' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", command], cwd=ROOT, check=False).returncode == 0
