"""Counts that agree with each other: the nearest to noisy counts that a signed contingency table of total n has."""

import functools

import numpy as np

from privpost.models.networks.bayesian_network import BayesianNetwork
from privpost.models.networks.fourier_basis import transforms


@functools.lru_cache(maxsize=64)
def _basis(model: BayesianNetwork) -> tuple[np.ndarray, np.ndarray]:
    """Return the fixed part of the counts per unit of n (2m,) and an orthonormal basis (2m, |N_I| − 1) of the rest."""
    backward = transforms(model)[1]
    return backward[:, 0], np.linalg.qr(backward[:, 1:])[0]


def consistent_counts(model: BayesianNetwork, release, n: int) -> np.ndarray:
    """Return the counts nearest to noisy counts that agree with each other and with n; shape (..., 2m).

    The counts of all families are linear in the signed sums over N_I (`fourier_basis.closure`), and the signed sum of ∅
    is the public n. So the nearest counts are an orthogonal projection. They are real and may be negative, so there may
    be no n records with these counts. Truncating the counts to [0, n] makes families disagree again. The projection
    uses n and the overlaps of families, but not the law of the noise.

    Args:
        model: the network.
        release: noisy counts, shape (..., 2m).
        n: public number of records.
    """
    constant, basis = _basis(model)
    centre = n * constant
    return centre + ((np.asarray(release, float) - centre) @ basis) @ basis.T
