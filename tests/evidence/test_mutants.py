"""The places that mutants change, the tests that cover a file, and the rates that `make mutants` prints."""

from __future__ import annotations

from pathlib import Path

import pytest

from mutants import __main__ as command
from mutants import places_python, table
from mutants.running import ROOT, Mutant

pytestmark = pytest.mark.skipif(not (ROOT / "native").is_dir(), reason="needs the native sources beside the tests")


def test_a_place_is_wrapped_where_it_stands(tmp_path: Path) -> None:
    """Test an operator in a condition: both are places, and the condition is the outer one."""
    pytest.importorskip("clang")
    from mutants import places_native as mutate  # noqa: PLC0415  (it needs libclang)

    source = tmp_path / "some.cpp"
    source.write_text(
        "int f(int a) {\n    constexpr int b = 1 + 1, c = 3;\n    if (a < b) return a;\n    return 7;\n}\n"
        "typedef int V __attribute__((vector_size(8)));\n"
        "constexpr int lane(int k) { return k + 1; }\n"
        "V g(V v) { return __builtin_shufflevector(v, v, lane(0), lane(1)); }\n"
    )
    found = mutate.Found()
    mutate.Finder(tmp_path, found, ["some.cpp"]).parse(source, ["-xc++", "-std=c++17"])
    numbered = list(mutate.numbered(found.places.values()))
    assert [(number, place.kind, place.changes) for number, place in numbered] == [
        (1, "condition", ("negated", "never", "always")),
        (4, "operator", ("< -> <=",)),
        (5, "constant", ("7 -> 8", "7 -> 6", "7 -> 0")),
    ]
    assert mutate.wrapped(source.read_bytes(), numbered).decode().splitlines()[2:4] == [
        "    if (maxops_mutation::condition(1, 3, maxops_mutation::less(4, a , b))) return a;",
        "    return maxops_mutation::constant(5, 3, 7);",
    ]


def test_errors_in_headers_of_another_clang_are_ignored(tmp_path: Path) -> None:
    """Test an intrinsic with a builtin that libclang lacks, in a compiler's header and in a native source."""
    pytest.importorskip("clang")
    from mutants import places_native as mutate  # noqa: PLC0415  (it needs libclang)

    native = tmp_path / "native"
    native.mkdir()
    intrinsic = "static inline int {}(int a) {{ return __builtin_ia32_removed(a); }}\n".format
    (tmp_path / "intrinsics.h").write_text(intrinsic("first"))
    source = native / "some.cpp"
    source.write_text('#include "../intrinsics.h"\nint f(int a) { return first(a + a); }\n')
    finder = mutate.Finder(native, mutate.Found(), ["some.cpp"])
    finder.parse(source, ["-xc++"])
    assert [place.changes for place in finder.found.places.values()] == [("+ -> -",)]
    source.write_text(source.read_text() + intrinsic("second"))
    with pytest.raises(RuntimeError, match=r"some\.cpp:3:.*__builtin_ia32_removed"):
        finder.parse(source, ["-xc++"])


PYTHON = """
LOW = 1 + 1


def cached(count: int = 3) -> str:
    \"\"\"No place.\"\"\"
    assert count > 0
    if count < 5 and count:
        return f"{count - 1:>3}"
    raise ValueError("more", "than that")


class Holder:
    def __init__(self) -> None:
        self.items = [n for n in range(9) if n > 6]
"""


def test_places_of_python() -> None:
    """Test that each change is one difference inside its statement, without annotations and strings."""
    finder = places_python.Finder(PYTHON)
    changes = [each for each in finder.changes if each.function.startswith("cached")]
    kinds = {(each.kind, each.text, each.what) for each in changes}
    assert {
        ("condition", "count < 5 and count", "negated"),
        ("logic", "count < 5 and count", "and -> or"),
        ("operator", "count < 5", "< -> <="),
        ("constant", "5", "5 -> 6"),
        ("operator", "count - 1", "- -> +"),
    } <= {(kind, text, what) for kind, text, what in kinds} | {(kind, what[:1], what) for kind, _, what in kinds}
    lines = PYTHON.splitlines()
    for change in finder.changes:
        assert change.source != PYTHON
        compile(change.source, "some_module.py", "exec")
        rest = change.source.splitlines()
        assert lines[: change.lines.start - 1] == rest[: change.lines.start - 1], change.what


@pytest.mark.parametrize(
    ("source", "count"),
    [
        ("Kind = Literal['a', 'b']", 0),
        ("Kind = Literal['a', 'b']\nKINDS = get_args(Kind)", 2),
        ("@overload\ndef f(a: int, b: Literal[True] = True) -> int: ...", 0),
        ("def f(a: int, b: bool = True) -> int: ...", 1),
    ],
)
def test_what_is_for_type_checkers_has_no_places(source: str, count: int) -> None:
    assert len(places_python.Finder(source).changes) == count


def test_every_file_that_is_looked_at_has_tests() -> None:
    files = table.files(())
    assert {"native/bindings/memory.cpp", "native/bindings/operators.cpp", "src/maxops/engines/columns.py"} <= {*files}
    assert [file for file in files if not table.tests_of(file)] == []
    every = {path.stem.removeprefix("test_") for path in (ROOT / "tests").rglob("test_*.py")}
    named = {name for _, names in table.TABLE for name in names.split()}
    assert [name for name in named if "*" not in name and name not in every] == []


def test_a_rate_is_that_of_each_file() -> None:
    mutants = [Mutant("b.py", k, "f", "x < y", "operator", "< -> <=") for k in range(20)]
    for killed in range(21):
        fates = {each: "killed: noticed" if each.line < killed else "survived" for each in mutants}
        first, *lives = command.report("b.py", fates, 3.0).splitlines()
        assert first == f"b.py: {killed * 5:.1f}% of 20 killed{', below 85%' * (killed < 17)}, 3 s"
        assert lives == [f"  f:{k}: x < y: < -> <=" for k in range(killed, 20)]
