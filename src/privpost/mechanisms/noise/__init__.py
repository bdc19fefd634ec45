"""Mechanisms that add noise to statistics, and randomised response.

A user calls the classes of `laplace`, `gaussian` and `discrete` (counts and sums), `redacted` (sums of unbounded
records), `network` and `fourier` (Bayesian networks), `event_counts`, `moments_laplace` and `moments_gaussian` (linear
regression), and `randomised_response`. `moments_lattice` and `logistic_lattice` serve `privpost release`. A mechanism
with a new kind of noise derives from a base class in `additive`, `deviation` or `moments`.
"""
