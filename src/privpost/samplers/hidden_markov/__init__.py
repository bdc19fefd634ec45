"""The hidden Markov model of events: the paper's Gibbs sampler, its starts and its log joint.

A user calls `gibbs`: `follow` runs `Chains` of a `Law` from `Layout` and `Prior`. It is served by
`seeds`, which gives chains seeded starts, by `joint`, the log joint by which chains are compared, and by `kernels`, the
compiled sweep.
"""
