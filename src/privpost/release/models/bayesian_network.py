"""The model `bayesian_network` of private releases."""

import itertools
from typing import Any, ClassVar

from privpost.evaluation import diagnostics
from privpost.lab.schema import Real, Schema, SettingError, Text, Vector, suggest
from privpost.mechanisms.noise.network import NetworkLaplace
from privpost.models.networks.bayesian_network import BayesianNetwork
from privpost.release.columns import Levels
from privpost.release.models.base import NAIVE, Posterior, Predictive, by_name, whole
from privpost.samplers.noise_aware import draws as noise_aware_draws

# Largest number of parents of a column.
LARGEST_FAMILY = 12
# Largest numbers of nodes and of records with a noise-aware posterior. With more, chains take too long.
LARGEST_NETWORK = 5
MOST_RECORDS = 100_000
# Approximate seconds of one step of all chains.
_SECONDS = 3e-6


class Network(Predictive):
    """Columns of two levels in a directed acyclic graph. Each is counted by the levels of its parents."""

    name = "bayesian_network"
    column = Schema(levels=Levels(), parents=Vector(Text(), empty=True))
    prior = Schema(alpha=Real(above=0), beta=Real(above=0))
    prior_defaults: ClassVar[dict[str, Any]] = {"alpha": 1.0, "beta": 1.0}
    columns = None
    binary = True

    def check_column(self, spec, settings):
        super().check_column(spec, settings)
        parents = settings.get("parents", [])
        for parent in parents:
            if parent not in spec.columns:
                raise SettingError(
                    f"parents: there is no column {parent!r}.{suggest(parent, spec.columns)} "
                    f"Columns: {', '.join(spec.columns)}."
                )
        if len(parents) > LARGEST_FAMILY:
            raise SettingError(
                f"parents has {len(parents)} entries; at most {LARGEST_FAMILY} are supported, as each doubles the "
                "number of counts."
            )

    def _model(self, spec) -> BayesianNetwork:
        parents = {name: settings.get("parents", []) for name, settings in spec.columns.items()}
        return BayesianNetwork(parents, **spec.prior)

    def mechanism(self, spec, setting):
        return NetworkLaplace(self._model(spec), spec.n, setting)

    def _cells(self, spec) -> list[tuple[str, str]]:
        """Return the node of each parameter and, as text, the levels of the node's parents, in the model's order."""
        levels = {name: settings["levels"] for name, settings in spec.columns.items()}
        return [
            (node, ", ".join(f"{parent} = {levels[parent][bit]}" for parent, bit in zip(parents, bits, strict=True)))
            for node, parents in self._model(spec).parents
            for bits in itertools.product((0, 1), repeat=len(parents))
        ]

    def statistics(self, spec, release):
        counts: dict[str, Any] = {}
        for (node, parents_at), (ones, zeros) in zip(self._cells(spec), release.reshape(-1, 2), strict=True):
            low, high = spec.columns[node]["levels"]
            counts.setdefault(node, {})[parents_at or "all"] = {low: whole(zeros), high: whole(ones)}
        return {"counts": counts}

    def _chained(self, spec) -> bool:
        return len(spec.columns) <= LARGEST_NETWORK and spec.n <= MOST_RECORDS

    def seconds(self, spec):
        size = len(spec.columns)
        steps = size * 2 ** (size - 1) + len(self._cells(spec))
        return _SECONDS * steps * noise_aware_draws.network_sweeps(spec.draws) if self._chained(spec) else 0.0

    def parameters(self, spec):
        return [
            f"P({node} = {spec.columns[node]['levels'][1]}{' | ' * bool(parents_at)}{parents_at})"
            for node, parents_at in self._cells(spec)
        ]

    def predicted(self, spec, theta, size, rng):
        records = self._model(spec).sample_data(theta, size, rng)
        levels = [spec.columns[name]["levels"] for name in self._model(spec).nodes]
        return [[names[bit] for bit in records[:, i]] for i, names in enumerate(levels)]

    def posterior(self, spec, mechanism, release, rng):
        model, names = mechanism.model, self.parameters(spec)
        if not self._chained(spec):
            draws = model.sample(mechanism.naive_posterior(release), rng, spec.draws)
            method = "conjugate update with the noisy counts, clipped to [0, n]"
            return Posterior(by_name(names, draws), False, method, NAIVE)
        chains = noise_aware_draws.network(model, release, spec.n, mechanism.scale, spec.draws, rng)
        assessed = diagnostics.assess(chains)
        return Posterior(
            by_name(names, noise_aware_draws.pooled(chains, spec.draws)),
            True,
            f"Markov chains on the true counts with the noise's law, {noise_aware_draws.CHAINS} of them from the prior",
            ("Markov chain Monte Carlo",),
            assessed.rhat_max,
            assessed.ess_min,
            noise_aware_draws.CHAINS,
            assessed.reason,
        )
