"""Private Bayesian networks of 14 nodes on Adult: naive Bayes, and a graph learned on public records."""

import itertools
from functools import partial

import numpy as np

from privpost.datasets import catalogue, prepared
from privpost.evaluation.diagnostics import assess
from privpost.evaluation.rows import columns, private_places
from privpost.evaluation.summaries import mean_columns
from privpost.experiments.ranges import ALPHA, BETA, BURN_IN, DATASET, DRAWS, EPSILON, METHOD, THIN, N, T
from privpost.experiments.zhang2016.mechanisms import configured, target
from privpost.lab.schema import Choice, DatasetName, Integer, Real, Schema
from privpost.models.networks import graphs
from privpost.models.networks.bayesian_network import BayesianNetwork
from privpost.models.networks.consistency import consistent_counts
from privpost.models.networks.structure import k2
from privpost.samplers.chain import run
from privpost.samplers.naive_bayes import exact as naive_bayes_exact

MECHANISMS = ("laplace", "fourier", "sampler_record", "sampler_attribute")
# Posteriors from the Laplace release: conjugate, conjugate with consistent counts, and noise-aware, exact or by chains.
FROM_LAPLACE = ("laplace", "consistent", "exact", "gibbs")
# Chains per release, whose posterior means are averaged.
CHAINS = 4
SETTINGS = Schema(
    dataset=DatasetName(task="bits", says=DATASET),
    alpha=ALPHA,
    beta=BETA,
    t=Real(at_least=0, says=T.says),
    most_parents=Integer(at_least=0, at_most=6, says="largest number of parents in the learned graph"),
    aware_up_to=Integer(at_least=0, says="largest n with a noise-aware posterior", unit="records"),
    chain_trials=Integer(at_least=1, says="trials with chains"),
    burn_in=BURN_IN,
    draws=DRAWS,
    thin=THIN,
    graph=Choice("naive_bayes", "learned", says="directed acyclic graph of the network"),
    n=Integer(at_least=1, at_most=32561, says=N.says, unit=N.unit),
    method=Choice("non_private", *MECHANISMS, *FROM_LAPLACE[1:], says=METHOD),
    epsilon=EPSILON,
)
TABLES = {
    "adult_network": {
        "divergence_mean": "KL divergence per record from the true posterior's mean network to the released one [nats]",
        "accuracy_less_laplace_mean": "accuracy less the Laplace mechanism's; paired over trials [share]",
        "divergence_less_laplace_mean": "divergence less the Laplace mechanism's; paired over trials [nats]",
    },
    "adult_graphs": {
        "node": "a node of the graph",
        "parents": "parents of the node",
    },
}
CLASS = "over_50k"
MANUAL = ("Craft-repair", "Farming-fishing", "Handlers-cleaners", "Machine-op-inspct", "Transport-moving")
PROFESSIONAL = ("Exec-managerial", "Prof-specialty")
MARRIED = ("Married-AF-spouse", "Married-civ-spouse", "Married-spouse-absent")


def bits(arrays, levels) -> dict[str, np.ndarray]:
    """Return Adult's columns as bits, ordered from causes to effects for the search of a graph."""

    def among(column, *names):
        return np.isin(arrays[column], [levels[column].index(name) for name in names])

    # Thresholds and levels were chosen without looking at the records.
    columns = {
        "male": among("sex", "Male"),
        "white": among("race", "White"),
        "born_in_us": among("native_country", "United-States"),
        "age_40": arrays["age"] >= 40,
        "married": among("marital_status", *MARRIED),
        "own_child": among("relationship", "Own-child"),
        "bachelor": arrays["education_num"] >= 13,
        "private_sector": among("workclass", "Private"),
        "professional": among("occupation", *PROFESSIONAL),
        "manual": among("occupation", *MANUAL),
        "over_40_hours": arrays["hours_per_week"] > 40,
        "capital_gain": arrays["capital_gain"] > 0,
        "capital_loss": arrays["capital_loss"] > 0,
        CLASS: arrays["over_50k"],
    }
    return {name: column.astype(np.int64) for name, column in columns.items()}


def network(kind: str, public: dict[str, np.ndarray], most_parents: int) -> graphs.Graph:
    """Return the graph of naive Bayes, or the graph that the algorithm K2 finds on public bits."""
    if kind == "learned":
        return k2(np.column_stack(list(public.values())), list(public), most_parents)
    return graphs.checked([(CLASS, []), *((name, [CLASS]) for name in public if name != CLASS)])


def contrasts(model, tests) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return three arrays about the distinct test records without their class.

    They are the difference of statistics between class 1 and class 0 (records, 2m), the number of copies with class 1
    (records,), and the number of all copies (records,).
    """
    place = model.nodes.index(CLASS)
    with_one = np.array(tests)
    with_one[:, place] = 1
    distinct, inverse = np.unique(with_one, axis=0, return_inverse=True)
    inverse = inverse.ravel()
    without = np.array(distinct)
    without[:, place] = 0
    difference = model.sufficient_statistics(distinct[:, None]) - model.sufficient_statistics(without[:, None])
    return difference, np.bincount(inverse, tests[:, place]), np.bincount(inverse)


def simulate(config, streams, ledger) -> dict:
    """Return the scores and the diagnostics of chains.

    `accuracy` and `divergence` have shape (graph, n, method, epsilon, trial), and are nan if a method does not apply.
    `accuracy` is the share of public test records whose class is predicted from all other bits. `divergence` is the KL
    per record, in nats, from the true posterior's mean network to the released network. `rhat` and `ess`
    (graph, n, epsilon) are the worst over the chains. `edges` (graph,) has the graphs' formulas.
    """
    dataset = catalogue.load(config.dataset)
    arrays = prepared.read(config.dataset, dataset)
    columns = bits(arrays, dataset.public["levels"])
    # The official test part counts as public: one half serves to learn the graph, the other half to test.
    public = np.flatnonzero(arrays["is_test"])
    learn, test, private = public[::2], public[1::2], np.flatnonzero(~arrays["is_test"])
    axes = (config.graph, config.n, config.method, config.epsilon)
    scores = {name: np.full((*map(len, axes), config.trials), np.nan) for name in ("accuracy", "divergence")}
    scores |= {name: np.full(tuple(map(len, (*axes[:2], config.epsilon))), np.nan) for name in ("rhat", "ess")}
    parts, edges = [], []
    for (g, kind), (i, n) in itertools.product(enumerate(config.graph), enumerate(config.n)):
        graph = network(kind, {name: column[learn] for name, column in columns.items()}, config.most_parents)
        model, opened = BayesianNetwork(graph, config.alpha, config.beta), {}
        for method, (j, epsilon) in itertools.product(MECHANISMS, enumerate(config.epsilon)):
            account, make = f"{method}/{kind}/n={n}/epsilon={epsilon:g}", partial(configured, method, model, n, epsilon)
            opened[method, j] = account, ledger.open(account, target(method, model, epsilon), partial(make, t=config.t))
        parts.append((g, i, model, {"graph": kind, "n": n}, opened))
        edges += [graphs.formula(graph)] if i == 0 else []
    for g, i, model, point, opened in parts:
        records = np.column_stack([columns[node] for node in model.nodes])
        split = records[private], records[test]
        for name, values in _scores(model, *split, point, opened, config, streams, ledger).items():
            scores[name][g, i] = values
    return {**scores, "edges": np.array(edges)}


def _scores(model, private, tests, point, opened, config, streams, ledger) -> dict:
    """Return accuracy and divergence (method, epsilon, trial), and rhat and ess (epsilon,), for one graph and n."""
    shape = (len(config.method), len(config.epsilon), config.trials)
    scores = {name: np.full(shape, np.nan) for name in ("accuracy", "divergence")}
    scores |= {name: np.full(len(config.epsilon), np.nan) for name in ("rhat", "ess")}
    difference, ones, total = contrasts(model, tests)
    chained = "gibbs" in config.method and point["graph"] == "learned" and point["n"] <= config.aware_up_to
    for block in streams.blocks():
        rng = streams("data", block.index, n=point["n"])
        subsets = [rng.choice(len(private), point["n"], replace=False) for _ in range(block.size)]
        statistics = np.stack([model.sufficient_statistics(private[rows]) for rows in subsets])
        mean = model.mean(model.posterior(statistics))
        cells, truth = model.cell_probabilities(mean), _log(mean)
        lines = [("non_private", slice(None), mean)]
        for (method, j), (account, mechanism) in opened.items():
            rng = streams("mechanism", block.index, **point)
            release = ledger.release(account, mechanism, statistics, rng, repeats=block.trials).values
            lines += [(name, j, theta) for name, theta in _parameters(method, mechanism, release, config).items()]
            if method == "laplace" and chained and block.index == 0:
                rng = streams("sampler", block.index, **point)
                theta, scores["rhat"][j], scores["ess"][j] = _chained(mechanism, release, config, rng)
                lines.append(("gibbs", j, theta))
        for method, j, theta in lines:
            if method in config.method:
                logs, trials = _log(theta), slice(block.trials.start, block.trials.start + len(theta))
                at = config.method.index(method), j, trials
                scores["divergence"][at] = (cells[: len(theta)] * (truth[: len(theta)] - logs)).sum(axis=-1)
                scores["accuracy"][at] = (
                    np.where(logs @ difference.T > 0, ones, total - ones).sum(axis=-1) / total.sum()
                )
    return scores


def _chained(mechanism, release, config, rng):
    """Return noise-aware posterior means (trials, m) from chains, worst R-hat, and worst effective sample size."""
    # The import is here, as numba takes a third of a second to load.
    from privpost.samplers.noise_aware.records import Records

    model, release = mechanism.model, release[: config.chain_trials]
    chains = Records(model, np.repeat(release, CHAINS, axis=0), mechanism.n, mechanism.scale)
    total, draws = 0.0, []
    for state, _ in run(chains, rng, draws=config.draws, burn_in=config.burn_in, thin=config.thin):
        parameters = model.posterior(state.counts.reshape(len(release), CHAINS, -1))
        total = total + model.mean(parameters).mean(axis=1)
        draws.append(model.sample(parameters, rng))
    worst = assess(np.swapaxes(draws, 1, 2))
    return total / config.draws, worst.rhat_max, worst.ess_min


def _log(theta) -> np.ndarray:
    """Return an array (..., 2m) of ln θ and ln(1−θ), in the order of the statistics."""
    return np.stack([np.log(theta), np.log1p(-theta)], axis=-1).reshape(*theta.shape[:-1], -1)


def _parameters(method, mechanism, release, config) -> dict[str, np.ndarray]:
    """Return the parameters θ (trials, m) that an analyst infers from a release, by method."""
    model, n = mechanism.model, mechanism.n
    if mechanism.releases == "sample":
        return {method: release}
    parameters = {method: model.mean(mechanism.naive_posterior(release))}
    if method == "laplace":
        counts = mechanism.project(consistent_counts(model, release, n))
        parameters["consistent"] = model.mean(model.posterior(counts))
        if model.nodes[0] == CLASS and n <= config.aware_up_to:
            aware = naive_bayes_exact.posterior(model, release, n, mechanism.scale)
            leaves = np.einsum("...dck,...k->...dc", aware.means, aware.weights)
            root = (aware.weights @ aware.class_mean)[..., None]
            parameters["exact"] = np.concatenate([root, leaves.reshape(*leaves.shape[:-2], -1)], axis=-1)
    return parameters


def tabulate(cells):
    """Return two tables: mean scores with their differences from the Laplace mechanism, and the graphs."""
    (cell,) = cells
    edges = [
        {"graph": kind, "node": node, "parents": ", ".join(parents), "in_degree": len(parents)}
        for kind, formula in zip(cell.config.graph, cell.arrays["edges"], strict=True)
        for node, parents in graphs.from_formula(str(formula))
    ]
    return {"adult_network": _rows(cell.config, cell.arrays), "adult_graphs": edges}


def _rows(config, arrays):
    base = config.method.index("laplace") if "laplace" in config.method else None
    for (g, i, k, j), point in private_places(config, "graph", "n", "method", "epsilon"):
        scored, private = ~np.isnan(arrays["accuracy"][g, i, k, j]), point.method != "non_private"
        if not scored.any():
            continue
        row = columns(point, "graph", "n", "method", "epsilon")
        if private:
            nodes = len(graphs.from_formula(arrays["edges"][g])) if "attrib" in point.method else 1
            row["epsilon_record"] = point.epsilon * nodes
        for name in ("accuracy", "divergence"):
            values = arrays[name][g, i, :, j][:, scored]
            row |= mean_columns(name, values[k])
            if base is not None and private:
                row |= mean_columns(f"{name}_less_laplace", values[k] - values[base])
        row |= {"n_repeats": int(scored.sum()), "sampling": "mcmc" if point.method == "gibbs" else "exact"}
        if point.method == "gibbs":
            row |= {"rhat_max": arrays["rhat"][g, i, j], "ess_min": arrays["ess"][g, i, j]}
        yield row
