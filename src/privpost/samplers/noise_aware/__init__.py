"""Posteriors given noisy statistics, with the noise in their law.

A user calls the `posterior` of a mechanism; `draws` chooses the chain and returns its draws with diagnostics. Chains:
`gibbs` (Bernstein and Sheldon 2018, algorithm 1), `redacted` and `normal` (algorithm 2), `regression` and `moments`
(linear regression), `records` and `table` (Bayesian networks), `event_counts` (hidden Markov models). Without a chain:
`exact`, `exact_counts`, `quadrature`, `normal_quadrature` and `regression_quadrature`, by which the chains are checked.
`convolution`, `counts`, `event_kernels` and `table_kernels` are compiled loops that serve these.
"""
