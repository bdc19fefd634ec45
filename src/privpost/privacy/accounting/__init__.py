"""Costs, their composition and conversion, and the settings that a budget allows.

A user calls `costs` (`Cost`, conversions) and `composition.compose`. `approximate` finds settings that meet an (ε, δ)
budget, `losses` has the laws that composition needs, and `gibbs` computes the cost of Markov chains that query the
data. For real data, `secure_noise` finds noise and `proved` finds posterior draws whose cost is proved.
"""
