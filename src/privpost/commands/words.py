"""The words of a command line: what --help lists of a study, and what a shell completes."""

import contextlib
import os
import sys

from privpost import configurations
from privpost.lab import compose, grid, schema, study
from privpost.lab.request import WORDS
from privpost.lab.schema import SettingError

# Hydra's settings that a user of a sweep types most; `privpost --hydra-help` has all.
HYDRAS = ("hydra/launcher=", "hydra/sweeper=", "hydra.sweep.dir=", "hydra.run.dir=")


def groups() -> dict[str, list[str]]:
    """Return the configuration groups that a command line chooses from, and their options."""
    folder = configurations.folder()
    options = {name: sorted(path.stem for path in (folder / name).glob("*.yaml")) for name in ("dataset", "scale")}
    return {"study": compose.study_names(), **options}


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


def completed(line: str, commands: list[str]) -> list[str]:
    """Return the words that may stand at the end of a command line."""
    words = line.split(" ")
    word, given = words[-1], dict(word.split("=", 1) for word in words[1:] if "=" in word)
    key, equals, _ = word.partition("=")
    known = groups()
    if not equals:
        keys = [*WORDS, "dataset"]
        with contextlib.suppress(SettingError, KeyError):
            keys = [*grid.load_study(given["study"]).schema.fields, *study.SIZES, *keys]
        offered = [*dict.fromkeys(f"{key}=" for key in keys), *HYDRAS]
        return [text for text in (offered + commands if len(words) == 2 else offered) if text.startswith(word)]
    values = known.get(key, ["true", "false"] if key == "fresh" else [])
    with contextlib.suppress(SettingError, KeyError):
        field = grid.load_study(given["study"]).schema.fields[key]
        values = ["true", "false"] if isinstance(field, schema.Flag) else list(getattr(field, "words", values))
    return [f"{key}={value}" for value in values if f"{key}={value}".startswith(word)]


def complete(commands: list[str]) -> bool:
    """Print what completes the line of a shell that asks, as Hydra's completion does; False where Hydra has to."""
    line = os.environ.get("COMP_LINE", "")
    last = line.split(" ")[-1]
    if "query=bash" not in sys.argv or (last.startswith("hydra/") and "=" in last):
        return False
    print(" ".join(completed(line, commands)))
    return True
