"""Runs of any sampler: burn-in, thinning, starts, and what the steps cost."""

from __future__ import annotations

import pytest

from privpost.samplers import chain


class Counter:
    """A sampler whose state is the number of steps from its start, at a cost of ten times that."""

    def init(self, rng):
        return rng

    def step(self, state, rng):
        return state + 1, 10 * (state + 1)


def test_states_are_those_after_every_thin_th_step_and_no_cost_is_lost():
    found = list(chain.run(Counter(), 0, draws=3, burn_in=2, thin=2))
    assert found == [(4, [10, 20, 30, 40]), (6, [50, 60]), (8, [70, 80])]


def test_chains_start_where_they_are_told():
    assert [state for state, _ in chain.run(Counter(), 0, draws=2, state=5)] == [6, 7]


@pytest.mark.parametrize("settings", [{"draws": 0}, {"draws": 1, "burn_in": -1}, {"draws": 1, "thin": 0}])
def test_numbers_out_of_range_are_refused_before_anything_runs(settings):
    name, value = list(settings.items())[-1]
    with pytest.raises(ValueError, match=f"{name} is {value}; it must be >="):
        chain.run(Counter(), 0, **settings)
