"""Bayesian networks of binary variables.

Users call `BayesianNetwork` of `bayesian_network`, with a graph that `graphs` reads (YAML, formula, networkx) or that
`structure` learns from data. `fourier_basis` serves the Fourier mechanism. `consistency` makes noisy counts agree.
"""
