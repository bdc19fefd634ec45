"""Posteriors of event counts given noisy ones, with the noise in their law."""
