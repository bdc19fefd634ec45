"""Costs, their composition and conversion, and the settings that a budget allows.

`costs` has `Cost` and conversions, and `composition` has `compose`. `approximate` finds settings for an (ε, δ) budget.
`losses` has the laws that composition needs. `gibbs` has costs of Markov chains that query the data. For real data,
`secure_noise` finds noise of proved cost, and `proved` finds posterior draws of proved cost.
"""
