"""Divergences between what a mechanism releases about neighbouring data sets.

A mechanism calls `renyi` (closed forms, suprema over neighbours), `glm` (regressions), or, given its density or
probabilities alone, `densities` and `masses`. `certified` bounds them in rigorous interval arithmetic for real data.
"""
