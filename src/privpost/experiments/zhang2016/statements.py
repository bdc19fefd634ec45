"""Labels of the statements of Zhang et al. (2016) on utility and privacy, for figures."""

# For each printed statement, by its name in `bounds`: the label, and the name of the mended version ("" if none).
STATEMENTS = {
    "proposition_1": ("Proposition 1: perturbation of a count", ""),
    "theorem_1_expectation": ("Theorem 1, mean: KL of a parameter", ""),
    "theorem_1_unsquared": ("Theorem 1, deviation: KL less its mean", "theorem_1"),
    "theorem_1_difference": ("Theorem 1, range: a record's effect on KL", ""),
    "theorem_3": ("Theorem 3: error of Fourier's marginals", ""),
    "corollary_3": ("Corollary 3: chance of no negative cell", ""),
    "lemma_4_printed": ("Lemma 4: tail of the MAP mechanism", "lemma_4"),
    "sampler utility without a root": ("Sampler's utility: tail of a draw", "sampler utility"),
    "corollary 1": ("Corollary 1: ε of Laplace", ""),
    "corollary 2": ("Corollary 2: ε of Fourier", ""),
    "corollary 4": ("Corollary 4: ε of algorithm 3", "corollary 4 with enumerated sensitivity"),
    "theorem 4 (1)": ("Theorem 4 (1): ε of a posterior draw", ""),
    "lemma 2 with edges": ("Lemma 2: Lipschitz constant of a network", "lemma 2"),
    "lemma 3": ("Lemma 3: posterior beyond the constant", ""),
}
