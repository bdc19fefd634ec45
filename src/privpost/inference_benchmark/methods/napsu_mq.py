"""The posterior of NAPSU-MQ, which treats noisy counts as normal (Räisä, Jälkö, Kaski and Honkela 2023)."""

import numpy as np
from scipy.special import expit, log_expit, log_softmax

from privpost.inference_benchmark.base import POWERS, Inferred, Refused
from privpost.inference_benchmark.tasks.counts import CountsTask
from privpost.inference_benchmark.tasks.networks import NetworkTask

# Number of proposals for each release, degrees of freedom of the proposals' Student law, and ratio of the squared scale
# of this law to the variance at the mode.
PROPOSALS, DEGREES, WIDER = 4000, 5, 1.5
# Number of scoring steps towards the mode, and the step of finite differences.
STEPS, STEP = 12, 1e-4
# Largest number of elements of covariances in memory at once.
_ELEMENTS = 4_000_000


def infer(task, releases, rng, budget):
    """Draw from the density p(θ) N(y; m(θ), V(θ) + v) by importance resampling.

    Here y is the release, m(θ) and V(θ) are the mean and covariance of the counts, and v is the variance of the noise.
    """
    if not isinstance(task, CountsTask | NetworkTask) or task.noise not in POWERS:
        raise Refused("it serves counts with noise on them")
    variance = task.noise_variance * np.eye(releases.shape[1])
    mode, precision = _mode(task, releases, variance)
    root = np.linalg.cholesky(np.linalg.inv(precision) * WIDER)
    normal = rng.standard_normal((len(releases), PROPOSALS, mode.shape[1]))
    student = normal / np.sqrt(rng.chisquare(DEGREES, (len(releases), PROPOSALS, 1)) / DEGREES)
    points = mode[:, None] + student @ np.swapaxes(root, 1, 2)
    logs = np.stack([_log_density(task, *pair, variance) for pair in zip(points, releases, strict=True)])
    logs += 0.5 * (DEGREES + mode.shape[1]) * np.log1p(np.square(student).sum(axis=2) / DEGREES)
    weights = np.exp(logs - logs.max(axis=1, keepdims=True))
    weights /= weights.sum(axis=1, keepdims=True)
    picked = [rng.choice(PROPOSALS, budget.total, p=row) for row in weights]
    drawn = np.stack([_theta(task, z[rows]) for z, rows in zip(points, picked, strict=True)])
    return Inferred(drawn[:, None], 1 / (np.square(weights).sum(axis=1) + 1 / budget.total))


def _theta(task, z) -> np.ndarray:
    """Parameters θ (..., p) at logits z (..., free)."""
    # For categories, the logits compare each category with the last.
    if isinstance(task, NetworkTask) or task.size == 1:
        return expit(z)
    return np.exp(log_softmax(_against_last(z), axis=-1))


def _against_last(z):
    return np.concatenate([z, np.zeros((*z.shape[:-1], 1))], axis=-1)


def _log_prior(task, z) -> np.ndarray:
    """Log-density (...) of z under the prior, up to a constant."""
    prior = np.asarray(task.model.prior, float)
    if isinstance(task, NetworkTask) or task.size == 1:
        return log_expit(z) @ prior[::2] + log_expit(-z) @ prior[1::2]
    return log_softmax(_against_last(z), axis=-1) @ prior


def _log_density(task, z, release, variance) -> np.ndarray:
    """Log-density (points,) of z (points, free) given one release (q,), up to a constant."""
    total, part = np.empty(len(z)), max(1, _ELEMENTS // variance.size)
    for start in range(0, len(z), part):
        some = slice(start, start + part)
        mean, covariance = task.moments(_theta(task, z[some]))
        root = np.linalg.cholesky(covariance + variance)
        scaled = np.linalg.solve(root, (release - mean)[..., None])[..., 0]
        spread = np.log(np.diagonal(root, axis1=1, axis2=2)).sum(axis=1)
        total[some] = _log_prior(task, z[some]) - spread - 0.5 * np.square(scaled).sum(axis=1)
    return total


def _mode(task, releases, variance) -> tuple[np.ndarray, np.ndarray]:
    """Return approximate modes (k, free) and precisions (k, free, free) of the posterior, by Fisher scoring."""
    free = task.size if isinstance(task, NetworkTask) or task.size == 1 else task.size - 1
    z, steps = np.zeros((len(releases), free)), STEP * np.eye(free)
    for _ in range(STEPS):
        around = np.concatenate([z[:, None], z[:, None] + steps, z[:, None] - steps], axis=1)
        flat = around.reshape(-1, free)
        mean, covariance = (
            part.reshape(*around.shape[:2], *part.shape[1:]) for part in task.moments(_theta(task, flat))
        )
        prior = _log_prior(task, flat).reshape(around.shape[:2])
        slope = (mean[:, 1 : free + 1] - mean[:, free + 1 :]) / (2 * STEP)
        weight = slope @ np.linalg.inv(covariance[:, 0] + variance)
        gradient = np.einsum("kfq,kq->kf", weight, releases - mean[:, 0])
        gradient += (prior[:, 1 : free + 1] - prior[:, free + 1 :]) / (2 * STEP)
        bent = (2 * prior[:, :1] - prior[:, 1 : free + 1] - prior[:, free + 1 :]) / STEP**2
        precision = weight @ np.swapaxes(slope, 1, 2) + np.eye(free) * np.maximum(bent, 0.05)[:, None]
        z = np.clip(z + np.clip(np.linalg.solve(precision, gradient[..., None])[..., 0], -1, 1), -8, 8)
    return z, precision
