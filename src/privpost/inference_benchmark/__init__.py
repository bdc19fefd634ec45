"""A benchmark of private Bayesian inference: methods that infer from a private release, against its exact posterior.

Each file in `tasks` has releases with their exact posteriors, each file in `methods` a method; new files take part by
their names. Both are written with `base`. `references` computes exact posteriors by sums and integrals, `metrics` has
the scores of draws, `scoring` runs a method on a task, and `leaderboard` has a row for each method.
"""
