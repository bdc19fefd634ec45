"""Utility bounds of Zhang et al. (2016) against simulated releases, consistency of marginals, and noise scales."""

from privpost.evaluation.claims import Claim, Why, from_checks
from privpost.experiments.claim_helpers import ends, errors_allowed
from privpost.experiments.zhang2016.bounds.study import CONSISTENCY_RELEASES, LIMIT

BOUNDS_DOC = "docs/zhang2016.md#bounds-bounds"
ROUNDING = 1e-12
# Corollary 3 is provable for t from here on and closures of at least this many subsets.
PROVABLE_T, PROVABLE_CLOSURE = 1.0, 4


def claims(tables) -> list[Claim]:
    """Score Z4 (consistency), Z6 (every bound), Z7 (noise scales) and Z10 (those of naive Bayes), and Z12 to Z15: the
    privacy of table 1, corollary 4, lemmas 2 and 3, the sampler's utility."""
    bounds, scales = tables["bounds"], tables["noise_scale"]
    found = _consistency_claim(tables["consistency"]), _bounds_claim(bounds), _noise_claim(scales)
    found += _naive_bayes_claim(scales), _privacy_claim(bounds), _map_claim(bounds)
    return [*found, _lipschitz_claim(bounds), _utility_claim(bounds)]


def _consistency_claim(table) -> Claim:
    published = table[table.variant == "published"]
    relative = published.largest_disagreement / published.largest_count
    fourier, laplace = relative[published.method == "fourier"], relative[published.method == "laplace"]
    truncated = table[table.variant == "truncated"]
    evidence = {
        "Fourier: largest disagreement relative to the largest count": fourier.max(),
        "Laplace: smallest over graphs, n and epsilon of the same": laplace.min(),
        "Fourier with negative cells truncated: largest disagreement, records": truncated.largest_disagreement.max(),
    }
    checks = {
        "Fourier's marginals agree": (fourier <= ROUNDING).all(),
        "Laplace's marginals disagree everywhere": (laplace > 1e6 * ROUNDING).all(),
    }
    return from_checks(
        "Z4",
        "section on the Fourier domain",
        "Marginals released through Fourier coefficients are consistent with each other, Laplace's are not.",
        f"largest difference of a cell of what two families share, over {CONSISTENCY_RELEASES} releases: below "
        f"{ROUNDING:g} of the largest count (rounding), against above {1e6 * ROUNDING:g} of it",
        checks,
        evidence,
    )


def _statements(table) -> dict:
    """Return which rows of a table of bounds are about each statement."""
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


# Why a statement fails, with the place for the number of cases.
CAUSES = {
    "theorem 1, deviation from the mean, as printed": "The text has c_ij in place of its square under the root: "
    "McDiarmid's inequality, which the proof uses, has the square, and without it the bound fails in {}.",
    "theorem 1, c_ij with a product, smaller priors": "c_ij is too small for priors below 1/2 and few records ({}).",
    "theorem 1, printed bound on the mean": "The printed bound on the mean is 0 for a parent configuration that no "
    "record has, under uniform priors (fails in {}).",
    "corollary 3, smaller t": "Corollary 3 follows from Chernoff's bound for t of 1 and more; below, the rate of "
    "stealth can be smaller ({}).",
    "lemma 4 as printed": "The exponent printed in lemma 4 leaves out the utility's sensitivity that scales the "
    "mechanism's weights (fails in {}); with it the bound holds.",
}


def _bounds_claim(table) -> Claim:
    checks, evidence, broken, simulated = {}, {}, {}, 0
    for name, chosen in _statements(table).items():
        rows = table[chosen]
        simulated += (rows.statement != "theorem_1_difference").sum()
        broken[name] = f"{(~rows.holds).sum()} of {len(rows)} cases"
        if len(rows):
            checks[name] = rows.holds.all()
            found = [len(rows), rows.holds.sum(), rows.margin.min()]
            evidence[f"{name}: rows, rows that hold, smallest margin"] = found
    # A misprint is the cause where the restored formula holds.
    restored = {
        "lemma 4 as printed": checks.get("lemma 4 with the exponent of the weights", False),
        "theorem 1, deviation from the mean, as printed": checks[
            "theorem 1, deviation from the mean, squares restored"
        ],
    }
    whys = [
        Why(text.format(broken[name]), (name,), BOUNDS_DOC, when=restored.get(name, True))
        for name, text in CAUSES.items()
    ]
    return from_checks(
        "Z6",
        "propositions, theorems and lemmas of the utility sections",
        "Each utility bound holds.",
        "frequency of exceedance over simulated releases at most what the bound allows plus "
        f"{errors_allowed(LIMIT, simulated)}; c_ij exhaustively over counts",
        checks,
        evidence,
        whys=whys,
        variant="restored formulas, as printed",
    )


def _noise_claim(table) -> Claim:
    sparse = table[table.largest_in_degree <= table.nodes / 2]
    coefficient, cell = sparse.fourier_coefficient / sparse.laplace, sparse.fourier_cell / sparse.laplace
    checks = {
        "smaller on each orthonormal coefficient": (coefficient < 1).all(),
        "smaller on each rebuilt count": (cell < 1).all(),
    }
    evidence = {
        "Fourier over Laplace per coefficient, smallest and largest": ends(coefficient),
        "Fourier over Laplace per rebuilt count, smallest and largest": ends(cell),
        "graphs": sorted(sparse.graph.unique()),
    }
    return from_checks(
        "Z7",
        "remark 1",
        "The Fourier mechanism has the smaller noise scale unless a variable is child to more than half of the graph.",
        "ratio of noise scales, exact, on all graphs whose largest in-degree is at most |I|/2: on the coefficients, as "
        "the paper compares, and on the counts that are published",
        checks,
        evidence,
        whys=[
            Why(
                f"True of each coefficient, but counts are published: a cell of a family of k nodes sums 2^k noisy "
                f"coefficients, and its noise has {cell.min():.2g} to {cell.max():.3g} times Laplace's standard "
                "deviation on these graphs, the more the denser the graph.",
                ("smaller on each rebuilt count",),
                BOUNDS_DOC,
                when=checks["smaller on each orthonormal coefficient"],
            )
        ],
    )


def _naive_bayes_claim(table) -> Claim:
    rows = table[table.graph == "naive_bayes_16"]
    ratio = rows.fourier_cell / rows.laplace
    attributes = rows.nodes - 1
    checks = {
        "the downward closure has 2d + 2 sets": len(rows) and (rows.closure == 2 * attributes + 2).all(),
        "a count's noise under Fourier is within a factor 2 of Laplace's": len(rows) and ratio.between(0.5, 2).all(),
    }
    evidence = {
        "attributes": int(attributes.max()),
        "sets in the downward closure": int(rows.closure.max()),
        "Fourier over Laplace per count, smallest and largest": ends(ratio),
    }
    return from_checks(
        "Z10",
        "section on naive Bayes",
        "For naive Bayes with d attributes the downward closure has 2d + 2 sets, and Laplace and Fourier noise on the "
        "counts are of similar scale.",
        "size of the closure, and ratio of the noise's standard deviations on each published count between 1/2 and 2 "
        "(exact, no multiplicity)",
        checks,
        evidence,
    )


def _exact(table, statement) -> tuple[bool, list]:
    """Return whether all rows of a statement hold, and the smallest and largest empirical value over the bound."""
    rows = table[table.statement == statement]
    return bool(len(rows)) and rows.holds.all(), ends(rows.empirical / rows.bound) if len(rows) else []


def _privacy_claim(table) -> Claim:
    names = {
        "corollary 1": "the Laplace mechanism is epsilon-DP (corollary 1)",
        "corollary 2": "the Fourier mechanism is epsilon-DP (corollary 2)",
        "theorem 4 (1)": "a draw from a posterior on L-Lipschitz parameters is 2L-DP (theorem 4, first part)",
    }
    checks, evidence = {}, {}
    for statement, name in names.items():
        holds, shares = _exact(table, statement)
        checks[name], evidence[f"largest loss over what is promised, by setting: {statement}"] = holds, shares
    return from_checks(
        "Z12",
        "corollaries 1 and 2, theorem 4 (1), table 1",
        "Algorithms 1 and 2 are epsilon-DP, and posterior sampling is 2L-DP on L-Lipschitz parameters.",
        "largest log-ratio of a release's density between neighbouring data sets, over all pairs of records or counts, "
        "at most what is promised (exact; a bound on graphs of over 18 nodes, and for sampling on graphs with edges)",
        checks,
        evidence,
    )


def _map_claim(table) -> Claim:
    holds, _ = _exact(table, "corollary 4")
    own, own_losses = _exact(table, "corollary 4 with enumerated sensitivity")
    rows = table[table.statement == "corollary 4"].sort_values("n")
    name = "the loss is at most epsilon with Delta = L r"
    evidence = {f"largest loss at epsilon = 1, n = {row.n:g}": row.empirical for row in rows.itertuples()}
    evidence["with the enumerated sensitivity, smallest and largest"] = own_losses
    failing = rows[~rows.holds]
    losses = ", ".join(f"{row.empirical:.3g} at n = {row.n:g}" for row in failing.itertuples())
    return from_checks(
        "Z13",
        "corollary 4, table 1",
        "Algorithm 3, with Delta = L r, is epsilon-DP.",
        "one node on the mechanism's grid, L = ln 199, r = 1, epsilon = 1: largest log-ratio of a grid point's "
        "probability between neighbouring counts, over all of them (exact)",
        {name: holds},
        evidence,
        whys=[
            Why(
                f"L r bounds how far the log-likelihood moves; the utility is the density, which moves by more. The "
                f"loss is {losses}. With the largest change of the density in its place it stays below epsilon.",
                (name,),
                BOUNDS_DOC,
                when=own,
            )
        ],
    )


def _lipschitz_claim(table) -> Claim:
    edges = "lemma 2 on networks with edges, with the nodes' constants at equal parents"
    names = {
        "lemma 2": "lemma 2 on a network without edges",
        "lemma 2 with edges": edges,
        "lemma 3": "lemma 3 on independent nodes with uniform priors",
    }
    checks, evidence = {}, {}
    for statement, name in names.items():
        checks[name], evidence[f"over the bound, smallest and largest: {statement}"] = _exact(table, statement)
    return from_checks(
        "Z14",
        "lemmas 2 and 3",
        "Lipschitz constants of the nodes, or their concentration under the prior, give those of the network.",
        "largest log-ratio of the likelihoods of two records per node in which they differ, over all pairs of records, "
        "at most the largest node's; the prior's mass outside the L-Lipschitz parameters at most exp(-cL) (exact)",
        checks,
        evidence,
        whys=[
            Why(
                "The premise of lemma 2 is that a node's factor does not change at all when only its parents do; on "
                "every network with an edge that fails for almost all parameters, and a node with c children enters "
                "1 + c factors.",
                (edges,),
                BOUNDS_DOC,
                when=checks["lemma 2 on a network without edges"],
            )
        ],
    )


def _utility_claim(table) -> Claim:
    restored, printed = "within the root of ln(1/delta)/N", "within ln(1/delta)/N, as the text prints it"
    root, without = _exact(table, "sampler utility"), _exact(table, "sampler utility without a root")
    checks = {restored: root[0], printed: without[0]}
    shares = {"root": root[1], "as printed": without[1]}
    evidence = {f"largest share of misses over delta, {name}": found[1] for name, found in shares.items()}
    return from_checks(
        "Z15",
        "table 1, sampler",
        "With probability 1 - delta, N posterior samples estimate a bounded expectation within ln(1/delta)/N.",
        "exact binomial chance that the mean of N draws of a 0/1 function misses by more, at most delta",
        checks,
        evidence,
        whys=[
            Why(
                "Without a root the bound falls below the standard error 1/√(4N) of the mean itself as N grows. "
                "Hoeffding's inequality gives the root, which the text has probably lost.",
                (printed,),
                BOUNDS_DOC,
                when=root[0],
            )
        ],
        variant="restored formula, as printed",
    )
