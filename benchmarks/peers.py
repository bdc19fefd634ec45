"""Samplers of a logistic posterior, with which the project's own sampler is compared."""

from __future__ import annotations

import os
import time
from typing import NamedTuple

import numpy as np
from scipy.linalg import cho_solve, cholesky, solve_triangular

from privpost.models.regression.logistic import LogisticPosterior


class Run(NamedTuple):
    """Draws (n_draws, d) of one chain, CPU seconds of the warm-up, and CPU seconds of the draws."""

    draws: np.ndarray
    warm_up_seconds: float
    seconds: float


def polya_gamma_gibbs(posterior: LogisticPosterior, start: np.ndarray, n_burn_in: int, n_draws: int, rng) -> Run:
    """Sample by Pólya-gamma augmentation from one start (d,), without a ball (Polson, Scott and Windle 2013).

    A sweep draws ω_i ~ PG(ρ, x_i·w) and w | ω ~ N(P⁻¹ ρ Xᵀ(y − 1/2), P⁻¹) with P = Xᵀ diag(ω) X + nβ I.
    """
    from polyagamma import random_polyagamma

    features, weights = posterior.features, start
    drift = posterior.power * (features.T @ (posterior.labels - 0.5))
    draws, warm_up, clock = [], 0.0, time.process_time()
    for sweep in range(n_burn_in + n_draws):
        if sweep == n_burn_in:
            warm_up, clock = time.process_time() - clock, time.process_time()
        latent = random_polyagamma(posterior.power, features @ weights, random_state=rng)
        scaled = features * np.sqrt(latent)[:, None]
        precision = scaled.T @ scaled
        precision.flat[:: len(weights) + 1] += posterior.prior_precision
        factor = cholesky(precision, lower=True, check_finite=False)
        mean = cho_solve((factor, True), drift, check_finite=False)
        weights = mean + solve_triangular(factor, rng.standard_normal(len(mean)), lower=True, trans="T")
        if sweep >= n_burn_in:
            draws.append(weights)
    return Run(np.array(draws), warm_up, time.process_time() - clock)


def nuts(posterior: LogisticPosterior, start: np.ndarray, n_burn_in: int, n_draws: int, seed: int) -> Run:
    """Sample with NumPyro's No-U-Turn sampler. Raise ModuleNotFoundError without NumPyro."""
    # The sampler has one thread and default settings, and is compiled before the clock starts.
    os.environ["XLA_FLAGS"] = "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1"
    import jax
    import jax.numpy as jnp
    from numpyro.infer.hmc import hmc

    features, signs = jnp.asarray(posterior.features), jnp.asarray(2.0 * posterior.labels - 1)

    def potential(weights):
        likelihood = -jnp.logaddexp(0.0, -signs * (features @ weights)).sum()
        return 0.5 * posterior.prior_precision * weights @ weights - posterior.power * likelihood

    initialise, step = hmc(potential, algo="NUTS")
    state = initialise(jnp.asarray(start), num_warmup=n_burn_in, rng_key=jax.random.PRNGKey(seed))
    step = jax.jit(step)
    jax.block_until_ready(step(state).z)
    draws, warm_up, clock = [], 0.0, time.process_time()
    for sweep in range(n_burn_in + n_draws):
        if sweep == n_burn_in:
            warm_up, clock = time.process_time() - clock, time.process_time()
        state = step(state)
        jax.block_until_ready(state.z)
        if sweep >= n_burn_in:
            draws.append(np.asarray(state.z, dtype=float))
    return Run(np.array(draws), warm_up, time.process_time() - clock)
