"""The gate: the only call that draws from private data.

A user calls `Ledger` of `gate`: it checks the account, charges, runs the mechanism and records. `account` is one
account of it, `described` writes mechanisms and models as JSON, `file` keeps a ledger on disk for `privpost release`.
"""
