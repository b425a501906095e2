"""The table of breaks matches the code that it breaks; `make faults` runs it."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

from breaks import BREAKS, ROOT, Break


@pytest.mark.skipif(not (ROOT / "native").is_dir(), reason="needs the native sources beside the tests")
def test_every_break_has_its_place() -> None:
    """Test that each break matches its file exactly once, so that it breaks one place."""
    places = {each.name: len(each.pattern().findall((ROOT / "native" / each.file).read_text())) for each in BREAKS}
    assert {name: count for name, count in places.items() if count != 1} == {}
    assert len(places) == len(BREAKS) >= 30


def test_a_break_without_its_place_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "native").mkdir()
    (tmp_path / "native" / "kernels.h").write_text("int a;\n")
    with pytest.raises(ValueError, match="has its text 0 times"):
        Break("no such text", "kernels.h", "int b;", "").apply(tmp_path)


def test_what_the_enumerations_find_names_a_clause() -> None:
    """Test that failures name the clauses of the functions in the call."""
    for path in sorted((ROOT / "tests" / "exhaustive").glob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "fail":
                call = ast.unparse(node.args[0])
                assert re.search("segment_max|reduce_max|maximum|{function}", call), f"{path.name}: {call}"
