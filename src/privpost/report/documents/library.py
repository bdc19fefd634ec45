"""Table of docs/library.md with each mechanism's models and budget."""

from collections.abc import Mapping

from privpost import discovery
from privpost.evaluation.rows import markdown
from privpost.mechanisms.base import COUNTED, Mechanism
from privpost.mechanisms.noise.additive import AdditiveNoiseMechanism

BUDGETS = {"pure": "ε", "rdp": "ε at an order λ", "approximate": "ε and δ"}


def values(published) -> Mapping[str, str]:
    """Return the table `mechanisms` in Markdown."""
    rows: dict[tuple[str, ...], dict[str, None]] = {}
    for kind in discovery.kinds():
        weightings = kind.mechanism.weightings
        name = f"`{kind.mechanism.__name__}`" + (f" ({', '.join(weightings)})" if len(weightings) > 1 else "")
        for model, example in {type(example.model).__name__: example for example in kind.examples}.items():
            releases = "one value of the parameters" if example.releases == "sample" else "noisy counts or sums"
            row = (name, releases, BUDGETS[example.notion], _posterior(example))
            rows.setdefault(row, {})[f"`{model}`"] = None
    head = ("mechanism", "models", "releases", "budget", "noise-aware posterior")
    return {"mechanisms": markdown(head, [(row[0], ", ".join(rows[row]), *row[1:]) for row in rows])}


def _posterior(mechanism: Mechanism) -> str:
    """Return words on whether the posterior given a mechanism's release is known."""
    if mechanism.releases == "sample":
        return "the draw itself"
    known = {Mechanism.posterior: False, AdditiveNoiseMechanism.posterior: type(mechanism.model) in COUNTED}
    return "yes" if known.get(type(mechanism).posterior, True) else "no"
