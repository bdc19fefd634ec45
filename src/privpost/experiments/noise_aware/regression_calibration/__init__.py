"""Calibration of linear regression from noisy second moments, on data from its prior."""
