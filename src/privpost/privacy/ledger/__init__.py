"""Ledgers, which charge each release to an account's budget before its mechanism draws from private data.

`gate` has `Ledger`, which users call. `account` is one account. `described` converts mechanisms and models to JSON.
`file` keeps a ledger on disk for `privpost release`.
"""
