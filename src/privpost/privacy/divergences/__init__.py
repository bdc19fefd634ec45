"""Divergences between the laws of a mechanism's releases about neighbouring data sets.

`renyi` has closed forms and suprema over neighbours, and `glm` has costs for regressions. `densities` and `masses`
compute divergences from any density or probabilities of a release. `certified` bounds costs by interval arithmetic.
"""
