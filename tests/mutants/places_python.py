"""Finds the places of a Python source that can be mutated, and makes the source of each mutant.

`ast` finds operators, conditions, constants, calls, loops and statements, including those that run on import. A mutant
is the file's text with one expression or statement replaced. Annotations, assertions, overloads and `Literal`s, which
are for type checkers, and strings that are not single words are omitted and counted.
"""

from __future__ import annotations

import ast
import copy
import re
from collections import Counter
from dataclasses import dataclass
from typing import Any

COMPARE: dict[type[ast.cmpop], type[ast.cmpop]] = {
    ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Gt: ast.GtE, ast.GtE: ast.Gt, ast.Eq: ast.NotEq, ast.NotEq: ast.Eq,
    ast.Is: ast.IsNot, ast.IsNot: ast.Is, ast.In: ast.NotIn, ast.NotIn: ast.In,
}  # fmt: skip
# The same replacements as for C++ in places_native.py.
BINARY: dict[type[ast.operator], type[ast.operator]] = {
    ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Mult: ast.Add, ast.Div: ast.Mult, ast.FloorDiv: ast.Mult,
    ast.Mod: ast.Mult, ast.Pow: ast.Mult, ast.LShift: ast.RShift, ast.RShift: ast.LShift, ast.BitAnd: ast.BitOr,
    ast.BitOr: ast.BitAnd, ast.BitXor: ast.BitOr, ast.MatMult: ast.Mult,
}  # fmt: skip
SPELLED = {
    ast.Lt: "<", ast.LtE: "<=", ast.Gt: ">", ast.GtE: ">=", ast.Eq: "==", ast.NotEq: "!=", ast.Is: "is",
    ast.IsNot: "is not", ast.In: "in", ast.NotIn: "not in", ast.Add: "+", ast.Sub: "-", ast.Mult: "*", ast.Div: "/",
    ast.FloorDiv: "//", ast.Mod: "%", ast.Pow: "**", ast.LShift: "<<", ast.RShift: ">>", ast.BitAnd: "&",
    ast.BitOr: "|", ast.BitXor: "^", ast.MatMult: "@", ast.Not: "not", ast.USub: "-", ast.UAdd: "+", ast.Invert: "~",
    ast.And: "and", ast.Or: "or",
}  # fmt: skip
NEGATED = (ast.Eq, ast.NotEq, ast.Is, ast.IsNot, ast.In, ast.NotIn)  # operators whose replacement is their negation
QUANTIFIERS = {"any": "all", "all": "any", "min": "max", "max": "min"}
PLACES = (ast.Compare, ast.BinOp, ast.BoolOp, ast.UnaryOp, ast.AugAssign, ast.Call)
TYPES, TEXT, NOT_WRITTEN = "for the type checker", "text", "cannot be written"

Slot = tuple[ast.AST, str, int | None]  # a field of a node, or an item of its list


@dataclass(frozen=True)
class Change:
    """A change, the lines of its statement, and the changed source."""

    kind: str
    what: str  # for example "< -> <="
    text: str
    function: str
    lines: range
    source: str  # of the whole file


class Finder:
    """Collects the changes of a source, and counts the omitted places by reason."""

    def __init__(self, source: str) -> None:
        self.source = source
        self.rows = source.encode().splitlines(keepends=True)
        self.changes: list[Change] = []
        self.left_out: Counter[str] = Counter()
        self.function, self.lines = "", range(0)
        self.whole: ast.JoinedStr | None = None  # nodes inside an f-string have no positions
        tree = ast.parse(source)
        self.inside(tree)

    def visit(self, node: ast.AST, slot: Slot) -> None:  # noqa: PLR0915  (a table of kinds)
        """Add the changes of a node and of the nodes inside it."""
        if isinstance(node, ast.stmt):
            held = [each.lineno for each in ast.walk(node) if isinstance(each, ast.stmt) and each is not node]
            self.lines = range(node.lineno, min(held, default=(node.end_lineno or node.lineno) + 1))
        owner = slot[0]
        match node:
            case ast.FunctionDef(decorator_list=[ast.Name(id="overload")]):
                self.leave_out(node, TYPES)
                return
            case ast.Subscript(value=ast.Name(id="Literal")) if "get_args(" not in self.source:
                self.leave_out(node, TYPES)
                return
            case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.ClassDef():
                before, self.function = self.function, f"{self.function}.{node.name}".lstrip(".")
                self.inside(node)
                self.function = before
                return
            case ast.Assert():
                self.leave_out(node, TYPES)
                return
            case ast.If(test=ast.Name(id="TYPE_CHECKING")):
                self.leave_out(node, TYPES)
                return
            case ast.Expr(value=ast.Constant()) | ast.Import() | ast.ImportFrom():
                return
            case ast.Compare():
                for at, op in enumerate(node.ops):
                    self.swap(node, (node, "ops", at), op, COMPARE)
            case ast.BinOp():
                self.swap(node, (node, "op", None), node.op, BINARY)
            case ast.AugAssign():
                self.swap(node, (node, "op", None), node.op, BINARY)
                self.add("statement", "left out", node, slot, ast.Pass())
            case ast.UnaryOp():
                self.add("operator", f"without {SPELLED[type(node.op)]}", node, slot, node.operand)
            case ast.BoolOp():
                other, neutral = (ast.Or, True) if isinstance(node.op, ast.And) else (ast.And, False)
                was = SPELLED[type(node.op)]
                self.add("logic", f"{was} -> {SPELLED[other]}", node, (node, "op", None), other())
                for at, operand in enumerate(node.values):
                    what = f"{neutral} for the operand of {was}"
                    self.add("operand", what, operand, (node, "values", at), ast.Constant(neutral))
            case ast.If() | ast.IfExp() | ast.While():
                self.condition(node.test, (node, "test", None), loop=isinstance(node, ast.While))
            case ast.For():
                self.first(node.iter, (node, "iter", None))
            case ast.comprehension():
                self.first(node.iter, (node, "iter", None))
                for at, test in enumerate(node.ifs):
                    self.condition(test, (node, "ifs", at))
            case ast.match_case(guard=ast.expr() as guard):
                self.condition(guard, (node, "guard", None))
            case ast.Call():
                self.call(node, slot)
            case ast.Constant(value=int() as value):
                numbers = (
                    [not value] if isinstance(value, bool) else [value + 1, value - 1, *([0] if value > 1 else [])]
                )
                for number in numbers:
                    self.add("constant", f"{value} -> {number}", shown(node, owner), slot, ast.Constant(number))
            case ast.Constant(value=str(text)):
                if self.whole is owner or not re.fullmatch(r"[\w.]+", text):
                    self.left_out[TEXT] += 1
                else:
                    word = text + "?"
                    self.add("constant", f"{text!r} -> {word!r}", shown(node, owner), slot, ast.Constant(word))
            case ast.Return(value=ast.expr() as value) if not (isinstance(value, ast.Constant) and value.value is None):
                self.add("return", "None", node, (node, "value", None), ast.Constant(None))
            case ast.Return() | ast.Continue() | ast.Break() | ast.Raise() | ast.Expr() | ast.Delete():
                self.add("statement", "left out", node, slot, ast.Pass())
            case ast.Assign(targets=[ast.Subscript() | ast.Attribute()]):
                self.add("statement", "left out", node, slot, ast.Pass())
            case ast.JoinedStr() if self.whole is None:
                self.whole = node
                self.inside(node)
                self.whole = None
                return
        self.inside(node)

    def inside(self, node: ast.AST) -> None:
        """Visit the nodes inside a node, except annotations and format specifications."""
        for field, value in ast.iter_fields(node):
            if field in ("annotation", "returns", "format_spec", "pattern"):
                if isinstance(value, ast.AST):
                    self.leave_out(value, TEXT if field == "format_spec" else TYPES)
            elif isinstance(value, ast.AST):
                self.visit(value, (node, field, None))
            elif isinstance(value, list):
                for index, each in enumerate(value):
                    if isinstance(each, ast.AST):
                        self.visit(each, (node, field, index))

    def leave_out(self, node: ast.AST, why: str) -> None:
        """Count the places inside an omitted node."""
        self.left_out[why] += sum(isinstance(each, PLACES) for each in ast.walk(node))

    # ------------------------------------------------------------------ changes

    def add(self, kind: str, what: str, node: ast.AST, slot: Slot, new: ast.AST) -> None:
        """Add the change that puts `new` into a slot, as text in place of the old node or of the node around it."""
        was = put(slot, new)
        try:
            place, by = (was, new) if hasattr(was, "lineno") else (slot[0], slot[0])
            if self.whole is not None:
                place = by = self.whole
            text = ast.unparse(by)
        except ValueError:  # a string inside an f-string, for which no quotes are left
            self.left_out[NOT_WRITTEN] += 1
            return
        finally:
            put(slot, was)
        at: Any = place  # has a position
        first = sum(len(row) for row in self.rows[: at.lineno - 1]) + at.col_offset
        last = sum(len(row) for row in self.rows[: at.end_lineno - 1]) + at.end_col_offset
        whole = self.source.encode()
        text = f"({text})" if isinstance(by, ast.expr) else text.replace("\n", "\n" + " " * at.col_offset)
        source = (whole[:first] + text.encode() + whole[last:]).decode()
        try:
            compile(source, "", "exec", dont_inherit=True)
        except SyntaxError:
            self.left_out[NOT_WRITTEN] += 1
            return
        shown_text = " ".join((ast.get_source_segment(self.source, node) or ast.unparse(node)).split())
        self.changes.append(Change(kind, what, shown_text, self.function, self.lines, source))

    def swap(self, node: ast.AST, slot: Slot, op: ast.AST, others: Any) -> None:
        other = others[type(op)]
        self.add("operator", f"{SPELLED[type(op)]} -> {SPELLED[other]}", node, slot, other())

    def condition(self, test: ast.expr, slot: Slot, *, loop: bool = False) -> None:
        """Add the changes of a condition. A negation that equals the replacement of its only operator is omitted."""
        alone = isinstance(test, ast.Compare) and len(test.ops) == 1 and isinstance(test.ops[0], NEGATED)
        if not alone and not isinstance(test, ast.UnaryOp):
            self.add("condition", "negated", test, slot, ast.UnaryOp(ast.Not(), test))
        self.add("condition", "never", test, slot, ast.Constant(False))
        if not loop:
            self.add("condition", "always", test, slot, ast.Constant(True))

    def first(self, several: ast.expr, slot: Slot) -> None:
        """Add the change that ends a loop after its first item."""
        listed = ast.Call(ast.Name("list", ast.Load()), [several], [])
        only = ast.Subscript(listed, ast.Slice(None, ast.Constant(1)), ast.Load())
        self.add("loop", "the first alone", several, slot, only)

    def call(self, node: ast.Call, slot: Slot) -> None:
        """Add the changes that omit a keyword, swap the first two arguments, or replace a quantifier."""
        for at, keyword in enumerate(node.keywords):
            new = copy.copy(node)
            new.keywords = node.keywords[:at] + node.keywords[at + 1 :]
            self.add("argument", f"without {keyword.arg or '**'}", node, slot, new)
        if len(node.args) > 1 and not any(isinstance(each, ast.Starred) for each in node.args[:2]):
            new = copy.copy(node)
            new.args = [node.args[1], node.args[0], *node.args[2:]]
            self.add("argument", "the first two swapped", node, slot, new)
        if isinstance(node.func, ast.Name) and (other := QUANTIFIERS.get(node.func.id)):
            self.add("call", f"{node.func.id} -> {other}", node, (node, "func", None), ast.Name(other, ast.Load()))


def put(slot: Slot, value: Any) -> Any:
    owner, field, index = slot
    if index is None:
        was = getattr(owner, field)
        setattr(owner, field, value)
    else:
        items = getattr(owner, field)
        was, items[index] = items[index], value
    return was


def shown(node: ast.AST, owner: ast.AST) -> ast.AST:
    """Return the node to print for a constant: the node around it, because the constant alone says little."""
    return owner if hasattr(owner, "lineno") and not isinstance(owner, ast.stmt) else node
