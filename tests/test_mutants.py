"""Which places mutants change, and the rates that `make mutants` prints."""

from __future__ import annotations

import sys
from importlib import import_module
from pathlib import Path
from types import ModuleType

import pytest

from breaks import ROOT

NATIVE, PROOFS = ROOT / "native", ROOT / "proofs"
pytestmark = pytest.mark.skipif(not NATIVE.is_dir(), reason="needs the native sources beside the tests")


def test_a_place_is_wrapped_where_it_stands(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An operator in a condition: both are places, the condition around the operator."""
    pytest.importorskip("clang")
    monkeypatch.syspath_prepend(str(PROOFS))
    mutate = import_module("mutate")
    source = tmp_path / "some.cpp"
    source.write_text("int f(int a) {\n    constexpr int b = 1 + 1;\n    if (a < b) return a;\n    return 7;\n}\n")
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


def test_places_of_python(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each change has its function, and the lines of its statement alone; what an import runs has none."""
    mutate_python = _imported(tmp_path, monkeypatch)
    module = mutate_python.Module(tmp_path / "some_module.py")
    changes = [each for each in module.finder.changes if each.function == "cached"]
    assert [(each.kind, module.text(each), each.what) for each in changes] == [
        ("condition", "count < 5 and count", "negated"),
        ("condition", "count < 5 and count", "never"),
        ("condition", "count < 5 and count", "always"),
        ("logic", "count < 5 and count", "and -> or"),
        ("operand", "count < 5", "True for the operand of and"),
        ("operand", "count", "True for the operand of and"),
        ("operator", "count < 5", "< -> <="),
        ("constant", "count < 5", "5 -> 6"),
        ("constant", "count < 5", "5 -> 4"),
        ("constant", "count < 5", "5 -> 0"),
        ("return", 'return f"{count - 1:>3}"', "None"),
        ("operator", "count - 1", "- -> +"),
        ("constant", "count - 1", "1 -> 2"),
        ("constant", "count - 1", "1 -> 0"),
        ("statement", 'raise ValueError("more", "than that")', "left out"),
        ("constant", 'ValueError("more", "than that")', "'more' -> 'more?'"),
    ]
    assert {each.function for each in module.finder.changes} == {"cached", "Holder.__init__"}
    assert [module.source.splitlines()[line - 1].strip() for line in changes[0].lines] == ["if count < 5 and count:"]
    assert +module.finder.left_out == {"run by Python's import": 4, "for the type checker": 2, "text": 1}


def test_a_change_is_in_the_function_that_everybody_holds(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    mutate_python = _imported(tmp_path, monkeypatch)
    some = import_module("some_module")
    held, module = some.cached, mutate_python.Module(tmp_path / "some_module.py")
    expected = {
        ("condition", "negated"): ValueError, ("condition", "never"): ValueError, ("constant", "5 -> 0"): ValueError,
        ("return", "None"): None, ("operator", "- -> +"): "  4", ("constant", "1 -> 2"): "  1",
        ("constant", "1 -> 0"): "  3",
    }  # fmt: skip
    for change in module.finder.changes:
        if change.function != "cached":
            continue
        switch_off = module.switch_on(change)
        try:
            actual: object = held(3)
        except ValueError:
            actual = ValueError
        switch_off()
        assert actual == expected.get((change.kind, change.what), "  2")
    assert held(3) == "  2"


def _imported(folder: Path, monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """mutate_python, with some_module in the folder and imported."""
    (folder / "some_module.py").write_text(PYTHON, encoding="utf-8")
    monkeypatch.syspath_prepend(str(PROOFS))
    monkeypatch.syspath_prepend(str(folder))
    monkeypatch.delitem(sys.modules, "some_module", raising=False)
    import_module("some_module")
    return import_module("mutate_python")


@pytest.mark.parametrize("killed", range(21))
def test_a_rate_is_that_of_each_file(killed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """One file whose mutants all die does not make up for another."""
    monkeypatch.syspath_prepend(str(PROOFS))
    mutation = import_module("mutation")
    mutants = [mutation.Mutant(k, "ab"[k // 20] + ".h", "f", k, "x < y", "operator", "< -> <=") for k in range(40)]
    fates = {k: "killed: noticed" if k < 20 + killed else "survived" for k in range(40)}
    lines, are_enough = mutation.table(mutants, fates, {"text": 1})
    assert are_enough == (killed >= 17)
    assert lines[:2] == [
        "a.h: 100.0% of 20 killed",
        f"b.h: {killed * 5:.1f}% of 20 killed{', below 85%' * (killed < 17)}",
    ]
    assert lines[2:] == [f"  f:{k}: x < y: < -> <=: survived" for k in range(20 + killed, 40)] + [
        "not mutated: {'text': 1}"
    ]
