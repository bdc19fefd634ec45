"""L1 error of one sample from the true, the Laplace and the OPS posterior (Foulds et al. 2016, figure 2)."""

import itertools
from functools import partial

import numpy as np

from privpost.evaluation.rows import columns, framed, places
from privpost.evaluation.summaries import mean_and_sem
from privpost.experiments.foulds2016.bits import calibrated
from privpost.experiments.ranges import A0, ALPHA, BETA, EPSILON, METHOD, N, P
from privpost.lab.schema import Choice, Schema
from privpost.models.conjugate.beta_bernoulli import BetaBernoulli
from privpost.privacy.accounting.costs import Cost
from privpost.privacy.ledger.gate import Request

SETTINGS = Schema(
    alpha=ALPHA,
    beta=BETA,
    p=P,
    a0=A0,
    epsilon=EPSILON,
    method=Choice("non_private", "laplace", "ops", says=METHOD),
    n=N,
)
TABLES = {
    "sampling_error": {
        "l1_mean": "absolute error of one draw [probability]",
        "over_true_mean": "absolute error of one draw less the true posterior's, paired [probability]",
        "over_laplace_mean": "absolute error of one draw less the Laplace mechanism's, paired [probability]",
    },
}


def simulate(config, streams, ledger) -> dict:
    """Return errors of one draw of θ, each with its standard error (method, n, 2), and `temperature` (method,).

    `l1` is the error |θ − p|. `over_true` and `over_laplace` are a method's error minus the error of the true or the
    Laplace posterior on the same data. They are nan if the study leaves this posterior out.
    """
    model = BetaBernoulli(config.alpha, config.beta)
    methods = list(config.method)
    errors = np.empty((len(methods), len(config.n), config.trials))
    mechanisms = {}
    for method, n in itertools.product(methods, config.n):
        if method != "non_private":
            make = partial(calibrated, method, config, n, config.epsilon)
            mechanisms[method, n] = ledger.open(f"{method}/n={n}", Cost("pure", config.epsilon), make)
    for block in streams.blocks():
        data = {}
        for j, n in enumerate(config.n):
            successes = streams("data", block.index, n=n).binomial(n, config.p, block.size).astype(float)
            data[n] = np.stack([successes, n - successes], axis=-1)
            if "non_private" in methods:
                draws = model.sample(model.posterior(data[n]), streams("sampler", block.index, n=n))
                errors[methods.index("non_private"), j, block.trials] = np.abs(draws - config.p)
        requests = []
        for (method, n), mechanism in mechanisms.items():
            rng = streams("mechanism", block.index, method=method, n=n)
            requests.append(Request(f"{method}/n={n}", mechanism, data[n], rng, repeats=block.trials))
        for (method, n), asked, release in zip(mechanisms, requests, ledger.release_all(requests), strict=True):
            draws = asked.mechanism.posterior_draw(release.values, asked.rng)
            errors[methods.index(method), config.n.index(n), block.trials] = np.abs(draws - config.p)
    temperature = [getattr(mechanisms.get((method, config.n[-1])), "temperature", np.nan) for method in methods]
    return {
        "l1": _summary(errors),
        **{
            name: _summary(errors - (errors[methods.index(other)] if other in methods else np.nan))
            for name, other in (("over_true", "non_private"), ("over_laplace", "laplace"))
        },
        "temperature": np.array(temperature),
    }


def _summary(values) -> np.ndarray:
    """Return mean and standard error of values over their last axis, stacked along a new last axis."""
    return np.stack(mean_and_sem(values), axis=-1)


def tabulate(cells):
    """Return one row per method and n: the L1 error, and its differences from the true and the Laplace posterior."""
    names = ["method", "p", "epsilon", "a0", "temperature", "n", "l1_mean", "l1_sem", "n_repeats"]
    names += ["over_true_mean", "over_true_sem", "over_laplace_mean", "over_laplace_sem"]
    return framed(_rows(cells), *names)


def _rows(cells):
    for cell in cells:
        for at, point in places(cell.config, "method", "n"):
            row = {**columns(point, "method", "p", "n"), "n_repeats": point.trials}
            row["epsilon"] = None if point.method == "non_private" else point.epsilon
            row["a0"] = point.a0 if point.method == "ops" else None
            row["temperature"] = cell.arrays["temperature"][at[0]]
            for name, other in (("l1", ""), ("over_true", "non_private"), ("over_laplace", "laplace")):
                if point.method != other:
                    row[f"{name}_mean"], row[f"{name}_sem"] = cell.arrays[name][at]
            yield row
