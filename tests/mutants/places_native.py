"""Finds the places of native sources that can be mutated, and wraps each of them in a switch.

libclang finds operators, conditions, constants and statements. switches.h has the switches. A place is a range of a
file's text, so a template, or code that is compiled for three instruction sets, has each place only once. Constant
expressions (constexpr, template arguments, array bounds, static_assert, if constexpr, cases, default arguments) and the
text of macros are omitted and counted.
"""

from __future__ import annotations

import re
import subprocess
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

from clang.cindex import Cursor, File, Index, TranslationUnit, _CXString, conf
from clang.cindex import CursorKind as Kind

# For each operator: the switch of switches.h, and the replacement.
BINARY = {
    "<": ("less", "<="), "<=": ("less_equal", "<"), ">": ("greater", ">="), ">=": ("greater_equal", ">"),
    "==": ("equal", "!="), "!=": ("not_equal", "=="), "+": ("plus", "-"), "-": ("minus", "+"),
    "*": ("times", "+"), "/": ("divide", "*"), "%": ("modulo", "*"), "<<": ("left", ">>"), ">>": ("right", "<<"),
    "&": ("bit_and", "|"), "|": ("bit_or", "&"), "^": ("bit_xor", "|"),
}  # fmt: skip
FUNCTIONS = (
    Kind.FUNCTION_DECL, Kind.FUNCTION_TEMPLATE, Kind.CXX_METHOD, Kind.CONSTRUCTOR, Kind.DESTRUCTOR,
    Kind.CONVERSION_FUNCTION,
)  # fmt: skip
CONSTANT = (
    Kind.STATIC_ASSERT, Kind.PARM_DECL, Kind.FIELD_DECL, Kind.TYPE_ALIAS_DECL, Kind.TYPE_ALIAS_TEMPLATE_DECL,
    Kind.TYPEDEF_DECL, Kind.ENUM_DECL, Kind.TEMPLATE_NON_TYPE_PARAMETER, Kind.TEMPLATE_TYPE_PARAMETER,
    Kind.CXX_UNARY_EXPR,
)  # fmt: skip
NAMES = (Kind.DECL_REF_EXPR, Kind.OVERLOADED_DECL_REF, Kind.TYPE_REF, Kind.TEMPLATE_REF)  # may have template arguments


@dataclass(frozen=True)
class Place:
    """A range of a file's text, its mutants, and the text that wraps it."""

    file: str  # relative to native/
    start: int
    end: int
    kind: str
    function: str
    changes: tuple[str, ...]  # the description of each mutant
    before: str  # {} is replaced by the number of the first mutant
    after: str = ")"
    cut: tuple[int, int, str] = (0, 0, "")  # a part to replace, and its replacement
    level: int = 0  # of places with the same range, the one with the higher level is the inner one


@dataclass
class Found:
    """All places, and the omitted ones with the reason."""

    places: dict[tuple[str, int, int, str], Place] = field(default_factory=dict)
    left_out: dict[tuple[str, int], str] = field(default_factory=dict)


def resource_dir() -> str:
    """Return the folder of a compiler's own headers, which libclang lacks. Prefer a clang that is not newer."""
    version: Any = conf.lib.clang_getClangVersion
    version.restype, version.errcheck = _CXString, _CXString.from_result
    newest = int("".join(re.findall(r"version (\d+)", version())))
    for name in (*(f"clang-{number}" for number in range(newest, 13, -1)), "clang"):
        try:
            return subprocess.run(
                [name, "-print-resource-dir"], check=True, capture_output=True, text=True
            ).stdout.strip()
        except FileNotFoundError:
            continue
    raise RuntimeError("mutants need clang, for its headers: apt-get install clang")


class Finder:
    """Collects the places of one translation unit."""

    def __init__(self, native: Path, found: Found, files: Iterable[str]) -> None:
        self.native, self.found, self.files = native, found, set(files)
        self.file = ""
        self.text = b""
        self.function: list[str] = []
        self.macros: dict[str, list[tuple[int, int]]] = {}

    def parse(self, source: Path, flags: list[str]) -> None:
        """Add the places of a source and of the headers that it includes.

        Errors outside native/ are ignored, because clang's headers of another version than libclang's call builtins
        that libclang lacks. If a header fails to declare a name that native/ uses, that is an error in native/.
        """
        options = TranslationUnit.PARSE_DETAILED_PROCESSING_RECORD
        unit = Index.create().parse(str(source), args=[*flags, "-ferror-limit=0"], options=options)
        errors = [str(each) for each in unit.diagnostics if each.severity >= 3 and self.is_own(each.location.file)]
        if errors:
            raise RuntimeError("\n".join(errors[:10]))
        self.macros = {}
        for cursor in unit.cursor.get_children():
            if cursor.kind == Kind.MACRO_INSTANTIATION and (name := self.name_of(cursor)):
                self.macros.setdefault(name, []).append((cursor.extent.start.offset, cursor.extent.end.offset))
        self.children(unit.cursor)

    def is_own(self, file: File | None) -> bool:
        """Return whether a file is in native/. An error without a file counts as one in native/."""
        return file is None or self.native in Path(file.name).resolve().parents

    def name_of(self, cursor: Cursor) -> str:
        """Return the file of a cursor relative to native/, or "" if it is not one of the files to mutate."""
        file = cursor.location.file
        if file is None or not self.is_own(file):
            return ""
        name = str(Path(file.name).resolve().relative_to(self.native))
        return name if name in self.files else ""

    def children(self, cursor: Cursor) -> None:
        """Visit each declaration of a scope."""
        for child in cursor.get_children():
            if child.kind.is_preprocessing() or not (name := self.name_of(child)):
                continue
            if name != self.file:
                self.file, self.text = name, _text(self.native / name)
            if child.kind in (Kind.NAMESPACE, Kind.UNEXPOSED_DECL, Kind.LINKAGE_SPEC):
                self.children(child)
            else:
                self.visit(child, None)

    # ------------------------------------------------------------------ places

    def visit(self, cursor: Cursor, parent: Cursor | None) -> None:
        """Add the place of a cursor, if it is one, and the places inside it."""
        kind = cursor.kind
        start, end = cursor.extent.start.offset, cursor.extent.end.offset
        if kind in CONSTANT or self.is_constant(cursor, parent, start) or self.is_lane(cursor):
            self.leave_out(cursor, "evaluated by the compiler")
            return
        is_named = kind in FUNCTIONS or kind in (Kind.STRUCT_DECL, Kind.CLASS_DECL, Kind.CLASS_TEMPLATE)
        if is_named:
            self.function.append(cursor.spelling)
        if kind == Kind.BINARY_OPERATOR:
            self.binary(cursor, start, end)
        elif kind == Kind.COMPOUND_ASSIGNMENT_OPERATOR:
            self.summand(cursor)
        elif kind == Kind.UNARY_OPERATOR:
            self.step(start, end)
        elif kind in (Kind.INTEGER_LITERAL, Kind.CXX_BOOL_LITERAL_EXPR):
            self.constant(start, end)
        elif kind in (Kind.IF_STMT, Kind.WHILE_STMT, Kind.FOR_STMT, Kind.DO_STMT, Kind.CONDITIONAL_OPERATOR):
            self.condition(cursor, kind)
        for child in cursor.get_children():
            if child.kind.is_expression() and self.is_statement(cursor, child):
                self.statement(child)
            self.visit(child, cursor)
        if is_named:
            self.function.pop()

    def is_constant(self, cursor: Cursor, parent: Cursor | None, start: int) -> bool:
        """Return whether the compiler evaluates an expression."""
        if cursor.kind == Kind.VAR_DECL:  # a global variable is initialized before the switch
            if parent is not None and parent.kind == Kind.DECL_STMT:
                start = parent.extent.start.offset
            return parent is None or b"constexpr" in self.text[start : cursor.location.offset]
        if parent is None or not (cursor.kind.is_expression()):
            return False
        end = cursor.extent.end.offset
        if parent.kind in NAMES or (self.text[start - 1 : start], self.text[end : end + 1]) == (b"<", b">"):
            return True
        if self.text[start:].startswith(b"__builtin_shufflevector"):
            return True
        if parent.kind == Kind.VAR_DECL:  # template arguments of its type, array bounds
            between = self.text[parent.location.offset : start]
            return start < parent.location.offset or (b"[" in between and not re.search(rb"[={(]", between))
        if parent.kind == Kind.CASE_STMT:
            return bool(start == next(iter(parent.get_children())).extent.start.offset)
        if parent.kind == Kind.IF_STMT:
            return self.text[parent.extent.start.offset :].startswith(b"if constexpr") and cursor == next(
                iter(parent.get_children())
            )
        return False

    def is_lane(self, cursor: Cursor) -> bool:
        """Return whether a function computes an argument of __builtin_shufflevector, which must be a constant."""
        if cursor.kind not in FUNCTIONS:
            return False
        call = rb"__builtin_shufflevector\([^;]*\b%b\b" % re.escape(cursor.spelling).encode()
        return re.search(call, self.text) is not None

    def leave_out(self, cursor: Cursor, why: str) -> None:
        """Count the places inside an omitted node."""
        for each in cursor.walk_preorder():
            if each.kind in (Kind.BINARY_OPERATOR, Kind.INTEGER_LITERAL, Kind.UNARY_OPERATOR):
                self.found.left_out[self.file, each.extent.start.offset] = why

    def add(self, start: int, end: int, kind: str, changes: tuple[str, ...], before: str, **more: Any) -> None:
        """Add a place, unless a macro contains it."""
        text = self.text[start:end]
        balanced = all(text.count(pair[:1]) == text.count(pair[1:]) for pair in (b"()", b"{}", b"[]"))
        within = any(first < end and start < last for first, last in self.macros.get(self.file, ()))
        covers = any(start <= first and last <= end for first, last in self.macros.get(self.file, ()))
        if not text or not balanced or (within and not covers):
            self.found.left_out[self.file, start] = "spelled by a macro"
            return
        place = Place(self.file, start, end, kind, "::".join(self.function), changes, before, **more)
        self.found.places.setdefault((self.file, start, end, kind), place)

    def binary(self, cursor: Cursor, start: int, end: int) -> None:
        """Add the places of a binary operator, and of the operands of && and ||."""
        children = list(cursor.get_children())
        if len(children) != 2:
            return
        a, b = (child.extent for child in children)
        between = re.sub(rb"//[^\n]*", lambda found: b" " * len(found[0]), self.text[a.end.offset : b.start.offset])
        op = between.strip().decode(errors="replace")
        at = a.end.offset + between.find(between.strip())
        if op in BINARY:
            name, other = BINARY[op]
            cut = (at, at + len(op), ",")
            self.add(start, end, "operator", (f"{op} -> {other}",), f"maxops_mutation::{name}({{}}, ", cut=cut, level=2)
        elif op in ("&&", "||"):
            # The switch converts the operands to bool, as the operator does.
            other, neutral = ("||", "true") if op == "&&" else ("&&", "false")
            flip = "maxops_mutation::flip({}, "
            cut = (at, at + 2, f") {op} {flip}")
            self.add(start, end, "logic", (f"{op} -> {other}",), flip + "(" + flip, after=")))", cut=cut, level=2)
            for side in (a, b):
                stretch = side.start.offset, side.end.offset
                before = f"maxops_mutation::operand({{}}, {neutral}, "
                self.add(*stretch, "operand", (f"{neutral} for the operand of {op}",), before, level=1)

    def summand(self, cursor: Cursor) -> None:
        """Add the place of the right operand of += and -=."""
        a, b = (child.extent for child in cursor.get_children())
        op = self.text[a.end.offset : b.start.offset].strip().decode(errors="replace")
        if op in ("+=", "-="):
            changes = (f"{op} -> {'-=' if op == '+=' else '+='}",)
            self.add(b.start.offset, b.end.offset, "summand", changes, "maxops_mutation::summand({}, ", level=0)

    def step(self, start: int, end: int) -> None:
        """Add the place of a prefix ++ or --."""
        text = self.text[start:end].decode(errors="replace")
        if text[:2] in ("++", "--"):
            other = "--" if text[:2] == "++" else "++"
            before = f"(maxops_mutation::without({{}}) ? {other}{text[2:]} : "
            self.add(start, end, "step", (f"{text[:2]} -> {other}",), before, level=2)

    def constant(self, start: int, end: int) -> None:
        """Add the place of an integer or a bool, except constant arguments of templates and instructions."""
        text = self.text[start:end].decode(errors="replace")
        around = self.text[start - 1 : start], self.text[end : end + 1]
        if around[0] == b"<" or around[1] == b">" or self.is_of_instruction(start):
            self.found.left_out[self.file, start] = "evaluated by the compiler"
            return
        if text in ("true", "false"):
            changes: tuple[str, ...] = ("false" if text == "true" else "true",)
        elif number := re.fullmatch(r"(0[xX][0-9a-fA-F']+|[0-9']+)[uUlL]*", text):
            value = int(number[1].replace("'", ""), 0)
            changes = (f"{text} -> {value + 1}", f"{text} -> {value - 1}", f"{text} -> 0")[: 3 if value > 1 else 2]
        else:
            return
        before = f"maxops_mutation::constant({{}}, {len(changes)}, "
        self.add(start, end, "constant", changes, before, level=3)

    def is_of_instruction(self, start: int) -> bool:
        """Return whether a constant is an argument of an intrinsic or a builtin, which may require constants."""
        line = self.text[max(0, start - 400) : start]
        opened = 0
        for at in range(len(line) - 1, -1, -1):
            if line[at : at + 1] in (b";", b"{", b"}"):
                return False
            opened += {b")": -1, b"(": 1}.get(line[at : at + 1], 0)
            if opened > 0:
                return (
                    re.search(
                        rb"(_mm\w*|__builtin_(ia32|shuffle|prefetch|assume)\w*|__atomic\w*|alignas|__attribute__)\s*$",
                        line[:at],
                    )
                    is not None
                )
        return False

    def condition(self, cursor: Cursor, kind: Kind) -> None:
        """Add the place of the condition of a branch or a loop."""
        found = self.asked(cursor, kind)
        if found is None:
            return
        start, end = found.extent.start.offset, found.extent.end.offset
        text = self.text[start:end].decode(errors="replace")
        if text in ("true", "1") or (kind == Kind.CONDITIONAL_OPERATOR and re.search(r"\.v\b", text)):
            return  # a condition on lanes, which is not a bool
        branch = kind in (Kind.IF_STMT, Kind.CONDITIONAL_OPERATOR)
        changes = ("negated", "never", "always") if branch else ("negated", "never")
        name = "condition" if branch else "loop"
        self.add(start, end, name, changes, f"maxops_mutation::condition({{}}, {len(changes)}, ")

    def asked(self, cursor: Cursor, kind: Kind) -> Cursor | None:
        children = list(cursor.get_children())
        if kind == Kind.CONDITIONAL_OPERATOR:
            return children[0] if len(children) == 3 else None
        if kind == Kind.DO_STMT:
            return children[-1]
        first, last = _parentheses(self.text, cursor.extent.start.offset)
        if kind == Kind.FOR_STMT:
            first, last = _between_semicolons(self.text, first, last)
        elif self.text[cursor.extent.start.offset :].startswith(b"if constexpr"):
            return None
        within = [
            child
            for child in children
            if first <= child.extent.start.offset and child.extent.end.offset <= last and child.kind.is_expression()
        ]
        return within[-1] if within else None

    def is_statement(self, cursor: Cursor, child: Cursor) -> bool:
        if cursor.kind == Kind.COMPOUND_STMT:
            return True
        if cursor.kind in (Kind.IF_STMT, Kind.FOR_STMT, Kind.WHILE_STMT, Kind.CXX_FOR_RANGE_STMT):
            return bool(child.extent.start.offset > _parentheses(self.text, cursor.extent.start.offset)[1])
        return False

    def statement(self, child: Cursor) -> None:
        """Add the place of a statement, which its mutant omits."""
        start, end = child.extent.start.offset, child.extent.end.offset
        if self.text[end : end + 1] != b";":
            return
        before = "(maxops_mutation::without({}) ? (void)0 : (void)("
        self.add(start, end, "statement", ("left out",), before, after="))", level=-1)


@cache
def _text(path: Path) -> bytes:
    return path.read_bytes()


def _parentheses(text: bytes, start: int) -> tuple[int, int]:
    """Return the range between the first parentheses from `start` on."""
    first = text.index(b"(", start)
    depth = 0
    for at in range(first, len(text)):
        depth += {40: 1, 41: -1}.get(text[at], 0)
        if depth == 0:
            return first + 1, at
    raise ValueError("a parenthesis without its end")


def _between_semicolons(text: bytes, first: int, last: int) -> tuple[int, int]:
    """Return the range of the condition of a `for`. It is empty for a range-based `for`."""
    depth, semicolons = 0, []
    for at in range(first, last):
        depth += {40: 1, 41: -1, 123: 1, 125: -1}.get(text[at], 0)
        if text[at] == 59 and depth == 0:
            semicolons.append(at)
    return (semicolons[0] + 1, semicolons[1]) if len(semicolons) == 2 else (last, last)


# ---------------------------------------------------------------------- sources with switches


def wrapped(text: bytes, places: Iterable[tuple[int, Place]]) -> bytes:
    """Return a file's text with each place wrapped. `places` has the number of each place's first mutant."""
    # At the same offset, ends come first, the innermost first, then cuts, then beginnings, the outermost first.
    edits: list[tuple[tuple[int, int, int, int], int, bytes]] = []
    for number, place in places:
        before, after, cut = (
            part.replace("{}", str(number)).encode() for part in (place.before, place.after, place.cut[2])
        )
        edits.append(((place.start, 2, -place.end, place.level), 0, before))
        edits.append(((place.end, 0, -place.start, -place.level), 0, after))
        if place.cut[1]:
            edits.append(((place.cut[0], 1, 0, 0), place.cut[1] - place.cut[0], cut))
    made, at = [], 0
    for (offset, *_), length, new in sorted(edits):
        made += [text[at:offset], new]
        at = offset + length
    return b"".join([*made, text[at:]])


def numbered(places: Iterable[Place]) -> Iterator[tuple[int, Place]]:
    """Yield each place with the number of its first mutant. Numbers begin at 1."""
    number = 1
    for place in sorted(places, key=lambda each: (each.file, each.start, -each.end, each.level)):
        yield number, place
        number += len(place.changes)


def line_starts(text: bytes) -> list[int]:
    """Return the offset of each line, and an offset past the end."""
    return [0, *(found.end() for found in re.finditer(rb"\n", text)), len(text) + 1]


def is_on_line(starts: list[int], place: Place, line: int) -> bool:
    """Return whether a place begins or ends on a line. The first line is 1."""
    first, last = starts[line - 1], starts[line]
    return first <= place.start < last or first < place.end <= last
