"""Help on configuration groups and studies, and the shell completions that Hydra does not offer."""

import contextlib
import os
import textwrap
from collections.abc import Mapping

from privpost import configurations
from privpost.lab import compose, grid, request, study
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


def complete(commands: Mapping[str, tuple]) -> bool:
    """Print completions for a shell's last word, and return False if Hydra has to complete the word."""
    line = os.environ.get("COMP_LINE", "").split(" ")
    last, first = line[-1], line[1] if len(line) > 2 else ""
    key, equals, _ = last.partition("=")
    given, fields = dict(word.split("=", 1) for word in line[1:] if "=" in word), {}
    with contextlib.suppress(SettingError, KeyError):
        fields = grid.load_study(given["study"]).schema.fields
    if first in commands:
        known = compose.study_names() if any(names == ("study",) for names, _ in commands[first][2:]) else []
    elif equals:
        values = compose.study_names() if key == "study" else getattr(fields.get(key), "words", ())
        known = [f"{key}={value}" for value in values]
    else:
        keys = dict.fromkeys([*request.WORDS, *fields, *(study.SIZES if fields else ())])
        known = [*(f"{name}=" for name in keys), *(commands if len(line) == 2 else ())]
    offered = [word for word in known if word.startswith(last)]
    print(" ".join(offered), end="")
    hydras = bool(equals) or last.startswith(("hydra", "-")) or (last != "" and "hydra".startswith(last))
    return bool(offered) or first in commands or not hydras
