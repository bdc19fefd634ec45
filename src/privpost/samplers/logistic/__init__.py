"""Exact draws from posteriors of logistic regression and of other binary regressions.

`exact` makes independent draws by rejection, and `in_ball` does so if a ball of weights cuts into the posterior. In
releases of real data, the time of a draw must reveal nothing. Draws of `public_time` take a time that public numbers
decide, and `lattice_ball` also draws in exact arithmetic on a lattice.
"""
