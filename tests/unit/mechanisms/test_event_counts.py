"""Releases about events in cells: given noise, chains that share a batch, held-out cells."""

from __future__ import annotations

import math

import numpy as np
import pytest

from privpost.distributions.noise import Common
from privpost.mechanisms.draws.event_states import HiddenMarkovSampler
from privpost.mechanisms.noise.event_counts import EventCountsLaplace, prior_of
from privpost.models.events import EventCounts
from privpost.privacy.accounting.costs import Cost
from privpost.privacy.ledger.gate import Ledger, Request
from privpost.samplers.hidden_markov import gibbs
from privpost.samplers.hidden_markov.seeds import Seeding

MODEL = EventCounts((3, 2), (3, 2), 2, transition=0.5)
COUNTS = np.random.default_rng(1).multinomial(9, np.full(5, 0.2), size=5).astype(float).ravel()


def sampler(epsilon: float, **settings) -> HiddenMarkovSampler:
    return HiddenMarkovSampler(MODEL, 45, epsilon, iterations=4, **settings)


def test_common_noise_is_what_its_generator_draws_at_every_scale() -> None:
    common, unit = Common(np.random.default_rng(2)), np.random.default_rng(2).laplace(size=(4, COUNTS.size))
    for epsilon in (0.1, 0.3, 7.0):
        mechanism = EventCountsLaplace(MODEL, 45, epsilon)
        found = mechanism.replicate(COUNTS, 4, common)
        assert np.array_equal(found, mechanism.replicate(COUNTS, 4, np.random.default_rng(2)))
        assert np.array_equal(found, COUNTS + 2 * 2 / epsilon * unit)


def test_requests_together_draw_what_each_draws_alone() -> None:
    mechanisms, seen = [sampler(0.5), sampler(2.0, tempered_prior=False, seeding=Seeding(3, 2))], []
    ledger, requests = Ledger(), []
    for number, mechanism in enumerate(mechanisms):
        ledger.open(str(number), Cost("pure", mechanism.epsilon), mechanism)
        settings = {"watch": lambda iteration, state: seen.append((iteration, state.states.shape))}
        requests.append(
            Request(str(number), mechanism, COUNTS, np.random.default_rng(number), 3, slice(0, 3), settings)
        )
    found = ledger.release_all(requests)
    for number, (mechanism, release) in enumerate(zip(mechanisms, found, strict=True)):
        alone = mechanism.replicate(COUNTS, 3, np.random.default_rng(number))
        assert np.array_equal(release.values, alone)
    assert seen == [(iteration, (5, 3)) for _ in mechanisms for iteration in range(4)]
    assert [(row["releases"], row["repeats"]) for row in ledger.record()] == [(1, 3), (1, 3)]


def test_held_out_cells_and_chains_for_diagnosis_leave_releases_alone() -> None:
    observed = np.ones((4, 5), bool)
    observed[:, 2] = False
    changed = COUNTS.copy()
    changed[10:15] += 50
    first, second = (
        sampler(2.0).draw(counts, np.random.default_rng(3), 2, observed=observed) for counts in (COUNTS, changed)
    )
    assert first.values.shape == (2, *MODEL.theta_shape)
    assert np.array_equal(first.values, second.values)
    assert first.info.state.states.shape == (5, 4)
    seen = sampler(2.0).draw(changed, np.random.default_rng(3), 2)
    assert not np.array_equal(seen.values, first.values)


def test_the_priors_temperature_is_that_of_the_likelihood_or_1() -> None:
    assert sampler(0.5)._law(COUNTS, (1,), 1).prior_temperature == sampler(0.5).temperature > 1
    assert sampler(0.5, tempered_prior=False)._law(COUNTS, (1,), 1).prior_temperature == 1


def test_a_sample_of_unknown_convergence_costs_all_updates_and_has_no_cost_from_a_seeded_start() -> None:
    # 4 iterations of two updates; a start that depends on the data is not paid for.
    assert np.isclose(sampler(0.5).unconverged_cost(), 8 * 0.5, rtol=1e-12)
    assert sampler(0.5, seeding=Seeding()).unconverged_cost() == math.inf


def test_a_seeded_chain_starts_from_its_seeds_and_a_random_one_does_not_read_the_data() -> None:
    """A start's states, seen before the first iteration; other data of the same size."""
    starts, other = [], COUNTS[::-1].copy()
    for seeding in (None, Seeding(4, 2)):
        for counts in (COUNTS, other):
            law = sampler(0.5, seeding=seeding).law(MODEL.tables(counts), np.ones((6, 5), bool))
            chains = gibbs.Chains(law, gibbs.Layout.of(MODEL.regions), prior_of(MODEL), seeding)
            starts.append(chains.init(np.random.default_rng(4)).states)
    assert np.array_equal(starts[0], starts[1]) and not np.array_equal(starts[2], starts[3])


def test_a_posterior_of_one_state_and_cell_is_exact_and_chains_say_how_far_to_trust_them() -> None:
    """Two fields share the public number of events; a release without noise has the posterior of its counts."""
    one = EventCountsLaplace(EventCounts((1,), (3, 2), 1, emission=2.0), 20, 1e4)
    found = one.posterior(np.array([12.0, 5, 3, 20, 0]), 20_000, np.random.default_rng(6))
    assert found.shape == (20_000, 1, 5) and found.diagnostics is None
    # Dirichlet(14, 7, 5) and Beta(22, 2): means, by hand, to 5 standard errors.
    assert np.allclose(found[:, 0].mean(axis=0), [14 / 26, 7 / 26, 5 / 26, 22 / 24, 2 / 24], rtol=0, atol=5 * 0.1 / 141)
    chains = EventCountsLaplace(MODEL, 45, 4.0)
    release = chains.perturb(COUNTS, np.random.default_rng(7))
    found = chains.posterior(release, 400, np.random.default_rng(8))
    assert found.shape == (400, *MODEL.theta_shape) and found.chains == 4
    assert np.isfinite(found.diagnostics.rhat_max)
    assert np.array_equal(found, chains.posterior(release, 400, np.random.default_rng(8)))


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"cells": (2, 0)}, r"cells is \(2, 0\)"),
        ({"cells": ()}, r"cells is \(\)"),
        ({"sizes": (1,)}, "sizes is"),
        ({"n_states": 0}, "n_states is 0"),
        ({"emission": 0.0}, "emission is 0.0"),
    ],
)
def test_models_out_of_range_are_refused(settings, message) -> None:
    with pytest.raises(ValueError, match=message):
        EventCounts(**{"cells": (2,), "sizes": (2,), **settings})


def test_cells_are_counted_by_region() -> None:
    model = EventCounts.of(np.array([0, 0, 3, 3, 3]), [2, 2], 2)
    assert model.cells == (2, 3)
    assert model.regions.tolist() == [0, 0, 1, 1, 1]
