"""Which mechanisms can serve a model within a budget: for studies that take every mechanism there is."""

from __future__ import annotations

import inspect

from privpost.mechanisms import discover
from privpost.mechanisms.base import Mechanism
from privpost.privacy.accounting import Cost


def serving(model, n: int, budget: Cost, **settings) -> dict[str, Mechanism]:
    """Every discovered mechanism that can serve the model within a budget, calibrated to it, keyed by method id.

    A mechanism serves when one of its `examples` is about a model of the same class, the settings hold each option
    that its `calibrate` requires, and `calibrate` does not refuse the budget. Options with a default keep it unless the
    settings name them; of two classes of one method the first that serves is taken.

    Args:
        model: the model that the release serves.
        n: public number of records.
        budget: what one release may cost.
        settings: values of options, such as a0; those that a mechanism does not have are not passed to it.
    """
    found: dict[str, Mechanism] = {}
    for method, classes in sorted(discover().items()):
        for candidate in classes:
            mechanism = _calibrated(candidate, model, n, budget, settings)
            if mechanism is not None:
                found[method] = mechanism
                break
    return found


def _calibrated(candidate: type[Mechanism], model, n: int, budget: Cost, settings: dict) -> Mechanism | None:
    if not any(type(example.model) is type(model) for example in candidate.examples()):
        return None
    options = [
        parameter
        for parameter in inspect.signature(candidate.calibrate).parameters.values()
        if parameter.kind is parameter.KEYWORD_ONLY
    ]
    if any(option.default is option.empty and option.name not in settings for option in options):
        return None
    chosen = {option.name: settings[option.name] for option in options if option.name in settings}
    try:
        return candidate.calibrate(model, n, budget, **chosen)
    except ValueError:
        # The interface's refusal of a budget that it cannot guarantee.
        return None
