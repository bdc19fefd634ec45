"""The options that commands share, told in one way."""

import argparse


def parser(command: str, text: str, *, study: str = "", root: bool = False) -> argparse.ArgumentParser:
    """Return the parser of a command that works at a scale.

    `study` says whether it is given `one` study, `any` number of them, or none (""); `root` whether results may be in
    another folder than the scale's own.
    """
    found = argparse.ArgumentParser(prog=f"privpost {command}", description=text)
    if study == "one":
        found.add_argument("study", help="<paper>/<study>")
    if study == "any":
        found.add_argument("study", nargs="*", help="<paper>/<study>; all studies when none is named")
    found.add_argument("--scale", default="paper", help="paper (default) or smoke")
    if root:
        found.add_argument("--root", help="where results are, when not the scale's own folder")
    return found
