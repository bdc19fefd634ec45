"""No study draws from private data but through the ledger's gate: what its source names and imports, read, not run."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

STUDIES = Path(__file__).resolve().parents[3] / "src" / "privpost" / "studies"
PACKAGES = ("privpost.samplers", "privpost.distributions")
MODULES = (*PACKAGES, "numpy.random", "random", "secrets")
# Methods of numpy's generators that draw, and those of mechanisms, models and laws.
NUMPY = {name for kind in (np.random.Generator, np.random.RandomState) for name in dir(kind) if name[0] != "_"}
DRAWS = {"perturb", "replicate", "draw", "draw_all", "draws", "posterior_sample", "noise", "sample", "rvs"}
RELEASES = {"release", "release_all"}
NAMES = NUMPY | DRAWS | RELEASES | {"charge", "default_rng", "samplers", "distributions", "Ledger", "__dict__"}
# These find an attribute or a module whose name the source need not spell out.
HIDDEN = {"getattr", "vars", "eval", "exec", "__import__", "import_module", "attrgetter", "methodcaller"}
# Settings, fields and a type that have the name of a draw.
NO_DRAWS = {"config.beta", "config.draws", "point.beta", "point.draws", "model.beta", "np.random.Generator"}
DATA = "simulated data, or parameters that they are drawn from"
AFTER = "noise-aware inference: post-processing of a release"
DENSITY = "the density or mean of a law, no draw"
UNITS = "standard variates for common random numbers, which the mechanism scales behind the gate"
REFERENCE = "the true or the naive posterior, drawn from for comparison; post-processing, or not private"
GATE = "hands a mechanism to the ledger's `release`"
NAIVE = "the naive method shifts a release by private records, as the paper has it: no mechanism, no finite budget"
SETTING = "reads a setting or a field by its name"
REASONS = {
    ("audit/audit.py", "Gate.releases", ".release"): GATE,
    (
        "audit/audit.py",
        "examine",
        ".Ledger",
    ): "examples have no data of people; a caller without a gate gets one of its own",
    ("audit/audit.py", "simulate", "ledger ="): "the records of shipped ledgers, read",
    ("audit/expected.py", "logistic_law", ".charge"): SETTING,
    ("audit/expected.py", "_map", "privpost.mechanisms.map_estimate.utility_sensitivity"): "a sensitivity, no draw",
    ("audit/instances.py", "neighbours", ".power"): SETTING,
    ("audit/laws.py", "OnGrid.quantiles", ".random"): "spreads draws on a grid evenly over each step, to judge them",
    ("bernstein2018/calibration.py", "gibbs_quantiles", "privpost.samplers.noise_aware_gibbs"): AFTER,
    ("bernstein2018/calibration.py", "_account", ".charge"): NAIVE,
    ("bernstein2018/utility.py", "simulate", ".charge"): NAIVE,
    (
        "bernstein2018/calibration.py",
        "ops_quantiles",
        "privpost.distributions.noise",
    ): "hands a mechanism its stream in another shape",
    ("bernstein2018/calibration.py", "simulate", ".release"): GATE,
    ("bernstein2018/convergence.py", "_first_parameter", "privpost.samplers.noise_aware_gibbs"): AFTER,
    ("bernstein2018/convergence.py", "simulate", ".release"): GATE,
    ("bernstein2018/oracle.py", "_count_range", "privpost.samplers.noise_aware_exact"): AFTER,
    ("bernstein2018/oracle.py", "_quantiles", "privpost.samplers.noise_aware_exact"): AFTER,
    ("bernstein2018/oracle.py", "_shares", "privpost.samplers.noise_aware_gibbs"): AFTER,
    ("bernstein2018/oracle.py", "simulate", ".release"): GATE,
    ("bernstein2018/oracle.py", "_bits", "privpost.samplers.noise_aware_exact"): AFTER,
    ("bernstein2018/oracle.py", "_redacted", "privpost.samplers.noise_aware_gibbs"): AFTER,
    ("bernstein2018/oracle.py", "_redacted", "privpost.samplers.noise_aware_quadrature"): AFTER,
    ("bernstein2018/trials.py", "", "privpost.samplers.noise_aware_gibbs"): AFTER,
    ("bernstein2018/trials.py", "Counts.data", ".multinomial"): DATA,
    ("bernstein2018/trials.py", "Counts.data", ".sample"): DATA,
    ("bernstein2018/trials.py", "Counts.kernel", "privpost.samplers.noise_aware_gibbs"): AFTER,
    ("bernstein2018/trials.py", "RedactedSums.data", ".sample"): DATA,
    ("bernstein2018/trials.py", "RedactedSums.kernel", "privpost.samplers.noise_aware_redacted"): AFTER,
    ("bernstein2018/truncation.py", "simulate", ".release"): GATE,
    ("bernstein2018/utility.py", "_estimates", "privpost.samplers.noise_aware_gibbs"): AFTER,
    ("bernstein2018/trials.py", "Counts.exact_quantiles", "privpost.samplers.noise_aware_exact"): AFTER,
    ("bernstein2018/trials.py", "RedactedSums._posterior", "privpost.samplers.noise_aware_quadrature"): AFTER,
    ("bernstein2018/trials.py", "Counts._expectations", "privpost.samplers.noise_aware_exact"): AFTER,
    ("bernstein2018/trials.py", "RedactedSums.features", "privpost.samplers.noise_aware_quadrature"): AFTER,
    ("bernstein2018/trials.py", "RedactedSums.kernel", "privpost.samplers.noise_aware_quadrature"): AFTER,
    ("bernstein2018/utility.py", "simulate", ".release"): GATE,
    ("fair_axis/beta_bernoulli.py", "Row.setting", "getattr("): SETTING,
    ("fair_axis/beta_bernoulli.py", "score", ".sample"): REFERENCE,
    ("fair_axis/beta_bernoulli.py", "simulate", ".beta"): DATA,
    ("fair_axis/beta_bernoulli.py", "simulate", ".binomial"): DATA,
    ("fair_axis/beta_bernoulli.py", "simulate", "getattr("): SETTING,
    ("fair_axis/beta_bernoulli.py", "tabulate", ".sample"): SETTING,
    ("foulds2016/adversary.py", "_log_partition", "privpost.distributions.truncated_beta"): DENSITY,
    ("foulds2016/chain_checks.py", "", "privpost.samplers.hidden_markov_gibbs"): "types of what chains hand on",
    ("foulds2016/chain_checks.py", "Monitor.__call__", "privpost.samplers.hidden_markov_collapsed"): "a chain's score",
    ("foulds2016/event_methods.py", "Setup.of", "getattr("): SETTING,
    ("foulds2016/event_methods.py", "Setup.of", "privpost.samplers.hidden_markov_collapsed"): "settings of a chain",
    ("geumlek2017/rounding.py", "log_masses", "privpost.distributions.truncated_beta"): DENSITY,
    ("foulds2016/efficiency.py", "_squared_errors", ".binomial"): DATA,
    ("foulds2016/efficiency.py", "estimates", ".sample"): REFERENCE,
    ("foulds2016/efficiency.py", "estimates", "privpost.distributions.truncated_beta"): DENSITY,
    ("foulds2016/event_methods.py", "", "privpost.distributions.noise"): UNITS,
    ("foulds2016/event_methods.py", "Setup.chains", "privpost.samplers.noise_aware_events"): AFTER,
    ("foulds2016/event_methods.py", "Setup.layout", "privpost.samplers.hidden_markov_gibbs"): AFTER,
    ("foulds2016/event_methods.py", "Setup.law", "privpost.samplers.hidden_markov_gibbs"): "settings of a law",
    (
        "foulds2016/event_methods.py",
        "Setup.prior",
        "privpost.mechanisms.event_counts.prior_of",
    ): "the prior's parameters, no draw",
    ("foulds2016/event_methods.py", "Setup.run", "privpost.mechanisms.event_counts.chains_of"): AFTER,
    ("foulds2016/event_methods.py", "Setup.run", "privpost.samplers.hidden_markov_gibbs"): AFTER,
    ("foulds2016/event_methods.py", "Setup.run", "privpost.samplers.noise_aware_events"): AFTER,
    ("foulds2016/held_out.py", "_hidden_markov", "privpost.distributions.noise"): UNITS,
    ("foulds2016/held_out.py", "_naive_bayes", "privpost.distributions.noise"): UNITS,
    (
        "foulds2016/held_out.py",
        "_naive_bayes",
        "privpost.samplers.hidden_markov_gibbs",
    ): "exact draws from released counts, and scores",
    (
        "foulds2016/held_out.py",
        "_score",
        "privpost.samplers.hidden_markov_gibbs",
    ): "exact draws from released counts, and scores",
    ("foulds2016/held_out.py", "split_cells", ".permutation"): "splits of the data into observed and held-out cells",
    ("foulds2016/posterior_divergence.py", "simulate", ".binomial"): DATA,
    ("foulds2016/posterior_divergence.py", "truncated_kl", "privpost.distributions.truncated_beta"): DENSITY,
    ("foulds2016/sampling_error.py", "simulate", ".binomial"): DATA,
    ("foulds2016/sampling_error.py", "simulate", ".sample"): REFERENCE,
    ("foulds2016/war_logs_states.py", "_fit", "privpost.distributions.noise"): UNITS,
    (
        "foulds2016/war_logs_states.py",
        "_fit",
        "privpost.samplers.hidden_markov_gibbs",
    ): "counts of a chain's states, no draw",
    ("foulds2016/war_logs_states.py", "_summarise", "getattr("): SETTING,
    ("geumlek2017/tradeoff.py", "_data", ".binomial"): DATA,
    ("geumlek2017/tradeoff.py", "simulate", ".sample"): REFERENCE,
    ("geumlek2017/tradeoff.py", "simulate", "getattr("): SETTING,
    (
        "noise_aware/event_calibration.py",
        "_Conditional.__call__",
        ".random",
    ): "draws from a law of a chain, to rank the truth",
    ("noise_aware/event_calibration.py", "draw_data", ".dirichlet"): DATA,
    ("noise_aware/event_calibration.py", "draw_data", ".multinomial"): DATA,
    ("noise_aware/event_calibration.py", "draw_data", ".random"): DATA,
    ("noise_aware/event_calibration.py", "simulate", "privpost.distributions.noise"): UNITS,
    ("noise_aware/event_calibration.py", "simulate", "privpost.samplers.noise_aware_events"): AFTER,
    ("noise_aware/naive_bayes.py", "_aware", "privpost.samplers.naive_bayes_exact"): AFTER,
    ("noise_aware/naive_bayes.py", "_aware", "privpost.samplers.noise_aware_exact"): AFTER,
    ("noise_aware/naive_bayes.py", "family_means", "privpost.samplers.naive_bayes_exact"): AFTER,
    ("noise_aware/naive_bayes.py", "simulate", ".beta"): DATA,
    ("noise_aware/naive_bayes.py", "simulate", "privpost.samplers.naive_bayes_exact"): AFTER,
    ("noise_aware/networks.py", "_aware", ".sample"): AFTER,
    ("noise_aware/networks.py", "_aware", "privpost.samplers.chain"): AFTER,
    ("noise_aware/networks.py", "_aware", "privpost.samplers.noise_aware_records"): AFTER,
    ("noise_aware/networks.py", "simulate", ".sample"): DATA,
    ("zhang2016/adult_network.py", "_chained", ".sample"): AFTER,
    ("zhang2016/adult_network.py", "_chained", "privpost.samplers.chain"): AFTER,
    ("zhang2016/adult_network.py", "_chained", "privpost.samplers.noise_aware_records"): AFTER,
    ("zhang2016/adult_network.py", "_parameters", "privpost.samplers.naive_bayes_exact"): AFTER,
    ("zhang2016/adult_network.py", "_scores", ".choice"): "which people the experiment is about",
    ("zhang2016/bounds.py", "_map_rows", "privpost.mechanisms.map_estimate.utility"): "a utility, no draw",
    ("zhang2016/bounds.py", "simulate", ".beta"): DATA,
    (
        "zhang2016/guarantees.py",
        "_map_rows",
        "privpost.mechanisms.map_estimate.utility_sensitivity",
    ): "a sensitivity, no draw",
    ("zhang2016/guarantees.py", "map_loss", "privpost.mechanisms.map_estimate.utility"): "the utility, no draw",
    ("zhang2016/linear_regression.py", "_splits", ".choice"): "splits of the data for cross-validation",
    (
        "zhang2016/linear_regression.py",
        "simulate",
        ".standard_normal",
    ): "the share of a proposal that falls in the ball, estimated",
    ("zhang2016/marginal_error.py", "_errors", ".beta"): DATA,
    ("zhang2016/naive_bayes.py", "_data", ".beta"): DATA,
    ("zhang2016/naive_bayes.py", "_data", ".permuted"): "splits of simulated data for training and test",
    ("zhang2016/naive_bayes.py", "_pilot", ".beta"): DATA,
}


def may_draw(module: str) -> bool:
    return any(module == listed or module.startswith(f"{listed}.") for listed in MODULES)


def bound(node: ast.Import | ast.ImportFrom) -> dict[str, str]:
    """The names under which an import makes available what may draw, and the module or function behind each."""
    if isinstance(node, ast.Import):
        names = {name.asname or name.name.split(".")[0]: name.name for name in node.names}
        return {
            name: module
            for name, module in names.items()
            if may_draw(module) or module == "privpost" or module.startswith("privpost.mechanisms")
        }
    found = {}
    for name in node.names:
        module = "." * node.level + (node.module or "")
        full = f"{module}.{name.name}"
        if node.level or (may_draw(module) and module not in PACKAGES):
            found[name.asname or name.name] = module
        elif may_draw(full) or name.name == "*" or _is_function_of_mechanisms(module, name.name):
            found[name.asname or name.name] = full
        elif name.name == "Ledger":
            found[name.asname or name.name] = ".Ledger"
    return found


def _is_function_of_mechanisms(module: str, name: str) -> bool:
    """Whether it is no class and no constant, or the modules themselves."""
    return (module == "privpost" and name == "mechanisms") or (
        (module == "privpost.mechanisms" or module.startswith("privpost.mechanisms.")) and not name[0].isupper()
    )


def walk(node: ast.AST, function: str = "") -> Iterator[tuple[ast.AST, str]]:
    """Every node but annotations, each with the function or class that it stands in."""
    for name, value in ast.iter_fields(node):
        for child in value if isinstance(value, list) else [value]:
            if not isinstance(child, ast.AST) or name in ("annotation", "returns"):
                continue
            inside = function
            if isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
                inside = f"{function}.{child.name}".lstrip(".")
            yield child, inside
            yield from walk(child, inside)


def attribute(node: ast.Attribute, called: bool) -> str | None:
    """A draw that an attribute's access gives, called or not."""
    if node.attr not in NAMES or (node.attr in RELEASES and ast.unparse(node.value) == "ledger"):
        return None
    if ast.unparse(node) == "np.random" or (ast.unparse(node) in NO_DRAWS and not called):
        return None
    return f".{node.attr}"


def found_in(source: str) -> set[tuple[str, str]]:
    """What a source accesses, calls or imports that may draw, each with the function that it stands in ("": none)."""
    found, imports, used = set(), {}, set()
    nodes = list(walk(ast.parse(source)))
    for node, _ in nodes:
        if isinstance(node, ast.Import | ast.ImportFrom):
            imports |= bound(node)
    called = {id(node.func) for node, _ in nodes if isinstance(node, ast.Call)}
    for node, function in nodes:
        if isinstance(node, ast.Attribute) and (what := attribute(node, id(node) in called)):
            found.add((function, what))
        elif isinstance(node, ast.Call) and ast.unparse(node.func).split(".")[-1] in HIDDEN:
            name = node.args[1].value if len(node.args) > 1 and isinstance(node.args[1], ast.Constant) else None
            if name is None or name in NAMES:
                found.add((function, f"{ast.unparse(node.func)}(" if name is None else f".{name}"))
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store) and node.id == "ledger":
            found.add((function, "ledger ="))
        elif isinstance(node, ast.Name) and node.id in imports:
            used.add(node.id)
            found.add((function, imports[node.id]))
    # An import for annotations only, or of everything, is an exception of the module.
    return found | {("", module) for name, module in imports.items() if name not in used and module != ".Ledger"}


def all_found() -> set[tuple[str, str, str]]:
    return {
        (str(path.relative_to(STUDIES)), *what)
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
        ("import privpost.samplers.logistic_exact", "privpost.samplers.logistic_exact"),
        ("import privpost.mechanisms.map_estimate as m", "privpost.mechanisms.map_estimate"),
        ("import privpost", "privpost"),
        ("from privpost.samplers import logistic_exact", "privpost.samplers.logistic_exact"),
        ("from privpost import samplers", "privpost.samplers"),
        ("from privpost import distributions", "privpost.distributions"),
        ("from privpost import mechanisms", "privpost.mechanisms"),
        ("from privpost import *", "privpost.*"),
        ("from ..samplers import slice", "..samplers"),
        ("from privpost.distributions.noise import Given", "privpost.distributions.noise"),
        ("from privpost.mechanisms import map_estimate", "privpost.mechanisms.map_estimate"),
        ("from privpost.mechanisms.map_estimate import choose", "privpost.mechanisms.map_estimate.choose"),
        ("from numpy.random import default_rng", "numpy.random"),
        ("from random import gauss", "random"),
        ("mechanism.release(data, rng)", ".release"),
        ("ledger.charge('all', cost)", ".charge"),
        ("mechanism.perturb(statistics, rng)", ".perturb"),
        ("mechanism.replicate(statistics, 2, rng)", ".replicate"),
        ("mechanism.draw(statistics, rng)", ".draw"),
        ("type(mechanism).draw_all(requests)", ".draw_all"),
        ("mechanism.posterior_sample(statistics, rng)", ".posterior_sample"),
        ("model.sample(model.posterior(counts), rng)", ".sample"),
        ("draw = rng.laplace; draw(0, 1)", ".laplace"),
        ("getattr(rng, 'laplace')(0, 1)", ".laplace"),
        ("getattr(rng, 'lap' + 'lace')(0, 1)", "getattr("),
        ("operator.methodcaller('laplace')(rng)", "operator.methodcaller("),
        ("rng.gumbel()", ".gumbel"),
        ("rng.standard_t(3)", ".standard_t"),
        ("model.beta(1, 1)", ".beta"),
        ("scipy.stats.laplace.rvs()", ".rvs"),
        ("privpost.privacy.ledger.Ledger()", ".Ledger"),
        ("from privpost.privacy.ledger import Ledger\nLedger()", ".Ledger"),
        ("from privpost.privacy.ledger import Ledger as Own\nOwn()", ".Ledger"),
        ("ledger = mechanism\nledger.release(data, rng)", "ledger ="),
    ],
)
def test_a_draw_of_its_own_is_found(source, what):
    assert what in {name for _, name in found_in(source)}


@pytest.mark.parametrize(
    "source",
    [
        "ledger.release('all', mechanism, statistics, rng)",
        "mechanism.posterior_draw(release, rng)",
        "model = BetaBernoulli(config.beta)",
        "def data(rng: np.random.Generator): ...",
        "from privpost.privacy.ledger import Ledger\ndef open(ledger: Ledger): ...",
        "from privpost.mechanisms.laplace import LaplaceMechanism\nLaplaceMechanism(model, 2, 1.0)",
    ],
)
def test_what_draws_nothing_itself_is_not_found(source):
    assert found_in(source) == set()


def test_an_exception_holds_for_one_function():
    source = "from privpost.samplers.chain import run\ndef first(): run()\nclass A:\n    def second(self): run()"
    assert found_in(source) == {("first", "privpost.samplers.chain"), ("A.second", "privpost.samplers.chain")}


def test_no_account_has_a_mechanisms_own_cost_for_its_budget():
    # The audit's examples have no configuration that states a target.
    paths = set(STUDIES.rglob("*.py")) - {STUDIES / "audit" / "instances.py"}
    sources = [path.read_text(encoding="utf-8") for path in paths]
    found = [budget for source in sources for budget in budgets_in(source)]
    assert len(found) > 40
    assert [budget for budget in found if not from_the_configuration(budget)] == []


def budgets_in(source: str) -> list[str]:
    """What accounts are opened with, what names of budgets stand for, and what costs are made of."""
    found = []
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Call) and ast.unparse(node.func) == "ledger.open":
            found.append(node.args[1])
        elif isinstance(node, ast.Call) and ast.unparse(node.func) == "Cost":
            found.append(node)
        elif isinstance(node, ast.Assign) and any("budget" in ast.unparse(name) for name in node.targets):
            found.append(node.value)
    return [ast.unparse(node) for node in found]


def from_the_configuration(budget: str) -> bool:
    own = any(name in budget for name in (".cost(", ".stated_cost", ".cost_in("))
    return not own and not (budget.startswith("Cost(") and "mechanism." in budget)


@pytest.mark.parametrize(
    "source",
    [
        "ledger.open('a', mechanism.cost(), mechanism)",
        "budget = mechanism.stated_cost\nledger.open('a', budget, mechanism)",
        "budgets = [made.cost_in(target) for made in mechanisms]",
        "ledger.open('a', Cost('pure', mechanism.epsilon), mechanism)",
    ],
)
def test_a_mechanisms_own_cost_is_found(source):
    assert not all(map(from_the_configuration, budgets_in(source)))
