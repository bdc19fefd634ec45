"""Charges a release to a ledger before anything is drawn. A release that would exceed the budget is refused."""

import contextlib
import datetime
import secrets
from collections.abc import Iterator
from typing import Any

from privpost.atomic import signals_held
from privpost.lab.schema import SettingError
from privpost.privacy.accounting.costs import Cost
from privpost.privacy.accounting.losses import Law
from privpost.privacy.ledger.file import FORMAT, Content, Locked, cost_of, locked
from privpost.progress import counted
from privpost.release.specification import Specification


@contextlib.contextmanager
def charged(spec: Specification, loss: Law | None) -> Iterator[dict[str, Any] | None]:
    """Charge a release to its ledger, and hold signals back until the statement is stored.

    Yield the number of the ledger's entry, the total spent, the budget and the entry's digest. Without a ledger, yield
    None. The sum of all ε and the sum of all δ must stay in the budget. These sums bound the cost even if
    specifications are chosen adaptively. A release that fails stays charged.

    Raises:
        SettingError: the ledger cannot be read or written, is damaged or has another budget, or the release would
            exceed the budget.
    """
    with signals_held() as hold:
        if spec.budget:
            yield _charged(spec, loss, hold)
        else:
            hold()
            yield None


def _charged(spec: Specification, loss: Law | None, hold) -> dict[str, Any]:
    path = spec.ledger
    try:
        while True:
            with locked(path) as ledger:
                hold()
                # If another file got the ledger's name meanwhile, try again with this file.
                if (entry := _charge(spec, loss, ledger)) is not None:
                    return entry
    except OSError as error:
        raise SettingError(f"{spec.path}: budget: {path} cannot be used as a ledger: {error.strerror}") from None


def _charge(spec: Specification, loss: Law | None, ledger: Locked) -> dict[str, Any] | None:
    """Charge the ledger, and return the statement's part on the charge (None if the ledger's file was replaced)."""
    content = ledger.content
    budget, cost = _check(spec, content)
    terms = {"epsilon": budget.epsilon, "delta": budget.delta}
    entry = {
        "release": len(content.entries) + 1,
        "time": datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
        "specification": spec.path.name,
        "sha256": spec.sha256,
        # The nonce gives entries with the same number and time different digests.
        "nonce": secrets.token_hex(8),
        **{name: getattr(spec, name) for name in ("model", "mechanism", "noise")},
        "epsilon": cost.epsilon,
        "delta": cost.delta,
        # The joint cost of several releases follows from the dominating laws of their privacy losses.
        **({"loss": loss.line()} if loss else {}),
    }
    header = [] if content.budget else [{"format": FORMAT, "budget": terms}]
    if (digest := ledger.append([*header, entry])) is None:
        return None
    spent = content._replace(entries=[*content.entries, entry]).spent()
    return {"release": entry["release"], "spent": spent, "budget": terms, "entry_sha256": digest}


def _check(spec: Specification, content: Content) -> tuple[Cost, Cost]:
    """Return the budget and the cost of a release. Raise SettingError if the ledger does not allow this cost."""
    budget, cost = (
        cost_of({"delta": 0.0, **spec.budget}),
        cost_of({"epsilon": spec.epsilon, "delta": spec.delta or 0.0}),
    )
    if content.budget not in (None, budget):
        raise SettingError(
            f"{spec.path}: budget: epsilon {budget.epsilon:g}, delta {budget.delta:g}, but the ledger {spec.ledger} "
            f"was opened with epsilon {content.budget.epsilon:g}, delta {content.budget.delta:g}. Another budget needs "
            "another ledger."
        )
    if not content.leaves(budget, cost):
        total = "{epsilon:g}, delta {delta:g}".format(**content.spent())
        earlier = f"{counted(len(content.entries), 'earlier release')} cost epsilon {total}; " * bool(content.entries)
        raise SettingError(
            f"{spec.path}: budget: {earlier}this one, epsilon {cost.epsilon:g}, delta {cost.delta:g}, would exceed "
            f"epsilon {budget.epsilon:g}, delta {budget.delta:g} ({spec.ledger})."
        )
    return budget, cost
