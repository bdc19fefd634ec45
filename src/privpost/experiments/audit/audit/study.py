"""Privacy audit: compares the claimed ε with target, exact divergence and lower bound, and tests the law of draws."""

import math
from fractions import Fraction
from functools import partial
from typing import NamedTuple

import numpy as np

from privpost.experiments.audit import instances as audited
from privpost.experiments.audit import laws
from privpost.experiments.audit.expected import law_of
from privpost.experiments.discovered import Discovered, Failed
from privpost.experiments.ranges import EPSILON, SHARE
from privpost.lab.schema import Choice, Integer, Schema
from privpost.mechanisms.base import Mechanism
from privpost.privacy.accounting.costs import RELATIVE_TOLERANCE, Cost
from privpost.privacy.audit import Counts, choose_event, lower_bound
from privpost.privacy.ledger.described import key_of, text
from privpost.privacy.ledger.gate import Ledger

SETTINGS = Schema(
    mechanisms=Discovered(audited.names, says="mechanisms that are audited"),
    source=Choice("examples", "records", says="examples of every mechanism, or the settings that the studies ran"),
    epsilon=EPSILON,
    large_n=Integer(at_least=1, says="number of bits of the larger audited instances", unit="records"),
    releases=Integer(at_least=1000, says="releases per neighbour, and as many again to choose the event"),
    chain_share=SHARE.means("share of these releases for mechanisms that run a Markov chain", "share"),
    recorded_releases=Integer(at_least=1000, says="releases per neighbour for the settings that the studies ran"),
    rounded_releases=Integer(at_least=0, says="exactly rounded draws per neighbour; 0 for none"),
    recorded_rounded=Integer(at_least=0, says="exactly rounded draws per neighbour for the studies' settings"),
    pilot=Integer(at_least=100, says="releases per neighbour that choose the worst pair where no law is known"),
    confidence=SHARE.means("confidence with which all bounds of the table hold together", "probability"),
    false_alarm=SHARE.means("chance that any correct draws in the table are taken for another law's", "probability"),
)
TABLES = {
    "audit": {
        "study": "studies whose ledgers have the settings; `none` for examples",
        "mechanism": "class of the mechanism",
        "instance": "mechanism and its settings, in short",
        "target_epsilon": "ε of the budget that a small instance was calibrated to [nats]",
        "target": "budget that the mechanism was calibrated to",
        "share_of_target": "what the mechanism claims to spend, as a share of its budget [share]",
        "claimed_epsilon": "ε that the mechanism claims, in its own notion [nats]",
        "notion": "notion of privacy that the mechanism promises",
        "lower_bound": "lower bound of ε from samples, at the row's confidence [nats]",
        "exact": "exact ε of the worst pair of neighbours, where it is known [nats]",
        "drawn_p": "p-value of the test that releases have the law that their settings mean [probability]",
        "rounded_p": "p-value of the same test of draws that are rounded exactly, as `privpost release` does "
        "[probability]",
        "row_confidence": "confidence of one row, so that all rows hold together (Bonferroni) [probability]",
        "n_samples": "releases about each of the two data sets [count]",
        "events_first": "releases about the first data set in the audited event [count]",
        "events_second": "releases about its neighbour in the audited event [count]",
        "tightness": "exact ε, or its lower bound, as a share of the claimed one [share]",
        "verdict": "the audit's conclusion on the row",
        "settings": "mechanism with all its settings",
    },
}
# Largest number of releases that are drawn at once.
CHUNK = 10_000
# Relative tolerance with which an exact divergence may exceed the claimed ε. Divergences have 9 digits or more.
ROUNDING = 1e-7
# Relative tolerance with which the claimed ε may exceed the target.
TARGET_ROUNDING = RELATIVE_TOLERANCE
# Largest total of numbers in all releases about one data set.
LARGEST_WORK = 3_000_000
# Nothing is drawn if LARGEST_WORK allows fewer releases than this.
FEWEST = 100
# Bits of draws that are rounded exactly. With this many, no interval of rounding contains an end of the support.
BITS = 40
VERDICTS = ("within claim", "violated", "over target", "other law", "not examined")


class Finding(NamedTuple):
    """The result of auditing one mechanism. A value that is not known is nan.

    Attributes:
        exact: exact divergence between the releases about the two data sets.
        drawn: Kolmogorov-Smirnov p-value of the draws.
        rounded: Kolmogorov-Smirnov p-value of draws that are rounded exactly.
        counts: for each data set, the number of releases about it that fell into the event.
        pair: the two data sets.
    """

    exact: float
    drawn: float
    rounded: float
    counts: Counts
    pair: tuple[np.ndarray, np.ndarray] | None

    @property
    def smallest_p(self) -> float:
        """The smaller of the p-values `drawn` and `rounded`, or nan if neither is known."""
        return float(np.fmin(self.drawn, self.rounded))


NOTHING = Finding(math.nan, math.nan, math.nan, Counts(0, 0, 0), None)


def examine(
    mechanism: Mechanism,
    size: int,
    pilot: int,
    rng: np.random.Generator,
    level: float = 1e-4,
    gate=None,
    rounded: int = 0,
) -> Finding:
    """Audit one mechanism on its worst pair of neighbours.

    The worst pair has the largest exact divergence or, if the law is not known, the largest lower bound from `pilot`
    releases. Fewer releases than `size` are drawn if each has many numbers.

    Args:
        size: releases per neighbour to choose the event. As many more are drawn to count how often it occurs.
        pilot: releases per neighbour to choose the pair.
        level: error probability of the bounds by which events are compared.
        gate: the `Gate` that draws the releases. By default it uses a new ledger.
        rounded: draws per neighbour that are rounded exactly.
    """
    gate = gate or Gate(Ledger(), "audit", mechanism, mechanism.cost())
    order = mechanism.cost().order
    pairs = audited.neighbours(mechanism)
    if law_of(mechanism, pairs[0][0]) is None:
        pair, exact = _worst_by_pilot(mechanism, order, pilot, rng, level, gate), math.nan
    else:
        # Laws are computed once per data set. Of pairs whose divergences differ only by rounding, the first is taken.
        sides = {data.tobytes(): data for pair in pairs for data in pair}
        known = {key: law_of(mechanism, data) for key, data in sides.items()}
        divergences = [known[p.tobytes()].divergence(known[q.tobytes()], order) for p, q in pairs]
        pair, exact = pairs[int(np.argmax(np.round(divergences, 9)))], float(np.max(divergences))
    size = min(size, LARGEST_WORK // mechanism.model.sufficient_statistics(pair[0]).size)
    if size < FEWEST:
        return Finding(exact, math.nan, math.nan, Counts(0, 0, 0), pair)
    samples = [[gate.releases(side, size, rng) for side in pair] for _ in range(2)]
    exact *= audited.copies(mechanism, samples[0][0])
    first_half, second_half = ([audited.features(mechanism, sample, pair) for sample in half] for half in samples)
    event = choose_event(*first_half, order, level)
    counts = Counts(event.hits(second_half[0]), event.hits(second_half[1]), size)
    return Finding(exact, _drawn(mechanism, pair, samples, rng), _rounded(mechanism, pair, rounded, rng), counts, pair)


class Gate:
    """Draws one mechanism's releases through a ledger's account. Each release counts as one repeat of a simulation."""

    def __init__(self, ledger: Ledger, account: str, mechanism: Mechanism, target: Cost, accounting: str = "stated"):
        ledger.open(account, target, mechanism, accounting=accounting)
        self.ledger, self.account, self.mechanism, self.drawn = ledger, account, mechanism, 0

    def releases(self, data, size: int, rng) -> np.ndarray:
        """Return independent releases (size, ...) about the records `data`."""
        statistics = np.asarray(self.mechanism.model.sufficient_statistics(data), float)
        # Parts save memory. Every second part asks for one release per row of statistics, as studies do.
        parts = []
        for start in range(0, size, CHUNK):
            number = min(CHUNK, size - start)
            for rows in filter(None, (number // 2, number - number // 2)):
                by_row = len(parts) % 2 == 0
                # In a study each trial may have its own settings, so here each row gets settings of its own.
                mechanism = self.mechanism.each(rows) if by_row else self.mechanism
                asked = np.broadcast_to(statistics, (rows, *statistics.shape)) if by_row else statistics
                settings = {"size": None if by_row else rows, "repeats": slice(self.drawn, self.drawn + rows)}
                parts.append(self.ledger.release(self.account, mechanism, asked, rng, **settings).values)
                self.drawn += rows
        return np.concatenate(parts)


def _drawn(mechanism, pair, samples, rng) -> float:
    """Return the p-value of one test that both data sets' draws have their laws, or nan if the laws are not known."""
    if law_of(mechanism, pair[0]) is None or audited.copies(mechanism, samples[0][0]) > 1:
        return math.nan
    return _of_both(mechanism, pair, [np.concatenate(halves) for halves in zip(*samples, strict=True)], rng)


def _rounded(mechanism, pair, size, rng) -> float:
    """Return the p-value of draws that are rounded exactly and then moved at random within the rounding interval."""
    if not size or not hasattr(mechanism, "rounded"):
        return math.nan
    samples = []
    for side in pair:
        statistics = [Fraction(value) for value in np.ravel(mechanism.model.sufficient_statistics(side)).tolist()]
        draw = partial(mechanism.rounded, statistics, BITS, lambda bits: int(rng.integers(2**bits)), public_time=False)
        cells = [draw() for _ in range(size)]
        samples.append((np.array(cells) + rng.random((size, len(cells[0])))) / 2**BITS)
    return _of_both(mechanism, pair, samples, rng)


def _of_both(mechanism, pair, samples, rng) -> float:
    values = [laws.p_value(law_of(mechanism, p).quantiles(draws, rng)) for p, draws in zip(pair, samples, strict=True)]
    return min(1.0, 2 * min(values))


def _worst_by_pilot(mechanism, order, pilot, rng, level, gate):
    pairs = audited.neighbours(mechanism, vertices=True)
    cache, best, worst = {}, -np.inf, pairs[0]
    for pair in pairs:
        for side in pair:
            if side.tobytes() not in cache:
                cache[side.tobytes()] = gate.releases(side, pilot, rng)
        releases = [audited.features(mechanism, cache[side.tobytes()], pair) for side in pair]
        event = choose_event(*releases, order, level)
        bound = lower_bound(Counts(event.hits(releases[0]), event.hits(releases[1]), pilot), order, level)
        if bound > best:
            best, worst = bound, pair
    return worst


def verdict(claimed: float, bound: float, exact: float, drawn: float, share: float, level: float) -> str:
    """Return the audit's conclusion on a mechanism, which is one of `VERDICTS`.

    Args:
        claimed: the ε that the mechanism claims.
        bound, exact: statistical lower bound and exact divergence, each nan if not known.
        drawn: p-value of the draws under the law that the settings imply.
        share: the mechanism's cost divided by its target.
        level: the law is rejected if `drawn` is below this level.
    """
    limit = claimed * (1 + ROUNDING)
    if share > 1 + TARGET_ROUNDING:
        return "over target"
    if drawn < level:
        return "other law"
    if math.isnan(bound) and math.isnan(exact):
        return "not examined"
    return "violated" if bound > limit or exact > limit else "within claim"


def simulate(config, streams, ledger) -> dict:
    """Return arrays over the audited mechanisms: names, claims, exact divergences, `counts` (audited, 3) and others."""
    records, rows = {name: ledger.get("mechanisms", []) for name, ledger in config.ledgers.items()}, []
    failed = Failed()
    releases, rounded = config.releases, config.rounded_releases
    everything = audited.names() <= {*config.mechanisms}
    if config.source == "examples":
        audited_mechanisms = audited.examples(config.epsilon, config.large_n, records)
    else:
        audited_mechanisms = audited.recorded(records)
        releases, rounded = config.recorded_releases, config.recorded_rounded
    # Mechanisms that are equal after `reduced` are examined once.
    known: dict[object, Finding] = {}
    for instance in audited_mechanisms:
        cost = instance.mechanism.cost()
        # A study may define mechanisms that are not discovered. They are audited only if all discovered ones are.
        if not everything and instance.mechanism.name not in config.mechanisms:
            continue
        finding = NOTHING
        # Counts of events give no bound if the claimed ε is infinite, or if its order is 1.
        bounded = math.isfinite(cost.epsilon) and (cost.order is None or cost.order > 1)
        if bounded and instance.share_of_target <= 1 + TARGET_ROUNDING:
            mechanism = audited.reduced(instance.mechanism)
            size = releases if mechanism.exact else int(config.chain_share * releases)
            key = key_of(mechanism)
            finding = known.get(key)
            if finding is None:
                known[key] = finding = NOTHING
                with failed.alone(instance.name):
                    gate = Gate(ledger, instance.name, mechanism, *instance.targets[0])
                    rng = streams("mechanism", 0, instance=instance.name)
                    known[key] = finding = examine(mechanism, size, config.pilot, rng, gate=gate, rounded=rounded)
        rows.append(_row(instance, cost, finding))
    return {key: np.array([row[key] for row in rows]) for key in rows[0]} if rows else {"name": np.array([], str)}


def _row(instance: audited.Instance, cost, finding: Finding) -> dict:
    mechanism = instance.mechanism
    return {
        "name": instance.name,
        "method": mechanism.method,
        "study": ", ".join(instance.studies) or "none",
        "model": type(mechanism.model).__name__,
        "n": mechanism.n,
        "notion": mechanism.notion,
        "order": np.nan if cost.order is None else cost.order,
        "claimed": cost.epsilon,
        "target": "; ".join(str(budget) for budget, _ in instance.targets),
        "share": instance.share_of_target,
        "exact": finding.exact,
        "drawn": finding.drawn,
        "rounded": finding.rounded,
        "counts": finding.counts,
        "mcmc": not mechanism.exact,
        "variant": next((str(v) for k, v in mechanism.options.items() if k in audited.VARIANTS), ""),
        "settings": text(mechanism),
    }


def tabulate(cells):
    """Yield one row per mechanism and ε. All lower bounds hold together with the configured confidence (Bonferroni)."""
    total = sum(len(cell.arrays["name"]) for cell in cells)
    tests = sum(np.isfinite(cell.arrays.get(name, [])).sum() for cell in cells for name in ("drawn", "rounded"))
    for cell in cells:
        for i in range(len(cell.arrays["name"])):
            yield _tidy({key: values[i] for key, values in cell.arrays.items()}, cell.config, total, tests)


def _tidy(entry: dict, config, total: int, tests: int) -> dict:
    level = (1 - config.confidence) / total
    order = None if np.isnan(entry["order"]) else float(entry["order"])
    counts = Counts(*map(int, entry["counts"]))
    names = "claimed", "exact", "drawn", "rounded", "share"
    claimed, exact, drawn, rounded, share = (float(entry[name]) for name in names)
    examined = counts.size > 0 or not math.isnan(exact)
    bound = lower_bound(counts, order, level) if examined else math.nan
    return {
        "method": entry["method"],
        "study": entry["study"],
        "mechanism": str(entry["name"]).split()[0],
        "model": entry["model"],
        "source": config.source,
        "instance": entry["name"],
        "n": int(entry["n"]),
        "variant": entry["variant"],
        "target_epsilon": config.epsilon if config.source == "examples" else None,
        "target": entry["target"],
        "share_of_target": share,
        "claimed_epsilon": claimed,
        "notion": entry["notion"],
        "order": order,
        "lower_bound": bound if examined else None,
        "exact": exact,
        "drawn_p": drawn,
        "rounded_p": rounded,
        "confidence": config.confidence,
        "row_confidence": 1 - level,
        "n_samples": counts.size,
        "events_first": counts.first,
        "events_second": counts.second,
        "tightness": (bound if math.isnan(exact) else exact) / claimed if examined else None,
        "verdict": verdict(
            claimed, bound, exact, float(np.fmin(drawn, rounded)), share, config.false_alarm / max(tests, 1)
        ),
        "sampling": "mcmc" if entry["mcmc"] else "exact",
        "settings": entry["settings"],
    }
