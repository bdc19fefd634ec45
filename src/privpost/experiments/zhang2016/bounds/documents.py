"""Table 1 as Markdown (Zhang et al. 2016)."""

from privpost.drawing import style
from privpost.evaluation import rows

COLUMNS = (
    ("Mechanism", lambda row: style.look(row.method).label),
    ("DBN only", lambda row: "yes" if row.networks_only else "no"),
    ("Privacy", lambda row: row.privacy),
    ("holds in", lambda row: f"{row.privacy_rows_that_hold} of {row.privacy_rows}"),
    ("Largest loss / promised", lambda row: f"{row.largest_loss:.3g}"),
    ("Utility type", lambda row: row.utility),
    ("Utility bound, as printed", lambda row: row.bound),
    ("holds in", lambda row: f"{row.bound_rows_that_hold} of {row.bound_rows}"),
    ("restored", lambda row: row.restored),
    ("holds in", lambda row: f"{row.restored_rows_that_hold} of {row.restored_rows}"),
)


def documents(tables) -> dict[str, str]:
    """Return table 1 in Markdown, by file name. `tables` are the study's tables as read from CSV files."""
    return {"table1.md": rows.rendered(tables["table1"], COLUMNS)}
