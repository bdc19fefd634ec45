"""Reads users' YAML without surprises: no repeated keys, no alias bombs, and no texts that become numbers."""

import datetime
import itertools
import re
from typing import Any, ClassVar

import yaml

# Largest number of values in a file, with aliases written out.
LARGEST_NODES = 500_000
_NUMBERS = {
    "int": r"[-+]?(0|[1-9][0-9]{0,30})",
    "float": r"[-+]?(((0|[1-9][0-9]*)(\.[0-9]*)?|\.[0-9]+)([eE][-+]?[0-9]+)?|\.(inf|Inf|INF))|\.(nan|NaN|NAN)",
}


class _Loader(yaml.SafeLoader):
    """A loader that reads numbers as YAML 1.2 defines them: 010 and 12:30 are texts."""

    yaml_implicit_resolvers: ClassVar = {
        first: [(tag, pattern) for tag, pattern in resolvers if tag.rpartition(":")[2] not in _NUMBERS]
        for first, resolvers in yaml.SafeLoader.yaml_implicit_resolvers.items()
    }

    def get_single_node(self):
        node = super().get_single_node()
        if node is not None and _nodes(node, {}) > LARGEST_NODES:
            raise ValueError(f"its aliases stand for more than {LARGEST_NODES} values")
        return node

    def construct_scalar(self, node):
        text = super().construct_scalar(node)
        if isinstance(text, str) and re.search("[\\x00\\ud800-\\udfff]", text):
            # A text with such a character could neither be a path nor be written to a file.
            raise ValueError(f"line {node.start_mark.line + 1}: {text[:40]!a} has a character that is in no text")
        return text

    def construct_mapping(self, node, deep=False):
        seen = set()
        for key_node, _ in node.value:
            key = self.construct_object(key_node, deep=True)
            if not isinstance(key, str | int | float | bool | None):
                read = f"YAML reads {key} as a date, not a text; quote it" if isinstance(key, datetime.date) else ""
                raise ValueError(f"line {key_node.start_mark.line + 1}: {read or 'a key must be a text'}")
            if key in seen:
                raise ValueError(f"line {key_node.start_mark.line + 1}: {key!r} is given twice")
            seen.add(key)
        return super().construct_mapping(node, deep)


for _tag, _pattern in _NUMBERS.items():
    _Loader.add_implicit_resolver(f"tag:yaml.org,2002:{_tag}", re.compile(f"^({_pattern})$"), list("-+.0123456789"))


def _nodes(node: yaml.Node, known: dict[int, int]) -> int:
    """Return the number of values in a node and in all parts of the node, with aliases written out."""
    if id(node) not in known:
        parts = [] if isinstance(node, yaml.ScalarNode) else node.value
        if isinstance(node, yaml.MappingNode):
            parts = itertools.chain.from_iterable(parts)
        known[id(node)] = 1 + sum(_nodes(part, known) for part in parts)
    return known[id(node)]


def load(text: str) -> Any:
    """Return the content of a YAML text. Raises ValueError, with a message of one line, if the text cannot be read."""
    try:
        return yaml.load(text, Loader=_Loader)
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        raise ValueError(f"not valid YAML: {' '.join(str(error).split())}") from error
