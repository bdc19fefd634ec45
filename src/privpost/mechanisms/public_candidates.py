"""One of many public candidates for the hidden Markov model of events, chosen by tempered likelihood: true pure DP."""

from dataclasses import dataclass, field
from typing import ClassVar, NamedTuple, Self

import numpy as np

from privpost.mechanisms.event_counts import TemperedEvents
from privpost.models.event_counts import EventCounts
from privpost.privacy.accounting import Cost
from privpost.privacy.checks import check_count, check_seed
from privpost.privacy.ledger import Release, Request
from privpost.samplers import truncated_dirichlet

# Candidates that are drawn and evaluated at once.
_BLOCK = 256


class Candidates(NamedTuple):
    """Parameters: emission probabilities (candidates, K, levels) and transitions (candidates, K, K)."""

    emissions: np.ndarray
    transitions: np.ndarray


@dataclass(frozen=True)
class PublicCandidates(TemperedEvents):
    """One of J candidates θ_j from the prior, drawn without the data, with probability ∝ p(data | θ_j)^(1/T).

    The exponential mechanism on J public outputs: states are summed out by the forward algorithm, so that no chain has
    to converge. An event's factor lies in a range of ratio e^Δ given any states, and so does the likelihood: 2Δ/T-DP
    for every J, T = max(1, 2Δ/ε). As J grows the release tends to an exact draw of θ from the tempered posterior; that
    takes about e^KL candidates, KL the divergence of that posterior from the prior.

    Attributes:
        epsilon: ε > 0 that the choice may cost.
        candidates: J ≥ 1.
        truncation: M > 1; every probability of a level is at least 1/(M K_d).
        public_seed: the candidates' seed, which is public.

    Raises:
        ValueError: a setting outside its range, or another model than EventCounts.

    >>> PublicCandidates(EventCounts((2,), (2,)), 100, 5.0, candidates=1000).cost().epsilon
    5.0
    """

    candidates: int = field(kw_only=True)
    public_seed: int = field(default=0, kw_only=True)

    method: ClassVar[str] = "candidates"
    public_inputs: ClassVar[tuple[str, ...]] = ("cells", "levels", "prior", "truncation", "candidates")

    def __post_init__(self):
        super().__post_init__()
        check_count("candidates", self.candidates)
        check_seed("public_seed", self.public_seed)

    def cost(self) -> Cost:
        """2Δ/T, which is ε or, at T = 1, less; for every J."""
        return Cost("pure", min(self.epsilon, 2 * self.sensitivity))

    def block(self, number: int) -> Candidates:
        """Block `number` of the candidates; a smaller J has the first candidates of a larger one."""
        model, lows = self.model, self.lows
        states = model.n_states
        rng = np.random.default_rng([self.public_seed, number])
        fields = [
            truncated_dirichlet.sample(np.full((_BLOCK, states, size), float(model.emission)), low, rng)
            for size, low in zip(model.sizes, lows, strict=True)
        ]
        moves = rng.dirichlet(np.full(states, float(model.transition)), (_BLOCK, states))
        part = slice(min(_BLOCK, self.candidates - number * _BLOCK))
        return Candidates(np.concatenate(fields, axis=-1)[part], moves[part])

    def score(self, parameters: Candidates, tables, observed) -> np.ndarray:
        """Log-likelihood of the observed cells (parameters, sets), summed over all states.

        Args:
            parameters: candidates.
            tables: counts (cells, levels).
            observed: cells whose events count, (sets, cells) bool.
        """
        # Imported only where it runs, as compilation takes a while.
        from privpost.samplers.hidden_markov_forward import log_likelihoods

        regions = self.model.regions
        first = np.concatenate([[True], regions[1:] != regions[:-1]])
        logs = np.log(parameters.emissions).transpose(2, 1, 0)
        emissions = (tables @ logs.reshape(len(logs), -1)).reshape(len(tables), *logs.shape[1:])
        return log_likelihoods(emissions, parameters.transitions, first, observed)

    def log_likelihoods(self, tables, observed) -> np.ndarray:
        """The `score` of each candidate, (J, sets)."""
        numbers = range(-(-self.candidates // _BLOCK))
        return np.concatenate([self.score(self.block(number), tables, observed) for number in numbers])

    def chosen(self, indices) -> Candidates:
        """The parameters of some candidates (releases,), by their numbers."""
        places, inverse = np.unique(indices, return_inverse=True)
        blocks = {number: self.block(number) for number in set((places // _BLOCK).tolist())}
        parts = [[part[place % _BLOCK] for part in blocks[place // _BLOCK]] for place in places.tolist()]
        return Candidates(*(np.stack(field)[inverse] for field in zip(*parts, strict=True)))

    def draw(self, statistics, rng, size=None, **settings) -> Release:
        """One release; see `draw_all`."""
        return self.draw_all([Request("", self, statistics, rng, size, None, settings)])[0]

    @classmethod
    def calibrate(
        cls,
        model,
        n: int,
        budget: Cost,
        *,
        candidates: int,
        truncation: float = 10.0,
        public_seed: int = 0,
    ) -> Self:
        """With the largest ε within the budget; a Rényi budget is met through `rdp_to_pure_epsilon`."""
        options = {"candidates": candidates, "truncation": truncation, "public_seed": public_seed}
        return super().calibrate(model, n, budget, **options)

    @classmethod
    def draw_all(cls, requests):
        """The releases of several requests; requests with the same model and counts share the candidates' likelihoods.

        A request's settings:
            observed: cells whose events are the data, bool (releases, cells); the others are held out.

        Returns:
            Releases of emission probabilities (..., K, levels); their info has the chosen candidates' numbers and
            transitions, which are released too.
        """
        releases, known = [], {}
        largest = max((request.mechanism for request in requests), key=lambda mechanism: mechanism.candidates)
        for request in requests:
            mechanism = request.mechanism
            counts = np.asarray(request.statistics, float)
            rows = counts.reshape(-1, counts.shape[-1])
            number = int(np.prod(request.lead, dtype=int))
            observed = request.settings.get("observed")
            if observed is None:
                observed = np.ones((1, sum(mechanism.model.cells)), bool)
            same = np.all(rows == rows[0])
            parts = [rows[0]] if same else rows
            alike = (largest.model, largest.truncation, largest.public_seed)
            source = largest if (mechanism.model, mechanism.truncation, mechanism.public_seed) == alike else mechanism
            scores = []
            for part in parts:
                key = source, part.tobytes(), observed.tobytes()
                if key not in known:
                    known[key] = source.log_likelihoods(mechanism.model.tables(part), observed)
                scores.append(known[key][: mechanism.candidates])
            weights = np.concatenate(scores, axis=1).T / mechanism.temperature
            shares = np.cumsum(np.exp(weights - weights.max(axis=1, keepdims=True)), axis=1)
            shares /= shares[:, -1:]
            uniform = request.rng.random(number)
            if len(shares) == 1:
                indices = np.searchsorted(shares[0], uniform, side="right")
            else:
                indices = (shares <= uniform[:, None]).sum(axis=1)
            released = mechanism.chosen(indices)
            values = released.emissions.reshape(*request.lead, *mechanism.model.theta_shape)
            releases.append(Release(values, (indices, released.transitions)))
        return releases

    @classmethod
    def examples(cls) -> list[Self]:
        """Two months of one region, and two regions with two fields."""
        return [
            cls(EventCounts((2,), (2,)), 4, 2.0, candidates=3000),
            cls(EventCounts((1, 1), (2, 2)), 2, 8.0, candidates=1000, truncation=4.0),
        ]
