"""What docs/find_your_way.md shows: the files of each study."""

from collections.abc import Mapping
from pathlib import Path

from privpost.evaluation.rows import markdown
from privpost.lab.grid import Study
from privpost.lab.plan import Plan
from privpost.lab.study import figure_module
from privpost.report import scorecard


def values(plan: Plan) -> Mapping[str, str]:
    """Return the table by its placeholder."""
    studies = sorted(plan.studies.values(), key=lambda study: scorecard.paper_order(study.name))
    rows = [(study.config["title"], *files(study)) for study in studies]
    return {"way/studies": markdown(("study", "settings", "simulation and tables", "claims", "figures"), rows)}


def files(study: Study) -> list[str]:
    """Return links to the study's settings, its module, its claims and its figures; empty where there are none."""
    claims = source(study.claims_target)
    figures = [source(figure_module(study, stem)) for stem in study.figures]
    return [
        _link(Path(study.file), study.name),
        _link(source(study.target)),
        _link(claims) if claims.is_file() else "",
        ", ".join(map(_link, figures)),
    ]


def source(module: str) -> Path:
    """Return the file of one of the package's modules, below the checkout."""
    return Path("src", *module.split(".")).with_suffix(".py")


def _link(path: Path, name: str = "") -> str:
    return f"[{name or path.name}](../{path})"
