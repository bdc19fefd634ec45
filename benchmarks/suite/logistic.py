"""Time of fifty independent draws from a logistic posterior of MNIST's size (Geumlek et al. 2017, section 5.2)."""

from __future__ import annotations

import functools
import sys

import elliptical_slice
import numpy as np
import univariate_slice
from peers import nuts, polya_gamma_gibbs
from timing import cpu_seconds, row, run_command

from privpost.datasets import load_design
from privpost.evaluation.diagnostics import diagnose
from privpost.models.regression.logistic import LogisticPosterior
from privpost.samplers.logistic import exact as logistic_exact

NAME = "logistic"
WHAT = "50 independent draws, logistic posterior (n = 7988, d = 784)"
DRAWS = 50
BURN_IN = 10  # of elliptical slice sampling
PAPER_BURN_IN = 1000
# Numbers of warm-up draws and of draws that suffice to measure a peer's rate of effective draws. A peer is charged for
# this warm-up, although 1000 draws are usual.
PEER_BURN_IN, PEER_DRAWS = {"nuts": 150, "gibbs": 20}, {"nuts": 100, "gibbs": 100}
# Number of times that each sampler is timed, in turn with the others.
REPEATS = 2


def _posterior() -> LogisticPosterior:
    run_command([sys.executable, "-m", "snakemake", "data/prepared/mnist.npz", "--cores", "1", "--quiet", "host"])
    design = load_design("mnist", bounds="data", dropped_level="first", rng=np.random.default_rng(1))
    return LogisticPosterior(design.train_features, design.train_labels, len(design.train_labels) * 1e-3)


def _to_same_size(run) -> tuple[float, float]:
    """Return the CPU seconds until the median coordinate has 50 effective draws, and its effective draws per draw."""
    rate = float(np.median(diagnose(run.draws[:, None])[1])) / len(run.draws)
    per_draw = run.seconds / len(run.draws)
    return run.warm_up_seconds + DRAWS / rate * per_draw, rate


def _ours(posterior, rng):
    return logistic_exact.sample(logistic_exact.envelope(posterior, draws=DRAWS), DRAWS, rng)


def run() -> list[dict]:
    """Measure the study's exact sampler, set-up included, against three Markov chains."""
    posterior = _posterior()
    approximation = posterior.at_mode()
    mode, deviations = approximation.mean, 1 / np.linalg.norm(approximation.factor, axis=1)
    starts = mode + deviations * np.random.default_rng(2).standard_normal((DRAWS, posterior.dimension))
    target = functools.partial(univariate_slice.Coordinates, posterior)
    ours, sweep, gibbs, peer = [], [], [], []
    # Samplers run in turn. Each sampler has the same seed every time, so repetitions differ only in time.
    for _ in range(REPEATS):
        ours.append(cpu_seconds(_ours, posterior, np.random.default_rng(3))[0])
        rng = np.random.default_rng(4)
        gibbs.append(polya_gamma_gibbs(posterior, mode, PEER_BURN_IN["gibbs"], PEER_DRAWS["gibbs"], rng))
        rng, settings = np.random.default_rng(5), {"width": 3 * deviations.mean(), "n_burn_in": 0, "n_draws": 1}
        sweep.append(cpu_seconds(univariate_slice.sample, target, start=starts, rng=rng, **settings)[0])
        try:
            peer.append(nuts(posterior, mode, PEER_BURN_IN["nuts"], PEER_DRAWS["nuts"], seed=3))
        except ModuleNotFoundError as error:
            skipped = f"skipped: NumPyro's NUTS ({error}); install the optional group: pip install -e '.[bench]'"
    rows, absolute = [], {"ours": min(ours), "unit": "s"}

    seconds, rate = min(map(_to_same_size, gibbs))
    note = f"{rate:.2f} effective draws per sweep, started at the mode"
    against = "Pólya-gamma Gibbs (polyagamma)"
    rows.append(row(WHAT, against, seconds / min(ours), theirs=seconds, note=note, **absolute))

    if peer:
        seconds, rate = min(map(_to_same_size, peer))
        note = f"{rate:.2f} effective draws per draw after a warm-up of {PEER_BURN_IN['nuts']} from the mode, single "
        note += "precision, compilation not counted"
        against = "NUTS (NumPyro)"
        rows.append(row(WHAT, against, seconds / min(ours), theirs=seconds, note=note, **absolute))
    else:
        print(skipped)

    seconds = min(sweep) * (PAPER_BURN_IN + 1)
    note = f"extrapolated from one sweep of all 50 chains, {min(sweep):.1f} s"
    against = f"univariate slice sampling, {PAPER_BURN_IN} burn-in sweeps, as in the paper"
    rows.append(row(WHAT, against, seconds / min(ours), theirs=seconds, note=note, **absolute))

    n_chains, n_draws, rng = 4, 500, np.random.default_rng(6)
    draws, info = elliptical_slice.sample(
        posterior, n_chains=n_chains, n_draws=n_draws, n_burn_in=BURN_IN, rng=rng, approximation=approximation
    )
    effective = min(n_chains * n_draws, float(np.mean(diagnose(draws)[1])))
    calls = info.likelihood_calls.sum() / effective
    note = f"{info.likelihood_calls.mean():.3f} calls per sweep, mean effective sample size {effective:.0f} of "
    note += f"{n_chains * n_draws}; a chain's burn-in adds {BURN_IN} sweeps once"
    what = "likelihood calls per effectively independent draw of elliptical slice sampling (n = 7988, d = 784)"
    rows.append(row(what, "the limit of one", calls, note=note))
    return rows
