"""Regressions: of a number (`linear`, `normal`) and of a binary outcome (`logistic`, `link`).

A user calls `LinearRegression` (known noise), `NormalRegression` (unknown noise), `BinaryRegression` and
`LinkRegression`. `logistic` serves `binary` and the samplers: the posterior's density, gradient and mode.
"""
