"""Divergences between the laws of a mechanism's releases about neighbouring data sets.

A mechanism uses `renyi` (closed forms and suprema over neighbours) or `glm` (regressions). If only its density is known
it uses `densities`, and if only its probabilities are known, `masses`. For real data, `certified` bounds costs by
interval arithmetic.
"""
