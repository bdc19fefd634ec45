"""The small faults that a function can have, as changes of its syntax tree."""

import ast
import copy
from collections.abc import Iterable, Iterator

# Functions that give instances for the contract tests, or words: a change of them is no fault.
SPARED = {"examples", "__repr__", "__post_init__", "name", "recorded", "options"}
OPERATORS = {ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Mult: ast.Div, ast.Div: ast.Mult, ast.Pow: ast.Mult}
OPERATORS |= {ast.FloorDiv: ast.Div, ast.MatMult: ast.Add, ast.BitAnd: ast.BitOr, ast.BitOr: ast.BitAnd}
COMPARISONS = {ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Gt: ast.GtE, ast.GtE: ast.Gt, ast.Eq: ast.NotEq, ast.NotEq: ast.Eq}
COMPARISONS |= {ast.Is: ast.IsNot, ast.IsNot: ast.Is, ast.In: ast.NotIn, ast.NotIn: ast.In}
NAMES = {"min": "max", "max": "min", "minimum": "maximum", "maximum": "minimum", "log": "log1p", "exp": "expm1"}
NAMES |= {"any": "all", "all": "any", "floor": "ceil", "ceil": "floor", "sum": "max", "mean": "max", "abs": "negative"}


def variants(node: ast.AST) -> Iterator[ast.AST]:
    """Yield the faults that a node can have."""
    changed = copy.deepcopy(node)
    if isinstance(changed, ast.BinOp) and type(changed.op) in OPERATORS:
        changed.op = OPERATORS[type(changed.op)]()
        yield changed
    elif isinstance(changed, ast.Compare) and type(changed.ops[0]) in COMPARISONS:
        changed.ops[0] = COMPARISONS[type(changed.ops[0])]()
        yield changed
    elif isinstance(changed, ast.BoolOp):
        changed.op = ast.Or() if isinstance(changed.op, ast.And) else ast.And()
        yield changed
    elif isinstance(changed, ast.UnaryOp):
        yield changed.operand
    elif isinstance(changed, ast.Constant) and type(changed.value) is bool:
        yield ast.Constant(not changed.value)
    elif isinstance(changed, ast.Constant) and type(changed.value) in (int, float):
        yield ast.Constant(changed.value + 1)
    elif isinstance(changed, ast.IfExp):
        yield changed.body
        yield changed.orelse
    elif isinstance(changed, ast.AugAssign) and type(changed.op) in OPERATORS:
        changed.op = OPERATORS[type(changed.op)]()
        yield changed
    elif isinstance(changed, ast.Call):
        function = changed.func
        name = function.attr if isinstance(function, ast.Attribute) else getattr(function, "id", "")
        if name in NAMES:
            setattr(function, "attr" if isinstance(function, ast.Attribute) else "id", NAMES[name])
            yield changed
        elif len(changed.args) > 1 and not any(isinstance(argument, ast.Starred) for argument in changed.args[:2]):
            # Two arguments change places, for instance in a divergence.
            changed.args[:2] = changed.args[1::-1]
            yield changed


def places(tree: ast.Module) -> Iterator[tuple[str, ast.AST, str, int | None]]:
    """Yield the function, parent, field and index of every expression or statement that may get a fault."""
    for function in ast.walk(tree):
        if isinstance(function, ast.FunctionDef) and function.name not in SPARED:
            for statement in function.body:
                yield from _within(function.name, statement)


def _within(name: str, parent: ast.AST) -> Iterator[tuple[str, ast.AST, str, int | None]]:
    # Errors, imports, annotations and texts get no fault; a function within a function has its own turn. `strict=True`
    # checks lengths and is no arithmetic.
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
    """Yield place, change and syntax tree of every mutant of a module, or of its functions named in `of`.

    The tree has a fault until the next one is asked for.
    """
    tree = ast.parse(source)
    for name, parent, field, index in places(tree):
        if of and name not in of:
            continue
        children = getattr(parent, field)
        node = children if index is None else children[index]
        for changed in variants(node):
            ast.copy_location(changed, node)
            if index is None:
                setattr(parent, field, changed)
            else:
                children[index] = changed
            line = getattr(node, "lineno", getattr(parent, "lineno", 0))
            yield f"{line} {name}", f"{ast.unparse(node)} → {ast.unparse(changed)}", ast.fix_missing_locations(tree)
            if index is None:
                setattr(parent, field, node)
            else:
                children[index] = node
