"""Statistics plus random noise, and answers that are changed at random.

A user calls the classes of `laplace`, `gaussian` and `discrete` (counts and sums), `redacted` (sums of unbounded
records), `network` and `fourier` (Bayesian networks), `event_counts`, `moments_laplace` and `moments_gaussian` (linear
regression), and `randomised_response`. For `privpost release` there are `moments_lattice` and `logistic_lattice`. The
bases `additive`, `deviation` and `moments` serve them: a new noise derives from one of these.
"""
