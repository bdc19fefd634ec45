"""Samplers of given distributions: Markov chains, exact draws and quadrature.

Users call a mechanism's `posterior` or `perturb`, which call the samplers. No sampler spends privacy. The folders
`noise_aware`, `hidden_markov`, `logistic`, `naive_bayes` and `truncated_dirichlet` say in their docstrings which file
to read first. `chain` is the interface of all Markov chains, `compiled` compiles and caches loops, and
`incomplete_gamma` has functions for compiled loops.
"""
