"""The mechanisms that studies of Zhang et al. (2016) compare, and each mechanism's privacy cost for a whole record."""

from privpost.mechanisms.base import Mechanism
from privpost.mechanisms.choices.map_estimate import MapMechanism
from privpost.mechanisms.draws.network import AttributeSampler, RecordSampler
from privpost.mechanisms.noise.fourier import FourierMechanism
from privpost.mechanisms.noise.network import NetworkLaplace
from privpost.models.networks.bayesian_network import BayesianNetwork
from privpost.privacy.accounting.costs import Cost

METHODS = ("laplace", "fourier", "sampler_record", "sampler_attribute", "map")


def target(method: str, model: BayesianNetwork, epsilon: float) -> Cost:
    """Return the budget of one release for a whole record: |I|ε if ε is for one of |I| attributes, else ε."""
    return Cost("pure", epsilon * (len(model.nodes) if method == "sampler_attribute" else 1))


def configured(
    method: str,
    model: BayesianNetwork,
    n: int,
    epsilon: float,
    *,
    t: float = 0.0,
    variant: str = "paper",
    utility: str = "mass",
) -> Mechanism:
    """Return the mechanism of a method, one of `METHODS`, at ε.

    `n` is the public number of records. Only the Fourier mechanism uses `t` and `variant`, and only MAP uses `utility`.
    """
    if method == "laplace":
        return NetworkLaplace(model, n, epsilon)
    if method == "fourier":
        return FourierMechanism(model, n, epsilon, t=t, variant=variant)
    if method == "map":
        return MapMechanism(model, n, epsilon, utility=utility)
    return {"sampler_record": RecordSampler, "sampler_attribute": AttributeSampler}[method](model, n, epsilon)
