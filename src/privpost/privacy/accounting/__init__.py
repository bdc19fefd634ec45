"""Costs, their composition and conversion, and the settings that a budget allows.

A user calls `costs` (`Cost`, conversions) and `composition.compose`. `approximate` finds settings that meet an (ε, δ)
budget, `losses` has the laws that composition needs, and `gibbs` computes the cost of Markov chains that query the
data. `secure_noise` and `proved` find the noise and the draws for real data, whose cost must be proved.
"""
