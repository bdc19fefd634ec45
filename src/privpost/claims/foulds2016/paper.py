"""Claims of Foulds et al. (2016) that no table decides, with the reason."""

from __future__ import annotations

from privpost.evaluation.claims import Claim


def claims(tables) -> list[Claim]:
    """Return F14, which cannot be tested."""
    return [
        Claim(
            "F14",
            "proposition 3",
            "A chain whose law is close enough to the posterior keeps the posterior's privacy, up to that distance.",
            "none",
            "not testable",
            reason="the distance is a bound on likelihood ratios over all outputs; draws of a chain bound it from "
            "below only, so no experiment can confirm it (the paper says so itself); releases that depend on it are "
            "marked in the tables as private if converged",
        )
    ]
