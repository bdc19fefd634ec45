"""Draws in the form that ArviZ, an optional package, takes for tables, plots and netCDF files."""

import warnings
from collections.abc import Sequence
from types import ModuleType
from typing import Any

import numpy as np

from privpost import lookup

INSTALL = "pip install 'arviz>=0.22,<1' (or the project's extra: pip install '.[arviz]')"


def arviz() -> ModuleType:
    """Return ArviZ; raises ValueError, with how to install it, where it is missing."""
    with warnings.catch_warnings():
        # It announces its next version.
        warnings.simplefilter("ignore", FutureWarning)
        return lookup.optional("arviz", "InferenceData and netCDF need the package arviz", INSTALL)


def by_chain(draws, chains: int) -> np.ndarray:
    """Draws (chains, draws of each, ...) from pooled draws (draws, ...), in which the chains take turns up to the last.

    Surplus draws at the beginning are left out, so that all chains have the same number.
    """
    pooled = np.asarray(draws)
    count = max(1, min(chains, len(pooled)))
    length = len(pooled) // count
    return np.moveaxis(pooled[len(pooled) - length * count :].reshape(length, count, *pooled.shape[1:]), 1, 0)


def inference_data(
    draws, chains: int = 1, names: Sequence[str] | None = None, release=None, attributes: dict[str, Any] | None = None
):
    """Return an `arviz.InferenceData` with the variable theta of its group posterior, without the time of the call.

    Args:
        draws: shape (draws, ...), pooled as by `Mechanism.posterior`.
        chains: number of Markov chains behind the draws; 1 for independent draws.
        names: of the p parameters of draws (draws, p), which become the coordinate parameter; no two alike.
        release: the release that the posterior conditions on, for the group observed_data.
        attributes: texts and numbers about the draws, for the group posterior.

    Raises:
        ValueError: ArviZ is not installed, or names that are not those of p parameters.
    """
    if names is not None and (np.shape(draws)[1:] != (len(names),) or len({*names}) < len(names)):
        raise ValueError(
            f"names are {list(names)!r}; draws of shape {np.shape(draws)} need one name a coordinate, no two alike"
        )
    named = {} if names is None else {"coords": {"parameter": list(names)}, "dims": {"theta": ["parameter"]}}
    observed = {} if release is None else {"observed_data": {"release": np.asarray(release, float)}}
    data = arviz().from_dict(posterior={"theta": by_chain(draws, chains)}, **observed, **named)
    for group in data.groups():
        # Equal draws make equal files.
        data[group].attrs.pop("created_at", None)
        data[group].attrs["inference_library"] = "privpost"
    data.posterior.attrs.update(attributes or {})
    return data
