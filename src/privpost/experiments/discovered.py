"""The setting for the mechanisms of a study that takes all there are: a new mechanism takes part by itself."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from privpost.lab.schema import Setting, SettingError, suggest


@dataclass(frozen=True)
class Discovered(Setting):
    """`all`, or a list of names, among those that `known` returns.

    The normal form is the sorted list, so a new mechanism changes the digest and the study is computed again.
    """

    known: Callable[[], set[str]]

    def allowed(self) -> str:
        return "all or a list of " + ", ".join(sorted(self.known()))

    def checked(self, value: Any) -> list[str]:
        known = self.known()
        if value == "all":
            return sorted(known)
        if not isinstance(value, list) or not value:
            raise ValueError
        for name in value:
            if name not in known:
                raise SettingError(f"{name!r} is none of {', '.join(sorted(known))}.{suggest(str(name), known)}")
        return sorted(set(value))
