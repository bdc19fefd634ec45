"""Help on configuration groups and studies, and the shell completions that Hydra does not offer."""

import contextlib
import os
import textwrap
from collections.abc import Iterable

from privpost import configurations
from privpost.lab import compose, grid, study
from privpost.lab.schema import SettingError


def groups() -> str:
    """Return a line for each configuration group that a command line can choose from, with its options."""
    folder = configurations.folder()
    options = {name: sorted(path.stem for path in (folder / name).glob("*.yaml")) for name in ("dataset", "scale")}
    return "\n".join(
        textwrap.fill(", ".join(names), 118, initial_indent=f"  {group:<9}", subsequent_indent=" " * 11)
        for group, names in {"study": compose.study_names(), **options}.items()
    )


def of_study(name: str) -> list[str]:
    """Return a line for each setting of a study: its value, its meaning and what is allowed."""
    chosen = grid.load_study(name)
    cell = grid.make_cell(chosen, {})
    lines = [f"Settings of {name}: {chosen.text['title']}"]
    for key, setting in {**chosen.schema.fields, **study.SIZES}.items():
        value = cell.within.get(key, cell.settings.get(key, cell.sizes.get(key)))
        text = " ".join(filter(None, [setting.says, f"[{setting.unit}]" if setting.unit else ""]))
        shown = str(value) if len(str(value)) < 40 else f"{str(value)[:36]} ..."
        lines.append(f"  {f'{key}={shown}':<44} {text}{'; ' if text else ''}{setting.describe()}")
    return lines


def complete(commands: Iterable[str]) -> bool:
    """Print completions (studies, values or commands) for a shell's last word; returns False if there are none.

    Then Hydra completes the word. Hydra knows keys, scales and data sets, but neither the values of settings nor groups
    with options in sub-folders, such as studies.
    """
    line = os.environ.get("COMP_LINE", "").split(" ")
    key, equals, _ = line[-1].partition("=")
    if key == "study" and equals:
        known: Iterable[str] = compose.study_names()
    else:
        given = dict(word.split("=", 1) for word in line[1:] if "=" in word)
        setting = None
        with contextlib.suppress(SettingError, KeyError):
            setting = grid.load_study(given["study"]).schema.fields.get(key)
        known = getattr(setting, "words", ()) if equals else ()
    words = [f"{key}={value}" for value in known] if equals else (commands if len(line) == 2 else ())
    offered = [word for word in words if word.startswith(line[-1])]
    print(" ".join(offered), end="")
    return bool(offered)
