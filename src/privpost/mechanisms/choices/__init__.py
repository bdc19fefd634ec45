"""One of many candidates, chosen with a probability that grows with its score: the exponential mechanism.

A user calls `exponential` for one posterior sample of bits (OPS), and `map_estimate` for point estimates of a Bayesian
network.
"""
