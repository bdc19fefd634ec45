"""What docs/release.md shows: decision tables from the comparison at the same (ε, δ), and what can be released."""

import json
from collections.abc import Iterable, Mapping
from pathlib import Path

import numpy as np

from privpost.drawing import style
from privpost.evaluation.multiplicity import FALSE_ALARM, critical_value
from privpost.evaluation.rows import markdown
from privpost.release import command, models, spec
from privpost.release.models import bayesian_network, dirichlet_categorical, gamma_exponential

# Noise that opendp draws, so that `privpost release` can use it on real data.
SECURE = ("laplace", "gaussian")
EXAMPLE = Path("examples/commute.yaml")
BITS, LOGISTIC = "fair_axis/beta_bernoulli", "fair_axis/logistic"


def values(published) -> Mapping[str, str]:
    """Return the tables by name."""
    bits, logistic = map(published.tables, (BITS, LOGISTIC))
    return {
        "release/bits": bits_table(bits),
        "release/logistic": logistic_table(logistic),
        "release/models": models_table(),
        "release/false_alarm": f"{FALSE_ALARM:g}",
        "release/terms": example_terms(),
        "release/sigma": sigma_ratios(),
        "release/largest_network": str(bayesian_network.LARGEST_NETWORK),
        "release/largest_exact": f"{dirichlet_categorical.LARGEST_EXACT:,}",
        "release/largest_epsilon": f"{spec.LARGEST_EPSILON:g}",
        "release/largest_bias": f"{gamma_exponential.LARGEST_BIAS:g}",
        "release/repeats": str(bits["beta_bernoulli_pairs"].n_repeats.min()),
    }


def unbeaten(pairs, methods: Iterable[str], z: float) -> list[str]:
    """Return the methods that no other is ahead of by more than z standard errors of their paired difference.

    Args:
        pairs: rows of one setting and metric, with `first`, `second`, `difference_mean` (first less second; smaller is
            better) and `difference_sem`.
        methods: all methods at that setting.
        z: critical value.
    """
    clear = pairs[pairs.difference_mean.abs() > z * pairs.difference_sem]
    beaten = set(np.where(clear.difference_mean < 0, clear["second"], clear["first"]))
    return sorted(set(methods) - beaten)


def bits_table(bits: Mapping) -> str:
    """Return, per number of records and budget at the smallest δ, the unbeaten methods and the errors of a draw."""
    table, pairs = bits["beta_bernoulli"], bits["beta_bernoulli_pairs"]
    z = critical_value(len(pairs))
    delta = pairs.delta.min()
    pairs = pairs[(pairs.accounting == "exact") & (pairs.delta == delta)]
    errors = table[(table.metric == "l1_error") & (table.statistic == "sample")]
    head = ("n", f"ε at δ = {delta:g}", "unbeaten in KL", "unbeaten in the error of one draw")
    rows = []
    for (n, epsilon), part in pairs.groupby(["n", "epsilon"]):
        metrics = (part[part.metric == metric] for metric in ("kl", "l1_error"))
        best = [_named(unbeaten(own, {*own["first"], *own["second"]}, z)) for own in metrics]
        at = errors[errors.n == n]
        true = at[at.method == "non_private"]
        noisy = at[
            (at.method == "laplace") & (at.accounting == "exact") & (at.epsilon == epsilon) & (at.delta == delta)
        ]
        rows.append((n, f"{epsilon:g}", *best, _with_error(true), _with_error(noisy)))
    return markdown((*head, "error, true posterior", "error, Laplace noise"), rows)


def logistic_table(logistic: Mapping) -> str:
    """Return, per data set and budget at the smallest δ, the unbeaten methods and their test errors."""
    table, pairs = logistic["logistic"], logistic["logistic_pairs"]
    z = critical_value(len(pairs))
    delta = pairs.delta.min()
    pairs = pairs[(pairs.metric == "test_error") & (pairs.delta == delta)]
    errors = table[table.metric == "test_error"]
    head = ("data", f"ε at δ = {delta:g}", "unbeaten", "error of the first of them", "error of OPS")
    rows = []
    for (dataset, epsilon), part in pairs.groupby(["dataset", "epsilon"]):
        best = unbeaten(part, {*part["first"], *part["second"]}, z)
        own = errors[errors.dataset == dataset]
        at = own[(own.epsilon == epsilon) & (own.delta == delta)]
        shown = [at[at.method == best[0]], at[at.method == "ops"], own[own.method == "non_private"]]
        rows.append((dataset, f"{epsilon:g}", _named(best), *map(_with_error, shown)))
    return markdown((*head, "error, true posterior"), rows)


def models_table() -> str:
    """Return what `privpost release` can release: each model's columns, mechanisms and posterior."""
    rows = []
    for kind in models.KINDS.values():
        columns = ", ".join(f"`{key}`" for key in kind.column.fields)
        prior = ", ".join(f"`{key}`" for key in kind.prior.fields) or "none"
        mechanisms = ", ".join(f"`{name}`" for name in kind.mechanisms)
        rows.append((f"`{kind.name}`", columns, prior, mechanisms))
    return markdown(("`model:`", "settings of a column", "settings of the prior", "`mechanism:`"), rows)


def sigma_ratios() -> str:
    """Return by how much σ of secure noise exceeds the analytic one, at budgets of ε at the largest private δ."""
    budgets = [(epsilon, 1e-6, 1.0) for epsilon in (0.1, 10.0)]
    ratios = [command.secure_sigma(*budget) / command.analytic_sigma(*budget) for budget in budgets]
    return " and ".join(f"{r:.2f} at ε = {budget[0]:g}" for r, budget in zip(ratios, budgets, strict=True))


def example_terms() -> str:
    """Return, as JSON, what the example's release says about privacy; it depends on the specification alone."""
    found = spec.read(EXAMPLE)
    _, terms = command.prepared(found, models.KINDS[found.model])
    return json.dumps({"privacy": terms}, indent=2, ensure_ascii=False)


def _named(methods: Iterable[str]) -> str:
    return ", ".join(f"**{style.look(m).label}**" if m in SECURE else style.look(m).label for m in methods)


def _with_error(rows) -> str:
    (row,) = rows.itertuples()
    return f"{row.mean:.4f} ± {row.sem:.4f}"
