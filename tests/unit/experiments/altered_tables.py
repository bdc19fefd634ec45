"""The shipped tables, with some rows altered, and the results of a study's claim checks on them."""

from __future__ import annotations

import functools
import importlib
import re
from fnmatch import fnmatchcase

from privpost.lab import claims, grid, tables


@functools.cache
def shipped(study):
    """Return the tables of a study, or of all that `<paper>/claims` reads."""
    paper, name = study.split("/")
    studies = [study]
    if name == "claims":
        read = getattr(importlib.import_module(f"privpost.experiments.{paper}.claims"), "READS", ())
        studies = [other for other in grid.study_names() if other.startswith(f"{paper}/") or other in read]
    return {table: frame for one in studies for table, frame in tables.read_tables(grid.load_study(one)).items()}


def altered(frames, table, rows, values):
    """Return tables in which some columns of the rows that a query finds have other values, or those of expressions."""
    frame = frames[table].copy()
    at = frame.query(rows, engine="python").index if rows else frame.index
    assert len(at)
    for column, value in values.items():
        new = frame.loc[at].eval(value) if isinstance(value, str) else value
        # Counts may become any number.
        frame[column] = frame[column].astype(float) if frame[column].dtype.kind == "i" else frame[column]
        frame.loc[at, column] = new
    return {**frames, table: frame}


def judged(study, id, frames):
    """Return the scored claim of an id, which has been declared under that id or for each of some cases; or None."""
    module = importlib.import_module(f"privpost.experiments.{study.replace('/', '.').removesuffix('.claims')}.claims")
    declared = (claim for claim in claims.declared(module) if fnmatchcase(id, re.sub(r"{\w+}", "*", claim.id)))
    scored = (claim.score(frames) for claim in declared)
    return next((claim for claim in scored if claim and claim.id == id), None)


def checks_on(study, id, check, *lies):
    """Return the checks of a claim whose names match a pattern, by name, on shipped tables that lies have altered."""
    claim = judged(study, id, functools.reduce(lambda frames, lie: altered(frames, *lie), lies, shipped(study)))
    checks = claim.checks if claim else {}
    assert all(isinstance(name, str) for name in [*checks, *(claim.evidence if claim else ())])
    return {name: passed for name, passed in checks.items() if fnmatchcase(name, check)}


def sides(study, id, check, place, inside, outside, *lies):
    """Return whether a check passes with rows of a table just inside a limit, and just outside of it.

    Args:
        study, id, check: its study and claim, and a pattern of its name.
        place: the table and the query of its rows.
        inside, outside: values of their columns, or expressions.
        lies: what else is altered, before.
    """
    checks = [checks_on(study, id, check, *lies, (*place, values)) for values in (inside, outside)]
    assert all(checks), f"no check {check!r}"
    return [all(passed.values()) for passed in checks]


def cases(study, *rows):
    """Return the arguments of `sides` for several limits of a study."""
    return [(study, *row) for row in rows]


def columns(column, inside, outside):
    """Return `inside` and `outside` of `sides` where one column decides."""
    return {column: inside}, {column: outside}
