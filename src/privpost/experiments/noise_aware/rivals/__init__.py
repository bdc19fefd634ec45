"""Methods of noise-aware inference, compared with the exact posterior given the same releases."""
