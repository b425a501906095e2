"""Where Python's sources can be broken, and a live function with one of these changes in it.

`ast` says what is an operator, a condition, a constant, a statement of a function's body; single words, such as names
of clauses, are constants. No file is changed: the module is compiled with the change, and its function's code goes
into the function that everybody holds already. What only Python's import runs is left out and counted (the level of
modules and classes, default arguments, decorators), and so are annotations, assertions, which are for mypy, and texts.
"""

from __future__ import annotations

import ast
import gc
import re
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from types import CodeType, FunctionType
from typing import Any

COMPARE: dict[type[ast.cmpop], type[ast.cmpop]] = {
    ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Gt: ast.GtE, ast.GtE: ast.Gt, ast.Eq: ast.NotEq, ast.NotEq: ast.Eq,
    ast.Is: ast.IsNot, ast.IsNot: ast.Is, ast.In: ast.NotIn, ast.NotIn: ast.In,
}  # fmt: skip
# As mutate.py has them for C++.
BINARY: dict[type[ast.operator], type[ast.operator]] = {
    ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Mult: ast.Add, ast.Div: ast.Mult, ast.FloorDiv: ast.Mult,
    ast.Mod: ast.Mult, ast.Pow: ast.Mult, ast.LShift: ast.RShift, ast.RShift: ast.LShift, ast.BitAnd: ast.BitOr,
    ast.BitOr: ast.BitAnd, ast.BitXor: ast.BitOr,
}  # fmt: skip
SPELLED = {
    ast.Lt: "<", ast.LtE: "<=", ast.Gt: ">", ast.GtE: ">=", ast.Eq: "==", ast.NotEq: "!=", ast.Is: "is",
    ast.IsNot: "is not", ast.In: "in", ast.NotIn: "not in", ast.Add: "+", ast.Sub: "-", ast.Mult: "*", ast.Div: "/",
    ast.FloorDiv: "//", ast.Mod: "%", ast.Pow: "**", ast.LShift: "<<", ast.RShift: ">>", ast.BitAnd: "&",
    ast.BitOr: "|", ast.BitXor: "^", ast.Not: "not", ast.USub: "-", ast.UAdd: "+", ast.Invert: "~",
    ast.And: "and", ast.Or: "or",
}  # fmt: skip
FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
PLACES = (ast.Compare, ast.BinOp, ast.BoolOp, ast.UnaryOp, ast.AugAssign)
IMPORTED, TYPES, TEXT = "run by Python's import", "for the type checker", "text"


@dataclass(frozen=True)
class Change:
    """What one mutant puts where: `new` into a node's field, or into the item of its list."""

    kind: str
    what: str  # such as "< -> <="
    node: ast.AST  # whose text says where
    owner: ast.AST
    field: str
    index: int | None
    new: Any
    function: str  # as __qualname__ has it, the outermost one, whose code is replaced
    first_line: int  # of that function, with its decorators
    lines: range  # of the statement's own, without those that it holds

    def put(self, value: Any) -> Any:
        """Put it there; what was."""
        if self.index is None:
            was = getattr(self.owner, self.field)
            setattr(self.owner, self.field, value)
        else:
            items = getattr(self.owner, self.field)
            was, items[self.index] = items[self.index], value
        return was


class Finder:
    """The changes of a module, and how many places were left out, by why."""

    def __init__(self, tree: ast.Module) -> None:
        self.changes: list[Change] = []
        self.left_out: Counter[str] = Counter()
        self.function, self.first_line, self.lines = "", 0, range(0)
        for node in tree.body:
            self.declaration(node, "")

    # ------------------------------------------------------------------ what is looked at

    def declaration(self, node: ast.stmt, prefix: str) -> None:
        """A statement of a module or a class: functions in it have places."""
        if isinstance(node, ast.ClassDef):
            for each in node.body:
                self.declaration(each, f"{prefix}{node.name}.")
        elif isinstance(node, FUNCTIONS):
            self.function = prefix + node.name
            self.first_line = min([node.lineno, *(each.lineno for each in node.decorator_list)])
            self.body(node)
        else:
            self.leave_out(node, IMPORTED)

    def body(self, node: ast.FunctionDef | ast.AsyncFunctionDef) -> None:
        """A function's statements."""
        for each in (*node.decorator_list, *node.args.defaults, *filter(None, node.args.kw_defaults)):
            self.leave_out(each, IMPORTED)
        for index, statement in enumerate(node.body):
            self.visit(statement, node, "body", index)

    def leave_out(self, node: ast.AST, why: str) -> None:
        """Count what would have been places."""
        self.left_out[why] += sum(isinstance(each, PLACES) or is_number(each) for each in ast.walk(node))

    def visit(self, node: ast.AST, owner: ast.AST, field: str, index: int | None) -> None:
        """This node's own changes, and those of what it holds."""
        if isinstance(node, ast.stmt):
            held = [each.lineno for each in ast.walk(node) if isinstance(each, ast.stmt) and each is not node]
            self.lines = range(node.lineno, min(held, default=(node.end_lineno or node.lineno) + 1))
        place = (owner, field, index)
        match node:
            case ast.FunctionDef() | ast.AsyncFunctionDef():
                self.body(node)
                return
            case ast.Assert():
                self.leave_out(node, TYPES)
                return
            case ast.Expr(value=ast.Constant(value=str())):
                return
            case ast.Compare():
                for at, op in enumerate(node.ops):
                    self.swap("operator", node, node, "ops", at, op, COMPARE)
            case ast.BinOp():
                self.swap("operator", node, node, "op", None, node.op, BINARY)
            case ast.AugAssign():
                self.swap("operator", node, node, "op", None, node.op, BINARY)
                self.add("statement", "left out", node, place, nothing(node))
            case ast.UnaryOp():
                self.add("operator", f"without {SPELLED[type(node.op)]}", node, place, node.operand)
            case ast.BoolOp():
                other, neutral = (ast.Or, True) if isinstance(node.op, ast.And) else (ast.And, False)
                was = SPELLED[type(node.op)]
                self.add("logic", f"{was} -> {SPELLED[other]}", node, (node, "op", None), other())
                for at, operand in enumerate(node.values):
                    what = f"{neutral} for the operand of {was}"
                    self.add("operand", what, operand, (node, "values", at), ast.Constant(neutral))
            case ast.If() | ast.IfExp() | ast.While():
                self.condition(node.test, (node, "test", None), loop=isinstance(node, ast.While))
            case ast.comprehension():
                for at, test in enumerate(node.ifs):
                    self.condition(test, (node, "ifs", at))
            case ast.match_case(guard=ast.expr() as guard):
                self.condition(guard, (node, "guard", None))
            case ast.Constant() if is_number(node):
                self.constant(node, place)
            case ast.Constant(value=str(text)):
                if isinstance(owner, ast.JoinedStr) or not re.fullmatch(r"[\w.]+", text):
                    self.left_out[TEXT] += 1
                else:
                    self.add("constant", f"{text!r} -> {text + '?'!r}", node, place, ast.Constant(text + "?"))
            case ast.Return(value=ast.expr() as value) if not is_none(value):
                self.add("return", "None", node, (node, "value", None), ast.Constant(None))
            case ast.Return() | ast.Continue() | ast.Break() | ast.Raise() | ast.Expr() | ast.Delete():
                self.add("statement", "left out", node, place, nothing(node))
            case ast.Assign(targets=[ast.Subscript() | ast.Attribute()]):
                self.add("statement", "left out", node, place, nothing(node))
        self.inside(node)

    def inside(self, node: ast.AST) -> None:
        """What a node holds, but annotations and the form of what a text shows."""
        for field, value in ast.iter_fields(node):
            if field in ("annotation", "returns", "format_spec", "pattern"):
                if isinstance(value, ast.AST):
                    self.leave_out(value, TEXT if field == "format_spec" else TYPES)
            elif isinstance(value, ast.AST):
                self.visit(value, node, field, None)
            elif isinstance(value, list):
                for index, each in enumerate(value):
                    if isinstance(each, ast.AST):
                        self.visit(each, node, field, index)

    # ------------------------------------------------------------------ what is changed

    def add(self, kind: str, what: str, node: ast.AST, place: tuple[ast.AST, str, int | None], new: ast.AST) -> None:
        """One change, with the place of what was."""
        if isinstance(new, (ast.expr, ast.stmt)) and not hasattr(new, "lineno"):
            ast.fix_missing_locations(ast.copy_location(new, node))
        self.changes.append(Change(kind, what, node, *place, new, self.function, self.first_line, self.lines))

    def swap(
        self, kind: str, node: ast.AST, owner: ast.AST, field: str, index: int | None, op: ast.AST, others: Any
    ) -> None:
        """Another operator."""
        other = others[type(op)]
        self.add(kind, f"{SPELLED[type(op)]} -> {SPELLED[other]}", node, (owner, field, index), other())

    def condition(self, test: ast.expr, place: tuple[ast.AST, str, int | None], *, loop: bool = False) -> None:
        """What a branch asks; where its only operator has the negation as another, that stands for it."""
        negations = (ast.Eq, ast.NotEq, ast.Is, ast.IsNot, ast.In, ast.NotIn)
        alone = isinstance(test, ast.Compare) and len(test.ops) == 1 and isinstance(test.ops[0], negations)
        if not alone and not isinstance(test, ast.UnaryOp):
            self.add("condition", "negated", test, place, ast.UnaryOp(ast.Not(), test))
        self.add("condition", "never", test, place, ast.Constant(False))
        if not loop:
            self.add("condition", "always", test, place, ast.Constant(True))

    def constant(self, node: ast.Constant, place: tuple[ast.AST, str, int | None]) -> None:
        """A number or a truth."""
        value: Any = node.value
        numbers = [value + 1, value - 1, *([0] if value > 1 else [])]
        for other in [not value] if isinstance(value, bool) else numbers:
            self.add("constant", f"{value} -> {other}", node, place, ast.Constant(other))


def nothing(node: ast.AST) -> ast.stmt:
    """What stands where a statement was; a function that named `super` has to, or its code does not go into it."""
    names = (each for each in ast.walk(node) if isinstance(each, ast.Name) and each.id == "super")
    return next((ast.Expr(each) for each in names), ast.Pass())


def is_number(node: ast.AST) -> bool:
    """Whether a node is a constant of int or bool."""
    return isinstance(node, ast.Constant) and isinstance(node.value, int)


def is_none(node: ast.AST) -> bool:
    """Whether a node is None."""
    return isinstance(node, ast.Constant) and node.value is None


# ---------------------------------------------------------------------- live functions


class Module:
    """A module that was imported, its changes, and the functions that can have them."""

    def __init__(self, path: Path) -> None:
        self.path, self.source = path, path.read_text(encoding="utf-8")
        self.tree = ast.parse(self.source)
        self.finder = Finder(self.tree)
        self.live: dict[tuple[str, int], list[FunctionType]] = {}
        for each in gc.get_objects():
            if type(each) is FunctionType and each.__code__.co_filename == str(path):
                key = each.__code__.co_qualname, each.__code__.co_firstlineno
                self.live.setdefault(key, []).append(each)
        for change in self.finder.changes:
            functions = self.live.get((change.function, change.first_line), [])
            if not functions or any(each.__code__ != self.code(change) for each in functions):
                raise RuntimeError(f"{path}: {change.function} is not imported as it stands there")

    def text(self, change: Change) -> str:
        """The source of what is changed; of a constant, what it stands in, since it alone says little."""
        is_told = change.kind != "constant" or not hasattr(change.owner, "lineno")
        node = change.node if is_told else change.owner
        return " ".join((ast.get_source_segment(self.source, node) or "").split())

    def code(self, change: Change) -> CodeType:
        """The code of a change's function as the tree is now."""
        whole = compile(self.tree, str(self.path), "exec", dont_inherit=True)
        (found,) = (
            each for each in codes(whole)
            if (each.co_qualname, each.co_firstlineno) == (change.function, change.first_line)
        )  # fmt: skip
        return found

    def switch_on(self, change: Change) -> Callable[[], None]:
        """Have the live functions do something else; how to end that."""
        was = change.put(change.new)
        try:
            code = self.code(change)
        finally:
            change.put(was)
        functions = self.live[change.function, change.first_line]
        before = [each.__code__ for each in functions]
        for each in functions:
            each.__code__ = code

        def switch_off() -> None:
            for each, old in zip(functions, before, strict=True):
                each.__code__ = old

        return switch_off


def codes(code: CodeType) -> Iterator[CodeType]:
    """This and all within."""
    yield code
    for each in code.co_consts:
        if isinstance(each, CodeType):
            yield from codes(each)
