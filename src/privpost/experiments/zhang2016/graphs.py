"""The usual names of graphs."""

import re

# Proper names, and families of graphs with their sizes; other graphs are shown by the name of their file.
FAMILIES = {
    r"chain_(\d+)": "chain of {}",
    "asia": "Asia",
    "naive_bayes": "naive Bayes",
    r"naive_bayes_(\d+)": "naive Bayes, {} attributes",
    r"collider_(\d+)": "collider, {} parents",
    r"banded_(\d+)_(\d+)": "band of {}, in-degree {}",
}


def label(name: str) -> str:
    """Return the label of a graph."""
    for pattern, text in FAMILIES.items():
        if match := re.fullmatch(pattern, name):
            return text.format(*match.groups())
    return name.replace("_", " ")
