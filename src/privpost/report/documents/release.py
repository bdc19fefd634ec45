"""Tables and numbers of docs/release.md, which explains private releases."""

from collections.abc import Mapping

from privpost.evaluation.rows import markdown
from privpost.privacy.accounting import losses, secure_noise
from privpost.release import models, spec, synthetic
from privpost.release.models import base, bayesian_network, gamma_exponential


def values(published) -> Mapping[str, str]:
    """Return the document's tables and limits by the names that the template uses."""
    return {
        "models": models_table(),
        "sigma": sigma_ratios(),
        "synthetic_times": str(synthetic.TIMES),
        "largest_network": str(bayesian_network.LARGEST_NETWORK),
        "largest_exact": f"{base.LARGEST_SUM:,}",
        "largest_epsilon": f"{spec.LARGEST_EPSILON:g}",
        "most_counts": f"{losses.MOST_COUNTS:,}",
        "largest_bias": f"{gamma_exponential.LARGEST_BIAS:g}",
    }


def models_table() -> str:
    """Return a table of the models that can be released, each with its settings and mechanisms."""
    rows = []
    for kind in models.KINDS.values():
        columns = ", ".join(f"`{key}`" for key in kind.column.fields)
        prior = ", ".join(f"`{key}`" for key in kind.prior.fields) or "none"
        mechanisms = ", ".join(f"`{name}`" for name in kind.mechanisms)
        rows.append((f"`{kind.name}`", columns, prior, mechanisms))
    return markdown(("`model:`", "settings of a column", "settings of the prior", "`mechanism:`"), rows)


def sigma_ratios() -> str:
    """Return secure noise's σ divided by the analytic σ, as text, for two ε at δ = 10⁻⁶."""
    budgets = [(epsilon, 1e-6, 1.0) for epsilon in (0.1, 10.0)]
    ratios = [secure_noise.secure_sigma(*budget) / secure_noise.analytic_sigma(*budget) for budget in budgets]
    return " and ".join(f"{r:.2f} at ε = {budget[0]:g}" for r, budget in zip(ratios, budgets, strict=True))
