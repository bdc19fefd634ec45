"""The mechanisms to audit (examples of each class, and settings of studies), and their neighbouring data sets."""

import functools
import itertools
import json
import math
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from privpost import discovery
from privpost.discovery import rebuild
from privpost.lab.ledgers import form_of
from privpost.mechanisms.base import Mechanism
from privpost.mechanisms.choices.exponential import ExponentialMechanism
from privpost.mechanisms.draws.event_states import HiddenMarkovSampler
from privpost.mechanisms.draws.linear import LinearSampler
from privpost.mechanisms.draws.logistic_finite import LogisticLangevin
from privpost.mechanisms.draws.logistic_sampling import LogisticSampling
from privpost.mechanisms.draws.network import TrimmedSampler
from privpost.mechanisms.draws.private_gibbs import PrivateGibbs
from privpost.mechanisms.noise.additive import AdditiveNoiseMechanism
from privpost.mechanisms.noise.fourier import FourierMechanism
from privpost.mechanisms.noise.randomised_response import RandomisedResponse
from privpost.models.conjugate.beta_bernoulli import BetaBernoulli
from privpost.models.events import EventCounts
from privpost.privacy.accounting.costs import Cost
from privpost.privacy.ledger.described import describe
from privpost.samplers.hidden_markov.seeds import Seeding

DIGITS = 9
# Options that choose a variant of a mechanism.
VARIANTS = ("variant", "supremum", "charge")
# The most pairs of neighbours that are enumerated.
LARGEST_ENUMERATION = 3000
# Number of records that represent all possible records if there are many.
EXTREMES = 4
# Largest number of records in an audit, for mechanisms whose noise and temperature do not depend on n.
FEWER = {
    AdditiveNoiseMechanism: 100,
    FourierMechanism: 100,
    HiddenMarkovSampler: 300,
    TrimmedSampler: 100,
    ExponentialMechanism: 10_000,
}
# Records and iterations of audited hidden Markov models of several states, and the starts of their seeded chains. A few
# starts suffice, since two cells have few partitions.
TWO_STATES, FEW_STARTS = (6, 12), Seeding(starts=2, iterations=4)
# Largest number of levels of a field, so that convolutions are quick and exact.
LEVELS = 5
# Records in an audit of Langevin steps. Prior precision and step size remain as they are for all records.
FEW_STEPPED = 4
# Records in an audit of three or more possible answers. They are few, as the law of their counts is a sum over tables.
FEW_REPORTED = 4
# Angles θ of the changed record in `_pushed_pairs`.
ANGLES = np.linspace(0.2, 0.8, 7)
# Norm t of the other records at which they push the mode farthest, in units of √(β/ρ). It is x/√κ at the x that
# maximises κ = x/(1 + exp(x)).
FARTHEST = 2.4228


@dataclass(frozen=True)
class Instance:
    """One audited mechanism.

    Attributes:
        targets: the budgets of the mechanism, each with its accounting.
        studies: the studies that use the mechanism or its class.
        alike: largest ratio of cost to target over the settings that this instance represents.
    """

    name: str
    mechanism: Mechanism
    targets: tuple[tuple[Cost, str], ...]
    studies: tuple[str, ...]
    alike: float = 0.0

    @property
    def share_of_target(self) -> float:
        """The largest ratio of cost to target over the instance's targets and the settings that it represents."""
        return max(self.alike, *(share_of(self.mechanism, *target) for target in self.targets))


def share_of(mechanism: Mechanism, budget: Cost, accounting: str) -> float:
    """Return the larger of two ratios: ε over the target's ε, and δ over the target's δ."""
    cost = mechanism.cost_in(budget, accounting)
    return max(cost.epsilon / budget.epsilon, (cost.delta or 0.0) / budget.delta if budget.delta else 0.0)


def names() -> set[str]:
    """Return the names of all discovered mechanisms."""
    return {kind.name for kind in discovery.kinds()}


def users(records: dict[str, list[dict]]) -> dict[str, tuple[str, ...]]:
    """Return, for each class of mechanisms, the studies whose ledgers record releases of this class."""
    users_of: dict[str, set[str]] = {}
    for study, rows in records.items():
        for row in rows:
            users_of.setdefault(row["mechanism"]["class"], set()).add(study)
    return {name: tuple(sorted(studies)) for name, studies in users_of.items()}


def examples(epsilon: float, large_n: int, records: dict[str, list[dict]]) -> list[Instance]:
    """Return examples of every discovered mechanism, calibrated to ε in the mechanism's notion of privacy.

    Examples on bits also come with `large_n` records. A mechanism without a calibrated setting is not changed.
    """
    instances, used = [], users(records)
    for kind in itertools.chain.from_iterable(discovery.mechanisms().values()):
        for number, example in enumerate(kind.examples):
            for n in (example.n, large_n) if isinstance(example.model, BetaBernoulli) else (example.n,):
                mechanism = replace(example, n=n)
                budget = mechanism.cost()
                if kind.calibrated is not None:
                    budget = replace(budget, epsilon=epsilon)
                    mechanism = kind.calibrate(mechanism.model, n, budget, **mechanism.options)
                name = f"{kind.name} {number}, n = {n}"
                instances.append(Instance(name, mechanism, ((budget, "stated"),), used.get(kind.name, ())))
    return instances


def recorded(records: dict[str, list[dict]]) -> list[Instance]:
    """Return the audited mechanisms from the studies' ledgers, each once.

    Settings of a study form a group if their `reduced` mechanisms differ in numbers only. Of each group, the settings
    with the smallest, the middle and the largest cost are audited. Accounts with an infinite budget are left out.
    """
    groups: dict[str, tuple[dict, dict, set, list]] = {}
    shares: dict[int, float] = {}
    for study, rows in sorted(records.items()):
        for row in rows:
            budget = rebuild_cost(row["budget"])
            if math.isfinite(budget.epsilon):
                key = json.dumps(row["mechanism"], sort_keys=True)
                _, targets, studies, alike = groups.setdefault(key, (row["mechanism"], {}, set(), []))
                targets[budget, row["accounting"]] = None
                studies.add(study)
                same_form = row.get("alike", [])
                if id(same_form) not in shares:
                    shares[id(same_form)] = max(map(_share_recorded, same_form), default=0.0)
                alike.append(shares[id(same_form)])
    same: dict[tuple, list[Instance]] = {}
    for described, targets, studies, alike in groups.values():
        mechanism = rebuild(described)
        instance = Instance("", mechanism, tuple(targets), tuple(sorted(studies)), max(alike))
        small = form_of(describe(reduced(mechanism)))
        same.setdefault((instance.studies, mechanism.cost().notion, small), []).append(instance)
    numbers: Counter[str] = Counter()
    instances = []
    for group in same.values():
        dearest = max(instance.share_of_target for instance in group)
        group.sort(key=lambda instance: instance.mechanism.cost().epsilon)
        for place in sorted({0, len(group) // 2, len(group) - 1}):
            kind, n = group[place].mechanism.name, group[place].mechanism.n
            instances.append(replace(group[place], name=f"{kind} recorded {numbers[kind]}, n = {n}", alike=dearest))
            numbers[kind] += 1
    return instances


def _share_recorded(row: dict) -> float:
    """Return the ratio of cost to target of a recorded setting, or 0 if the budget is infinite."""
    budget = rebuild_cost(row["budget"])
    return share_of(rebuild(row["mechanism"]), budget, row["accounting"]) if math.isfinite(budget.epsilon) else 0.0


def rebuild_cost(fields: dict) -> Cost:
    """Return a cost from its fields in a record. The text "inf" stands for infinity."""
    return Cost(**{name: math.inf if value == "inf" else value for name, value in fields.items()})


def reduced(mechanism: Mechanism) -> Mechanism:
    """Return a small mechanism with the settings of a large one, or the mechanism itself if it is small.

    Mechanisms keep fewer records if neither noise nor temperature depends on n. Regressions keep two weights, since the
    worst pairs lie in a plane. Models of events keep three cells. Langevin steps, randomised response and hidden Markov
    models become so small that their law can be computed.
    """
    model = mechanism.model
    for kind, most in FEWER.items():
        if isinstance(mechanism, kind) and mechanism.n > most:
            return reduced(replace(mechanism, n=most))
    if isinstance(mechanism, RandomisedResponse) and mechanism.size > 2 and mechanism.n > FEW_REPORTED:
        return replace(mechanism, n=FEW_REPORTED)
    if isinstance(mechanism, LogisticLangevin) and mechanism.n > FEW_STEPPED:
        share = mechanism.n / FEW_STEPPED
        small = replace(model, dimension=1, prior_precision=share * model.prior_precision)
        fewer = replace(mechanism, model=small, n=FEW_STEPPED)
        return replace(fewer, step=fewer.step * mechanism.step_size / fewer.step_size)
    if isinstance(mechanism, LogisticSampling | LinearSampler) and model.dimension > 2:
        return replace(mechanism, model=replace(model, dimension=2))
    several = isinstance(mechanism, HiddenMarkovSampler) and not isinstance(mechanism, PrivateGibbs)
    if several and model.n_states > 1 and sum(model.cells) > 2:
        n, iterations = TWO_STATES
        small = replace(model, cells=(2,), sizes=(2,), n_states=2)
        seeding = mechanism.seeding and FEW_STARTS
        return replace(mechanism, model=small, n=n, iterations=iterations, seeding=seeding)
    if isinstance(mechanism, HiddenMarkovSampler) and (sum(model.cells) > 3 or max(model.sizes) > LEVELS):
        sizes = tuple(min(size, LEVELS) for size in model.sizes)
        return replace(mechanism, model=replace(model, cells=(1,), sizes=sizes, n_states=1), iterations=1)
    if isinstance(model, EventCounts) and sum(model.cells) > 3:
        return replace(mechanism, model=replace(model, cells=(3,)))
    return mechanism


def _alphabet(model) -> tuple[int, Callable[[np.ndarray], np.ndarray]]:
    """Return the number of possible records and a function from indices to records."""
    if isinstance(model, EventCounts):
        return model.n_records, model.events
    return len(model.records), model.records.__getitem__


@functools.lru_cache(maxsize=8)
def neighbours(mechanism: Mechanism, vertices: bool = False) -> list[tuple[np.ndarray, np.ndarray]]:
    """Return ordered pairs of neighbouring data sets (n, *record_shape), for the mechanism's relation of neighbours.

    All pairs are returned, up to the order of records. With `vertices`, or if there are too many pairs, the common
    records of each returned pair are all equal. If there are too many pairs, only a few possible records are used.
    Logistic regression on two features counts as having too many, and adds `_pushed_pairs`.
    """
    (size, records_at), n = _alphabet(mechanism.model), mechanism.n
    in_plane = isinstance(mechanism, LogisticSampling) and mechanism.model.dimension == 2
    total = math.comb(size + n - 2, n - 1) * size * (size - 1)
    many = in_plane or total > LARGEST_ENUMERATION
    places = np.arange(size) if not many or size <= EXTREMES else np.linspace(0, size - 1, EXTREMES).astype(int)
    # In a plane, two opposite records suffice. Records on the other axis would give the same pairs.
    records = records_at(np.array([0, 2]) if in_plane else places)
    numbers = range(len(records))
    if vertices or many:
        common = [np.full(n - 1, k) for k in numbers]
    else:
        common = itertools.combinations_with_replacement(numbers, n - 1)
    changes = list(itertools.permutations(numbers, 2))
    # Each data set is built once, as many pairs contain it.
    sets = [{changed: records[np.append(rest, changed).astype(int)] for changed in numbers} for rest in common]
    pairs = [tuple(by_record[changed] for changed in change) for by_record in sets for change in changes]
    if mechanism.neighbours != "substitution":
        whole = [data for by_record in sets for data in by_record.values()]
        pairs = [pair for data in whole for pair in ((data, data[:-1]), (data[:-1], data))]
    if in_plane:
        bound = mechanism.model.feature_bound
        lengths = {bound, min(bound, FARTHEST * math.sqrt(mechanism.precision / mechanism.power))}
        pairs += [pair for length in sorted(lengths) for pair in _pushed_pairs(bound, length, n)]
    return pairs


def _pushed_pairs(bound: float, length: float, n: int) -> list[tuple[np.ndarray, np.ndarray]]:
    """Return pairs that differ in one record: (c cos θ, c sin θ) or (−c cos θ, c sin θ). All others are (0, −t)."""
    rest = np.repeat([[0.0, -length]], n - 1, axis=0)
    sides = [[np.append(rest, [[s * bound * np.cos(a), bound * np.sin(a)]], axis=0) for s in (1, -1)] for a in ANGLES]
    return [tuple(pair) for pair in sides]


def copies(mechanism: Mechanism, release) -> int:
    """Return how many draws of θ, or vectors of statistics, one release contains. Releases have shape (size, ...)."""
    noisy = mechanism.releases == "statistics"
    expected = width_of(mechanism) if noisy else math.prod(mechanism.model.theta_shape)
    return max(1, release[0].size // expected)


def width_of(mechanism: Mechanism) -> int:
    """Return the number of coordinates in one release of a mechanism that releases statistics."""
    first = _alphabet(mechanism.model)[1](np.arange(1))
    return _noiseless(mechanism, np.repeat(first, mechanism.n, axis=0)).size


def _noiseless(mechanism: Mechanism, data) -> np.ndarray:
    """Return the statistics (coordinates,) that a mechanism would release without noise."""
    if mechanism.local:
        return np.ravel(mechanism.select(mechanism.model.sufficient_statistics(data)))
    return np.ravel(mechanism.query(data))


def features(mechanism: Mechanism, release, pair) -> np.ndarray:
    """Return features (size, columns) of releases. An audited event is a half-line of one column.

    The first column is the log-likelihood ratio, if the law is known up to a constant. For noisy statistics, one column
    tells how far the noise moves them away from the second data set: the least over the coordinates in which the data
    sets differ. The other columns are values, extremes, sums and differences of up to 8 coordinates.
    """
    size, count = len(release), copies(mechanism, release)
    first, second = (mechanism.model.sufficient_statistics(side) for side in pair)
    noisy = mechanism.releases == "statistics"
    shape = (width_of(mechanism),) if noisy else mechanism.model.theta_shape
    draws = release.reshape(size, count, *shape)
    columns = []
    log_law = getattr(mechanism, "log_weight", mechanism.log_density)
    if log_law(draws[0, 0], first) is not None:
        columns.append((log_law(draws, first) - log_law(draws, second)).sum(axis=1))
    flat = draws.reshape(size, count, -1)
    change = np.zeros(flat.shape[-1])
    if noisy:
        centre, other = (_noiseless(mechanism, side) for side in pair)
        change = centre - other
        moved = change != 0
        towards = np.sign(change[moved]) * (flat[..., moved] - centre[moved])
        columns.append(towards.min(axis=(1, 2)))
    # Coordinates that differ between the data sets come first.
    flat = flat[..., np.argsort(change == 0, kind="stable")[:8]]
    width = flat.shape[-1]
    for values in (flat.mean(axis=1), flat.min(axis=(1,)), flat.max(axis=(1,)))[: 1 if count == 1 else 3]:
        columns += list(values.T)
        if width > 1:
            columns += [values[:, i] - values[:, j] for i, j in itertools.combinations(range(width), 2)]
            columns += [values[:, i] + values[:, j] for i, j in itertools.combinations(range(width), 2)]
    if width > 1:
        columns += [flat.min(axis=(1, 2)), flat.max(axis=(1, 2))]
    # Rounding hides the last digits of floating-point releases. These digits tell the data apart (Mironov 2012), and no
    # claim about real-valued noise covers this leak.
    return np.round(np.stack(columns, axis=1), DIGITS)
