"""Counts from noisy ones by least squares over signed contingency tables of total n."""

import functools

import numpy as np

from privpost.models.bayesian_network import BayesianNetwork
from privpost.models.fourier_basis import transforms


@functools.lru_cache(maxsize=64)
def _basis(model: BayesianNetwork) -> tuple[np.ndarray, np.ndarray]:
    """Counts per record at the signed sum of ∅ (2m,), and an orthonormal basis (2m, |N_I| − 1) of what is free."""
    backward = transforms(model)[1]
    return backward[:, 0], np.linalg.qr(backward[:, 1:])[0]


def consistent_counts(model: BayesianNetwork, release, n: int) -> np.ndarray:
    """The counts next to noisy ones that agree with each other and with n; shape (..., 2m).

    The counts of all families are linear in the signed sums over N_I, of which that of ∅ is the public n; the nearest
    ones are an orthogonal projection. They are real and perhaps negative, so that no n records need have them; to
    truncate them to [0, n] makes families disagree again. Post-processing: a noise-naive remedy that uses what n and
    the overlaps of families tell, but no law of the noise.

    Args:
        model: the network.
        release: noisy counts, shape (..., 2m).
        n: public number of records.
    """
    constant, basis = _basis(model)
    centre = n * constant
    return centre + ((np.asarray(release, float) - centre) @ basis) @ basis.T
