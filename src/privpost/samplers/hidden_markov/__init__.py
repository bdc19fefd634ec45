"""Gibbs sampler of a hidden Markov model of events (Foulds et al. 2016).

Read `gibbs` first: the function `follow` runs `Chains`. `seeds` chooses the first states, `joint` computes the log
joint density of chains, and `kernels` holds the compiled sweep.
"""
