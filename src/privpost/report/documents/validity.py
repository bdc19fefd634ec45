"""What docs/validity.md shows: neighbours as the mechanisms declare them, and the data sets."""

from collections.abc import Mapping

from privpost.evaluation.rows import markdown
from privpost.lab.plan import Plan
from privpost.report import describe


def values(plan: Plan) -> Mapping[str, str]:
    """Return the texts by their placeholders."""
    notes = describe.data_notes(cell for cells in plan.cells.values() for cell in cells)
    rows = [[note[key] for key in ("title", "kind", "access", "licence")] for note in notes]
    return {
        "validity/neighbours": describe.all_neighbours(),
        "validity/data": markdown(("data set", "role", "access", "licence"), rows),
    }
