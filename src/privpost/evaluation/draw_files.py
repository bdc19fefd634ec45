"""Writes posterior draws to a CSV file, or to a netCDF file that also holds the release."""

import csv
import errno
import hashlib
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from privpost.atomic import replacing
from privpost.evaluation import inference_data

# Size of the trial file in bytes.
_ROOM = 2**16


def check(path: Path) -> None:
    """Raise a ValueError unless a new file can be written at the path."""
    if path.suffix not in (".csv", ".nc"):
        raise ValueError(f"{path} must end in .csv, or in .nc for netCDF.")
    if path.suffix == ".nc":
        try:
            inference_data.arviz()
        except ValueError as error:
            raise ValueError(f"{path}: {error}") from None
    if os.path.lexists(path):
        raise ValueError(f"{path} exists; name a new file.")
    try:
        # The statement of a release, which is UTF-8, contains the file's name.
        path.name.encode()
    except UnicodeEncodeError:
        raise ValueError(f"{str(path)!a} is no text in UTF-8.") from None
    try:
        if not path.parent.is_dir():
            raise ValueError(f"there is no folder {path.parent}")
        with replacing(path, new=True) as trial:
            trial.write_bytes(b" " * _ROOM)
        path.unlink()
    except OSError as error:
        raise ValueError(f"{path} cannot be written: {error.strerror}") from None


def write(path: Path, draws: Mapping[str, np.ndarray], chains: int, release, attributes: Mapping) -> dict[str, Any]:
    """Write named draws to a new file, and return the file's name, number of rows and SHA-256.

    A file whose name ends in .nc is netCDF, with equally many draws of each chain. Any other file is CSV.

    Args:
        draws: draws of each parameter, shape (draws,).
        chains: number of Markov chains behind the draws, as in `inference_data`.
        release, attributes: for netCDF, as in `inference_data`.

    Raises:
        OSError: the file cannot be written or exists already.
    """
    with replacing(path, new=True) as temporary:
        if path.suffix == ".nc":
            rows = _netcdf(temporary, draws, chains, release, attributes)
        else:
            rows = _csv(temporary, draws)
        digest = hashlib.sha256(temporary.read_bytes()).hexdigest()
    return {"file": path.name, "rows": rows, "sha256": digest}


def _csv(path, draws) -> int:
    with path.open("w", newline="", encoding="utf-8") as handle:
        writer = csv.writer(handle, lineterminator="\n")
        writer.writerow(draws)
        writer.writerows(zip(*(values.tolist() for values in draws.values()), strict=True))
    return len(next(iter(draws.values())))


def _netcdf(path, draws, chains, release, attributes) -> int:
    stacked = np.stack([*draws.values()], axis=-1)
    data = inference_data.inference_data(stacked, chains, [*draws], release, dict(attributes))
    try:
        data.to_netcdf(str(path))
    except Exception as error:
        # HDF5 raises errors of several types when the disk is full.
        reason = str(error).strip().splitlines() or [type(error).__name__]
        raise OSError(errno.EIO, reason[0][:200]) from error
    return data.posterior.sizes["chain"] * data.posterior.sizes["draw"]
