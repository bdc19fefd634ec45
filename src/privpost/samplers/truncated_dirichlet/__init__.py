"""The Dirichlet distribution truncated to probabilities of at least a lower bound.

Users call `exact.sample`, which makes independent draws for any number of levels. `kernels` holds its compiled loops
and is imported only to draw.
"""
