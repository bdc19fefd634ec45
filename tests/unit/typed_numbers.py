"""Detects measured numbers typed into prose, where no table could contradict them."""

from __future__ import annotations

import re

# What counts as a measured number in prose: a decimal, or a number with a unit or a thing that is counted.
_UNIT = (
    r"s|ms|min|mins|minutes?|seconds?|hours?|h|%|percent|[kKMG]i?B|bytes|times|cells?|claims?|studies|study|figures?"
    r"|tables?|standard errors?|points?|cores?|comparisons?|repeats?|releases?|splits?|draws?|data sets?|trials?"
)
_BARE = re.compile(rf"(?<![\w./√-])(?:\d+[.,]\d+|\.\d+|\d+(?:\s|\u202f|-)?(?:{_UNIT})\b|\d+\s?%|\d+\s?±)")
PLACEHOLDER = re.compile(r"\{\{.*?\}\}|\{%.*?%\}", re.DOTALL)
# Code (indented too), links and addresses are not prose.
_NOT_PROSE = re.compile(
    r"```.*?```|`[^`]*`|\]\([^)]*\)|https?://\S+|</?[a-zA-Z][^>\n]*>|<!--.*?-->|^ {4,}(?![-*] )[^\n]*$",
    re.DOTALL | re.MULTILINE,
)


def bare_numbers(template: str, allowed: tuple[str, ...] = ()) -> list[str]:
    """Return the numbers of a template's prose that look measured and are not placeholders.

    `allowed` are exact phrases to leave out.
    """
    for phrase in allowed:
        template = template.replace(phrase, " ")
    template = _NOT_PROSE.sub(" ", PLACEHOLDER.sub(" ", template))
    return [match[0] for match in _BARE.finditer(template)]
