"""Draws from posteriors of logistic regression and of other binary regressions.

A user calls `exact`, independent draws by rejection from curvature shells, or `in_ball` where a ball of weights cuts
into the posterior. For releases of real data, where the time of a draw must tell nothing, there are `public_time`,
draws that never fail in a time that public numbers decide, and `lattice_ball`, the same on a lattice and in exact
arithmetic.
"""
