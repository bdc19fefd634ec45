"""The settings that the studies ran, from their shipped ledgers."""

from __future__ import annotations


def read_records(config) -> dict[str, list[dict]]:
    """Rows of mechanisms by study; the audit's own are left out."""
    from privpost.pipeline import grid, ledgers

    studies = [study for study in grid.load_studies() if study.paper != "audit"]
    return {study.name: ledgers.read(study, "mechanisms") or [] for study in studies}
