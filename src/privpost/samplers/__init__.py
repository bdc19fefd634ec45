"""What draws from distributions that are given: chains, exact draws, quadrature. None of it spends privacy.

A user calls a mechanism's `posterior` or `perturb`, which call these. Each folder's own text names the file to begin
with: `noise_aware`, `hidden_markov`, `logistic`, `naive_bayes`, `truncated_dirichlet`. `chain` is the interface of all
Markov chains, `compiled` makes loops fast and caches them, `incomplete_gamma` has functions for compiled loops.
"""
