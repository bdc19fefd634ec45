"""Tables of who leads: losses and errors of states and emissions, paired differences, and exponents of losses."""

import math

import numpy as np

from privpost.evaluation.summaries import mean_columns
from privpost.experiments.foulds2016 import event_methods
from privpost.experiments.foulds2016.war_logs_ablation.study import critical_count

SETTING = ("events_per_level", "levels", "n_fields", "true_states", "n_states", "persistence", "true_concentration")
EXPONENTS = [*SETTING[1:], "model", "method", "variant", "truncation", "axis"]
EXPONENTS += ["exponent", "exponent_sem", "n_points", "n_repeats"]
# Exponents are fitted to losses that are more than this many standard errors above 0.
CLEAR = 3.0
# Larger losses are left out of the fit.
SMALL = 0.1


def rows(config) -> list:
    """Return the methods, each at all its settings, which the within axes list."""
    result = [row for model in config.model for row in event_methods.rows(config, model, config.epsilon)]
    return [row for row in result if row.method != "gibbs" or row.model == config.aware]


def tabulate(cells):
    """Return losses by method and setting, OPS less Laplace paired over trials, and the losses' exponents."""
    import pandas as pd

    table, pairs, losses = [], [], []
    for cell in cells:
        config, arrays = cell.config, cell.arrays
        setting, all_rows = {name: getattr(config, name) for name in SETTING}, rows(config)
        plain = next((i for i, r in enumerate(all_rows) if (r.model, r.method) == ("hmm", "non_private")), None)
        loss = np.full_like(arrays["score"], np.nan) if plain is None else arrays["score"][plain] - arrays["score"]
        for index, row in enumerate(all_rows):
            named = {**setting, **{name: getattr(row, name) for name in row._fields if name != "sampler"}}
            line = {**named, **mean_columns("loss", loss[index]), "n_repeats": config.trials}
            line |= mean_columns("state_error", arrays["state_error"][index])
            line |= mean_columns("emission_error", arrays["emission_error"][index])
            line |= mean_columns("states_used", arrays["states_used"][index])
            gap, agree = arrays["gap"][index], arrays["agree"][index]
            assessed = gap.size > 0 and not np.isnan(gap).any()
            line["chain_gap"] = float(np.abs(gap).mean()) if assessed else None
            line["agree"] = float(agree.mean()) if assessed else None
            sizes = (config.levels,) * config.n_fields
            by_epsilon = row.truncation and row.epsilon
            line["crossover"] = critical_count(sizes, row.truncation) / row.epsilon if by_epsilon else None
            table.append(line)
            losses.append(({**named}, loss[index]))
        pairs += _pairs(setting, all_rows, loss, [line["chain_gap"] or 0.0 for line in table[-len(all_rows) :]])
    exponents = pd.DataFrame(_exponents(losses), columns=EXPONENTS)
    return {"who_leads": pd.DataFrame(table), "who_leads_pairs": pd.DataFrame(pairs), "who_leads_exponents": exponents}


def _pairs(setting, all_rows, loss, gaps):
    """Yield differences of losses, paired over trials.

    They are the losses of OPS and of either Gibbs sampler less that of Laplace, and the loss of the Gibbs sampler that
    pays for every update less that of OPS with the same truncation M.
    """
    for i, first in enumerate(all_rows):
        for j, other in enumerate(all_rows):
            if first.model != other.model or first.epsilon != other.epsilon:
                continue
            over_laplace = first.method == "laplace" and other.method in ("ops", "private_gibbs", "gibbs")
            over_ops = (first.method, other.method) == ("ops", "private_gibbs") and first.truncation == other.truncation
            if over_laplace or over_ops:
                named = {**setting, "epsilon": first.epsilon, "model": first.model, "first": first.variant or "ops"}
                named |= {"method": other.method, "truncation": other.truncation}
                line = {**named, **mean_columns("difference", loss[j] - loss[i]), "chain_gap": gaps[i] + gaps[j]}
                yield {**line, "n_repeats": loss.shape[1]}


def _exponents(losses):
    """Yield for each setting of a method the slopes of ln loss in ln ε and in ln m, fitted together by least squares.

    Standard errors are by the jackknife over trials, as all points with the same m are from the same trials.
    """
    groups: dict[tuple, list] = {}
    for named, values in losses:
        mean, sem = values.mean(), values.std(ddof=1) / math.sqrt(len(values)) if len(values) > 1 else math.nan
        if named["epsilon"] and CLEAR * sem < mean < SMALL:
            key = tuple((name, named[name]) for name in named if name not in ("epsilon", "events_per_level"))
            groups.setdefault(key, []).append((named["epsilon"], named["events_per_level"], values))
    for key, points in groups.items():
        epsilons, events = (np.log([point[i] for point in points]) for i in (0, 1))
        design = np.stack([np.ones(len(points)), epsilons, events], axis=1)
        if len(points) < 4 or np.linalg.matrix_rank(design) < 3:
            continue
        values = np.array([point[2] for point in points])
        n = values.shape[1]
        fit = lambda means, design=design: np.linalg.lstsq(design, np.log(means), rcond=None)[0]  # noqa: E731
        whole = fit(values.mean(axis=1))
        left = np.array([fit(np.maximum(np.delete(values, i, axis=1).mean(axis=1), 1e-12)) for i in range(n)])
        error = np.sqrt((n - 1) * left.var(axis=0))
        for place, axis in ((1, "epsilon"), (2, "events_per_level")):
            row = {**dict(key), "axis": axis, "exponent": whole[place], "exponent_sem": error[place]}
            yield {**row, "n_points": len(points), "n_repeats": n}
