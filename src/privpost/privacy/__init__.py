"""Privacy costs of releases, and the ledger, which charges every release before it is made.

A user calls `Cost` (`accounting`) and `Ledger` (`ledger`), and `compose` for the cost of several releases together.
`divergences` computes the costs of mechanisms. `audit` estimates lower bounds of a cost from releases. `checks` refuses
settings before anything is drawn. `count_tables` and `redaction` bound the sensitivity of event counts and of sums.
"""
