"""Projection of noisy counts of a Bayesian network onto counts that agree with each other."""

import functools

import numpy as np

from privpost.models.networks.bayesian_network import BayesianNetwork
from privpost.models.networks.fourier_basis import transforms


@functools.lru_cache(maxsize=64)
def _basis(model: BayesianNetwork) -> tuple[np.ndarray, np.ndarray]:
    """Return a vector (2m,) and an orthonormal basis (2m, |N_I| − 1).

    Counts agree if they are n times the vector plus a combination of the basis.
    """
    backward = transforms(model)[1]
    return backward[:, 0], np.linalg.qr(backward[:, 1:])[0]


def consistent_counts(model: BayesianNetwork, release, n: int) -> np.ndarray:
    """Return, for noisy counts (..., 2m), the nearest counts on which all families agree, each with total n.

    All counts are linear in the signed sums over N_I (`fourier_basis.closure`), and the signed sum of ∅ is the public
    n. So the result (..., 2m) is an orthogonal projection. It may be negative. Truncating it to [0, n] makes families
    disagree again.
    """
    constant, basis = _basis(model)
    centre = n * constant
    return centre + ((np.asarray(release, float) - centre) @ basis) @ basis.T
