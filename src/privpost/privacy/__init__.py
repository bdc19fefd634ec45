"""What releases cost, and the gate through which all of them go.

A user calls `Cost` (`accounting`) and `Ledger` (`ledger`), and `compose` for several releases. `divergences` is where
costs of mechanisms come from. `audit` bounds a cost from below by releases; `checks` refuses settings before anything
is drawn; `count_tables` and `redaction` are the bounds of event counts and of unbounded sums.
"""
