"""Captions of figures, which are the docstrings of the functions that draw the figures."""

import re
from typing import NamedTuple

from privpost.drawing import figures as marked
from privpost.lab.study import Study

# End of a sentence. The full stop of "et al." does not count.
_SENTENCE = re.compile(r"(?<!al\.)(?<=\.) (?=[A-Z(])")


class Caption(NamedTuple):
    """A caption with a title of one sentence, and a text on how to read the figure."""

    title: str
    text: str

    @property
    def alternative(self) -> str:
        return f"{self.title} {self.text}".replace("`", "").strip()


def of_study(study: Study) -> dict[str, Caption]:
    """Return the captions of a study's figures by name. Raise ValueError for an empty docstring."""
    if not study.figures:
        return {}
    functions = marked.functions(study.module("figures"))
    return {stem: split(functions[stem].__doc__ or "", f"{study.name}: {stem}") for stem in study.figures}


def overall() -> dict[str, Caption]:
    """Return the captions of the figures that cover all studies, by the figure's name."""
    from privpost.report import figures

    return {stem: split(function.__doc__ or "", stem) for stem, function in marked.functions(figures).items()}


def split(text: str, where: str) -> Caption:
    """Return a caption whose title is the first sentence of a text. Raise ValueError if the text is empty."""
    title, *rest = _SENTENCE.split(re.sub(r"\s+", " ", text).strip(), maxsplit=1)
    if not title:
        raise ValueError(f"{where}: the docstring of a figure's function is its caption, but there is none")
    return Caption(title, "".join(rest))
