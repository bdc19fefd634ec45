"""Models whose posterior is of the prior's family; each file is one, found by `privpost.discovery`.

A user calls the class that the file is named after, such as `BetaBernoulli`. `univariate` serves those of one unbounded
statistic, `clamped_moments` is what mechanisms see of normal records of unknown variance.
"""
