"""Renders README.md and docs/<name>.md from the templates docs/templates/<name>.md.in.

Templates use the names that `names` returns. A document's module in this folder, `<name>.py`, can add
names: its function `values(published)` maps them to texts or functions.
"""

import importlib
import re
from collections.abc import Iterable, Mapping
from importlib import util
from pathlib import Path
from typing import Any, NamedTuple

import jinja2

from privpost.evaluation.rows import markdown
from privpost.lab import store, tables
from privpost.lab.schema import SettingError
from privpost.lab.study import Study
from privpost.report import captions, describe, scorecard, templates
from privpost.report.documents import claims
from privpost.report.quotes import Quotes

TEMPLATES = Path("docs/templates")
ENDING = ".md.in"
# The scorecard is rendered last, since it links to headings of other documents.
LAST = "scorecard"
_HEADING = re.compile(r"^#+ (.*)$", re.MULTILINE)


class Published(NamedTuple):
    """The studies by name, and the folder with the results and figures from which documents are rendered."""

    studies: Mapping[str, Study]
    home: Path

    @property
    def results(self) -> Path:
        return self.home / "results"

    def tables(self, study: str) -> dict[str, Any]:
        """Return the tables of the named study by the tables' names."""
        return tables.read_tables(self.study(study))

    def study(self, name: str) -> Study:
        """Return the named study. Raise SettingError if there is no study of this name."""
        if name not in self.studies:
            raise SettingError(f"there is no study {name!r}")
        return self.studies[name]


def sources() -> dict[str, Path]:
    """Return the path of each template by the name of its document."""
    return {path.name.removesuffix(ENDING): path for path in sorted(TEMPLATES.glob(f"*{ENDING}"))}


def file(name: str) -> Path:
    """Return the path of a document."""
    return Path("README.md") if name == "README" else Path("docs", f"{name}.md")


def write(studies: Iterable[Study], home: Path, out: Path) -> list[Path]:
    """Render README.md and docs/ into the folder `out`, and return the paths of the documents.

    Raises:
        SettingError: a document cannot be rendered, or claims lack reasons. The other documents are written first.
    """
    texts, problems = rendered(Published({study.name: study for study in studies}, home))
    paths = {out / file(name): text for name, text in texts.items()}
    store.write_texts(paths)
    if problems:
        raise SettingError("; ".join(problems))
    return list(paths)


def render(published: Published) -> dict[str, str]:
    """Return the texts of all documents by name. Raise SettingError for the problems that `rendered` finds."""
    texts, problems = rendered(published)
    if problems:
        raise SettingError("; ".join(problems))
    return texts


def rendered(published: Published) -> tuple[dict[str, str], list[str]]:
    """Return the texts of documents that can be rendered, by name, and the problems with the other documents."""
    card, texts, problems = scorecard.read(published.results / "scorecard.csv"), {}, []
    if lines := claims.problems(card):
        problems.append(f"{'; '.join(lines)}. Reasons are written in {TEMPLATES}/reasons/<paper>.md")
    quotes = Quotes(published.results)
    for name in [name for name in sources() if name != LAST] + [LAST]:
        places = _places(texts)
        more = {"place": lambda id, places=places: places.get(id, "")} if name == LAST else {}
        try:
            texts[name] = text(published, name, quotes, **more)
        except SettingError as error:
            problems.append(str(error))
    undiscussed = [row.id for row in claims.failed(card).itertuples() if row.id not in _places(texts)]
    if undiscussed and not problems:
        problems.append(f"no document says why these claims fail (`failing`): {', '.join(undiscussed)}")
    return texts, problems


def text(published: Published, name: str, quotes: Quotes, **more: Any) -> str:
    """Return the text of one document. Raise SettingError if the document cannot be rendered."""
    try:
        context = {**names(published, quotes, "" if name == "README" else "../"), **_extra_names(published, name)}
        return _template(name).render({**context, **more})
    except (jinja2.TemplateError, ValueError, TypeError, FileNotFoundError) as error:
        raise SettingError(f"{TEMPLATES}/{name}{ENDING}: {error}") from error


def _template(name: str) -> jinja2.Template:
    environment = templates.environment(loader=jinja2.FileSystemLoader(TEMPLATES), trim_blocks=True, lstrip_blocks=True)
    environment.filters["anchor"] = anchor
    return environment.get_template(f"{name}{ENDING}")


def names(published: Published, quotes: Quotes, up: str) -> dict[str, Any]:
    """Return a map with the names that all templates use, where `up` is the path from the document to the root."""
    from privpost.evaluation.diagnostics import LARGEST_RHAT

    card = scorecard.read(published.results / "scorecard.csv")
    studies = sorted(published.studies.values(), key=lambda study: scorecard.paper_order(study.name))
    shown = {stem: (stem, caption) for stem, caption in captions.overall().items()}
    for s in studies:
        shown |= {f"{s.paper}/{stem}": (f"{s.name}/{stem}", text) for stem, text in captions.of_study(s).items()}
    return {
        **quotes.names(),
        **claims.names(card),
        "figure": lambda name: _figure(name, shown, up),
        "exists": lambda name: (published.home / "figures" / name).is_file(),
        "setting": lambda study, key: published.study(study).text[key],
        "largest_rhat": LARGEST_RHAT,
        "studies": studies,
        "outdated": lambda: {study.name: tables.read_outdated(study) for study in studies if tables.outdated(study)},
        "papers": {study.paper: scorecard.NAMES.get(study.paper, study.paper) for study in studies},
        "neighbours": describe.neighbours,
        "table": markdown,
    }


def _extra_names(published: Published, name: str) -> Mapping[str, Any]:
    module = f"{__name__}.{name.lower()}"
    return importlib.import_module(module).values(published) if util.find_spec(module) else {}


def _figure(name: str, shown: Mapping[str, tuple[str, captions.Caption]], up: str) -> str:
    """Return the Markdown of a figure with its caption."""
    if name not in shown:
        raise SettingError(f"there is no figure {name!r}")
    path, (title, rest) = shown[name]
    return f"![{title}]({up}figures/{path}.svg)\n\n*{title}* {rest}".rstrip()


def _places(texts: Mapping[str, str]) -> dict[str, str]:
    """Return links to the headings under which documents discuss claims, by the claim's id."""
    return {
        heading.split(":")[0]: f"{name}.md#{anchor(heading)}"
        for name, document in texts.items()
        for heading in _HEADING.findall(document)
    }


def anchor(heading: str) -> str:
    """Return the anchor that GitHub makes for a heading."""
    return re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")
