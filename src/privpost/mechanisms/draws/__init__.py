"""Posterior draws that are made private: by weighting the prior or likelihood, by truncation, or by a temperature.

A user calls the classes of `posterior` (conjugate models), `gamma`, `linear` and `network`, of `logistic_sampling` and
`logistic_ops` (exact draws for logistic regression), of `logistic_finite` (approximate draws), and of `event_states`
and `private_gibbs` (hidden Markov models). `rounded` and `logistic_ball` serve `privpost release`, which draws from
real data. `weighted` has base classes.
"""
