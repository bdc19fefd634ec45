"""Verdicts on the statements of the papers and on our own, read from the tables alone."""
