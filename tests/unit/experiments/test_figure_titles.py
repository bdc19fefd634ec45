"""Titles of figures that say an answer: they stand above the published tables, and not above falsified ones."""

from __future__ import annotations

import numpy as np
import pytest

from privpost.drawing import figures, style
from privpost.lab import grid, tables


def scaled(table, column: str, factor: float, **where):
    """Return a copy of a table in which a column of some rows is multiplied by a factor."""
    chosen = np.ones(len(table), bool)
    for name, value in where.items():
        chosen &= (table[name] == value).to_numpy()
    assert chosen.any(), where
    return table.assign(**{column: table[column].where(~chosen, table[column] * factor)})


# Study, figure, table that is falsified, part of the title, and how the finding is made false.
FALSE = [
    ("foulds2016/sampling_error", "fig2_sampling_error", "sampling_error", "OPS stays behind",
     lambda t: scaled(t, "l1_mean", 0.2, method="ops")),
    ("foulds2016/sampling_error", "fig2_sampling_error", "sampling_error", "OPS stays behind",
     lambda t: scaled(t, "l1_mean", 2, method="laplace")),
    ("foulds2016/adversary", "fig8_adversary", "adversary", "bound 2Δ", lambda t: scaled(t, "local_epsilon", 0.9)),
    ("foulds2016/adversary", "stopped_chains", "stopped_chains", "start at the mode",
     lambda t: scaled(t, "cost", 3, start="uniform")),
    ("foulds2016/adversary", "stopped_hmm", "stopped_hmm", "Two sweeps",
     lambda t: scaled(t, "cost", 1.1, start="uniform", sweeps=2)),
    ("foulds2016/war_logs_ablation", "war_logs_ablation", "war_logs_ablation_differences", "Rare levels",
     lambda t: scaled(t, "laplace_minus_ops_mean", 10, fields="no_category")),
    ("foulds2016/war_logs_states", "fig3_emissions", "war_logs_emissions", "Clipping makes",
     lambda t: t.assign(probability=t.probability.where(
         (t.method == "non_private") | (t.probability > 0.05), t.probability / 3))),
    ("fair_axis/beta_bernoulli", "bits_winners", "beta_bernoulli", "No mechanism",
     lambda t: scaled(t, "mean", 0, method="diffused")),
    ("fair_axis/composition", "composition", "composition", "Composed exactly",
     lambda t: scaled(t, "spent", 3, accounting="exact", method="ops")),
    ("geumlek2017/ops_radius", "ops_radius", "ops_radius", "smaller ball",
     lambda t: t.assign(mean=t["mean"].where(t.dataset != "adult", t[t.dataset == "adult"]["mean"].max()))),
    ("geumlek2017/link_functions", "link_functions", "link_functions", "No link beats",
     lambda t: scaled(t, "mean", 0.5, link="probit", metric="test_error", dataset="abalone")),
    ("geumlek2017/logistic", "fig3_test_error", "logistic", "never leads",
     lambda t: scaled(t, "mean", 0.4, method="ops", variant="paper")),
    ("bernstein2018/convergence", "convergence", "convergence", "mends",
     lambda t: scaled(t, "ess_per_sweep", 0.1, sampler="collapsed", model="normal")),
    ("noise_aware/war_logs", "war_logs_gain", "war_logs_pairs", "helps hidden",
     lambda t: scaled(t, "gain_mean", -1, n_states=2)),
]  # fmt: skip


def title(figure_of, given) -> str:
    with style.context():
        figure = figures.draw(figure_of, given)
        text = figure.get_suptitle()
        style.close(figure)
    return text


@pytest.mark.parametrize(("study", "stem", "table", "words", "falsified"), FALSE)
def test_a_title_stands_above_true_tables_only(study, stem, table, words, falsified):
    """The same figure from the published table and from one in which the finding is false."""
    loaded = grid.load_study(study)
    function = figures.functions(loaded.module("figures"))[stem]
    published = tables.read_tables(loaded)
    assert words in title(function, published)
    assert title(function, {**published, table: falsified(published[table])}) == ""
