"""Table 1 as Markdown, beside its CSV (Zhang et al. 2016)."""

from privpost.evaluation import rows
from privpost.figures import style

HEADINGS = (
    "Mechanism",
    "DBN only",
    "Privacy",
    "holds in",
    "Largest loss / promised",
    "Utility type",
    "Utility bound, as printed",
    "holds in",
    "restored",
    "holds in",
)


def markdown(table) -> str:
    """Return table 1 as a Markdown table, from its rows as read back from the CSV."""
    lines = []
    for row in table.itertuples():
        cells = (
            style.look(row.method).label,
            "yes" if row.networks_only else "no",
            row.privacy,
            f"{row.privacy_rows_that_hold} of {row.privacy_rows}",
            f"{row.largest_loss:.3g}",
            row.utility,
            row.bound,
            f"{row.bound_rows_that_hold} of {row.bound_rows}",
            row.restored,
            f"{row.restored_rows_that_hold} of {row.restored_rows}",
        )
        lines.append(cells)
    return f"{rows.markdown(HEADINGS, lines)}\n"


def documents(tables) -> dict[str, str]:
    """Return table 1 as Markdown, by file name."""
    return {"table1.md": markdown(tables["table1"])}
