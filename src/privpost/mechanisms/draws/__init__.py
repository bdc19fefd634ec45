"""Posterior draws that are made private: by weighting the prior or likelihood, by truncation, or by a temperature.

A user calls the classes of `posterior` (conjugate models), `gamma`, `linear` and `network`, of `logistic_sampling` and
`logistic_ops` (exact draws of logistic regression), `logistic_finite` (approximate ones), and `event_states` and
`private_gibbs` (hidden Markov models). `rounded` and `logistic_ball` serve `privpost release`, which draws from real
data. `weighted` is the base class of draws with a weighting.
"""
