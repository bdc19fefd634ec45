"""Conjugate models, whose posterior belongs to the prior's family.

Users call the class that a file is named after, such as `BetaBernoulli`. `univariate` is the base of models with one
unbounded statistic. `clamped_moments` bounds the statistics of normal records with unknown variance.
"""
