"""The hidden Markov model of events: the paper's Gibbs sampler, its starts and its log joint."""
