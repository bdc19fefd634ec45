"""The setting for a network's graph."""

from typing import Any

from privpost.lab.schema import Setting, SettingError
from privpost.models.networks import graphs


class Network(Setting):
    """The graph of a Bayesian network. Its normal form has name and formula, so digests depend on the graph itself."""

    def allowed(self) -> str:
        return (
            "a file of conf/network, the path of a YAML file, a family such as chain_5 or naive_bayes_16, or a name "
            "and a formula such as `pair [a][b|a]`"
        )

    def checked(self, value: Any) -> str:
        if not isinstance(value, str):
            raise ValueError
        try:
            name, graph = graphs.named(value)
        except ValueError as error:
            raise SettingError(str(error)) from error
        return f"{name} {graphs.formula(graph)}"


def parse(network: str) -> tuple[str, graphs.Graph]:
    """Return the name and the graph of a setting in its normal form."""
    return graphs.named(network)
