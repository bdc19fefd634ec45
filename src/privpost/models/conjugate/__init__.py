"""Models whose posterior belongs to the prior's family; each file is one, which `privpost.discovery` finds.

Users call the class that the file is named after, such as `BetaBernoulli`. `univariate` is the base of models with one
unbounded statistic; `clamped_moments` bounds the statistics of normal records of unknown variance for mechanisms.
"""
