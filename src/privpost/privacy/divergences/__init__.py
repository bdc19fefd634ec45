"""Divergences between the laws of a mechanism's releases about neighbouring data sets.

A mechanism uses `renyi` (closed forms and suprema over neighbours) or `glm` (regressions). If only the density of a
release is known, the mechanism uses `densities`, and for known probabilities `masses`. For real data, `certified`
bounds costs by interval arithmetic.
"""
