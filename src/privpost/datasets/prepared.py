"""Prepared data: one file per data set with the parsed arrays, the data set's identity and a checksum."""

import json
import os
import sys
from pathlib import Path

import numpy as np

from privpost import archive
from privpost.atomic import abandoned, replacing
from privpost.datasets.catalogue import ABSENT, OWN, Dataset
from privpost.datasets.files import checksum

IDENTITY = "__identity__"
CHECKSUM = "__checksum__"
CODE = "__code__"
REMEDY = "delete it and run `snakemake data`"


def prepare(
    dataset: Dataset,
    raw: str | os.PathLike[str] = "data/raw",
    prepared: str | os.PathLike[str] = "data/prepared",
    code: str = "",
) -> Path:
    """Verify the raw files, parse them and write ``<prepared>/<name>.npz`` atomically. Equal input gives equal bytes.

    `code` is a digest of the loader's code. Without the data set's own files, the first available file of `instead` is
    read, and its arrays must be the declared arrays. Raises FileNotFoundError if a raw file is missing, and ValueError
    for a raw file with a wrong checksum or malformed content.
    """
    paths = _verified(dataset, Path(raw) / dataset.name)
    arrays = dataset.loader().parse(paths, dataset)
    if dataset.arrays and (actual := sum_of(arrays)) != dataset.arrays:
        raise ValueError(f"{', '.join(map(str, paths.values()))}: {_otherwise(dataset, arrays, Path(raw), actual)}")
    reserved = [name for name in arrays if name.startswith("__")]
    if reserved:
        raise ValueError(f"dataset {dataset.name}: array names {reserved} are reserved")
    for line in outside(arrays, dataset):
        print(f"{dataset.name}: {line}", file=sys.stderr, flush=True)
    target = Path(prepared) / f"{dataset.name}.npz"
    for temporary in abandoned(target):
        temporary.unlink(missing_ok=True)
    texts = {
        IDENTITY: np.array(json.dumps(dataset.identity(), sort_keys=True)),
        CHECKSUM: np.array(sum_of(arrays)),
        CODE: np.array(code),
    }
    with replacing(target) as temporary, temporary.open("wb") as handle:
        np.savez_compressed(handle, allow_pickle=False, **arrays, **texts)
    return target


def _verified(dataset: Dataset, raw: Path) -> dict[str, Path]:
    """Return, by name, the paths of the data set's raw files, after checking their sizes and checksums."""
    there = [files for files in dataset.choices() if all((raw / file.name).is_file() for file in files)]
    for file in (there or [dataset.files])[0]:
        path = raw / file.name
        if not path.is_file():
            raise FileNotFoundError(f"{path}: not there; fetch it with `snakemake data`")
        if file.sha256 == ABSENT:
            continue
        size, sha256 = checksum(path)
        if (size, sha256) != (file.bytes, file.sha256):
            raise ValueError(
                f"{path}: found {size} bytes, sha256 {sha256}; expected {file.bytes} bytes, sha256 {file.sha256}; "
                "delete it and fetch it again with `snakemake data`"
            )
    return {file.name: raw / file.name for file in (there or [dataset.files])[0]}


def outside(arrays: dict[str, np.ndarray], dataset: Dataset) -> list[str]:
    """Return a line for each column with values outside its declared bounds."""
    lines = []
    for name, (low, high) in dataset.public.get("bounds", {}).items():
        if name in arrays and (number := int(np.sum((arrays[name] < low) | (arrays[name] > high)))):
            share = number / arrays[name].size
            lines.append(
                f"{name}: {number:,} of {arrays[name].size:,} values ({share:.2%}) lie outside the declared bounds "
                f"[{low:g}, {high:g}], to which studies with public bounds clip them; they go from "
                f"{arrays[name].min():g} to {arrays[name].max():g}"
            )
    return lines


def _otherwise(dataset: Dataset, arrays: dict[str, np.ndarray], raw: Path, actual: str) -> str:
    """Return a line that tells how arrays differ from the declared arrays."""
    said = f"its arrays have the sha256 {actual}, but conf/dataset/{dataset.name}.yaml declares {dataset.arrays}"
    loader = dataset.loader()
    path = raw / dataset.name / dataset.instead[-1].name if dataset.instead else raw
    if hasattr(loader, "difference") and path.is_file():
        declared = loader.parse({path.name: path}, dataset)
        if sum_of(declared) == dataset.arrays:
            cure = f"without the file, there and in {OWN}/{dataset.place}/, {path.name} is read"
            said = f"{loader.difference(arrays, declared, dataset)}; {said}; {cure}"
    return said


def read(name: str, dataset: Dataset, prepared: str | os.PathLike[str] = "data/prepared") -> dict[str, np.ndarray]:
    """Return the arrays of ``<prepared>/<name>.npz`` after checking identity and checksum.

    Raises FileNotFoundError if there is no such file. Raises ValueError if the file is damaged or was prepared from
    other raw files, settings or loader revision than ``dataset`` declares.
    """
    path = Path(prepared) / f"{name}.npz"
    if not path.is_file():
        raise FileNotFoundError(f"{path}: not there; prepare it with `snakemake data`")
    try:
        arrays, (text, expected) = archive.read(path, IDENTITY, CHECKSUM)
        identity = json.loads(text)
    except ValueError as error:
        raise ValueError(f"{path}: damaged ({error}); {REMEDY}") from error
    arrays.pop(CODE, None)
    declared = dataset.identity()
    changed = sorted(key for key in identity.keys() | declared.keys() if identity.get(key) != declared.get(key))
    if changed:
        raise ValueError(f"{path}: prepared for another {', '.join(changed)} than the catalogue declares; {REMEDY}")
    actual = sum_of(arrays)
    if actual != expected:
        raise ValueError(f"{path}: damaged (sum of the arrays {actual}, expected {expected}); {REMEDY}")
    return arrays


def code_of(name: str, prepared: str | os.PathLike[str] = "data/prepared") -> str:
    """Return the digest of the code that prepared a file, or "" if the file holds no digest."""
    with np.load(Path(prepared) / f"{name}.npz", allow_pickle=False) as file:
        return str(file[CODE]) if CODE in file.files else ""


def sum_of(arrays: dict[str, np.ndarray]) -> str:
    """Return the sha256 of the names, types, shapes and content of arrays."""
    return archive.checksum(arrays, lambda name, array: json.dumps([name, array.dtype.str, array.shape]))
