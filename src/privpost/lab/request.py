"""What a command line `[-m] study=... [key=value ...]` asks for: understood and checked before anything runs."""

import itertools
import math
import re
from collections.abc import Mapping
from typing import NamedTuple

from privpost.lab import grid
from privpost.lab.axes import LARGEST_GRID, check_size
from privpost.lab.compose import hydra_value
from privpost.lab.schema import SettingError, suggest
from privpost.lab.study import Cell, Study

# Overrides that choose what runs and where, rather than a setting of the study.
_NOT_SETTINGS = {"study", "shard", *grid.RUN}
MULTIRUN = {"-m", "--multirun"}
DRY_RUN = {"-n", "--dry-run"}


class Request(NamedTuple):
    """The cells that a command line asks for, with what it said of how to compute them.

    `settings` are the overrides of the study's settings, as Hydra has to be told them, `others` the rest of the words.
    """

    study: Study
    cells: list[Cell]
    settings: list[str]
    others: list[str]
    multirun: bool
    # The part `(i, n)` of the cells that was asked for (shard=i/n), and the digest that it is expected to have.
    shard: tuple[int, int] | None
    expect: str | None

    @property
    def whole(self) -> bool:
        """Whether this is the study's own grid."""
        return self.multirun and not self.settings

    @property
    def launcher(self) -> bool:
        """Whether Hydra is told how to run the jobs."""
        return any(map(_is_hydras, self.others))

    @property
    def runs(self) -> list[list[str]]:
        """The arguments of the runs of Hydra that compute the cells: a ragged grid takes several."""
        if not self.whole:
            return [["-m"] * self.multirun + self.others + [_listed(word) for word in self.settings]]
        blocks = grid.sweep_blocks(self.study)
        return [["-m", *self.others, *(_sweep_word(self.study, *axis) for axis in block.items())] for block in blocks]

    def check_digest(self) -> None:
        """Raise SettingError when the cells are not those that `expect` names."""
        one = len(self.cells) == 1 and self.shard is None
        digest = self.cells[0].digest if one else grid.joint_digest(self.cells)
        if self.expect not in (None, digest):
            raise SettingError(
                f"expect is {self.expect}, but these settings have the digest {digest}: the configuration changed "
                "since the run was planned. Nothing was computed; start the run again."
            )


def key_of(override: str) -> str:
    """Return the key of an override `key=value`, without Hydra's `++` and without the `within.` of an axis."""
    return override.split("=", 1)[0].lstrip("+").removeprefix("within.")


def understand(argv: list[str]) -> Request:
    """Return what a command line asks for.

    Of a shard of a study's own grid those cells are left out whose bring-your-own data set cannot be had, as in a
    rebuild. Raises SettingError for a missing study, and for a key or a value that is not allowed, with the nearest
    right one.
    """
    words = [word for word in argv if "=" in word and not word.startswith("-")]
    flags = {word for word in argv if word not in words}
    if unknown := sorted(flags - {*MULTIRUN, *DRY_RUN}):
        raise SettingError(
            f"there is no option {unknown[0]!r}; a run takes -m, -n and key=value words (see privpost --help)"
        )
    multirun = bool(MULTIRUN & flags)
    given = {word.split("=", 1)[0]: word.split("=", 1)[1] for word in words}
    if "study" not in given:
        hint = next((suggest(key, ["study"]) for key in given if suggest(key, ["study"])), "")
        raise SettingError(
            f"study is missing.{hint} Say study=<paper>/<study>, one of {', '.join(grid.study_names())}."
        )
    where = [f"{key}={given[key]}" for key in ("root", "figure_root") if key in given]
    study = grid.load_study(given["study"], given.get("scale", "paper"), where)
    if study.config.get("reads"):
        # Its cells are those of what it can read.
        study = grid.without_missing(study)
    others = [word for word in words if not _is_setting(word) and key_of(word) != "shard"]
    shard = _shard(given["shard"], multirun, others) if "shard" in given else None
    settings = [_translated(study, word) for word in words if _is_setting(word)]
    if settings or not multirun:
        cells = _sweep(study, {key_of(word): _values(word) for word in settings}, multirun, shard)
    elif shard:
        cells = grid.shard_of(grid.expand(grid.without_missing(study)), *shard)
    else:
        cells = grid.expand(study)
    expect = given["expect"].strip("'") if "expect" in given else None
    return Request(study, list(cells), settings, others, multirun, shard, expect)


def _shard(text: str, multirun: bool, others: list[str]) -> tuple[int, int]:
    """Return i and n of `shard=i/n`, a part of the cells in one process and without Hydra."""
    parts = re.fullmatch(r"([1-9]\d*)/([1-9]\d*)", text)
    if parts is None or int(parts[1]) > int(parts[2]):
        raise SettingError(f"shard is {text!r}, but must be i/n with i from 1 to n, for instance shard=3/40.")
    if not multirun:
        raise SettingError("shard is a part of a sweep: say privpost -m study=... shard=i/n.")
    if launchers := [word for word in others if _is_hydras(word)]:
        raise SettingError(f"{launchers[0]!r}: a shard is computed in one process, without Hydra's launchers.")
    return int(parts[1]), int(parts[2])


def _sweep(study: Study, axes: Mapping[str, list], multirun: bool, shard: tuple[int, int] | None) -> list[Cell]:
    """Return the cells of a sweep, or with a shard `(i, n)` every n-th of its points from the i-th on."""
    sweeping = [key for key, values in axes.items() if len(values) > 1]
    if sweeping and not multirun:
        raise SettingError(f"{sweeping[0]} has several values, which is a sweep: say privpost -m study=...")
    number, count = shard or (1, 1)
    check_size(math.prod(map(len, axes.values())) // count, " ".join(axes))
    combinations = itertools.islice(itertools.product(*axes.values()), number - 1, None, count)
    points = (dict(zip(axes, values, strict=True)) for values in combinations)
    return list({cell.digest: cell for cell in grid.make_cells(study, points)}.values())


def _is_setting(word: str) -> bool:
    return key_of(word) not in _NOT_SETTINGS and not _is_hydras(word)


def _is_hydras(word: str) -> bool:
    return word.lstrip("+").startswith("hydra")


def _translated(study: Study, word: str) -> str:
    """Return an override of a setting as Hydra has to be told it, after checking its key."""
    key, value = key_of(word), word.split("=", 1)[1]
    within = study.config["within"]
    if key not in within and (word[0] in "+~" or word.startswith("within.")):
        raise SettingError(f"{word!r}: a study's settings can be changed (key=value), not added or removed.")
    if key not in study.schema and key not in grid.SIZES:
        raise study.schema.unknown(key, study.file, others=[*grid.SIZES, "scale"])
    if key not in within:
        return f"{key}={value}"
    return "++" + _pinned(key, _values(f"{key}={value}"))


def _values(word: str) -> list:
    """Return the values that an override gives to its key: one, or those of a sweep.

    Raises SettingError for a value that Hydra's grammar does not know, and for a sweep over names (glob).
    """
    from hydra.core.override_parser.overrides_parser import OverridesParser
    from hydra.errors import HydraException

    parser = OverridesParser.create()
    listed = SettingError(f"{word!r}: list the values (key=a,b) or give a range (key=range(1,4)).")
    if word.partition("=")[2].startswith("glob("):
        raise listed
    try:
        override = parser.parse_override(word)
        if not override.is_sweep_override():
            return [override.value()]
        if not override.is_discrete_sweep():
            raise listed
        if not _length(override.value()) <= LARGEST_GRID:
            raise SettingError(f"{word!r} has too many values; at most {LARGEST_GRID} are allowed.")
        texts = list(override.sweep_string_iterator())
        # Hydra's parser takes a millisecond a value; plain numbers, of which sweeps have thousands, need none.
        values = [
            _number(text) if _NUMBER.fullmatch(text) else parser.parse_override(f"key={text}").value() for text in texts
        ]
        # The sums of a range are not the numbers that a user means: 0.1 + 0.1 + 0.1 is not 0.3.
        return [_rounded(value) for value in values] if _is_range(override.value()) else values
    except SettingError:
        raise
    # Beside Hydra's own errors those of the numbers in a range: without end, or with too many digits.
    except (HydraException, ValueError, ArithmeticError) as error:
        reason = next(iter(str(error).splitlines()), "")
        raise SettingError(f"{word!r} cannot be read: {reason}") from error


_NUMBER = re.compile(r"-?(0|[1-9][0-9]*)(\.[0-9]+)?(e[+-]?[0-9]+)?")


def _is_range(sweep) -> bool:
    from hydra.core.override_parser.types import RangeSweep

    return isinstance(sweep, RangeSweep)


def _length(sweep) -> float:
    """Return how many values a sweep has, for a range without counting them out."""
    if not _is_range(sweep):
        return 0
    return abs((sweep.stop - sweep.start) / sweep.step) if sweep.step else math.inf


def _number(text: str) -> int | float:
    return int(text) if text.lstrip("-").isdecimal() else float(text)


def _rounded(value: float) -> float:
    return float(f"{value:.12g}") if isinstance(value, float) else value


def _listed(word: str) -> str:
    """Return an override with a range written out, as Hydra gives a range's values unrounded."""
    key, value = word.split("=", 1)
    return f"{key}={','.join(map(hydra_value, _values(word)))}" if value.startswith("range(") else word


def _pinned(key: str, values: list) -> str:
    lists = [value if isinstance(value, list) else [value] for value in values]
    return f"{key}={','.join(hydra_value(items) for items in lists)}"


def _sweep_word(study: Study, key: str, values: list) -> str:
    if key in study.config["within"]:
        return "++" + _pinned(key, values)
    return f"{key}={','.join(hydra_value(value) for value in values)}"
