"""Parses and checks a command line `[-m] study=... [key=value ...]` before anything runs."""

import itertools
import math
import re
import shlex
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from privpost.lab import grid
from privpost.lab.compose import hydra_value
from privpost.lab.grid import LARGEST_GRID, check_size
from privpost.lab.project import built
from privpost.lab.schema import SettingError, suggest
from privpost.lab.study import SIZES, Cell, Study

MULTIRUN = {"-m", "--multirun"}
DRY_RUN = {"-n", "--dry-run"}
# Keys that choose what runs and where, and are no settings of a study.
WORDS = ("study", "scale", "shard", "fresh", "objective")
# Our sweeper computes every point. Another sweeper, such as optuna, chooses the points that are computed.
OURS = "study"

# A number as Hydra writes it.
_NUMBER = re.compile(r"(?<![\w.'\"])[+-]?(?:\d[\d_]*\.?[\d_]*|\.\d[\d_]*)(?:[eE][+-]?\d+)?(?![\w.'\"])")
# Beginnings of errors of Hydra's parser that only concern the grammar of overrides.
_GRAMMAR = re.compile("no viable|mismatched|extraneous|token recognition|missing ")


class Request(NamedTuple):
    """The cells that a command line asks for, and how to compute them.

    Attributes:
        study: the study. Its tables and figures are in the folder of the build.
        settings: the overrides `key=value` of the study's settings.
        multirun: whether the request is a sweep, with -m.
        shard: `(i, n)` if only the i-th of n parts of the cells was asked for.
        fresh: whether cells in the store are computed again.
        folder: where a sweep's tables and figure go; None for the default folder.
        objective: the table and the column with the number that a sweeper optimises, or None.
        sweeper: which of Hydra's sweepers chooses the points.
    """

    study: Study
    cells: list[Cell]
    settings: list[str]
    multirun: bool
    shard: tuple[int, int] | None
    fresh: bool
    folder: Path | None
    objective: tuple[str, str] | None = None
    sweeper: str = OURS

    @property
    def whole(self) -> bool:
        """Whether the request is for the study's own grid."""
        return self.multirun and not self.settings


def key_of(override: str) -> str:
    """Return the key of an override `key=value`, without Hydra's `++` and without the `within.` of an axis."""
    return override.split("=", 1)[0].lstrip("+").removeprefix("within.")


def words_of(argv: Sequence[str]) -> list[str]:
    """Return the words `key=value` of a command line, and its deletions `~key`, except those of Hydra's own keys."""
    return [word for word in argv if word[:1] != "-" and ("=" in word or re.match("~(?!hydra)", word))]


def understand(argv: list[str]) -> Request:
    """Return what a command line asks for. Hydra's own words (`hydra...`) and options are left to Hydra.

    A whole grid and shards of a grid skip cells whose data set is missing. Raises SettingError for a missing study
    and for a key or a value that is not allowed. The message names the nearest allowed word.
    """
    words = words_of(argv)
    given = _once(words)
    multirun = bool(MULTIRUN & set(argv)) or given.get("hydra.mode") == "MULTIRUN"
    study = _study(given)
    folder = given.get("hydra.sweep.dir", given.get("hydra.run.dir"))
    sweeper = given.get("hydra/sweeper", OURS)
    shard = _shard(given["shard"], multirun) if "shard" in given else None
    if (fresh := given.get("fresh", "false")) not in ("true", "false"):
        raise SettingError(f"fresh is {fresh!r}, but must be true or false.")
    objective = _objective(study, given, sweeper)
    settings = _settings(study, words)
    if settings or not multirun:
        read = values if sweeper == OURS else ends
        cells = _sweep(study, {key_of(word): read(word) for word in settings}, multirun)
    else:
        cells = grid.expand(study)
    cells = grid.shard_of(cells, *shard) if shard else cells
    where = None if folder is None else Path(folder)
    return Request(study, cells, settings, multirun, shard, fresh == "true", where, objective, sweeper)


def cell_of(study: Study, words: Sequence[str]) -> Cell:
    """Return the cell that one job of a sweep computes, given the job's words. Raises the errors of `understand`."""
    return grid.make_cell(study, {key_of(word): values(word)[0] for word in _settings(study, words)})


def _once(words: list[str]) -> dict[str, str]:
    """Return the values in words `key=value`, by key. Raises SettingError for a repeated key of `WORDS` or of Hydra."""
    given: dict[str, str] = {}
    for word in words:
        key, _, value = word.lstrip("+").partition("=")
        if key in given and (key in WORDS or key.startswith("hydra")):
            raise SettingError(f"{key} is given twice, as {given[key]!r} and {value!r}; leave one of them out.")
        given[key] = value
    return given


def grid_on(study: Study, settings: list[str]) -> str:
    """Return advice with the commands that compute the study's grid at some overrides.

    The advice is empty if an override is an axis of the grid.
    """
    given, blocks, commands = {key_of(word): word for word in settings}, grid.blocks(study), []
    if not given or any(key in block for block in blocks for key in given if key != "dataset"):
        return ""
    if "dataset" in given:
        names = {*values(given["dataset"])}
        blocks = [block for block in blocks if names & {*block.get("dataset", ())}] or blocks[:1]
    for block in blocks:
        axes = [f"{key}={','.join(map(hydra_value, axis))}" for key, axis in block.items() if key not in given]
        commands += [shlex.join(["privpost", "-m", f"study={study.name}", *settings, *axes])] if axes else []
    said = f"{' '.join(settings)} alone is one point, at the study's other settings; the grid with it:"
    return "\n  ".join([said, *dict.fromkeys(commands)]) if commands else ""


def _study(given: Mapping[str, str]) -> Study:
    if "study" not in given:
        near = next((f" {key!r} is no setting; did you mean 'study'?" for key in given if suggest(key, ["study"])), "")
        raise SettingError(f"study is missing.{near} Say study=<paper>/<study>; privpost list shows all.")
    if "," in given["study"]:
        first = given["study"].split(",")[0]
        raise SettingError(
            f"study is {given['study']!r}, but a run computes one study: say privpost -m study={first} and the others "
            "one by one, or privpost reproduce with several names."
        )
    if "," in (scale := given.get("scale", "paper")):
        first = scale.split(",")[0]
        raise SettingError(
            f"scale is {scale!r}, but a run or a sweep has one scale: say scale={first} and the others one by one."
        )
    return grid.load_study(given["study"], scale, built(scale))


def _objective(study: Study, given: Mapping[str, str], sweeper: str) -> tuple[str, str] | None:
    """Return table and column of `objective=<table>.<column>`, or None without an objective."""
    known = ", ".join(f"{name}.<column>" for name in study.tables)
    if (text := given.get("objective")) is None:
        if sweeper in (OURS, "basic"):
            return None
        raise SettingError(f"objective is missing: hydra/sweeper={sweeper} chooses points by it; it must be {known}.")
    table, _, column = text.partition(".")
    if table not in study.tables or not column:
        raise SettingError(f"objective is {text!r}, but must be {known}.{suggest(table, study.tables)}")
    return table, column


def _shard(text: str, multirun: bool) -> tuple[int, int]:
    """Return i and n of `shard=i/n`, the i-th of n parts of a sweep's cells."""
    parts = re.fullmatch(r"([1-9]\d*)/([1-9]\d*)", text)
    if parts is None or int(parts[1]) > int(parts[2]):
        raise SettingError(f"shard is {text!r}, but must be i/n with i from 1 to n, for instance shard=3/40.")
    if not multirun:
        raise SettingError("shard is a part of a sweep: say privpost -m study=... shard=i/n.")
    return int(parts[1]), int(parts[2])


def _settings(study: Study, words: Sequence[str]) -> list[str]:
    """Return the words that override the study's settings, after checking the keys."""
    settings = [word for word in words if key_of(word) not in WORDS and not key_of(word).startswith("hydra")]
    within, keys = study.config["within"], [key_of(word) for word in settings]
    for word, key in zip(settings, keys, strict=True):
        added = word[0] in "+~" and not word.startswith("++")
        if key not in within and (added or word.lstrip("+").startswith("within.")):
            raise SettingError(f"{word!r}: a study's settings can be changed (key=value), not added or removed.")
        if key not in study.schema and key not in SIZES:
            raise study.schema.unknown(key, study.file, others=[*SIZES, *WORDS])
        if keys.count(key) > 1:
            raise SettingError(f"{key} is given twice; list its values in one word ({key}=a,b).")
    return settings


def _sweep(study: Study, axes: Mapping[str, list], multirun: bool) -> list[Cell]:
    """Return the cells of a sweep over all combinations of the axes' values."""
    sweeping = [key for key, axis in axes.items() if len(axis) > 1]
    if sweeping and not multirun:
        raise SettingError(
            f"{sweeping[0]} has {len(axes[sweeping[0]])} values, but a run takes one. For a sweep say privpost -m "
            f"study={study.name} ..."
        )
    check_size(math.prod(map(len, axes.values())), " ".join(axes))
    points = (dict(zip(axes, combination, strict=True)) for combination in itertools.product(*axes.values()))
    return grid.make_cells(study, points)


def values(word: str) -> list:
    """Return the values that an override gives to a key: one value, or all values of a sweep.

    Raises SettingError for a value that is not in Hydra's grammar, and for a sweep over names (glob).
    """
    from hydra.core.override_parser.overrides_parser import OverridesParser
    from hydra.core.override_parser.types import Override, RangeSweep
    from hydra.errors import HydraException

    for number in _NUMBER.findall(word.partition("=")[2]):
        digits = re.split("[eE]", number)[0]
        if math.isinf(float(number)) or (float(number) == 0 and re.search("[1-9]", digits)):
            raise SettingError(
                f"{word!r}: {number} is outside the range of floating-point numbers (5e-324 to 1.8e308)."
            )
    try:
        override = OverridesParser.create().parse_override(word)
        value = override.value()
        if not override.is_sweep_override():
            return [value]
        text = word.partition("=")[2]
        # For a range within a function, such as sort(range(7,0,-3)), Hydra yields numbers that are not in the range.
        in_function = isinstance(value, RangeSweep) and not text.strip().startswith("range(")
        if not override.is_discrete_sweep() or text.startswith("glob(") or in_function:
            raise SettingError(f"{word!r}: list the values (key=a,b) or give a range (key=range(1,4)).")
        if not isinstance(value, RangeSweep):
            return [Override._convert_value(item) for item in override.sweep_iterator()]
        if not (value.step and abs((value.stop - value.start) / value.step) <= LARGEST_GRID):
            raise SettingError(f"{word!r} has too many values; at most {LARGEST_GRID} are allowed.")
        # Hydra adds up steps, but 0.1 + 0.1 + 0.1 is not 0.3. Rounding gives the numbers that the user means.
        numbers = [float(f"{item:.12g}") if isinstance(item, float) else item for item in override.sweep_iterator()]
        if not (before := [number for number in numbers if number != value.stop]):
            raise SettingError(f"{word!r} has no values: a range stops before its second number.")
        return before
    except SettingError:
        raise
    # A range with infinite numbers, or with too many digits, raises errors that are not Hydra's.
    except (HydraException, ValueError, ArithmeticError) as error:
        reason = next(iter(str(error).splitlines()), "")
        if _GRAMMAR.match(reason):
            reason = "it must be key=value, with every bracket and quote closed."
        raise SettingError(f"{word!r} cannot be read: {reason}") from error


def ends(word: str) -> list:
    """Return both ends of the interval in an override for another sweeper; without one, the result of `values`."""
    if (interval := re.search(r"interval\(([^(),]+),([^(),]+)\)", word)) is None:
        return values(word)
    values(f"{word.split('=', 1)[0]}=[{interval[1]},{interval[2]}]")
    return [values(f"key={end}")[0] for end in interval.groups()]
