"""The small faults that a function can have, as changes of its syntax tree."""

import ast
import copy
from collections.abc import Iterable, Iterator

# Instances of the contract tests and words: to change them is no fault.
SPARED = {"examples", "__repr__", "__post_init__", "name", "recorded", "options"}
OPERATORS = {ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Mult: ast.Div, ast.Div: ast.Mult, ast.Pow: ast.Mult}
OPERATORS |= {ast.FloorDiv: ast.Div, ast.MatMult: ast.Add, ast.BitAnd: ast.BitOr, ast.BitOr: ast.BitAnd}
COMPARISONS = {ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Gt: ast.GtE, ast.GtE: ast.Gt, ast.Eq: ast.NotEq, ast.NotEq: ast.Eq}
COMPARISONS |= {ast.Is: ast.IsNot, ast.IsNot: ast.Is, ast.In: ast.NotIn, ast.NotIn: ast.In}
NAMES = {"min": "max", "max": "min", "minimum": "maximum", "maximum": "minimum", "log": "log1p", "exp": "expm1"}
NAMES |= {"any": "all", "all": "any", "floor": "ceil", "ceil": "floor", "sum": "max", "mean": "max", "abs": "negative"}


def variants(node: ast.AST) -> Iterator[ast.AST]:
    """Yield the faults that a node can have."""
    made = copy.deepcopy(node)
    if isinstance(made, ast.BinOp) and type(made.op) in OPERATORS:
        made.op = OPERATORS[type(made.op)]()
        yield made
    elif isinstance(made, ast.Compare) and type(made.ops[0]) in COMPARISONS:
        made.ops[0] = COMPARISONS[type(made.ops[0])]()
        yield made
    elif isinstance(made, ast.BoolOp):
        made.op = ast.Or() if isinstance(made.op, ast.And) else ast.And()
        yield made
    elif isinstance(made, ast.UnaryOp):
        yield made.operand
    elif isinstance(made, ast.Constant) and type(made.value) is bool:
        yield ast.Constant(not made.value)
    elif isinstance(made, ast.Constant) and type(made.value) in (int, float):
        yield ast.Constant(made.value + 1)
    elif isinstance(made, ast.IfExp):
        yield made.body
        yield made.orelse
    elif isinstance(made, ast.AugAssign) and type(made.op) in OPERATORS:
        made.op = OPERATORS[type(made.op)]()
        yield made
    elif isinstance(made, ast.Call):
        own = made.func
        name = own.attr if isinstance(own, ast.Attribute) else getattr(own, "id", "")
        if name in NAMES:
            setattr(own, "attr" if isinstance(own, ast.Attribute) else "id", NAMES[name])
            yield made
        elif len(made.args) > 1 and not any(isinstance(each, ast.Starred) for each in made.args[:2]):
            # Two arguments change places, as those of a divergence.
            made.args[:2] = made.args[1::-1]
            yield made


def places(tree: ast.Module) -> Iterator[tuple[str, ast.AST, str, int | None]]:
    """Yield the function, parent, field and index of every expression or statement that may get a fault."""
    for function in ast.walk(tree):
        if isinstance(function, ast.FunctionDef) and function.name not in SPARED:
            for statement in function.body:
                yield from _within(function.name, statement)


def _within(name: str, parent: ast.AST) -> Iterator[tuple[str, ast.AST, str, int | None]]:
    # Errors, warnings, annotations and texts are left alone, and functions within functions have their own turn. That
    # lists are of one length is no arithmetic.
    if isinstance(parent, ast.Raise | ast.Assert | ast.FunctionDef | ast.JoinedStr | ast.Import | ast.ImportFrom):
        return
    if isinstance(parent, ast.keyword) and parent.arg == "strict":
        return
    for field, value in ast.iter_fields(parent):
        if field in ("annotation", "returns"):
            continue
        for index, child in enumerate(value) if isinstance(value, list) else [(None, value)]:
            if isinstance(child, ast.AST):
                yield name, parent, field, index
                yield from _within(name, child)


def mutants(source: str, of: Iterable[str] = ()) -> Iterator[tuple[str, str, ast.Module]]:
    """Yield place, change and syntax tree of every mutant of a module, or of those in functions with certain names. The
    tree has its fault until the next one is asked for."""
    tree = ast.parse(source)
    for name, parent, field, index in places(tree):
        if of and name not in of:
            continue
        held = getattr(parent, field)
        node = held if index is None else held[index]
        for changed in variants(node):
            ast.copy_location(changed, node)
            if index is None:
                setattr(parent, field, changed)
            else:
                held[index] = changed
            line = getattr(node, "lineno", getattr(parent, "lineno", 0))
            yield f"{line} {name}", f"{ast.unparse(node)} → {ast.unparse(changed)}", ast.fix_missing_locations(tree)
            if index is None:
                setattr(parent, field, node)
            else:
                held[index] = node
