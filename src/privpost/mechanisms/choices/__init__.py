"""The exponential mechanism: it chooses one of many candidates, each with a probability that grows with its score.

`exponential` draws one posterior sample ("OPS") of the success probability of binary data, and `map_estimate` draws
point estimates of the parameters of a Bayesian network.
"""
