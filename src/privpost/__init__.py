"""Reproducible studies of Bayesian inference under differential privacy."""

__version__ = "0.1.0"
