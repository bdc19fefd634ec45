"""The exact posterior of a naive Bayes model given all the model's counts with Laplace noise.

Users call `exact`, which uses sums and no Markov chain. `quantiles` holds compiled distribution functions for many
parameters at once and is imported only where these functions are used.
"""
