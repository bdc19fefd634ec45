"""Exact posterior of a naive Bayes model given its counts with Laplace noise.

Users call `exact`, which computes sums and runs no Markov chain. `quantiles` has compiled distribution functions.
"""
