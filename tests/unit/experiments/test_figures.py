"""Figures of every study: whole with an unknown data set and method, and with titles that stand above true tables only.

A title states an answer: the published tables get it, and falsified tables do not.
"""

from __future__ import annotations

import collections
import functools
import re

import looked_at
import numpy as np
import pandas as pd
import pytest

from privpost.drawing import facets, figures, style
from privpost.lab import grid, tables
from privpost.lab.project import PUBLISHED
from privpost.report import captions
from privpost.report import figures as over_all

STUDIES = [name for name in grid.study_names() if grid.load_study(name).figures]
UNKNOWN = "made_up"
# Tiles of the winners alone: a copy of another method wins nowhere.
WINNERS = [("beta_bernoulli", "method")]
COPIED = ("laplace", "diffused", "gibbs", "naive")


@functools.cache
def published(study: str) -> dict:
    return tables.read_tables(grid.load_study(study))


def with_unknown(table: pd.DataFrame) -> pd.DataFrame:
    """Return a table with one more data set and one more method, whose rows are copies of those of a known one."""
    for column, sources in (("dataset", ()), ("method", COPIED)):
        if column in table:
            source = next((name for name in sources if (table[column] == name).any()), table[column].dropna().iloc[0])
            table = pd.concat([table, table[table[column] == source].assign(**{column: UNKNOWN})], ignore_index=True)
    return table


# What a figure prints where all rows of a table have one value of it.
FIXED = ("epsilon", "order", "delta", "n")
NOTION = re.compile(r"\b[Pp]ure\b|DP\b|Rényi")


def unsaid(tables: dict[str, pd.DataFrame], text: str) -> list[str]:
    """Return the fixed settings of tables whose value a text lacks."""
    fixed = {
        (column, table[column].dropna().unique()[0])
        for table in tables.values()
        for column in {*FIXED} & {*table}
        if table[column].nunique() == 1
    }
    said = [facets.words(column, value).removesuffix(" (pure DP)") for column, value in fixed]
    return [words for words in said if words not in text]


def words(figure) -> str:
    return " ".join(re.sub(r"\s+", " ", text.get_text()) for text in looked_at.texts(figure))


@pytest.mark.parametrize("name", STUDIES)
def test_nothing_is_cut_off_and_the_unknown_is_shown(name):
    study = grid.load_study(name)
    whole = {table: with_unknown(frame) for table, frame in published(name).items()}
    functions = figures.functions(study.module("figures"))
    assert list(functions) == study.figures
    shown: dict[tuple[str, str], bool] = {}
    for stem, function in functions.items():
        with style.context():
            figure = figures.draw(function, whole)
            assert figure.get_figwidth() <= style.WIDTH, stem
            assert looked_at.faults(figure) == [], stem
            text = words(figure)
            style.close(figure)
        given = {table: whole[table] for table in figures.parameters(function)}
        assert unsaid(given, text) == [], stem
        private = any("epsilon" in table for table in given.values())
        assert not private or NOTION.search(f"{text} {captions.of_study(study)[stem].alternative}"), stem
        for table in figures.parameters(function):
            for column in {"dataset", "method"} & set(whole[table]):
                shown[table, column] = shown.get((table, column), False) or "Made up" in text
    hidden = [key for key, seen in shown.items() if not seen and key not in WINNERS]
    assert hidden == [], "an unknown value appears at the end, never nowhere"


def test_a_fixed_setting_that_no_text_has_is_found():
    table = pd.DataFrame({"epsilon": [0.1, None], "n": [10, 20]})
    assert unsaid({"toy": table}, "n = 10, ε = 0.5") == ["ε = 0.1"] and unsaid({"toy": table}, "ε = 0.1") == []


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
    ("foulds2016/adversary", "stopped_chains", "stopped_chains", "6 % at most",
     lambda t: scaled(t, "cost", 3, start="uniform")),
    ("foulds2016/adversary", "stopped_chains", "stopped_hmm", "from the mode cost more",
     lambda t: scaled(t, "cost", 0.5, start="mode", epsilon=1)),
    ("foulds2016/adversary", "stopped_chains", "stopped_hmm", "uniform start adds",
     lambda t: scaled(t, "cost", 1.1, start="uniform", sweeps=1)),
    ("foulds2016/war_logs_states", "fig3_emissions", "war_logs_emissions", "Clipping makes",
     lambda t: t.assign(probability=t.probability.where(
         (t.method == "non_private") | (t.probability > 0.05), t.probability / 9))),
    ("fair_axis/beta_bernoulli", "bits_winners", "beta_bernoulli", "No mechanism",
     lambda t: scaled(t, "mean", 0, method="diffused")),
    ("geumlek2017/logistic", "ops_radius", "ops_radius", "far smaller than",
     lambda t: t.assign(mean=t["mean"].where(t.dataset != "adult", t[t.dataset == "adult"]["mean"].max()))),
    ("geumlek2017/logistic", "fig3_test_error", "logistic", "never leads",
     lambda t: scaled(t, "mean", 0.4, method="ops", variant="paper")),
    ("bernstein2018/convergence", "convergence", "convergence", "mends",
     lambda t: scaled(t, "ess_per_sweep", 0.1, sampler="collapsed", model="normal")),
    ("foulds2016/efficiency", "are_curves", "efficiency", "stays inefficient",
     lambda t: scaled(t, "are", 0.1, method="ops")),
    ("foulds2016/posterior_shapes", "fig1_posterior_shapes", "posterior_shapes", "OPS flattens",
     lambda t: scaled(t, "density", 2, method="ops")),
    ("foulds2016/war_logs_states", "fig4_state_map", "war_logs_assignments", "many states of Afghanistan",
     lambda t: t.assign(state=1)),
    ("foulds2016/war_logs_states", "fig7_ops_final_sample", "war_logs_assignments", "jumps more",
     lambda t: t.assign(summary=t.summary.map({"final": "mode", "mode": "final"}))),
    ("foulds2016/war_logs_likelihood", "fig6_loglikelihood", "war_logs_likelihood", "Afghan HMM only",
     lambda t: scaled(t, "per_event_mean", 0.5, method="laplace", model="hmm")),
    ("foulds2016/war_logs_likelihood", "war_logs_readings", "war_logs_differences", "that of one state",
     lambda t: scaled(t, "joint_mean", 0.1, second="gibbs", n_states=10)),
    ("foulds2016/who_leads", "who_leads", "who_leads_pairs", "OPS never leads",
     lambda t: scaled(t, "difference_mean", -1, method="gibbs", less="ops", events_per_level=10)),
    ("foulds2016/who_leads", "who_leads", "who_leads_pairs", "OPS never leads",
     lambda t: scaled(t, "difference_mean", -1, method="ops", less="laplace", epsilon=10)),
    ("fair_axis/logistic", "logistic", "logistic", "as little as diffused",
     lambda t: scaled(t, "mean", 1.1, method="ops_renyi")),
    ("geumlek2017/dirichlet", "appendix_dirichlet", "dirichlet", "overcharges",
     lambda t: scaled(t, "bound_ratio", 0.5, categories=3)),
    ("geumlek2017/rdp_curves", "fig1_rdp_curves", "rdp_curves", "costs less",
     lambda t: scaled(t, "epsilon", 2, method="diffused", coefficient=0.9)),
    ("geumlek2017/tradeoff", "fig2_tradeoff", "tradeoff", "by both measures",
     lambda t: scaled(t, "mean", 0.2, method="gaussian")),
    ("bernstein2018/calibration", "fig1a_ks", "calibration", "6 of 40 points of private Gibbs, 49 of 50 naive",
     lambda t: scaled(t, "ks", 3, method="gibbs", model="binomial")),
    ("bernstein2018/calibration", "fig1b_ecdf", "ecdf", "stay in the band",
     lambda t: scaled(t, "ecdf", 0.9, method="exact", model="binomial")),
    ("bernstein2018/utility", "fig1c_mmd", "utility", "nearer at small n",
     lambda t: scaled(t, "mmd", 0.5, method="naive", model="binomial")),
    ("bernstein2018/calibration", "truncation", "truncation", "too narrow",
     lambda t: scaled(t, "z2", 1.2, method="exact")),
    ("noise_aware/naive_bayes", "naive_bayes", "naive_bayes", "every measure",
     lambda t: scaled(t, "mean", 0.1, method="naive", metric="mmd2")),
    ("noise_aware/rivals", "leaderboard", "rivals", "above the line",
     lambda t: scaled(t, "c2st", 1.2, method="exact")),
    ("zhang2016/adult_network", "adult_network", "adult_network", "consistent counts",
     lambda t: scaled(t, "divergence_mean", 0.1, method="laplace")),
    ("zhang2016/bounds", "noise_scale", "noise_scale", "never adds less noise",
     lambda t: scaled(t, "fourier_cell", 0.1, graph="chain_10")),
    ("zhang2016/naive_bayes", "fig1_naive_bayes", "naive_bayes_pairs", "over Laplace",
     lambda t: scaled(t, "difference_mean", -1, method="fourier")),
    ("zhang2016/naive_bayes", "stealth", "stealth", "t = 0.14; the bound asks for 2.3",
     lambda t: t.assign(t=t.t * 10)),
    ("audit/audit", "tightness", "audit", "No method is seen", lambda t: scaled(t, "exact", 1.1)),
    ("geumlek2017/logistic", "appendix_loglikelihood", "logistic", "too, OPS on the paper's ball never",
     lambda t: scaled(t, "mean", 0.4, method="ops", variant="paper")),
    ("geumlek2017/logistic", "method_ranking", "logistic_pairs", "on Abalone alone",
     lambda t: scaled(t, "difference_mean", -1)),
    ("geumlek2017/theorem16", "theorem16_links", "theorem16", "logistic regression alone",
     lambda t: scaled(t, "share_of_own", 100)),
    ("zhang2016/bounds", "bounds", "bounds", "are broken", lambda t: t.assign(holds=True)),
    ("zhang2016/linear_regression", "fig2_linear_regression", "linear_regression", "at most 1.24 % at ε of 4 to 121",
     lambda t: scaled(t, "excess_mean", 100, method="sampler_record")),
]  # fmt: skip


def function_of(study: str, stem: str):
    return figures.functions(grid.load_study(study).module("figures"))[stem]


@functools.cache
def true_title(study: str, stem: str) -> str:
    return looked_at.title(function_of(study, stem), published(study))


@pytest.mark.parametrize(("study", "stem", "table", "words", "falsified"), FALSE)
def test_a_title_stands_above_true_tables_only(study, stem, table, words, falsified):
    """The same figure from the published table and from one in which the finding is false."""
    given = published(study)
    assert words in true_title(study, stem)
    assert looked_at.title(function_of(study, stem), {**given, table: falsified(given[table])}) == ""


def test_no_two_figures_have_the_same_title():
    """All figures of all studies, and those over all studies that have a title."""
    named = collections.defaultdict(set)
    for study, stem, *_ in FALSE:
        named[true_title(study, stem)].add(f"{study}/{stem}")
    for name, function in figures.functions(over_all).items():
        named[looked_at.title(function, over_all.tables(PUBLISHED, figures.parameters(function)))].add(name)
    # The hero's panels have titles of their own; the strip names its blocks.
    assert named.pop("") == {"hero", "strip"}
    assert {words: names for words, names in named.items() if len(names) > 1} == {}


def test_every_figure_of_a_study_says_an_answer_that_can_fail():
    """All figures of all studies, against those whose titles the test above sees stand and fall."""
    every = {(name, stem) for name in grid.study_names() for stem in grid.load_study(name).figures}
    assert every == {(study, stem) for study, stem, *_ in FALSE}


def test_a_tile_of_methods_that_draw_from_the_same_law_is_light():
    """A table of two methods whose divergences are both 0, and the same one with a divergence that is known exactly."""
    table = published("fair_axis/beta_bernoulli")["beta_bernoulli"]
    first = {name: table[name].dropna().min() for name in ("n", "epsilon", "delta")}
    two = table[(table.metric == "kl") & table.method.isin(["ops", "diffused"]) & (table.accounting == "exact")]
    two = two[np.logical_and.reduce([two[name] == value for name, value in first.items()])].assign(mean=0.0, sem=0.0)
    function = figures.functions(grid.load_study("fair_axis/beta_bernoulli").module("figures"))["bits_winners"]
    shades = []
    for divergence in (0.0, 1e-3):
        with style.context():
            figure = function(two.assign(mean=two["mean"].where(two.method == "ops", divergence)))
            shades += [color[3] for color in figure.axes[0].collections[0].get_facecolors()]
            style.close(figure)
    assert shades == pytest.approx([0.3, 0.9])
