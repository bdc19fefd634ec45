"""Claims on utility bounds, privacy and noise scales of Zhang et al. (2016), and on consistency of marginals."""

from privpost.evaluation.rows import select
from privpost.experiments.claim_helpers import ends, errors_allowed
from privpost.experiments.zhang2016.bounds.study import CONSISTENCY_RELEASES, LIMIT
from privpost.lab.claims import check, claim, number, numbers, word

ROUNDING = 1e-12
# Smallest t, and smallest number of subsets in a closure, for which corollary 3 can be proved.
PROVABLE_T = 1.0
PROVABLE_CLOSURE = 4
# One constant suffices if the ratio of the loss to the sum of both terms grows by less than this factor at the last n.
LEVEL_OFF = 1.1


@claim(
    "Z4",
    "section on the Fourier domain",
    "Marginals released through Fourier coefficients are consistent with each other; Laplace's are not.",
    "two families' marginals over the nodes that they share: largest difference of a cell over "
    f"{CONSISTENCY_RELEASES} releases below {ROUNDING:g} of the largest count (rounding) for Fourier, above "
    f"{1e6 * ROUNDING:g} of it for Laplace",
)
def marginals_agree(consistency):
    published, truncated = (select(consistency, variant=variant) for variant in ("published", "truncated"))
    relative = published.largest_disagreement / published.largest_count
    fourier, laplace = (relative[published.method == method] for method in ("fourier", "laplace"))
    yield check("Fourier's marginals agree", (fourier <= ROUNDING).all())
    yield check("Laplace's marginals disagree everywhere", (laplace > 1e6 * ROUNDING).all())
    yield from number("Fourier: largest disagreement relative to the largest count", fourier.max())
    yield from number("Laplace: smallest over graphs, n and epsilon of the same", laplace.min())
    largest = truncated.largest_disagreement.max()
    yield from number("Fourier with negative cells truncated: largest disagreement, records", largest)


def statements(table) -> dict:
    """Map each statement, in words, to a mask over the table of bounds. The mask selects the rows that test it."""
    prior = table.parameter.str.extract(r"beta=([0-9.e+-]+)")[0].astype(float)
    t = table.parameter.str.extract(r"^t=([0-9.e+-]+)")[0].astype(float)
    of = {name: table.statement == name for name in table.statement.unique()}
    provable = of["corollary_3"] & (t >= PROVABLE_T) & (table.closure >= PROVABLE_CLOSURE).fillna(False)
    return {
        "proposition 1": of["proposition_1"],
        "theorem 1, deviation from the mean, squares restored": of["theorem_1"],
        "theorem 1, deviation from the mean, as printed": of["theorem_1_unsquared"],
        "theorem 1, c_ij with a product, priors of 1/2 and more": of["theorem_1_difference"] & (prior >= 0.5),
        "theorem 1, c_ij with a product, smaller priors": of["theorem_1_difference"] & (prior < 0.5),
        "theorem 1, printed bound on the mean": of["theorem_1_expectation"],
        "theorem 3": of["theorem_3"],
        f"corollary 3, t >= {PROVABLE_T:g} and closures of {PROVABLE_CLOSURE} or more": provable,
        "corollary 3, smaller t": of["corollary_3"] & ~provable,
        "lemma 4 with the exponent of the weights": of["lemma_4"],
        "lemma 4 as printed": of["lemma_4_printed"],
    }


@claim(
    "Z6",
    "propositions, theorems and lemmas of the utility sections",
    "Each utility bound holds.",
    "how often simulated releases exceed the bound: at most what the bound allows plus {allowed}; c_ij "
    "exhaustively over counts",
    variant="restored formulas, as printed",
)
def utility_bounds(bounds):
    simulated = 0
    for name, about in statements(bounds).items():
        rows = bounds[about]
        simulated += (rows.statement != "theorem_1_difference").sum()
        if len(rows):
            yield check(name, rows.holds.all())
            counts = [len(rows), rows.holds.sum(), rows.margin.min()]
            yield from number(f"{name}: rows, rows that hold, smallest margin", counts)
    yield word("allowed", errors_allowed(LIMIT, simulated))


@claim(
    "Z7",
    "remark 1",
    "The Fourier mechanism has the smaller noise scale, unless a variable is a child of more than half of the graph.",
    "ratio of noise scales, exact, on all graphs whose largest in-degree is at most |I|/2: on the coefficients, as "
    "the paper compares, and on the counts that are published",
)
def smaller_noise(noise_scale):
    sparse = noise_scale[noise_scale.largest_in_degree <= noise_scale.nodes / 2]
    coefficient, cell = sparse.fourier_coefficient / sparse.laplace, sparse.fourier_cell / sparse.laplace
    yield check("smaller on each orthonormal coefficient", (coefficient < 1).all())
    yield check("smaller on each rebuilt count", (cell < 1).all())
    yield from number("Fourier over Laplace per coefficient, smallest and largest", ends(coefficient))
    yield from number("Fourier over Laplace per rebuilt count, smallest and largest", ends(cell))
    yield from number("graphs", sorted(sparse.graph.unique()))


@claim(
    "Z18",
    "remark 1",
    "The downward closure has at most |I| 2^(1 + max in-degree) sets. The denser the graph, the more Fourier "
    "reduces the noise scale.",
    "size of the closure on every graph; Fourier's noise scale on a coefficient over Laplace's, exact, on graphs "
    "with the same number of nodes: falls from each to the next in the order of their average in-degree",
)
def denser_graphs(noise_scale):
    graphs = noise_scale.drop_duplicates("graph").sort_values("average_in_degree")
    bound = graphs.nodes * 2.0 ** (1 + graphs.largest_in_degree)
    yield check("the closure has at most |I| 2^(1 + max in-degree) sets", (graphs.closure <= bound).all())
    yield from number("sets over that bound, smallest and largest", ends(graphs.closure / bound))
    for nodes, same in graphs.groupby("nodes"):
        if len(same) > 1:
            ratio = same.fourier_coefficient / same.laplace
            name = f"the denser the graph, the smaller Fourier's scale over Laplace's ({nodes} nodes)"
            yield check(name, ratio.is_monotonic_decreasing)
            for words, values in (("scale over Laplace's", ratio), ("average in-degree", same.average_in_degree)):
                both = list(values.iloc[[0, -1]])
                yield from number(f"{words}, the sparsest and the densest graph of {nodes} nodes", both)


@claim(
    "Z10",
    "section on naive Bayes",
    "For naive Bayes with d attributes the downward closure has 2d + 2 sets, and Laplace and Fourier noise on the "
    "counts are of similar scale.",
    "size of the closure, and ratio of the noise's standard deviations on each published count between 1/2 and 2 "
    "(exact, no multiplicity)",
)
def naive_bayes_closure(noise_scale):
    rows = select(noise_scale, graph="naive_bayes_16")
    ratio, attributes = rows.fourier_cell / rows.laplace, rows.nodes - 1
    yield check("the downward closure has 2d + 2 sets", (rows.closure == 2 * attributes + 2).all())
    yield check("a count's noise under Fourier is within a factor 2 of Laplace's", ratio.between(0.5, 2).all())
    yield from number("attributes", int(attributes.max()))
    yield from number("sets in the downward closure", int(rows.closure.max()))
    yield from number("Fourier over Laplace per count, smallest and largest", ends(ratio))


def exact(table, statement: str) -> tuple[bool, list]:
    """Return whether all rows of a statement hold, and the smallest and the largest ratio of value to bound."""
    rows = select(table, statement=statement)
    return bool(len(rows)) and rows.holds.all(), ends(rows.empirical / rows.bound) if len(rows) else []


def exact_parts(table, names: dict[str, str], evidence: str):
    """Yield, for each statement in `names`, the check that it holds, and the used share of its bound as evidence."""
    for statement, name in names.items():
        holds, shares = exact(table, statement)
        yield check(name, holds)
        yield from number(f"{evidence}: {statement}", shares)


@claim(
    "Z12",
    "corollaries 1 and 2, theorem 4 (1), table 1",
    "Algorithms 1 and 2 are epsilon-DP, and posterior sampling is 2L-DP on L-Lipschitz parameters.",
    "largest log-ratio of a release's density between neighbouring data sets, over all pairs of records or counts, "
    "at most what is promised (exact; a bound on graphs of over 18 nodes, and for sampling on graphs with edges)",
)
def privacy(bounds):
    names = {
        "corollary 1": "the Laplace mechanism is epsilon-DP (corollary 1)",
        "corollary 2": "the Fourier mechanism is epsilon-DP (corollary 2)",
        "theorem 4 (1)": "a draw from a posterior on L-Lipschitz parameters is 2L-DP (theorem 4, first part)",
    }
    yield from exact_parts(bounds, names, "largest loss over what is promised, by setting")


@claim(
    "Z13",
    "corollary 4, table 1",
    "Algorithm 3, with Delta = L r, is epsilon-DP.",
    "one node on the mechanism's grid, its score the posterior density as algorithm 3 prints it, L = ln 199, r = 1, "
    "epsilon = 1: largest log-ratio of a grid point's probability between neighbouring counts, over all (exact)",
)
def map_estimate_privacy(bounds):
    rows = select(bounds, statement="corollary 4").sort_values("n")
    yield check("the loss is at most epsilon with Delta = L r", exact(bounds, "corollary 4")[0])
    yield from numbers({f"largest loss at epsilon = 1, n = {row.n:g}": row.empirical for row in rows.itertuples()})
    for score in ("the probability", "the log-density"):
        yield from number(f"smallest and largest with {score} as score", exact(bounds, f"corollary 4 with {score}")[1])
    enumerated = exact(bounds, "corollary 4 with enumerated sensitivity")[1]
    yield from number("with the enumerated sensitivity, smallest and largest", enumerated)


@claim(
    "Z14",
    "lemmas 2 and 3",
    "The Lipschitz constants of the nodes, or their concentration under the prior, give those of the network.",
    "largest log-ratio of the likelihoods of two records per node in which they differ, over all pairs of records, "
    "at most the largest node's; the prior's mass outside the L-Lipschitz parameters at most exp(-cL) (exact)",
)
def lipschitz_constants(bounds):
    names = {
        "lemma 2": "lemma 2 on a network without edges",
        "lemma 2 with edges": "lemma 2 on networks with edges, with the nodes' constants at equal parents",
        "lemma 3": "lemma 3 on independent nodes with uniform priors",
    }
    yield from exact_parts(bounds, names, "over the bound, smallest and largest")


@claim(
    "Z15",
    "table 1, sampler",
    "With probability 1 - delta, N posterior samples estimate a bounded expectation within ln(1/delta)/N.",
    "exact binomial chance that the mean of N draws of a 0/1 function misses by more, at most delta",
    variant="restored formula, as printed",
)
def sampler_utility(bounds):
    (root, shares), (printed, rootless) = (
        exact(bounds, "sampler utility"),
        exact(bounds, "sampler utility without a root"),
    )
    yield check("within the root of ln(1/delta)/N", root)
    yield check("within ln(1/delta)/N, as the text prints it", printed)
    yield from number("largest share of misses over delta, root", shares[-1])
    yield from number("largest share of misses over delta, as printed", rootless[-1])


@claim(
    "Z16",
    "theorem 1, last part; table 1",
    "The loss in KL divergence is O(mn ln n)(1 - exp(-n epsilon/(2|I|))) plus a term in ln delta, and the "
    "bound on its mean is refined for n of at least 2|I|/epsilon.",
    "one node, half of the records ones: exact mean loss over the sum of both terms without constants, along n with "
    f"epsilon = 2|I|/n (the premise of the refinement) and 1/n²: grows by less than {LEVEL_OFF:g} times over the last "
    "step of n",
)
def divergence(theorem1):
    names = {"n": "with the premise n >= 2|I|/epsilon", "n_squared": "without it, as table 1 prints it"}
    for rule, rows in theorem1.sort_values("n").groupby("epsilon_times"):
        ratio = (rows.mean_loss / (rows.first_term + rows.second_term)).to_numpy()
        yield check(f"a constant serves {names[rule]}", ratio[-1] < LEVEL_OFF * ratio[-2])
        yield from number(f"loss over both terms by n, {names[rule]}", dict(zip(rows.n, ratio, strict=True)))
