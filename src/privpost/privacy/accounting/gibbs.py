"""Privacy of Markov chain Monte Carlo that queries the private data at every update, under pure DP.

This follows Foulds et al. (2016), section 4. Neighbours differ by substitution of one record. The bounds hold if every
state of the chain is released, hence also for the last state alone, and they need no convergence. A chain that uses
only statistics released before is post-processing and has no further cost.

Δ is the sensitivity of the log-joint density: the supremum of |ln p(x'|θ) − ln p(x|θ)| over θ and records x, x'.
"""

import math
from collections.abc import Sequence

import numpy as np
from scipy.special import bdtrc

from privpost.models.base import check_range
from privpost.privacy.accounting.costs import Cost, parallel, sequential
from privpost.privacy.checks import check_choice, check_count


def update_cost(sensitivity: float, temperature: float = 1.0) -> Cost:
    """Cost 2Δ/T of one Gibbs update, an exponential mechanism over the values of one variable (equation 19).

    An update changes only one variable of the state, so Δ of the log-joint bounds the sensitivity of every update.

    Args:
        sensitivity: Δ > 0.
        temperature: temperature T > 0 of the conditional distribution.

    Raises:
        ValueError: the sensitivity or the temperature is not positive and finite.
    """
    check_range("(0, inf)", sensitivity=sensitivity, temperature=temperature)
    return Cost("pure", 2 * sensitivity / temperature)


def scan_cost(shared: Sequence[Cost], latents: Sequence[Cost] = (), changed_latents: int = 1) -> Cost:
    """Cost of a scan that updates every variable once: shared variables in sequence, latent variables in parallel.

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
    """Cost of a chain of scans by sequential composition, which needs no convergence.

    For example, 200 iterations of a pass over the latents and a parameter update, at ε each, cost 400 ε (section 5).

    Raises:
        ValueError: iterations is not an integer of at least 1.
    """
    check_count("iterations", iterations)
    return sequential([scan] * iterations)


def subsampled_update_cost(update: Cost, sampled: int, total: int) -> Cost:
    """Cost ln(1 + (q/N)(e^ε − 1)) of an update that reads a secret uniform subset of q of the N records.

    This bound holds for substitution and subsets without replacement (Balle, Barthe and Gaboardi 2018, theorem 9). The
    result of the update must not show which records were read. A random scan over per-record latents shows them, as
    only updated latents can change (see `random_scan_cost`).

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
    """Cost of random-scan steps with a public state, each of which updates q of N per-record latents at random.

    A record is read only when its latent is updated. Changed values show which latents were updated, so one step costs
    the full ε, without amplification. But over k steps a record is read only Binomial(k, q/N) times. Let m be the
    smallest count with P(Binomial(k, q/N) > m) ≤ δ. The k steps are (mε, δ)-DP: the schedule of updates does not depend
    on the data, and given the schedule each reading of a record costs at most ε.

    Args:
        update: pure cost ε of updating one latent.
        updated: number q of latents updated in one step, 1 ≤ q ≤ N.
        variables: number N of latents.
        steps: number k of steps, at least 1.
        delta: δ in [0, 1); 0 gives the pure cost kε.

    Returns:
        A pure cost for δ = 0, otherwise an approximate cost whose δ is the tail probability P(Binomial(k, q/N) > m).

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
    """Cost of one Metropolis-Hastings step whose proposal does not depend on the data.

    Between neighbours, the logarithm of the acceptance ratio r changes by at most c = 2Δ/T.

        "barker", acceptance a = r/(1+r): the step costs c, as it is an exponential mechanism on two candidates.
        "metropolis", a = min(1, r): accepting costs at most c. Staying has probability h + (1−h)(1−a), where h is the
        probability of making no proposal, and costs at most ln(1 + (1−h)(1−e^−c)/h). The step costs the maximum: c if
        h ≥ 1/2, and infinity if h = 0, as a rejection then excludes all data with a = 1.

    Args:
        sensitivity: Δ > 0.
        temperature: T > 0.
        acceptance: "metropolis" or "barker".
        hold: h in [0, 1), for "metropolis" only.

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
