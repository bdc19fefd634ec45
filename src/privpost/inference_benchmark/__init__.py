"""A benchmark of private Bayesian inference: it compares methods with the exact posterior given the same release.

Each file in `tasks` has releases with their exact posteriors. Each file in `methods` has a method. New files take part
by their names. Tasks and methods use the classes in `base`. `references` computes exact posteriors by sums and
integrals, `metrics` scores draws, `scoring` runs a method on a task, and `leaderboard` has a row for each method.
"""
