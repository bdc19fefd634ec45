"""The published tables, for use in Python."""

from typing import TYPE_CHECKING

from privpost.experiments.columns import of_column
from privpost.lab import grid, tables

if TYPE_CHECKING:
    from pandas import DataFrame


def results(study: str) -> "dict[str, DataFrame]":
    """Return a study's published tables by name, each with the meanings of its columns in `attrs["meanings"]`.

    Call the function inside a checkout. It raises SettingError for an unknown study or a table that was altered by
    hand, and FileNotFoundError for a missing table.

    >>> import privpost
    >>> table = privpost.results("geumlek2017/rdp_curves")["rdp_curves"]
    >>> table.attrs["meanings"]["coefficient"][:6]
    'r, the'
    """
    loaded = grid.load_study(study)
    frames = tables.read_tables(loaded)
    for name, frame in frames.items():
        known = ((column, of_column(loaded, name, column)) for column in frame)
        frame.attrs["meanings"] = {c: f"{m.text} [{m.unit}]" if m.unit else m.text for c, m in known if m}
    return frames
