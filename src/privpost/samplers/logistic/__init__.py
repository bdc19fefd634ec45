"""Draws from posteriors of logistic regression and of other binary regressions.

Users call `exact`, which makes independent draws by rejection from curvature shells, or `in_ball` if a ball of weights
cuts into the posterior. In releases of real data the time of a draw must reveal nothing: draws of `public_time` never
fail and take a time that public numbers decide; `lattice_ball` does the same on a lattice, in exact arithmetic.
"""
