"""Findings are merged over versions and types only if they look alike."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from helpers.conformance_runs import Maker, many, swift
from ledger import what_became
from maxops import dtypes
from maxops.conformance.kinds import Kind, kinds
from maxops.conformance.result import FAULTS, Elements, Message, Verdict, elements
from maxops.dtypes import DType


def message(result: Any) -> Elements | Message:
    return {"text": result} if isinstance(result, str) else elements(result)


def of(*found: tuple[str, Any, Any], verdict: Verdict = "violates") -> list[Kind]:
    """Return the kinds of a run with these findings: a part of a case's id, the expected and the actual result."""
    maker = Maker("anymax", "1")
    for part, expected, actual in found:
        case, *_ = maker.cases(part)
        maker.find(case, verdict, message(expected), message(actual))
    return kinds(maker.run)


def test_versions_and_types_are_merged() -> None:
    zero = np.zeros(1, "float32"), -np.zeros(1, "float32")
    half = np.zeros(1, "float16"), -np.zeros(1, "float16")
    (kind,) = of(
        ("ONNX.Max-13.value/float16", *half), ("ONNX.Max-8.value/float16", *half), ("ONNX.Max-13.value/int8", *zero)
    )
    assert (kind.operator, kind.row.short, kind.types) == ("ONNX Max 8, 13", "value", ["float16", "int8"])
    assert len(kind.findings) == 3
    assert kind.smallest.clause == "ONNX.Max-13.value"


FLOATS = {
    "a lost NaN": (np.nan, 1.0),
    "a NaN lost for another number": (np.nan, -np.inf),
    "a NaN of other bits": (np.float32(np.nan), -np.float32(np.nan)),
    "the other zero": (0.0, -0.0),
    "a number": (3.0, 2.0),
    "the finite end": (-np.inf, -np.finfo(np.float32).max),
}


@pytest.mark.parametrize("one", FLOATS)
@pytest.mark.parametrize("other", FLOATS)
def test_what_looks_different_is_not_merged(one: str, other: str) -> None:
    pairs = [[np.array([each], "float32") for each in FLOATS[name]] for name in (one, other)]
    made = of(
        ("ONNX.Max-13.value/float16", pairs[0][0], pairs[0][1]), ("ONNX.Max-8.value/float16", pairs[1][0], pairs[1][1])
    )
    is_same = one == other or ("lost" in one and "lost" in other)
    assert len(made) == (1 if is_same else 2)


BECAME: list[tuple[float | str, float | str, str]] = [
    (np.nan, 1.0, "NaN is lost"),
    (np.nan, np.inf, "NaN is lost"),
    (np.nan, -np.nan, "Different NaN bits"),
    (0.0, -0.0, "-0 where 0 is the maximum"),
    (-0.0, 0.0, "0 where -0 is the maximum"),
    ("smallest", 0.0, "Subnormal numbers become 0"),
    ("largest subnormal", -0.0, "Subnormal numbers become 0"),
    ("smallest normal", 0.0, "Wrong floats"),
    ("smallest", 1.0, "Wrong floats"),
    (np.inf, "last", "Infinities become finite"),
    (-np.inf, 0.0, "Infinities become finite"),
    ("last", np.inf, "Wrong floats"),
    (1.0, np.nan, "Wrong floats"),
    (0.0, 1.0, "Wrong floats"),
    (1.0, 0.0, "Wrong floats"),
]


@pytest.mark.parametrize("dtype", [dtype for dtype in dtypes.ALL if dtype.kind == "float"], ids=str)
@pytest.mark.parametrize(("was", "became", "title"), BECAME)
def test_what_became_of_a_float_is_said_for_each_type(was: Any, became: Any, title: str, dtype: DType) -> None:
    """Test the title of a wrong float of each type and of either sign, alone and after correct elements."""
    smallest_normal = 1 << dtype.mantissa_bits
    bits = {
        "smallest": 1,
        "largest subnormal": smallest_normal - 1,
        "smallest normal": smallest_normal,
        "last": dtype.infinity_bits - 1,
    }

    def word_of(value: Any) -> int:
        if isinstance(value, str):
            return bits[value]
        array = np.array([value]).astype(dtype.numpy)
        return int(array.view(dtype.word)[0])

    one, other = word_of(was), word_of(became)
    for sign in (0, 1 << dtype.bits - 1) if isinstance(was, str) else (0,):
        made = (np.array([7, word], dtype.word).view(dtype.numpy) for word in (one | sign, other))
        assert what_became(*map(elements, made)) == title


def test_what_became_of_other_results() -> None:
    int8, text = elements(np.array([1, 2], "int8")), message("an error")
    rational, other = elements(np.array([1], object)), elements(np.array([2], object))
    assert what_became(text, int8) == "A result, not an error"
    assert what_became(int8, text) == "An error, not a result"
    assert what_became(int8, elements(np.array([1, 2], "int16"))) == "Different type"
    assert what_became(int8, elements(np.array([[1, 2]], "int8"))) == "Different shape"
    assert what_became(int8, elements(np.array([1, 3], "int8"))) == "Wrong integers"
    assert what_became(int8, int8) == what_became(rational, other) == "Wrong values"


def test_subnormal_numbers_are_merged_with_others() -> None:
    pairs = [
        (np.array([1e-42], "float32"), np.array([0], "float32")),
        (np.array([1], "float32"), np.array([0], "float32")),
    ]
    (kind,) = of(("ONNX.Max-13.value/float16", *pairs[0]), ("ONNX.Max-8.value/float16", *pairs[1]))
    assert len(kind.findings) == 2


def test_errors_are_merged_by_their_class() -> None:
    expected = np.array([1], "int8")
    parts = [f"ONNX.Max-{version}.shape/" for version in (8, 12, 13)]
    words = ["Missing: a", "Missing: b", "Wrong: a"]
    made = of(*((part, expected, text) for part, text in zip(parts, words, strict=True)), verdict="refuses")
    assert [kind.versions for kind in made] == [[8, 12], [13]]


def test_a_missing_type_is_told_with_the_versions_that_miss_it() -> None:
    expected = np.array([1], "int8")
    found = [(f"ONNX.Max-{version}.T/{name}/", expected, f"{name} is missing") for version, name in MISSING]
    made = of(*found, verdict="refuses")
    assert [(kind.versions, kind.types) for kind in made] == [([8], ["float16"]), ([12, 13], ["int8", "uint64"])]


MISSING = ((8, "float16"), (12, "int8"), (13, "int8"), (12, "uint64"), (13, "uint64"))


@pytest.mark.parametrize("run", [swift(), many(300)], ids=["swiftmax", "manymax"])
def test_nothing_is_lost_and_faults_stand_first(run: Any) -> None:
    made = kinds(run)
    cases = [finding["case"] for kind in made for finding in kind.findings]
    assert sorted(cases) == sorted(finding["case"] for finding in run["findings"])
    for kind in made:
        assert {finding["verdict"] for finding in kind.findings} == {kind.verdict}
    are_faults = [kind.verdict in FAULTS for kind in made]
    assert are_faults == sorted(are_faults, reverse=True)
    assert len(made) < 20
