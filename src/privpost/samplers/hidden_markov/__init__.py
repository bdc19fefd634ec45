"""The hidden Markov model of events: the paper's Gibbs sampler, its starts and its log joint.

Users call `gibbs`: its function `follow` runs `Chains`, which are made from a `Law`, a `Layout` and a `Prior`. `seeds`
gives chains seeded starts, `joint` computes the log joint by which chains are compared, and `kernels` holds the
compiled sweep.
"""
