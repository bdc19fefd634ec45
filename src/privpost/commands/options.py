"""Options that several commands check in one way."""

from privpost.lab.schema import SettingError


def positive(option: str, text: str) -> int:
    """Return an option's whole number of at least 1; raises SettingError for anything else."""
    if not text.isdecimal() or int(text) < 1:
        raise SettingError(f"{option} is {text!r}, but must be a whole number of at least 1.")
    return int(text)
