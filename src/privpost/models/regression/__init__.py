"""Regressions of a number (`linear`, `normal`) and of a binary outcome (`logistic`, `link`).

Users call `LinearRegression` (known noise), `NormalRegression` (unknown noise), `BinaryRegression` and
`LinkRegression`. `logistic` has the posterior's density, gradient and mode for `binary` and the samplers.
"""
