"""Pure DP costs of Markov chain Monte Carlo that queries the private data at every update.

The bounds are those of Foulds et al. (2016), section 4. They hold even if every state of the chain is released, and
need no convergence. Neighbours differ by substitution of one record. Δ is the sensitivity of the log-joint density: the
supremum of |ln p(x'|θ) − ln p(x|θ)| over θ and records x, x'.
"""

import math
from collections.abc import Sequence

import numpy as np
from scipy.special import bdtrc

from privpost.models.base import check_range
from privpost.privacy.accounting.costs import Cost, parallel, sequential
from privpost.privacy.checks import check_choice, check_count


def update_cost(sensitivity: float, temperature: float = 1.0) -> Cost:
    """Return the cost 2Δ/T of one Gibbs update, an exponential mechanism over the values of one variable (equation 19).

    Args:
        sensitivity: sensitivity Δ > 0 of the log-joint density.
        temperature: temperature T > 0 of the conditional distribution.

    Raises:
        ValueError: the sensitivity or the temperature is not positive and finite.
    """
    check_range("(0, inf)", sensitivity=sensitivity, temperature=temperature)
    return Cost("pure", 2 * sensitivity / temperature)


def scan_cost(shared: Sequence[Cost], latents: Sequence[Cost] = (), changed_latents: int = 1) -> Cost:
    """Return the cost of a scan that updates every variable once.

    The costs of shared variables add up. The costs of latent variables compose in parallel (`costs.parallel`).

    Args:
        shared: costs of updating variables whose conditional distribution depends on all records.
        latents: costs of updating latent variables, each of which depends only on its own records.
        changed_latents: number of latent variables that a substituted record can affect: 1 if latent i belongs to
            record i; 2 if a latent belongs to a group of records and a substitution may move a record between groups.

    Raises:
        ValueError: there are no updates, costs differ in notion, or changed_latents is not 1 or 2.
    """
    costs = list(shared)
    if latents:
        costs.append(parallel(list(latents), changed_latents))
    return sequential(costs)


def chain_cost(scan: Cost, iterations: int) -> Cost:
    """Return the cost of a chain of scans, the sum of the scans' costs. Raises a ValueError unless iterations ≥ 1."""
    check_count("iterations", iterations)
    return sequential([scan] * iterations)


def subsampled_update_cost(update: Cost, sampled: int, total: int) -> Cost:
    """Return the cost ln(1 + (q/N)(e^ε − 1)) of an update that reads a secret uniform subset of q of the N records.

    The bound holds for subsets without replacement (Balle, Barthe and Gaboardi 2018, theorem 9). The result of the
    update must hide which records were read. For a random scan over per-record latents, use `random_scan_cost` instead.

    Args:
        update: pure cost ε of the update for the records that it reads.
        sampled: number q of records in the subset, 1 ≤ q ≤ N.
        total: number N of all records.

    Raises:
        ValueError: the cost is not pure, or a count is outside its range.
    """
    share = _share(update, sampled, total)
    epsilon = update.epsilon
    if epsilon > 30:
        # ln(1 + s(e^ε − 1)) = ε + ln(s + (1 − s)e^−ε), without overflow.
        return Cost("pure", epsilon + math.log(share + (1 - share) * math.exp(-epsilon)))
    return Cost("pure", math.log1p(share * math.expm1(epsilon)))


def random_scan_cost(update: Cost, updated: int, variables: int, steps: int, delta: float = 0.0) -> Cost:
    """Return the cost of k steps that each update q of N per-record latents at random. The state is public.

    A record is read Binomial(k, q/N) times, and each reading costs at most ε. Let m be the smallest count with tail
    probability P(Binomial(k, q/N) > m) ≤ δ. The cost is mε at this tail probability, or the pure cost kε if δ = 0.

    Args:
        update: pure cost ε of updating one latent.
        updated: number q of latents updated in one step, 1 ≤ q ≤ N.
        variables: number N of latents.
        steps: number k of steps, at least 1.
        delta: δ in [0, 1).

    Raises:
        ValueError: the cost is not pure, or an argument is outside its range.
    """
    share = _share(update, updated, variables)
    check_count("steps", steps)
    check_range("[0, 1)", delta=delta)
    if delta == 0:
        return Cost("pure", steps * update.epsilon)
    counts = np.arange(steps + 1)
    tails = np.append(bdtrc(counts[:-1], steps, share), 0.0)
    reads = int(np.argmax(tails <= delta))
    return Cost("approximate", reads * update.epsilon, delta=float(tails[reads]))


def metropolis_hastings_cost(
    sensitivity: float, temperature: float = 1.0, acceptance: str = "metropolis", hold: float = 0.0
) -> Cost:
    """Return the cost of one Metropolis-Hastings step whose proposal does not depend on the data.

    Between neighbours, the logarithm of the acceptance ratio r changes by at most c = 2Δ/T.

        "barker" accepts a proposal with probability r/(1+r). The step costs c.
        "metropolis" makes no proposal with probability h, and accepts a proposal with probability min(1, r). The step
            costs the maximum of c and ln(1 + (1−h)(1−e^−c)/h). The maximum is c if h ≥ 1/2, and infinity if h = 0.

    Args:
        sensitivity: sensitivity Δ > 0 of the log-joint density.
        temperature: temperature T > 0 of the target density.
        acceptance: "metropolis" or "barker".
        hold: probability h in [0, 1) of making no proposal, for "metropolis" only.

    Raises:
        ValueError: an argument is outside its range.
    """
    cost = update_cost(sensitivity, temperature)
    check_choice("acceptance", acceptance, ("metropolis", "barker"))
    check_range("[0, 1)", hold=hold)
    if acceptance == "barker":
        if hold:
            raise ValueError(f"hold is {hold!r}; Barker's acceptance needs none, so it must be 0")
        return cost
    staying = math.inf if hold == 0 else math.log1p((1 - hold) * -math.expm1(-cost.epsilon) / hold)
    return Cost("pure", max(cost.epsilon, staying))


def _share(update: Cost, sampled: int, total: int) -> float:
    if update.notion != "pure":
        raise ValueError(f"update costs {update}; its notion must be 'pure'")
    check_count("total", total)
    check_count("sampled", sampled)
    if sampled > total:
        raise ValueError(f"sampled is {sampled!r}; it must be at most {total}, the total")
    return sampled / total
