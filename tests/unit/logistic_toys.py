"""Records for tests of logistic regression."""

import numpy as np


def design(n=40, d=5, seed=1, slope=4):
    """Features of length 1, and labels that follow the first."""
    rng = np.random.default_rng(seed)
    features = rng.standard_normal((n, d))
    features /= np.linalg.norm(features, axis=1, keepdims=True)
    labels = (rng.random(n) < 1 / (1 + np.exp(-slope * features[:, 0]))).astype(float)
    return features, labels
