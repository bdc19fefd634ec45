"""Bayesian networks with several parents from Laplace-released counts: a chain on the latent records."""

import numpy as np
from scipy.special import betainc, xlogy

from privpost.evaluation.diagnostics import assess
from privpost.evaluation.mmd import beta_embedding, mmd2_of_embeddings
from privpost.evaluation.rows import places
from privpost.experiments.noise_aware import scores
from privpost.experiments.ranges import ALPHA, BETA, BURN_IN, DRAWS, EPSILON, METHOD, THIN, N
from privpost.experiments.zhang2016.settings import Network, parse
from privpost.lab.schema import Choice, Integer, Schema
from privpost.models.bayesian_network import BayesianNetwork
from privpost.samplers.chain import run

SETTINGS = Schema(
    alpha=ALPHA,
    beta=BETA,
    n=N,
    burn_in=BURN_IN,
    draws=DRAWS,
    thin=THIN,
    diagnosed=Integer(at_least=1, says="trials with several chains, whose convergence is assessed"),
    graph=Network(says="directed acyclic graph of the network"),
    method=Choice("non_private", "naive", "gibbs", says=METHOD),
    epsilon=EPSILON,
)
TABLES = {
    "networks": {},
    "networks_pairs": {},
    "networks_calibration": {},
    "networks_ecdf": {},
    "networks_chains": {},
}
# Number of chains of a diagnosed trial.
CHAINS = 4


def simulate(config, streams, ledger) -> dict:
    """Return the scores of every line of `scores.lines` at every ε, and the diagnostics of the chains.

    `quantile` (lines, epsilons, m, trials) of the true parameters in their posteriors; `sd_of_prior` (epsilons, m), the
    noise-aware posterior's standard deviation over the prior's, root mean square over trials. Shape (lines,
    epsilons, trials): `accuracy`, the chance to predict a node from all others, mean over nodes; `log_likelihood` of a
    new record (both are exact expectations over new records); `mmd2` to the true posterior, mean over parameters;
    `truncated`, the share of counts that naive methods truncate. `rhat`, `ess` (epsilons,): the worst over parameters
    and diagnosed trials; nan where they cannot be assessed.
    """
    model, n = network(config), config.n
    mechanisms = scores.opened(config.epsilon, model, n, ledger)
    lines = scores.lines(config.method)
    shape = (len(lines), len(mechanisms))
    quantile = np.empty((*shape, *model.theta_shape, config.trials))
    names = ("accuracy", "log_likelihood", "mmd2", "truncated")
    metrics = {name: np.zeros((*shape, config.trials)) for name in names}
    rhat, ess = np.full(len(mechanisms), -np.inf), np.full(len(mechanisms), np.inf)
    variance = np.full((len(mechanisms), *model.theta_shape), 0.0 if "gibbs" in config.method else np.nan)
    for block in streams.blocks():
        rng = streams("data", block.index)
        theta = model.sample(model.prior, rng, block.size)
        statistics = model.sufficient_statistics(model.sample_data(theta, n, rng))
        releases = scores.released(mechanisms, statistics, streams, block, ledger)
        law, truth = model.record_probabilities(theta), np.nan
        for i, (method, variant) in enumerate(lines):
            if method == "gibbs":
                rng = streams("sampler", block.index)
                quantiles, features, predictive, chains, spread = _aware(
                    model, config, mechanisms, releases, theta, rng
                )
                variance += spread * block.size / config.trials
                # nan from chains that cannot be assessed stays nan.
                rhat, ess = np.maximum(rhat, chains[0]), np.minimum(ess, chains[1])
            else:
                counts, metrics["truncated"][i, :, block.trials] = scores.counts_of(
                    method, variant, mechanisms, statistics, releases
                )
                quantiles, features, predictive = _conjugate(model, counts, theta)
            truth = features if method == "non_private" else truth
            quantile[i, ..., block.trials] = np.swapaxes(quantiles, 1, 2)
            metrics["mmd2"][i, :, block.trials] = mmd2_of_embeddings(features, truth).mean(axis=-1)
            metrics["log_likelihood"][i, :, block.trials] = xlogy(law, predictive).sum(axis=-1)
            metrics["accuracy"][i, :, block.trials] = expected_accuracy(law, predictive)
    of_prior = scores.of_prior(model.alpha, model.beta, variance)
    return {"quantile": quantile, **metrics, "rhat": rhat, "ess": ess, "sd_of_prior": of_prior}


def expected_accuracy(law, predictive) -> np.ndarray:
    """Return the chance (...) to predict a node of a new record correctly from all others, mean over nodes.

    Args:
        law: probabilities of records (..., 2^|I|).
        predictive: the probabilities that predictions are made by; a tie predicts 0.
    """
    law, predictive = np.broadcast_arrays(law, predictive)
    size = law.shape[-1].bit_length() - 1
    split = (*law.shape[:-1], *[2] * size)
    law, predictive = law.reshape(split), predictive.reshape(split)
    chances = []
    for axis in range(-size, 0):
        zero, one = (np.take(predictive, [value], axis=axis) for value in (0, 1))
        likelier = (one > zero * (1 + scores.TIE)).astype(int)
        chances.append(np.take_along_axis(law, likelier, axis=axis).sum(axis=tuple(range(-size, 0))))
    return np.mean(chances, axis=0)


def _conjugate(model, counts, theta):
    """Return quantiles and features (12, first) of θ given counts (..., 2m), and probabilities of new records."""
    parameters = model.posterior(counts)
    a, b = (model.pairs(parameters)[..., side] for side in (0, 1))
    return betainc(a, b, theta), beta_embedding(a, b), model.record_probabilities(model.mean(parameters))


def _aware(model, config, mechanisms, releases, theta, rng):
    """Return the values of `_conjugate` averaged over latent counts, the worst R-hat and effective size per ε, and the
    posterior variance (epsilons, m), mean over trials."""
    # Imported here, as numba takes a third of a second to load.
    from privpost.samplers.noise_aware_records import Records

    epsilons, trials, counts = releases.shape
    extra = min(config.diagnosed, trials)
    # The first trials have several chains.
    repeated = np.concatenate([releases, *[releases[:, :extra]] * (CHAINS - 1)], axis=1)
    scale = np.repeat([mechanism.scale for mechanism in mechanisms], repeated.shape[1])
    chains = Records(model, repeated.reshape(-1, counts), config.n, scale)
    sums, traces = None, []

    for state, _ in run(chains, rng, draws=config.draws, burn_in=config.burn_in, thin=config.thin):
        latent = state.counts.reshape(repeated.shape)
        pairs = model.pairs(model.posterior(latent[:, :trials]))
        parts = *_conjugate(model, latent[:, :trials], theta), scores.moments(pairs[..., 0], pairs[..., 1])
        sums = parts if sums is None else [old + new for old, new in zip(sums, parts, strict=True)]
        diagnosed = np.concatenate([latent[:, :extra], latent[:, trials:]], axis=1)
        traces.append(model.sample(model.posterior(diagnosed), rng))

    quantiles, features, predictive, (mean, square) = (part / config.draws for part in sums)
    draws = np.stack(traces).reshape(config.draws, epsilons, CHAINS, extra, -1)
    worst = [assess(draws[:, j]) for j in range(epsilons)]
    chains = [w.rhat_max for w in worst], [w.ess_min for w in worst]
    return quantiles, features, predictive, chains, (square - mean**2).mean(axis=1)


def network(config) -> BayesianNetwork:
    """Return the network of a cell's graph, with its prior."""
    return BayesianNetwork(parse(config.graph)[1], config.alpha, config.beta)


def tabulate(cells):
    """Return scores, paired differences, KS statistics, empirical distribution functions, and the chains' mixing."""
    tables = scores.tabulate(cells, _place, network) | {"chains": _chains(cells)}
    return {f"networks_{name}".rstrip("_"): table for name, table in tables.items()}


def _place(config) -> dict[str, str]:
    return {"graph": parse(config.graph)[0]}


def _chains(cells):
    for cell in cells:
        for at, point in places(cell.config, "epsilon"):
            yield {
                **_place(point),
                "epsilon": point.epsilon,
                "rhat_max": cell.arrays["rhat"][at],
                "ess_min": cell.arrays["ess"][at],
                "n_chains": CHAINS,
                "n_draws": point.draws,
                "sampling": "mcmc",
            }
