"""Neural posterior estimation: simulations train a normalising flow of θ given a release.

This is the one-round method of Xiong, Ju and Zhang (2025, "Simulation-based Bayesian inference from privacy protected
data").
"""

import contextlib
import os

import numpy as np
from scipy.special import ndtri

from privpost.inference_benchmark.base import Inferred, Refused

INSTALL = "pip install 'sbi>=0.27,<0.28', or pip install '.[sbi]' in a checkout"
# Packages whose versions are stored with the method's scores.
PACKAGES = ("sbi", "torch")
# Number of simulated releases per requested draw.
SIMULATIONS = 20
# The fit ends after this many epochs without a better validation loss.
PATIENCE = 10


def infer(task, releases, rng, budget):
    """Fit a masked autoregressive flow to normal scores of θ, and draw from the flow at each release."""
    try:
        import torch
        from sbi.inference import NPE
    except ImportError as missing:
        raise Refused(f"the package sbi is not installed: {INSTALL}") from missing
    theta = task.prior(SIMULATIONS * budget.total, rng)
    simulated = task.mechanism.perturb(task.data(theta, rng), rng)
    scores = Scores(theta)
    torch.manual_seed(int(rng.integers(2**31)))
    given, x, observed = (
        torch.as_tensor(part, dtype=torch.float32) for part in (scores.of(theta), simulated, np.asarray(releases))
    )
    # sbi prints a line for each fit.
    with open(os.devnull, "w") as nowhere, contextlib.redirect_stdout(nowhere):
        flow = NPE(show_progress_bars=False).append_simulations(given, x).train(stop_after_epochs=PATIENCE)
    drawn = flow.sample((budget.total,), condition=observed).detach().numpy()  # draws, releases, coordinates
    return Inferred(scores.theta(drawn.astype(float).transpose(1, 0, 2))[:, None])


class Scores:
    """Transform, fitted to draws of θ from the prior, to coordinates that are each standard normal under the prior.

    If θ sums to one, each probability is first divided by one minus the sum of the probabilities before it.
    """

    def __init__(self, theta):
        self._simplex = theta.shape[1] > 1 and np.allclose(theta.sum(axis=1), 1)
        self._sorted = np.sort(self._free(theta), axis=0)
        self._scores = ndtri((np.arange(len(theta)) + 0.5) / len(theta))

    def _free(self, theta) -> np.ndarray:
        if not self._simplex:
            return theta
        left = 1 - np.cumsum(theta[..., :-1], axis=-1) + theta[..., :-1]
        return theta[..., :-1] / np.maximum(left, np.finfo(float).tiny)

    def of(self, theta) -> np.ndarray:
        """Normal scores (..., coordinates) of θ (..., p)."""
        free = self._free(theta)
        pairs = zip(np.moveaxis(free, -1, 0), self._sorted.T, strict=True)
        return np.stack([np.interp(values, ordered, self._scores) for values, ordered in pairs], axis=-1)

    def theta(self, scores) -> np.ndarray:
        """Parameters θ (..., p) at normal scores (..., coordinates)."""
        pairs = zip(np.moveaxis(scores, -1, 0), self._sorted.T, strict=True)
        free = np.stack([np.interp(values, self._scores, ordered) for values, ordered in pairs], axis=-1)
        if not self._simplex:
            return free
        left = np.cumprod(1 - free, axis=-1)
        before = np.concatenate([np.ones_like(left[..., :1]), left], axis=-1)
        return before * np.concatenate([free, np.ones_like(free[..., :1])], axis=-1)
