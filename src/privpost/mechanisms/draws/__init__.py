"""Draws from a posterior, made private by the weight of its prior or likelihood, by a ball or by temperature.

A user calls the classes of `posterior` (conjugate models), `gamma`, `linear` and `network`, `logistic_sampling` and
`logistic_ops` (exact draws of logistic regression), `logistic_finite` (without exact draws), `event_states` and
`private_gibbs` (hidden Markov models). For `privpost release` there are `rounded` and `logistic_ball`. `weighted`, the
base of draws with a weighting, serves them.
"""
