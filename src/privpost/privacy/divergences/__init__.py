"""Divergences between the laws of a mechanism's releases about neighbouring data sets.

A mechanism uses `renyi` (closed forms and suprema over neighbours) or `glm` (regressions); if only its density or its
probabilities are known, `densities` or `masses`. For real data, `certified` bounds costs by interval arithmetic.
"""
