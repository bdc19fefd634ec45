"""Posteriors given noisy statistics, with the noise taken into account.

Users call the `posterior` of a mechanism, and `draws` runs chains with diagnostics. The chains are `gibbs` (Bernstein
and Sheldon 2018, algorithm 1), `redacted` and `normal` (algorithm 2), `regression` and `moments` (linear regression),
`records` and `table` (Bayesian networks) and `event_counts` (hidden Markov models). `exact`, `exact_counts`,
`quadrature`, `normal_quadrature` and `regression_quadrature` need no chain, and check the chains. Compiled loops are in
`convolution`, `counts`, `event_kernels` and `table_kernels`.
"""
