"""Ledgers, which charge each release to an account's budget before its mechanism draws from private data.

A user calls `Ledger` in `gate`: it checks and charges an account, runs the mechanism and records. `account` is one
account, `described` converts mechanisms and models to JSON, and `file` keeps a ledger on disk for `privpost release`.
"""
