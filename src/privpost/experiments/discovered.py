"""The setting that names which mechanisms a study takes, so that a new one appears by itself."""

from collections.abc import Callable


class Discovered:
    """`all`, or a list of names.

    The normal form is the sorted list, so that a new mechanism changes the digest and the study is computed again.
    """

    def __init__(self, known: Callable[[], set[str]]):
        self.known = known

    def describe(self) -> str:
        return "all or a list of " + ", ".join(sorted(self.known()))

    def normalise(self, value):
        known = self.known()
        if value == "all":
            return sorted(known)
        if not isinstance(value, list) or not value or not set(value) <= known:
            raise ValueError
        return sorted(set(value))
