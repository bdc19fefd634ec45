"""A benchmark of private Bayesian inference: methods that infer from a private release, against its exact posterior.

`tasks` has a release with its exact posterior in each file, `methods` a method in each; new files take part by their
names. `base` is what both are written with, `references` sums and integrals, `metrics` what draws are scored by,
`scoring` runs a method on a task, and `leaderboard` has a row for each method.
"""
