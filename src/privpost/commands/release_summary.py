"""The summary of a release that the terminal shows once the statement is in a file."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from privpost.release.models import KINDS
from privpost.release.models.base import Inferred

# The largest number of values that are shown; the file has all of them.
SHOWN = 12


def lines(content: dict[str, Any], path: Path, together: str = "") -> Iterator[str]:
    """Yield the lines that summarise a statement, with the line `together` on the joint cost of releases."""
    privacy = content["privacy"]
    yield f"{path}: {privacy['notion']}" + ("" if privacy["private"] else ", NOT A PRIVATE RELEASE")
    delta = f", delta {privacy['delta']:g}" if privacy["delta"] else ""
    yield f"  this release    epsilon {privacy['epsilon']:g}{delta}"
    if entry := content.get("ledger"):
        budget, spent = entry["budget"], entry["spent"]
        left = {key: max(0.0, budget[key] - spent[key]) for key in budget}
        delta = f", delta {left['delta']:.6g} of {budget['delta']:g}" if budget["delta"] else ""
        yield f"  left after it   epsilon {left['epsilon']:.6g} of {budget['epsilon']:g}{delta}"
    if together:
        yield f"  {together}"
    posterior = content.get("posterior", {})
    if "failed" in posterior:
        yield f"  posterior       {posterior['failed']}"
    if summary := posterior.get("summary"):
        if one := {name: f"{row['draw']:.4g}" for name, row in summary.items() if "draw" in row}:
            yield from _table("one draw from the posterior, which has no interval", one)
        else:
            estimates = {
                name: f"{row['0.5']:.4g}  [{row['0.025']:.4g}, {row['0.975']:.4g}]" for name, row in summary.items()
            }
            yield from _table("posterior median [95 % credible interval]", estimates)
    elif draw := content.get("draw"):
        values = {name: f"{cell.get('value', cell.get('midpoint')):.6g}" for name, cell in draw.items()}
        yield from _table("one posterior draw", values)
    else:
        yield from _table("noisy statistics", dict(_numbers(content["statistics"])))
    if (rhat := posterior.get("rhat_max")) is not None or "not_assessed" in posterior:
        mixed = "converged" if posterior["converged"] else "NOT CONVERGED: do not use the draws"
        rhat = f"{rhat:.4g}" if isinstance(rhat, float) else rhat or "not known"
        size = posterior["ess_min"]
        size = "effective sample size " + ("not known" if size is None else f"{size:.0f}")
        yield f"  R-hat           {rhat}, {size}: {mixed}"
    if "file" in (draws := posterior.get("draws", {})) and isinstance(draws["file"], str):
        yield f"  draws           {draws['file']}, {draws['rows']} rows"
    if "file" in (sets := content.get("synthetic", {})):
        yield f"  synthetic       {sets['file']}, {sets['sets']} sets of {sets['records_of_a_set']} records"
        yield f"                  {sets['rule']}"
    if not posterior and "draw" not in content and isinstance(KINDS[content["specification"]["model"]], Inferred):
        asked = "with posterior: {draws: 4000} in the specification"
        yield f"  a posterior     costs nothing more: --again {path}, {asked}"


def _table(title: str, values: dict[str, str]) -> Iterator[str]:
    yield f"  {title}:"
    width = max(map(len, [*values][:SHOWN]))
    for name in [*values][:SHOWN]:
        yield f"    {name:<{width}}  {values[name]}"
    if len(values) > SHOWN:
        yield f"    and {len(values) - SHOWN} more in the file"


def _numbers(tree: dict[str, Any], path: tuple[str, ...] = ()) -> Iterator[tuple[str, str]]:
    """Yield each number in nested maps as two texts: the keys that lead to the number, and the number."""
    for key, value in tree.items():
        if isinstance(value, dict):
            yield from _numbers(value, (*path, str(key)))
        elif not isinstance(value, str):
            what = "sum of " if path[:1] == ("sums",) else ""
            yield what + ", ".join((*path[1:], str(key))), f"{value:.12g}"
