"""The reasons for surviving mutants stay true to the sources; `make mutants` runs the mutants themselves."""

from __future__ import annotations

import tomllib
from fnmatch import fnmatch
from importlib import import_module
from pathlib import Path

import pytest

from breaks import ROOT

NATIVE, PROOFS = ROOT / "native", ROOT / "proofs"
pytestmark = pytest.mark.skipif(not NATIVE.is_dir(), reason="needs the native sources beside the tests")


def test_every_reason_has_its_place() -> None:
    """What a reason quotes stands in its file, and in its functions; whoever changes it looks at the reason again."""
    listed = [tomllib.loads(path.read_text(encoding="utf-8")) for path in sorted((PROOFS / "survivors").glob("*.toml"))]
    for each in [entry for document in listed for entry in document["survivor"]]:
        assert each["why"].strip()
        files = [
            path
            for path in NATIVE.rglob("*.*")
            if path.suffix != ".pyc" and fnmatch(str(path.relative_to(NATIVE)), each["file"])
        ]
        texts = [" ".join(path.read_text(encoding="utf-8").split()) for path in files]
        quoted = [*each.get("texts", ()), *(name.rpartition("::")[2] for name in each.get("functions", ()))]
        assert [quote for quote in quoted if not any(quote in text for text in texts)] == [], each["file"]


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
