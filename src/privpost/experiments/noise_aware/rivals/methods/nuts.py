"""No-U-turn sampling (Hoffman and Gelman 2014) of a relaxed table of counts, with numpyro, which is to be installed."""

import numpy as np

from privpost.experiments.noise_aware.rivals.methods import Inferred
from privpost.experiments.noise_aware.rivals.tasks import NetworkTask, OneCategory, Refused

# Runs only where it is asked for.
OPTIONAL = True


def infer(task, releases, rng, budget):
    """Let cells hold any share of the n records, sum θ out, and draw it given the counts at the end."""
    if not isinstance(task, NetworkTask | OneCategory):
        raise Refused("it relaxes tables of counts; a redacted sum has none")
    try:
        import jax
        from jax.scipy.special import gammaln
        from numpyro.infer import MCMC, NUTS
    except ImportError as error:
        raise Refused("it needs numpyro: pip install numpyro") from error
    jax.config.update("jax_enable_x64", True)
    # What a record of each cell adds to the statistics, by which θ is updated, and to what is released.
    if isinstance(task, NetworkTask):
        adds = task.model.sufficient_statistics(task.model.records[:, None])
        groups = np.repeat(np.eye(task.size), 2, axis=0)
    else:
        adds = np.eye(len(task.model.prior))
        groups = np.ones((len(adds), 1))
    shown, prior, n, scale = task.mechanism.select(adds), np.asarray(task.model.prior, float), task.n, task.scale

    def table(free):
        # The last logit is 0. The Jacobian of the map from logits to shares is the product of the shares.
        shares = jax.nn.softmax(jax.numpy.append(free, 0.0))
        return n * shares, jax.numpy.log(shares).sum()

    def potential(release):
        def energy(free):
            cells, jacobian = table(free)
            after = prior + cells @ adds
            log_joint = gammaln(after).sum() - gammaln(after @ groups).sum() - gammaln(cells + 1).sum()
            return -(log_joint - jax.numpy.abs(release - cells @ shown).sum() / scale + jacobian)

        return energy

    def run(release, start, key):
        sampler = MCMC(
            NUTS(potential_fn=potential(release)), num_warmup=budget.burn_in, num_samples=budget.draws,
            num_chains=budget.chains, chain_method="vectorized", progress_bar=False,
        )  # fmt: skip
        sampler.run(key, init_params=start)
        return sampler.get_samples(group_by_chain=True)

    drawn = []
    for release in releases:
        start = rng.standard_normal((budget.chains, len(adds) - 1))
        free = run(release, start, jax.random.PRNGKey(int(rng.integers(2**31))))
        cells = np.asarray(jax.vmap(jax.vmap(lambda logits: table(logits)[0]))(free))
        drawn.append(task.update(cells @ adds, rng))
    return Inferred(np.stack(drawn))
