"""Costs, their composition and conversion, and the settings that a budget allows.

A user calls `costs` (`Cost`, conversions) and `composition.compose`. `approximate` finds settings that meet (ε, δ);
`losses` are the laws that composition needs; `gibbs` is the cost of Markov chains that query the data; `secure_noise`
and `proved` serve releases of real data, with noise and draws whose cost is proved.
"""
