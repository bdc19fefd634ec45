"""Posterior draws as files: a column for each parameter in CSV, or netCDF, which also has the release."""

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

# Bytes of the trial file.
_ROOM = 2**16


def check(path: Path) -> None:
    """Raises a ValueError unless draws can be written to a new file; writes a trial file to find out."""
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
        # Statements contain the name.
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
    """Write draws by name to a new file, netCDF if it ends in .nc; returns its name, its rows and its sha256.

    With several chains netCDF has the same number of draws of each.

    Args:
        path: the file.
        draws: each of shape (draws,).
        chains: how many Markov chains they are from, as in `inference_data`.
        release, attributes: for netCDF, as in `inference_data`.

    Raises:
        OSError: it cannot be written, or is there already.
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
        # HDF5 has errors of several kinds for a disk that is full.
        reason = str(error).strip().splitlines() or [type(error).__name__]
        raise OSError(errno.EIO, reason[0][:200]) from error
    return data.posterior.sizes["chain"] * data.posterior.sizes["draw"]
