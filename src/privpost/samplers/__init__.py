"""Samplers of given distributions: Markov chains, exact draws and quadrature. No sampler spends privacy.

Users call a mechanism's `posterior` or `perturb`, which call the samplers. Each folder (`noise_aware`, `hidden_markov`,
`logistic`, `naive_bayes`, `truncated_dirichlet`) names in its docstring the file to read first. `chain` is the
interface of all Markov chains, `compiled` compiles and caches loops, and `incomplete_gamma` has functions that compiled
loops call.
"""
