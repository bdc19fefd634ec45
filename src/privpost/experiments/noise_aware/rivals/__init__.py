"""Noise-aware inference by several methods, measured against the exact posterior of the same releases."""
