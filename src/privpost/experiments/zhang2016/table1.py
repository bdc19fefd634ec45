"""Table 1 of Zhang et al. (2016), with the number of rows of `bounds` that confirm each entry."""

from typing import NamedTuple

from privpost.evaluation.rows import columns


class Entry(NamedTuple):
    """One mechanism of table 1.

    Attributes:
        networks_only: the column "DBN only".
        privacy: the guarantee as printed.
        bound, restored: the utility bound as printed, and the utility bound that can be derived.
        privacy_statement, bound_statement, restored_statement: the statements in `bounds` that test these three.
    """

    method: str
    networks_only: bool
    privacy: str
    privacy_statement: str
    utility: str
    bound: str
    bound_statement: str
    restored: str
    restored_statement: str


TABLE = (
    Entry(
        "laplace", True, "(ε, 0)", "corollary 1", "closeness of posterior",
        "O(mn ln n)(1 − exp(−nε/(2|I|))) + √(−O(Σ c_ij) ln δ)", "theorem_1_unsquared",
        "E KL + √(−½ Σ c_ij² ln δ), E KL simulated", "theorem_1",
    ),
    Entry(
        "fourier", True, "(ε, 0)", "corollary 2", "close posterior params",
        "(4|N_I|/ε)(2^|π_i| log(|N_I|/δ) + t|N_I|)", "theorem_3",
        "the same", "theorem_3",
    ),
    Entry(
        "sampler_record", False, "(2L, 0) if Lipschitz; (0, √(M/2)) if stochastically so", "theorem 4 (1)",
        "expected utility functional wrt posterior",
        "ln(1/δ)/N", "sampler utility without a root",
        "√(ln(1/δ)/N)", "sampler utility",
    ),
    Entry(
        "map", False, "(ε, 0)", "corollary 4", "closeness of MAP",
        "P(S^c_2t) ≤ exp(−εt)/ξ(S_t)", "lemma_4_printed",
        "exp(−εt/(2Δ))/μ(S_t)", "lemma_4",
    ),
)  # fmt: skip


def table(bounds):
    """Yield table 1, a row per mechanism: the paper's entries, and how many rows of `bounds` test and confirm each."""

    def checked(name, statement):
        rows = bounds[bounds.statement == statement]
        return {f"{name}_rows": len(rows), f"{name}_rows_that_hold": int(rows.holds.sum())}

    for entry in TABLE:
        losses = bounds[bounds.statement == entry.privacy_statement]
        yield {
            **columns(entry, "method", "networks_only", "privacy"),
            **checked("privacy", entry.privacy_statement),
            "largest_loss": float((losses.empirical / losses.bound).max()),
            **columns(entry, "utility", "bound"),
            **checked("bound", entry.bound_statement),
            "restored": entry.restored,
            **checked("restored", entry.restored_statement),
            "restored_margin": float(bounds[bounds.statement == entry.restored_statement].margin.min()),
        }
