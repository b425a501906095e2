"""The tables of faults match the sources that they change. `make faults` runs them."""

from __future__ import annotations

import ast
import re
import sys
from pathlib import Path

import pytest

from breaks import BREAKS, ROOT, Break
from mutants import faults

sys.path.append(str(ROOT / "proofs"))

import seeded  # type: ignore[import-not-found]

needs_sources = pytest.mark.skipif(not (ROOT / "native").is_dir(), reason="needs the native sources beside the tests")


@needs_sources
def test_every_break_has_its_place() -> None:
    """Test that each break matches its file exactly once, so that it breaks one place."""
    places = {each.name: len(each.pattern().findall((ROOT / "native" / each.file).read_text())) for each in BREAKS}
    assert {name: count for name, count in places.items() if count != 1} == {}
    assert len(places) == len(BREAKS) >= 30


@needs_sources
@pytest.mark.parametrize("fault", faults.FAULTS, ids=lambda fault: fault.effect)
def test_each_fault_is_an_edit_of_the_source_as_it_is(fault: faults.Fault) -> None:
    assert fault.put() != (ROOT / fault.path).read_text(encoding="utf-8")


@pytest.mark.parametrize("fault", seeded.FAULTS, ids=lambda fault: fault.name)
def test_every_fault_of_the_proofs_has_its_place(fault: seeded.Fault) -> None:
    text = (ROOT / fault.file).read_text(encoding="utf-8")
    assert fault.put(text) != text


def test_a_fault_without_its_place_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "native").mkdir()
    (tmp_path / "native" / "kernels.h").write_text("int a;\n")
    with pytest.raises(ValueError, match="has its text 0 times"):
        Break("no such text", "kernels.h", "int b;", "").apply(tmp_path)
    for text, count in (("no such text", 0), ("int", 2)):
        with pytest.raises(ValueError, match=f"expected the text once, found it {count} times"):
            seeded.Fault("a.c", text, "").put("int a;\nint b;\n")


def test_what_the_enumerations_find_names_a_clause() -> None:
    """Test that failures name the clauses of the functions in the call."""
    for path in sorted((ROOT / "tests" / "exhaustive").glob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "fail":
                call = ast.unparse(node.args[0])
                assert re.search("segment_max|reduce_max|maximum|{function}", call), f"{path.name}: {call}"
