"""Prepared data: the parsed arrays of a data set with its identity and a checksum, in one file per data set."""

import json
import os
from pathlib import Path

import numpy as np

from privpost import archive
from privpost.atomic import abandoned, replacing
from privpost.datasets.catalogue import Dataset
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
    """Verify the raw files, parse them and write ``<prepared>/<name>.npz`` in one step (equal input, equal bytes).

    `code` is a digest of the loader's code, as `code_of` gives it back.

    Raises FileNotFoundError when a raw file is missing and ValueError when its sum is wrong or its content malformed;
    an existing prepared file stays as it is then.
    """
    paths = {}
    for file in dataset.files:
        path = Path(raw) / dataset.name / file.name
        if not path.is_file():
            raise FileNotFoundError(f"{path}: not there; fetch it with `snakemake data`")
        size, sha256 = checksum(path)
        if (size, sha256) != (file.bytes, file.sha256):
            raise ValueError(
                f"{path}: found {size} bytes, sha256 {sha256}; expected {file.bytes} bytes, sha256 {file.sha256}; "
                "delete it and fetch it again with `snakemake data`"
            )
        paths[file.name] = path
    arrays = dataset.loader().parse(paths, dataset)
    reserved = [name for name in arrays if name.startswith("__")]
    if reserved:
        raise ValueError(f"dataset {dataset.name}: array names {reserved} are reserved")
    target = Path(prepared) / f"{dataset.name}.npz"
    for temporary in abandoned(target):
        temporary.unlink(missing_ok=True)
    texts = {
        IDENTITY: np.array(json.dumps(dataset.identity(), sort_keys=True)),
        CHECKSUM: np.array(_array_sum(arrays)),
        CODE: np.array(code),
    }
    with replacing(target) as temporary, temporary.open("wb") as handle:
        np.savez_compressed(handle, allow_pickle=False, **arrays, **texts)
    return target


def read(name: str, dataset: Dataset, prepared: str | os.PathLike[str] = "data/prepared") -> dict[str, np.ndarray]:
    """Read ``<prepared>/<name>.npz`` and return its arrays after checking identity and checksum.

    Raises FileNotFoundError when it is not there, and ValueError, saying what to do, when it is damaged or was prepared
    from other raw files, settings or loader revision than ``dataset`` declares.
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
    actual = _array_sum(arrays)
    if actual != expected:
        raise ValueError(f"{path}: damaged (sum of the arrays {actual}, expected {expected}); {REMEDY}")
    return arrays


def code_of(name: str, prepared: str | os.PathLike[str] = "data/prepared") -> str:
    """Return the digest of the code that prepared a file, or "" where it has none; errors as `read`'s."""
    with np.load(Path(prepared) / f"{name}.npz", allow_pickle=False) as file:
        return str(file[CODE]) if CODE in file.files else ""


def _array_sum(arrays: dict[str, np.ndarray]) -> str:
    return archive.checksum(arrays, lambda name, array: json.dumps([name, array.dtype.str, array.shape]))
