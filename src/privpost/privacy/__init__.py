"""Privacy costs of releases, and the ledger that charges each release before it is made.

`accounting` has `Cost`, and `compose` for the cost of several releases together. `ledger` has `Ledger`. `divergences`
computes the costs of mechanisms. `audit` estimates lower bounds of a cost from releases. `checks` refuses wrong
settings. `count_tables` and `redaction` bound the sensitivity of event counts and of sums.
"""
