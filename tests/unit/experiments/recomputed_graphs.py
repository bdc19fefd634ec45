"""Networks of bits by loops and by listing all records, for tests that compute studies of them a second time.

A graph is a list with the parents of each node; probabilities of a one stand node after node, for each node in the
order of its parents' values read as a binary number.
"""

from __future__ import annotations

import itertools
import math

import numpy as np
from recomputed import beta_density, log_beta, midpoints
from scipy.special import betainc

from privpost.datasets import catalogue, prepared
from privpost.experiments.zhang2016.adult_network import study as adult

# The points from which the MAP mechanism chooses.
GRID = [0.005 + 0.0099 * k for k in range(101)]


def counted(records, parents) -> list[float]:
    """Ones and zeros of every node at every value of its parents, by loops."""
    counts = []
    for node, own in enumerate(parents):
        for values in itertools.product((0, 1), repeat=len(own)):
            for outcome in (1, 0):
                counts.append(
                    sum(
                        all(record[parent] == value for parent, value in zip(own, values, strict=True))
                        and record[node] == outcome
                        for record in records
                    )
                )
    return counts


def naive_bayes(attributes: int) -> list[tuple]:
    return [(), *[(0,)] * attributes]


def chance(record, theta, parents) -> float:
    """Probability of a record given the probabilities of a one."""
    total, place = 1.0, 0
    for node, own in enumerate(parents):
        code = int("".join(str(int(record[parent])) for parent in own) or "0", 2)
        one = theta[place + code]
        total *= one if record[node] == 1 else 1 - one
        place += 2 ** len(own)
    return total


def every_record(parents) -> list[tuple]:
    return list(itertools.product((0, 1), repeat=len(parents)))


def expected(theta, parents) -> list[float]:
    """Probability of a one and of a zero at every value of a node's parents, as of one record's counts."""
    found = [0.0] * (2 * len(theta))
    for record in every_record(parents):
        for place, hit in enumerate(counted([record], parents)):
            found[place] += hit * chance(record, theta, parents)
    return found


def simulated(theta, uniform, parents) -> list[list[int]]:
    """Records from uniform variates (n, nodes): a one where the variate is below its probability."""
    records = []
    for variates in uniform:
        record: list[int] = []
        for node, own in enumerate(parents):
            code = int("".join(str(record[parent]) for parent in own) or "0", 2)
            record.append(int(variates[node] < theta[sum(2 ** len(each) for each in parents[:node]) + code]))
        records.append(record)
    return records


def posterior_means(counts, alpha: float = 1, beta: float = 1) -> list[float]:
    pairs = zip(counts[::2], counts[1::2], strict=True)
    return [(alpha + ones) / (alpha + beta + ones + zeros) for ones, zeros in pairs]


def mmd2(first, second) -> float:
    """MMD² of the parameters' laws with the kernel exp(−(p − q)²/2), by midpoints; mean over parameters."""
    theta, width = midpoints(number=200)
    kernel, found = np.exp(-((theta[:, None] - theta) ** 2) / 2), []
    for k in range(len(first[0][1]) // 2):
        laws = []
        for weighted in (first, second):
            total = sum(weight for weight, _ in weighted)
            laws.append(
                sum(w / total * beta_density(theta, 1 + c[2 * k], 1 + c[2 * k + 1]) for w, c in weighted) * width
            )
        difference = laws[0] / laws[0].sum() - laws[1] / laws[1].sum()
        found.append(difference @ kernel @ difference)
    return float(np.mean(found))


# Fourier


def subsets(parents) -> list[tuple]:
    """All subsets of a node with its parents, the smallest first."""
    families = [(*own, node) for node, own in enumerate(parents)]
    every = {
        tuple(sorted(part)) for own in families for size in range(len(own) + 1)
        for part in itertools.combinations(own, size)
    }  # fmt: skip
    return sorted(every, key=lambda part: (len(part), part))


def signed(records, parents) -> list[int]:
    """Number of records with an even number of ones in a subset less those with an odd one, for all subsets."""
    return [sum((-1) ** sum(record[i] for i in part) for record in records) for part in subsets(parents)]


def rebuilt(sums, parents) -> tuple[list[float], list[float]]:
    """Counts that signed sums stand for, and by how much each rises with the sum of the empty set."""
    at, counts, slopes = dict(zip(subsets(parents), sums, strict=True)), [], []
    for node, own in enumerate(parents):
        for values in itertools.product((0, 1), repeat=len(own)):
            for outcome in (1, 0):
                value = {**dict(zip(own, values, strict=True)), node: outcome}
                cell = 0.0
                for size in range(len(value) + 1):
                    for part in itertools.combinations(sorted(value), size):
                        cell += (-1) ** sum(value[i] for i in part) * at[part]
                counts.append(cell / 2 ** len(value))
                slopes.append(1 / 2 ** len(value))
    return counts, slopes


# Draws, whose place in their law is the uniform variate of their stream


def trimmed_place(theta: float, a: float, b: float, omega: float) -> float:
    low, here, high = (betainc(a, b, x) for x in (omega, theta, 1 - omega))
    return (here - low) / (high - low)


def utility(a: float, b: float, kind: str) -> list[float]:
    """Density of Beta(a, b) at the grid's points, or shares of it there."""
    found = [x ** (a - 1) * (1 - x) ** (b - 1) for x in GRID]
    total = sum(found) if kind == "mass" else math.exp(math.lgamma(a) + math.lgamma(b) - math.lgamma(a + b))
    return [value / total for value in found]


def largest_change(n: int, parents: bool, alpha: float, beta: float, kind: str) -> float:
    """Largest change of one node's utilities, summed over its parameters, as one of n records changes."""
    table = {(s, k): utility(alpha + s, beta + k - s, kind) for k in range(n + 1) for s in range(k + 1)}

    def apart(first, second) -> float:
        return max(abs(a - b) for a, b in zip(table[first], table[second], strict=True))

    turned = {k: max(apart((s, k), (s + 1, k)) for s in range(k)) for k in range(1, n + 1)}
    if not parents:
        return turned[n]
    # A record with a one, or with a zero, leaves k records; another configuration has l with it.
    left = {k: max(apart((s, k), (s - j, k - 1)) for j in (0, 1) for s in range(j, k + j)) for k in range(1, n + 1)}
    both = [left[k] + left[m] for k in range(1, n + 1) for m in range(1, n + 1) if k + m - 1 <= n]
    return max(*turned.values(), *both)


def map_chances(counts, parents, n: int, epsilon: float, kind: str, alpha: float = 1, beta: float = 1) -> np.ndarray:
    """Chances of the grid's points for every parameter, (parameters, 101)."""
    found, places = [], iter(zip(counts[::2], counts[1::2], strict=True))
    for own in parents:
        factor = epsilon / len(parents) / (2 * largest_change(n, bool(own), alpha, beta, kind))
        for _ in range(2 ** len(own)):
            ones, zeros = next(places)
            weights = [math.exp(factor * u) for u in utility(alpha + ones, beta + zeros, kind)]
            found.append([weight / sum(weights) for weight in weights])
    return np.array(found)


# Networks on Adult: three bits and the class


def adult_toy(monkeypatch) -> dict:
    """Put 34 records of three bits and the class in place of Adult's; some of them are of the test part."""
    rng = np.random.default_rng(5)
    bits = rng.integers(0, 2, (34, 4))
    bits[:, 2] = np.where(rng.random(34) < 0.9, bits[:, 0] ^ bits[:, 1], bits[:, 2])
    bits[:, 3] = np.where(rng.random(34) < 0.8, bits[:, 2], bits[:, 3])
    is_test = rng.random(34) < 0.7
    arrays, columns = {"is_test": is_test}, dict(zip(("male", "white", "married", adult.CLASS), bits.T, strict=True))

    def as_bits(given, levels):
        assert given is arrays and "Private" in levels["workclass"]
        return columns

    def read(name, dataset):
        assert dataset == catalogue.load(name)
        return arrays

    monkeypatch.setattr(prepared, "read", read)
    monkeypatch.setattr(adult, "bits", as_bits)
    return {"records": bits.tolist(), "is_test": is_test.tolist()}


def learned(records, most: int) -> list[tuple]:
    """Greedy search for parents among the earlier bits, by the records' marginal probability under uniform priors."""

    def score(node, own) -> float:
        total = 0.0
        for values in itertools.product((0, 1), repeat=len(own)):
            column = [r[node] for r in records if [r[i] for i in own] == list(values)]
            total += log_beta(1 + sum(column), 1 + len(column) - sum(column))
        return total

    graph = []
    for node in range(len(records[0])):
        own: list[int] = []
        while left := [j for j in range(node) if j not in own]:
            best = max(score(node, [*own, j]) for j in left)
            if len(own) == most or best <= score(node, own):
                break
            own += [j for j in left if score(node, [*own, j]) == best][:1]
        graph.append(tuple(sorted(own)))
    return graph


def agreeing(release, n: int, parents) -> list[float]:
    """The counts next to noisy ones that some signed table of n records has, by least squares over its cells."""
    cells = np.transpose([counted([record], parents) for record in every_record(parents)])
    # The last cell has what the others leave of n.
    free, last = cells[:, :-1] - cells[:, -1:], cells[:, -1]
    table = np.linalg.lstsq(free, np.array(release) - n * last, rcond=None)[0]
    return [min(max(value, 0.0), n) for value in free @ table + n * last]


def aware(release, n: int, parents, scale: float) -> list[float]:
    """Posterior means given noisy counts, by listing all data sets."""
    total, sums = 0.0, 0.0
    for data in itertools.combinations_with_replacement(every_record(parents), n):
        ways = math.factorial(n) / math.prod(math.factorial(data.count(each)) for each in set(data))
        counts = counted(data, parents)
        weight = sum(log_beta(1 + a, 1 + b) for a, b in zip(counts[::2], counts[1::2], strict=True))
        weight = ways * math.exp(weight - sum(abs(y - c) for y, c in zip(release, counts, strict=True)) / scale)
        total, sums = total + weight, sums + weight * np.array(posterior_means(counts))
    return list(sums / total)


def divergence(theta, other, parents) -> float:
    """KL of one record's law from another, listing all records."""
    pairs = [[chance(record, each, parents) for each in (theta, other)] for record in every_record(parents)]
    return sum(p * math.log(p / q) for p, q in pairs)
