"""The options that commands share, told in one way."""

import argparse

from privpost.lab.schema import SettingError


def parser(command: str, text: str, *, study: str = "", built: bool = False) -> argparse.ArgumentParser:
    """Return the parser of a command that works at a scale.

    `study` says whether it takes `one` study, `any` number, or none (""); `built` adds an option to read what was built
    in place of what is published.
    """
    options = argparse.ArgumentParser(prog=f"privpost {command}", description=text)
    if study == "one":
        options.add_argument("study", help="<paper>/<study>")
    if study == "any":
        options.add_argument("study", nargs="*", help="<paper>/<study>, or a paper; all studies when none is named")
    options.add_argument("--scale", default="paper", help="paper (default) or smoke")
    if built:
        options.add_argument(
            "--built", action="store_true", help="use the tables under build/ instead of the published ones"
        )
    return options


def positive(option: str, text: str) -> int:
    """Return an option's whole number of at least 1; raises SettingError for anything else."""
    if not text.isdecimal() or int(text) < 1:
        raise SettingError(f"{option} is {text!r}, but must be a whole number of at least 1.")
    return int(text)
