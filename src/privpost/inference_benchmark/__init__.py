"""A benchmark that compares methods of private Bayesian inference with the exact posterior given the same release.

Each file in `tasks` has releases with their exact posteriors, and each file in `methods` has a method. `base` has the
base classes. `references` computes exact posteriors, `metrics` scores draws, `scoring` runs a method on a task, and
`leaderboard` has a row for each method.
"""
