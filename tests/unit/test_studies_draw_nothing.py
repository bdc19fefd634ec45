"""No study draws from private data but through the ledger's gate: what its source calls and imports, read, not run."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

STUDIES = Path(__file__).resolve().parents[2] / "src" / "privpost" / "studies"
ROOMS = ("privpost.samplers", "privpost.distributions")
# Methods of a numpy generator that draw, and those of mechanisms and models.
NOISE = {
    "laplace", "normal", "standard_normal", "gamma", "standard_gamma", "beta", "dirichlet", "exponential",
    "standard_exponential", "random", "uniform", "multinomial", "binomial", "multivariate_normal", "poisson", "logistic",
    "geometric", "integers", "choice",
}  # fmt: skip
DRAWS = {"perturb", "replicate", "draw", "draw_all", "draws", "posterior_sample", "noise"}
DATA = "simulated data, or parameters that they are drawn from"
AFTER = "noise-aware inference: post-processing of a release"
REASONS: dict[tuple[str, str], str] = {}


def imported(node) -> set[str]:
    if isinstance(node, ast.ImportFrom):
        return {f"{node.module}.{name.name}" if node.module in ROOMS else str(node.module) for name in node.names}
    return {name.name for name in node.names} if isinstance(node, ast.Import) else set()


def found_in(source: str) -> set[str]:
    """Modules of samplers and distributions that a source imports, and the drawing methods that it calls."""
    found = set()
    for node in ast.walk(ast.parse(source)):
        found |= {name for name in imported(node) if name.startswith(ROOMS)}
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in NOISE | DRAWS:
            found.add(f".{node.func.attr}(")
    return found


def all_found() -> set[tuple[str, str]]:
    return {
        (str(path.relative_to(STUDIES)), what)
        for path in sorted(STUDIES.rglob("*.py"))
        for what in found_in(path.read_text(encoding="utf-8"))
    }


def test_studies_draw_nothing_from_private_data_themselves():
    assert sorted(all_found() - REASONS.keys()) == []


def test_every_exception_is_used_and_has_a_reason():
    assert sorted(REASONS.keys() - all_found()) == []
    assert all(REASONS.values())


@pytest.mark.parametrize(
    "source, what",
    [
        ("import privpost.samplers.slice", "privpost.samplers.slice"),
        ("from privpost.samplers import slice", "privpost.samplers.slice"),
        ("from privpost.distributions.noise import Given", "privpost.distributions.noise"),
        ("def simulate(config, streams, ledger):\n    return counts + streams('m').laplace(0, 1, 3)", ".laplace("),
        ("mechanism.perturb(statistics, rng)", ".perturb("),
    ],
)
def test_a_draw_of_its_own_is_found(source, what):
    assert found_in(source) == {what}
