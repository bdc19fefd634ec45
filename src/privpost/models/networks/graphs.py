"""Directed acyclic graphs of named nodes, read from YAML, a networkx DiGraph, a formula or a family's name.

A graph is a tuple of (node, parents) pairs in the order of a record's columns.
"""

import os
import re
from collections.abc import Callable, Iterable, Mapping
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

from privpost import configurations

Graph = tuple[tuple[str, tuple[str, ...]], ...]
# A node has a parameter for each of the 2^k values of its k parents.
MOST_NODES = 1000
MOST_PARENTS = 16

# A formula lists each node with its parents: [a][b|a][c|a:b].
_FORMULA = re.compile(r"(\[[^\[\]|:]+(\|[^\[\]|:]+(:[^\[\]|:]+)*)?\])+")


def checked(nodes: Mapping[str, Iterable[str]] | Iterable[tuple[str, Iterable[str]]]) -> Graph:
    """Return a graph from a map (or pairs) of nodes to their parents.

    Raises:
        ValueError: a node is repeated, a parent is unknown or repeated, or the graph is empty, too large or cyclic.
    """
    if isinstance(nodes, str) or not isinstance(nodes, Iterable):
        raise ValueError(f"nodes is {nodes!r}; it must be a map of nodes to lists of their parents")
    pairs = list(nodes.items()) if isinstance(nodes, Mapping) else list(nodes)
    graph = []
    for node, parents in pairs:
        if isinstance(parents, str) or not isinstance(parents, Iterable):
            raise ValueError(f"node {node!r}: parents is {parents!r}; it must be a list of nodes")
        graph.append((str(node), tuple(str(parent) for parent in parents)))
    if not graph:
        raise ValueError("nodes is empty; a network needs at least one node")
    if len(graph) > MOST_NODES:
        raise ValueError(f"nodes are {len(graph)}; a network may have at most {MOST_NODES}")
    names = [node for node, _ in graph]
    for node, parents in graph:
        if len(parents) > MOST_PARENTS:
            raise ValueError(f"node {node!r} has {len(parents)} parents; at most {MOST_PARENTS} are allowed")
        if names.count(node) > 1:
            raise ValueError(f"node {node!r} is given twice")
        for parent in parents:
            if parent not in names:
                raise ValueError(f"node {node!r}: unknown parent {parent!r}; the nodes are {', '.join(names)}")
            if parents.count(parent) > 1:
                raise ValueError(f"node {node!r}: parent {parent!r} is given twice")
    topological_order(graph)
    return tuple(graph)


def topological_order(graph: Iterable[tuple[str, tuple[str, ...]]]) -> list[str]:
    """Return the nodes, parents before children. Raises a ValueError that names the nodes of a cycle."""
    try:
        return list(TopologicalSorter(dict(graph)).static_order())
    except CycleError as error:
        raise ValueError(f"node {error.args[1][0]!r} is in a cycle: {' -> '.join(error.args[1])}") from error


def from_digraph(digraph) -> Graph:
    """Return the graph of a networkx DiGraph, whose edges run from parent to child."""
    return checked([(node, list(digraph.predecessors(node))) for node in digraph.nodes])


def from_yaml(path: str | os.PathLike[str]) -> Graph:
    """Return the graph in a YAML file `nodes: {node: [parents], ...}`. A ValueError names the file and the bad node."""
    from privpost import strict_yaml

    try:
        content = strict_yaml.load(Path(path).read_text(encoding="utf-8"))
    except FileNotFoundError as error:
        raise ValueError(f"graph {os.fspath(path)!r}: there is no such file") from error
    except ValueError as error:
        raise ValueError(f"{path}: {error}") from error
    if not isinstance(content, dict) or set(content) != {"nodes"} or not isinstance(content["nodes"], dict):
        raise ValueError(f"{path}: it must hold one key, nodes: a map from each node to the list of its parents")
    try:
        return checked(content["nodes"])
    except ValueError as error:
        raise ValueError(f"{path}: {error}") from error


def formula(graph: Graph) -> str:
    """Return the graph as one line, each node with its parents: `[a][b|a][c|a:b]`."""
    return "".join(f"[{node}|{':'.join(parents)}]" if parents else f"[{node}]" for node, parents in graph)


def from_formula(text: str) -> Graph:
    """Return the graph of a line that `formula` wrote. Raises a ValueError for any other text or a bad graph."""
    if not _FORMULA.fullmatch(text):
        raise ValueError(f"graph {text!r} is not a formula such as [a][b|a][c|a:b]")
    pairs = []
    for entry in text[1:-1].split("]["):
        node, _, parents = entry.partition("|")
        pairs.append((node, parents.split(":") if parents else []))
    return checked(pairs)


def chain(length: int) -> Graph:
    """Return the chain x0 → x1 → … of `length` nodes."""
    return banded(length, 1)


def banded(length: int, in_degree: int) -> Graph:
    """Return `length` nodes in a row, each a child of the `in_degree` nodes before it."""
    return checked([(f"x{i}", [f"x{j}" for j in range(max(0, i - in_degree), i)]) for i in range(length)])


def naive_bayes(attributes: int) -> Graph:
    """Return a class y with `attributes` children x1, x2, …."""
    return checked([("y", []), *((f"x{i}", ["y"]) for i in range(1, attributes + 1))])


def collider(parents: int) -> Graph:
    """Return one child y of `parents` independent nodes x1, x2, …."""
    causes = [f"x{i}" for i in range(1, parents + 1)]
    return checked([*((cause, []) for cause in causes), ("y", causes)])


FAMILIES: dict[str, Callable[..., Graph]] = {
    "chain": chain,
    "banded": banded,
    "naive_bayes": naive_bayes,
    "collider": collider,
}


def named(text: str) -> tuple[str, Graph]:
    """Return the name and the graph that a short text stands for.

    The text is a family with its sizes (`chain_20`, `banded_8_3`, `naive_bayes_16`, `collider_4`), the stem of a file
    in conf/network, the path of a YAML file, or a name and a formula (`pair [a][b|a]`). Raises a ValueError for an
    unknown text or a bad graph.
    """
    text = text.strip()
    name, _, rest = text.partition(" ")
    if rest:
        return name, from_formula(rest)
    family = re.fullmatch(r"([a-z_]+)((?:_\d+)+)", text)
    if family and family[1] in FAMILIES:
        sizes = [int(size) for size in family[2][1:].split("_")]
        if max(sizes) > MOST_NODES:
            raise ValueError(f"graph {text!r} has a size above {MOST_NODES}, the most nodes of a network")
        try:
            return text, FAMILIES[family[1]](*sizes)
        except TypeError as error:
            raise ValueError(f"graph {text!r}: {family[1]} takes another number of sizes") from error
    if text.endswith((".yaml", ".yml")):
        return Path(text).stem, from_yaml(text)
    folder = configurations.folder() / "network"
    known = sorted(path.stem for path in folder.glob("*.yaml"))
    if text in known:
        return text, from_yaml(folder / f"{text}.yaml")
    raise ValueError(
        f"graph {text!r} is unknown; known are {', '.join(known)}, the families "
        f"{', '.join(f'{name}_<size>' for name in FAMILIES)}, and the path of a YAML file"
    )
