"""The exact posterior of a naive Bayes model given all its counts with Laplace noise.

A user calls `exact`: its sums need no Markov chain. `quantiles` are its compiled quantiles for many parameters at
once, imported only where they are used.
"""
