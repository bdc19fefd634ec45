"""Converts draws to `InferenceData`, which the optional package ArviZ uses for tables, plots and netCDF files."""

import warnings
from collections.abc import Sequence
from types import ModuleType
from typing import Any

import numpy as np

from privpost import lookup

INSTALL = "pip install 'arviz>=0.22,<1' (or the project's extra: pip install '.[arviz]')"


def arviz() -> ModuleType:
    """Return the module ArviZ, or raise a ValueError that says how to install ArviZ."""
    with warnings.catch_warnings():
        # ArviZ warns about changes in its next version.
        warnings.simplefilter("ignore", FutureWarning)
        return lookup.optional("arviz", "InferenceData and netCDF need the package arviz", INSTALL)


def by_chain(draws, chains: int) -> np.ndarray:
    """Return pooled draws (draws, ...) chain by chain, in the shape (chains, draws per chain, ...).

    The last pooled draw is from the last chain, because the chains alternate. Surplus draws at the beginning are left
    out.
    """
    pooled = np.asarray(draws)
    count = max(1, min(chains, len(pooled)))
    length = len(pooled) // count
    return np.moveaxis(pooled[len(pooled) - length * count :].reshape(length, count, *pooled.shape[1:]), 1, 0)


def inference_data(
    draws, chains: int = 1, names: Sequence[str] | None = None, release=None, attributes: dict[str, Any] | None = None
):
    """Return an `arviz.InferenceData` whose group posterior has the draws as variable theta.

    Args:
        draws: draws of alternating chains, shape (draws, ...), as `Mechanism.posterior` returns them.
        chains: number of Markov chains behind the draws; 1 for independent draws.
        names: distinct names of the p parameters, for draws of shape (draws, p).
        release: the release that the posterior conditions on, for the group observed_data.
        attributes: texts and numbers about the draws, for the group posterior.

    Raises:
        ValueError: ArviZ is not installed, or the names are not p distinct ones.
    """
    if names is not None and (np.shape(draws)[1:] != (len(names),) or len({*names}) < len(names)):
        raise ValueError(
            f"names are {list(names)!r}; draws of shape {np.shape(draws)} need one name a coordinate, no two alike"
        )
    named = {} if names is None else {"coords": {"parameter": list(names)}, "dims": {"theta": ["parameter"]}}
    observed = {} if release is None else {"observed_data": {"release": np.asarray(release, float)}}
    data = arviz().from_dict(posterior={"theta": by_chain(draws, chains)}, **observed, **named)
    for group in data.groups():
        # Without the time of creation, equal draws make equal files.
        data[group].attrs.pop("created_at", None)
        data[group].attrs["inference_library"] = "privpost"
    data.posterior.attrs.update(attributes or {})
    return data
