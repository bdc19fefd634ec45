"""Held-out likelihood of private naive Bayes and hidden Markov models on war logs (Foulds et al. 2016, figure 6)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from privpost.datasets import war_logs
from privpost.evaluation.summaries import mean_columns
from privpost.experiments.foulds2016.convergence import verdict
from privpost.experiments.foulds2016.event_methods import (
    CHAINS,
    COUNTS,
    START,
    VARIANTS,
    Row,
    guarantee,
    rows,
    setup_of,
    uses_private_metadata,
)  # fmt: skip
from privpost.experiments.foulds2016.held_out import SCORES, evaluate
from privpost.experiments.ranges import EMISSION, EPSILON, METHOD, SHARE, TRANSITION, TRUNCATION
from privpost.lab.schema import Choice, Integer, Schema

__all__ = ["SETTINGS", "compared", "of", "simulate", "tabulate"]

SETTINGS = Schema(
    **CHAINS,
    dataset=COUNTS,
    n_states=Integer(at_least=1, says="states of the hidden Markov model; 1 for naive Bayes"),
    start=START,
    splits=Integer(at_least=1, says="random splits into training and held-out cells"),
    releases=Integer(at_least=1, says="releases of a posterior draw for each split, whose scores are averaged"),
    held_out=SHARE.means("share of the cells that each split holds out", "share"),
    transition_concentration=TRANSITION,
    emission_concentration=EMISSION,
    method=Choice("non_private", "laplace", "ops", "private_gibbs", "gibbs", says=METHOD),
    variant=Choice(
        "paper", "corrected", "sums",
        says="reading of noisy counts: `paper`, clipped at 0; `corrected`, projected with each field's noisy sum kept; "
        "`sums`, unclipped, with the sum over a state clipped",
    ),
    truncation=TRUNCATION,
    prior=Choice("tempered", "untempered", says="whether OPS tempers the prior, too (as in the paper)"),
    epsilon=EPSILON,
)  # fmt: skip
# Columns on convergence for rows with exact draws, and for rows that pay for each draw.
EXACT = {"rhat_max": None, "ess_bulk": None, "converged": True}
NATS = "[nats per event]"
TABLES = {
    "war_logs_likelihood": {
        "joint_mean": f"log-likelihood per held-out event, all cells of a split at once, averaged over draws {NATS}",
        "predictive_mean": f"the same, each cell's likelihood averaged over draws separately {NATS}",
        "one_draw_mean": f"log-likelihood per held-out event of the last draw alone {NATS}",
        "joint_loss_mean": f"how far `joint_mean` is below that without privacy, paired over splits {NATS}",
        "predictive_loss_mean": f"how far `predictive_mean` is below that without privacy, paired over splits {NATS}",
        "one_draw_loss_mean": f"how far `one_draw_mean` is below the joint score without privacy, paired {NATS}",
        "log_joint_mean": "log joint density of states and counts under the chains' law, mean over chains and draws of "
        "the first split [nats]",
    },
    "war_logs_differences": {
        "first": "first of the pair: `laplace`, `ops`, `gibbs` of the row's other settings; `one_state`, clipped "
        "Laplace's naive Bayes; `non_private`, without privacy and with most states; `seeded`, from seeded starts",
        "second": "method of the row, with its settings",
        "joint_mean": f"`first` less `second`, joint score, paired over the splits of both {NATS}",
        "predictive_mean": f"`first` less `second`, predictive score {NATS}",
        "one_draw_mean": f"`first` less `second`, one draw each {NATS}",
        "converged": "whether R-hat of both rows' chains is below 1.05; with `non_private` first, only of the second's",
    },
}


def of(config) -> list[Row]:
    """Return one row for each method at each of its settings, for a cell of the grid."""
    axes = (
        getattr(config, name) for name in ("n_states", "start", "epsilon", "method", "variant", "truncation", "prior")
    )
    return rows(*axes)


def simulate(config, streams, ledger) -> dict:
    """Return the arrays of `held_out.evaluate`: scores on held-out cells and convergence checks for all rows."""
    logs = war_logs.load(config.dataset)
    streams = streams.shared("foulds2016/held_out", dataset=config.dataset)
    sizes = config.held_out, config.splits, config.releases, config.chains
    return evaluate(
        setup_of(config, logs, config.n_states), of(config), logs.counts.astype(float), *sizes, streams, ledger
    )


def tabulate(cells):
    """Return two tables: scores by method and setting, and paired differences between the rows of a data set."""
    import pandas as pd

    scores: dict[str, dict[Row, dict]] = {}
    lines: dict[tuple[str, Row], dict[str, Any]] = {}
    for cell in cells:
        dataset, known = cell.config.dataset, scores.setdefault(cell.config.dataset, {})
        for index, row in enumerate(of(cell.config)):
            # Several cells may hold the same non-private row.
            if row not in known:
                known[row] = {name: cell.arrays[name][index] / cell.arrays["events"] for name in SCORES}
                lines[dataset, row] = _line(cell.config, cell.arrays, index, row)
    for (dataset, row), line in lines.items():
        start = "seeded" if row.method == "private_gibbs" else row.start
        plain = scores[dataset].get(Row(row.n_states, "non_private", start))
        for name in SCORES if plain else ():
            # One draw is compared with the non-private average over draws, as in OPS's joint score.
            best = plain["joint" if name == "one_draw" else name]
            line.update(_difference(f"{name}_loss", best, scores[dataset][row][name]))
    differences = []
    for (dataset, second), line in lines.items():
        known = scores[dataset]
        most = max((row.n_states for row in known if row.start == "seeded"), default=1)
        for word, first in compared(second, most):
            if first in known:
                differences.append(_pair(lines[dataset, first], line, word, known[first], known[second]))
    return {"war_logs_likelihood": pd.DataFrame(lines.values()), "war_logs_differences": pd.DataFrame(differences)}


def _line(config, arrays, index: int, row: Row) -> dict[str, Any]:
    """Return a row of `war_logs_likelihood` without its losses."""
    logs, chain = war_logs.load(config.dataset), row.n_states > 1 and row.method != "private_gibbs"
    checked = verdict(arrays["rhat"][index], arrays["ess"][index]) if chain else EXACT
    per_event = {name: arrays[name][index] / arrays["events"] for name in SCORES}
    return {
        "dataset": config.dataset,
        "stand_in": logs.stand_in,
        "model": row.model,
        **row._asdict(),
        **mean_columns("log_likelihood", arrays["joint"][index]),
        **mean_columns("per_event", per_event["joint"]),
        **{key: value for name in SCORES for key, value in mean_columns(name, per_event[name]).items()},
        "n_splits": config.splits,
        "clipped_share": arrays["clipped"][index],
        "sampling": "mcmc" if chain else "exact" if row.n_states == 1 else "paid updates",
        "n_chains": config.chains if chain else 1,
        **checked,
        **guarantee(setup_of(config, logs, config.n_states), row, checked["converged"]),
        "log_joint_mean": arrays["log_joint"][index],
        "uses_private_metadata": uses_private_metadata(config.dataset),
    }


def compared(second: Row, most: int) -> Iterator[tuple[str, Row]]:
    """Yield the rows that `second` is compared with, each after its word for the column `first`.

    `most` is the largest number of states among rows with seeded starts.
    """
    bare = second._replace(variant=None, truncation=None, prior=None)
    if second.method == "ops":
        yield from (("laplace", bare._replace(method="laplace", variant=variant)) for variant in VARIANTS)
    if second.method == "private_gibbs":
        # From a random start, OPS's cost is finite even if its chain has not converged.
        yield "ops", second._replace(method="ops", start="random")
    if second.method not in ("gibbs", "non_private"):
        start = "seeded" if second.method == "private_gibbs" else second.start
        yield "gibbs", bare._replace(method="gibbs", start=start)
    if second.n_states > 1 and second.method != "non_private":
        yield "one_state", Row(1, "laplace", variant="paper", epsilon=second.epsilon)
    if second.start == "random":
        yield "seeded", second._replace(start="seeded")
    else:
        yield "non_private", Row(most, "non_private", "seeded")


def _pair(first: dict, second: dict, word: str, ours: dict, others: dict) -> dict[str, Any]:
    """Return a row of `war_logs_differences` from two rows of `war_logs_likelihood` and both rows' scores per event."""
    said = ("dataset", "stand_in", "model", "n_states", "start", "variant", "truncation", "prior", "epsilon")
    line = {"first": word, "second": second["method"], **{name: second[name] for name in said}}
    if word == "laplace":
        line["variant"] = first["variant"]
    for name in SCORES:
        line |= _difference(name, ours[name], others[name])
    number = min(first["n_splits"], second["n_splits"])
    converged = second["converged"] and (first["converged"] or word == "non_private")
    return {
        **line,
        "n_splits": number,
        "converged": converged,
        "uses_private_metadata": second["uses_private_metadata"],
    }


def _difference(name: str, first, second) -> dict[str, float]:
    """Return the mean of a paired difference over the splits that both rows have, and its standard error."""
    number = min(len(first), len(second))
    return mean_columns(name, first[:number] - second[:number])
