"""Posterior draws that are made private: by weighting the prior or likelihood, by truncation, or by a temperature.

A user calls the classes of `posterior` (conjugate models), `gamma`, `linear` and `network`. For logistic regression
there are `logistic_sampling` and `logistic_ops` (exact draws), and `logistic_finite` (approximate draws). For hidden
Markov models there are `event_states` and `private_gibbs`. `rounded` and `logistic_ball` serve `privpost release`,
which draws from real data. `weighted` has base classes.
"""
