"""Privacy of Markov chain Monte Carlo that queries the private data at every update, under pure DP.

Foulds et al. (2016), section 4. Neighbours: substitution. The chain's state is public: the bounds hold for the release
of every state that the chain visits, and so for its last state alone, whether or not the chain has converged. A chain
on statistics that were released before costs nothing beyond their release and needs no accounting here.

Δ is the sensitivity of the log-joint: the supremum of |ln p(x'|θ) − ln p(x|θ)| over θ and records x, x'.
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

    An update varies only one variable of the state, so Δ of the log-joint bounds the sensitivity of every update.

    Args:
        sensitivity: Δ > 0.
        temperature: T > 0 to which the conditional is tempered.

    Raises:
        ValueError: a sensitivity or temperature that is not positive and finite.
    """
    check_range("(0, inf)", sensitivity=sensitivity, temperature=temperature)
    return Cost("pure", 2 * sensitivity / temperature)


def scan_cost(shared: Sequence[Cost], latents: Sequence[Cost] = (), changed_latents: int = 1) -> Cost:
    """Cost of a scan that updates every variable once: shared ones in sequence, per-record latents in parallel.

    Args:
        shared: costs of updates of variables whose conditional depends on all records.
        latents: costs of updates of variables whose conditional depends only on the variable's own records.
        changed_latents: how many latents' records a substitution can change: 1 where latent i belongs to record i,
            2 where a record belongs to one of several groups and a substitution may move it.

    Raises:
        ValueError: no updates, costs of different notions, or changed_latents not 1 or 2.
    """
    costs = list(shared)
    if latents:
        costs.append(parallel(list(latents), changed_latents))
    return sequential(costs)


def chain_cost(scan: Cost, iterations: int) -> Cost:
    """Cost of a chain of scans by sequential composition, which needs no convergence.

    200 iterations of one pass over the latents and one parameter update, ε each, make 400 ε (section 5).

    Raises:
        ValueError: iterations is not an integer of at least 1.
    """
    check_count("iterations", iterations)
    return sequential([scan] * iterations)


def subsampled_update_cost(update: Cost, sampled: int, total: int) -> Cost:
    """Cost ln(1 + (q/N)(e^ε − 1)) of an update that reads a uniform subset of q of the N records, kept secret.

    For substitution and subsets without replacement (Balle, Barthe and Gaboardi 2018, theorem 9). The update's result
    must not show which records were read. A random scan over per-record latents shows it, as only updated latents can
    move; see `random_scan_cost`.

    Args:
        update: pure cost ε of the update for the records that it reads.
        sampled: q, 1 ≤ q ≤ N.
        total: N.

    Raises:
        ValueError: a cost that is not pure, or counts outside their range.
    """
    share = _share(update, sampled, total)
    epsilon = update.epsilon
    if epsilon > 30:
        # ln(1 + s(e^ε − 1)) = ε + ln(s + (1 − s)e^−ε), without overflow.
        return Cost("pure", epsilon + math.log(share + (1 - share) * math.exp(-epsilon)))
    return Cost("pure", math.log1p(share * math.expm1(epsilon)))


def random_scan_cost(update: Cost, updated: int, variables: int, steps: int, delta: float = 0.0) -> Cost:
    """Cost of random-scan steps, each of which updates q of N per-record latents at random; the state is public.

    A record is read only when its latent is updated. The moves show which latents were updated, so one step costs the
    whole ε: there is no amplification. But over k steps a record is read only Binomial(k, q/N) times. With m the
    smallest count such that P(Binomial(k, q/N) > m) ≤ δ, the k steps are (mε, δ)-DP: the schedule does not depend on
    the data, and given the schedule the loss is at most ε for each read.

    Args:
        update: pure cost ε of one latent's update.
        updated: q, 1 ≤ q ≤ N.
        variables: N.
        steps: k ≥ 1.
        delta: δ in [0, 1); 0 gives the pure cost kε.

    Returns:
        A pure cost for δ = 0, else an approximate cost whose δ is the tail probability P(Binomial(k, q/N) > m).

    Raises:
        ValueError: a cost that is not pure, or an argument outside its range.
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

    With c = 2Δ/T, neighbours change the log of the acceptance ratio by at most c.

        "barker", a = r/(1+r): c, since accepting is an exponential mechanism on two candidates.
        "metropolis", a = min(1, r): an acceptance loses at most c; staying has probability h + (1−h)(1−a), h the
        probability of not proposing at all, and loses at most ln(1 + (1−h)(1−e^−c)/h). The cost is the larger: c
        from h = 1/2 on, infinite at h = 0, where a rejection rules out the data under which a = 1.

    Args:
        sensitivity: Δ > 0.
        temperature: T > 0.
        acceptance: "metropolis" or "barker".
        hold: h in [0, 1); "metropolis" only.

    Raises:
        ValueError: an argument outside its range.
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
