"""Who leads: a tiny cell computed again by plain loops, and held-out events that affect only the score."""

from __future__ import annotations

import math

import numpy as np
from recomputed import run

from privpost.experiments.foulds2016.who_leads import study

TINY = {"regions": 1, "months": 5, "levels": 2, "n_fields": 1, "copies": 2, "checked": 0, "held_out": 0.2,
        "events_per_level": 4.0, "n_states": 2, "true_states": 2, "epsilon": [1], "truncation": [10]}  # fmt: skip


def test_score_of_exact_counts_is_the_beta_posterior_s(monkeypatch):
    """Naive Bayes without privacy: the predictive law of held-out copies by beta functions, 2,000 draws within 5 %."""
    seen, draw = [], study.draw_data
    monkeypatch.setattr(study, "draw_data", lambda *given: seen.append(draw(*given)) or seen[-1])
    made = run("foulds2016/who_leads", 2, 2, **TINY, model=["naive_bayes"], method=["non_private"], aware="none",
               iterations=2001, burn_in=1)  # fmt: skip
    (data,) = seen
    for trial in range(2):
        train = [sum(data.counts[trial, c, v] for c in range(5) if data.observed[trial, c]) for v in (0, 1)]
        total = 0.0
        for copy in range(2):
            own = [data.test[trial, copy, :, v].sum() for v in (0, 1)]
            total += sum(math.lgamma(1 + a + b) - math.lgamma(1 + a) for a, b in zip(train, own, strict=True))
            total -= math.lgamma(2 + sum(train) + sum(own)) - math.lgamma(2 + sum(train))
        # 40 events in five cells, one of which is held out: 8 are expected there.
        assert abs(made.arrays["score"][0, trial] - total / 2 / 8) < 0.05


def test_held_out_counts_change_nothing_but_the_score(monkeypatch):
    """Held-out cells' own counts are replaced: every method's fit stays what it is."""
    settings = {**TINY, "model": ["naive_bayes", "hmm"], "aware": "none"}
    draw, plain = study.draw_data, run("foulds2016/who_leads", 2, 2, **settings)

    def altered(config, size, rng):
        data = draw(config, size, rng)
        counts = np.where(data.observed[..., None], data.counts, data.counts[..., ::-1] + 50)
        return data._replace(counts=counts, test=data.test[..., ::-1])

    monkeypatch.setattr(study, "draw_data", altered)
    other = run("foulds2016/who_leads", 2, 2, **settings)
    for name in ("emission_error", "states_used"):
        np.testing.assert_array_equal(plain.arrays[name], other.arrays[name])
    assert not np.allclose(plain.arrays["score"], other.arrays["score"])
