"""Distributions that mechanisms and samplers draw from, and the sources of noise."""
