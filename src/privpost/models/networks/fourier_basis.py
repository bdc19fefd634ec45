"""The Fourier (Walsh-Hadamard) basis of a Bayesian network's contingency table."""

import functools
import itertools

import numpy as np

from privpost.models.networks.bayesian_network import BayesianNetwork

# The exact sensitivity needs a transform over {0,1}^|I|; networks of more nodes use the bound 2(|N_I|−1).
LARGEST_TRANSFORM = 18


@functools.lru_cache(maxsize=64)
def closure(model: BayesianNetwork) -> tuple[tuple[int, ...], ...]:
    """Return N_I: all subsets of every node's family, which is the node with its parents.

    A subset is a tuple of sorted column numbers. The smallest subset, ∅, comes first.
    """
    subsets = {
        tuple(sorted(subset))
        for family in model.families
        for size in range(len(family) + 1)
        for subset in itertools.combinations(family, size)
    }
    return tuple(sorted(subsets, key=lambda subset: (len(subset), subset)))


def signed_sums(data, subsets) -> np.ndarray:
    """Return, for each subset of columns, Σ (−1)^k over records, where k counts the record's ones in the subset.

    Data (..., n, |I|) give sums (..., len(subsets)), which are 2^(|I|/2) times the contingency table's Fourier
    coefficients.
    """
    signs = 1 - 2 * np.asarray(data)
    return np.stack([signs[..., list(subset)].prod(axis=-1).sum(axis=-1) for subset in subsets], axis=-1)


@functools.lru_cache(maxsize=64)
def transforms(model: BayesianNetwork) -> tuple[np.ndarray, np.ndarray]:
    """Return a matrix (|N_I|, 2m) from counts to signed sums, and a matrix (2m, |N_I|) from signed sums to counts.

    The signed sum of a subset is read off one family that contains the subset. A family's count is 2^−|family| times
    the signed sums of the family's subsets, added with signs (theorem 2 of Zhang et al. 2016).
    """
    subsets = closure(model)
    place = {subset: i for i, subset in enumerate(subsets)}
    forward = np.zeros((len(subsets), 2 * int(model.offsets[-1])))
    backward = np.zeros(forward.T.shape)
    done = set()
    for offset, family in zip(model.offsets, model.families, strict=False):
        size = len(family)
        # The statistics hold a configuration's ones before its zeros.
        values = np.array(list(itertools.product((0, 1), repeat=size)))
        values[:, -1] = 1 - values[:, -1]
        cells = 2 * int(offset) + np.arange(2**size)
        for positions in itertools.chain.from_iterable(itertools.combinations(range(size), k) for k in range(size + 1)):
            subset = tuple(sorted(family[position] for position in positions))
            signs = 1 - 2 * (values[:, list(positions)].sum(axis=1) % 2)
            backward[cells, place[subset]] = signs / 2**size
            if subset not in done:
                done.add(subset)
                forward[place[subset], cells] = signs
    return forward, backward


@functools.lru_cache(maxsize=64)
def largest_flips(model: BayesianNetwork) -> int:
    """Return how many coefficients can change sign, at most, when one record is substituted.

    A record that flips the nodes D flips (|N_I| − Σ_γ (−1)^|γ∩D|) / 2 coefficients. The sum over subsets γ is a
    Walsh-Hadamard transform of the indicator of N_I. With more than 18 nodes, the result is the bound |N_I| − 1.
    """
    subsets = closure(model)
    size = len(model.nodes)
    if size > LARGEST_TRANSFORM:
        return len(subsets) - 1
    table = np.zeros(2**size, np.int32)
    table[[sum(1 << node for node in subset) for subset in subsets]] = 1
    for bit in range(size):
        halves = table.reshape(-1, 2, 2**bit)
        table = np.stack([halves[:, 0] + halves[:, 1], halves[:, 0] - halves[:, 1]], axis=1).ravel()
    return int((len(subsets) - table.min()) // 2)
