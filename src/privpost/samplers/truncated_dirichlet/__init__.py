"""The Dirichlet distribution truncated to probabilities of at least a lower bound.

A user calls `exact.sample`: independent draws for any number of levels. `kernels` are its compiled loops, which it
imports only to draw.
"""
