"""What docs/scorecard.md shows: every claim with its verdict, and what fails of those that do not hold."""

from collections.abc import Mapping

from privpost.lab.plan import Plan
from privpost.report import describe, documents, scorecard


def values(plan: Plan) -> Mapping[str, str]:
    """Return the texts by their placeholders."""
    card = scorecard.read(plan.root / "scorecard.csv")
    return {"scorecard/verdicts": documents.verdict_table(card), "scorecard/failing": failing(card)}


def failing(card) -> str:
    """Return, by verdict, the claims that do not hold as stated: what fails of each, why, and where that is derived."""
    parts = []
    for verdict in scorecard.SEVERITY[:3]:
        rows = list(card[card.verdict == verdict].itertuples())
        if rows:
            parts += [f"## {verdict.capitalize()}", "", *map(_failure, rows), ""]
    return "\n".join(parts).rstrip() or "Every claim that is scored holds."


def _failure(row) -> str:
    tally = scorecard.tally(row)
    links = (f"[{describe.section(place)[1]}]({place.removeprefix('docs/')})" for place in row.see.split())
    why = scorecard.shortened(scorecard.explanation(row)).replace("\n", " ")
    more = ", ".join(links)
    return (
        f"- **{row.id}**{' †' * (row.stand_in == 'yes')} {row.statement}{f' ({tally})' if tally else ''}<br>"
        f"{why}{f' More: {more}.' if more else ''}"
    )
