"""The Dirichlet distribution truncated to probabilities of at least a lower bound.

Users call `exact.sample`. `kernels` holds the compiled loops.
"""
