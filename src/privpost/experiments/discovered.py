"""Support for studies of all mechanisms, in which new mechanisms take part automatically."""

import contextlib
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

from privpost.lab.schema import Setting, SettingError, suggest
from privpost.privacy.ledger.gate import BudgetExceeded


@dataclass(frozen=True)
class Discovered(Setting):
    """A setting that selects mechanisms: `all`, a list of names that `known` returns, or `none` if allowed."""

    known: Callable[[], set[str]]
    none: bool = field(default=False, kw_only=True)

    def allowed(self) -> str:
        return f"all{', none' * self.none} or a list of " + ", ".join(sorted(self.known()))

    def checked(self, value: Any) -> list[str]:
        known = self.known()
        # With `all`, a new mechanism changes the value, and so the study is computed again.
        if value == "all":
            return sorted(known)
        if self.none and value in ("none", []):
            return []
        if not isinstance(value, list) or not value:
            raise ValueError
        for name in value:
            if name not in known:
                raise SettingError(f"{name!r} is none of {', '.join(sorted(known))}.{suggest(str(name), known)}")
        return sorted(set(value))


class Failed(set[str]):
    """Names of the methods that failed in a study and have no rows."""

    @contextlib.contextmanager
    def alone(self, method: str) -> Iterator[None]:
        """Run one method's part of a study, and report any error except BudgetExceeded instead of raising it."""
        try:
            yield
        except BudgetExceeded:
            raise
        # A contributed mechanism may raise any exception.
        except Exception as error:
            self.add(method)
            reason = " ".join(str(error).split()) or type(error).__name__
            line = f"privpost: {method} is left out: {reason}. When it is mended, compute its cells again: "
            line += "fresh=true (privpost study=...), --fresh (privpost reproduce) or FRESH=1 (make reproduce)."
            print(line, file=sys.stderr, flush=True)
