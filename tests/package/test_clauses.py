"""The explanations of clauses: one for each clause, with an example that behaves as described."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

import maxops as mo
from maxops import explanations, spec

sys.path.append(str(Path(__file__).resolve().parents[2] / "docs"))
pytest.importorskip("onnx")
pytest.importorskip("pandas")

import clauses

NAMES = clauses.by_name()


@pytest.fixture(scope="module")
def pages() -> dict[str, str]:
    """Return the text of each page. Making all of them takes seconds."""
    made: dict[str, str] = clauses.pages()
    return made


def test_each_clause_is_explained_once() -> None:
    assert explanations.explanations().keys() == NAMES.keys()
    every = [clause.id for row in (*spec.ALL, *spec.PLAIN) for clause in row.clauses]
    assert sorted(clause.id for versions in NAMES.values() for _, clause in versions) == sorted(every)


@pytest.mark.parametrize("name", NAMES)
def test_an_example_shows_its_clause(name: str) -> None:
    row, newest = NAMES[name][-1]
    explained = explanations.explanations()[name]
    if explained.is_model:
        assert clauses.broken(explained.example, newest)
        return
    session, error = clauses.transcript(explained.code(row))
    assert session.startswith(">>> import numpy as np")
    assert (error is not None) == explained.breaks
    if error is not None:
        assert error.clause == newest.id
    else:
        assert not session.splitlines()[-1].startswith((">>>", "..."))  # the session ends with output


def test_a_page_has_all_versions_the_reason_and_the_runtimes_that_break_the_clause(pages: dict[str, str]) -> None:
    page = pages[clauses.page_of("ONNX.ReduceMax-18.keepdims")]
    for version in (1, 11, 12, 13, 18, 20):
        assert f'<a id="ONNX.ReduceMax-{version}.keepdims"></a>' in page
    assert explanations.explanations()["ONNX.ReduceMax.keepdims"].why in page
    assert "raises `errors.AttributeValueError`:\n\n> ReduceMax-20 keepdims must be True, False, 1 or 0, got 2" in page
    assert "](../findings/onnxruntime.md): 12 missing errors" in page
    assert mo.operator("ONNX", "ReduceMax", 20).clauses[0].id not in page
    assert "](../operators.md)" in page
    assert "](../evidence.md)" in page


def test_a_page_says_whether_a_model_can_break_its_clause(pages: dict[str, str]) -> None:
    only_results = {name for name in NAMES if "A model cannot break" in pages[clauses.page_of(name)]}
    assert {"ONNX.Max.value", "SONNX.Max.value", "OpenVINO.SegmentMax.value"} <= only_results
    assert not any(explanations.explanations()[name].is_model for name in only_results)
    assert "ONNX.Max.shape" not in only_results


def test_names_of_pages_differ_by_more_than_case(pages: dict[str, str]) -> None:
    """Test that pages differ by more than case, because file systems of macOS and Windows ignore case."""
    folded = [page.casefold() for page in pages]
    assert len(folded) == len(set(folded)) == len(NAMES)
    assert clauses.page_of("SONNX.Max.NaN").casefold() != clauses.page_of("SONNX.Max.nan").casefold()
