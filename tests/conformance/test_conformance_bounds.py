"""The kit's bounds: a quick run detects runtimes that are correct up to a bound and wrong above it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cache
from itertools import product
from typing import Any

import numpy as np
import pytest

from helpers.all_cases import ALL
from maxops import dtypes, reference, spec
from maxops.conformance.attempt import attempt
from maxops.conformance.bounds import bounds_of, sentences, widest
from maxops.conformance.case import Call, Case, Feed, Input, Layout, Trial
from maxops.conformance.cases import large
from maxops.conformance.cases.planted import halves, planted, thirds
from maxops.conformance.expected import expected_result, without_nan
from maxops.conformance.judge import judge
from maxops.conformance.layouts import LAYOUTS, applies, lay, text
from maxops.conformance.outcome import Outcome, same_bits
from maxops.conformance.poison import Memory
from maxops.conformance.result import FAULTS
from maxops.conformance.runtimes.runtime import Prepared, Runtime
from maxops.dtypes import DType
from maxops.plan import Array
from trials import Does

OPERATORS = ("Max", "ReduceMax", "SegmentMax")
CLOSER = (dtypes.FLOAT32, dtypes.INT64)


@cache
def quick(operator: str, dtype: DType) -> list[tuple[Case, Trial]]:
    """Return the valid calls of the newest version in a quick run, the smallest first."""
    calls = [
        (case, case.make())
        for case in ALL
        if case.quick
        and not case.refusal
        and (case.row.operator, case.dtype) == (operator, dtype)
        and case.row.standard in ("ONNX", "OpenVINO")
        and not case.shared
    ]
    return sorted(calls, key=lambda each: sum(array.nbytes for feed in each[1].feeds for array in feed))


# --------------------------------------------------------------------------------------------- faults above a bound


@dataclass(frozen=True)
class Given:
    """A call with one feed, and the correct result."""

    call: Call
    feed: Feed
    layout: Layout
    right: Array

    @property
    def elements(self) -> int:
        return max(array.size for array in self.feed)

    @property
    def rank(self) -> int:
        return max(array.ndim for array in self.feed)

    def applies(self, layout: Layout) -> bool:
        return self.layout == layout and applies(self.feed[0], layout)


Past = Callable[[Given], bool]
# Possible bounds of a runtime; results above a bound are wrong.
PAST: dict[str, Past] = {
    **{f"{size} elements": lambda given, size=size: given.elements > size for size in (9_999, 10_240, 65_536, 99_999)},  # type: ignore[misc]
    **{f"{size} elements": lambda given, size=size: given.elements > size for size in (999_999, 2**21, 2_999_999)},  # type: ignore[misc]
    **{f"{size} results": lambda given, size=size: given.right.size > size for size in (520, 4096, 65_536)},  # type: ignore[misc]
    **{f"rank {rank}": lambda given, rank=rank: given.rank > rank for rank in (3, 4, 5, 6, 7)},  # type: ignore[misc]
}
OF_MAX: dict[str, Past] = {
    f"{count} inputs": lambda given, count=count: len(given.feed) > count  # type: ignore[misc]
    for count in (40, 64, 99, 255, 512, 999)
}
OF_LAYOUT: dict[str, Past] = {
    layout: lambda given, layout=layout: given.applies(layout)  # type: ignore[misc]
    for layout in LAYOUTS[1:]
}
OF_MODELS: dict[str, Past] = {
    construct: lambda given, construct=construct: construct in given.call.within  # type: ignore[misc]
    for construct in ("If", "Loop", "function")
}


def zeros(given: Given) -> Array:
    return np.zeros_like(given.right)


def last_lost(given: Given) -> Array:
    """Return the result without the last element, like a loop that ends too early."""
    result = given.right.copy()
    result.reshape(-1)[-1] = np.zeros((), result.dtype)
    return result


def first_lost(given: Given) -> Array:
    result = given.right.copy()
    result.reshape(-1)[0] = np.zeros((), result.dtype)
    return result


def another_shape(given: Given) -> Array:
    return given.right.reshape(*given.right.shape, 1)


def another_type(given: Given) -> Array:
    return given.right.astype(np.complex64)


WRONG = (zeros, last_lost, first_lost, another_shape, another_type)


def is_found(operator: str, dtype: DType, past: Past, wrong: Callable[[Given], Array]) -> bool:
    """Return whether a case detects the fault."""
    for case, trial in quick(operator, dtype):
        assert trial.expected is not None
        given = [
            Given(trial.call, feed, trial.layout, right)
            for feed, right in zip(trial.feeds, trial.expected, strict=True)
        ]
        if any(past(each) and each.right.size for each in given):
            outputs = tuple(wrong(each) if past(each) and each.right.size else each.right for each in given)
            if judge(case, trial, Outcome("returned", outputs)).verdict in FAULTS:
                return True
    return False


BOUNDS = [
    *product([*PAST, *OF_LAYOUT], OPERATORS),
    *product(OF_MAX, ["Max"]),
    *product(OF_MODELS, ["Max", "ReduceMax"]),  # ONNX has no SegmentMax
]


@pytest.mark.parametrize("wrong", WRONG, ids=lambda each: each.__name__)
@pytest.mark.parametrize(("bound", "operator"), BOUNDS)
def test_what_is_wrong_past_a_bound_is_found(bound: str, operator: str, wrong: Callable[[Given], Array]) -> None:
    past = (PAST | OF_MAX | OF_LAYOUT | OF_MODELS)[bound]
    assert is_found(operator, dtypes.FLOAT32, past, wrong), f"{bound} of {operator} is passed"


@pytest.mark.parametrize("operator", OPERATORS)
def test_every_type_has_calls_past_what_begins_threads(operator: str) -> None:
    for row in {case.row for case in ALL if case.row.operator == operator and case.quick and not case.refusal}:
        if row.version != max(case.row.version or 0 for case in ALL if case.row.operator == operator):
            continue
        for dtype in row.dtypes:
            assert dtype is dtypes.REAL or is_found(operator, dtype, PAST["65536 elements"], last_lost), dtype


# ------------------------------------------------------------------------------------- places of the maximum


@pytest.mark.parametrize("place", ["first", "last", "half", "power of two"])
@pytest.mark.parametrize("size", large.SIZES[:2])
def test_a_reduction_that_misses_a_place_is_found(size: int, place: str) -> None:
    at = {"first": 0, "last": size - 1, "half": size // 2, "power of two": 8192}[place]

    def missing(given: Given) -> Array:
        (data,) = given.feed
        return np.asarray(np.max(np.delete(data, at)))

    def past(given: Given) -> bool:
        return given.feed[0].shape == (size,) and given.right.ndim == 0

    assert is_found("ReduceMax", dtypes.INT64, past, missing)


# ----------------------------------------------------------------------------- expected results of large calls


LARGE_IDS = {each.id for each in large.cases()}
LARGE = {case.trial_id: case for case in ALL if case.trial_id in LARGE_IDS}


@pytest.mark.parametrize("dtype", [dtype for dtype in dtypes.ALL if dtype is not dtypes.REAL], ids=str)
def test_what_is_planted_is_the_maximum(dtype: DType) -> None:
    """Test with the reference that planted values are the maxima of small groups. Large groups differ only in size."""
    for which in ("value", "nan", "zeros", "plain"):
        if which in ("nan", "zeros") and dtype.kind != "float":
            continue
        for lengths in (np.ones(7, np.int64), thirds(40), halves(33), np.full(5, 9)):
            for columns in (1, 3):
                made = planted(dtype, which, lengths, columns)
                ids = np.repeat(np.arange(len(lengths)), lengths)
                assert same_bits(made.expected, reference.segment_max(made.data, ids, len(lengths), "ZERO"))
        for at in range(9):
            made = planted(dtype, which, [9], at=at)
            assert same_bits(made.expected, reference.reduce_max(made.data, (0,)))


@pytest.mark.parametrize("operator", OPERATORS)
def test_large_results_are_those_of_the_planner_and_the_keys(operator: str) -> None:
    checked = 0
    for case in LARGE.values():
        has_million = any(f"{size}" in case.sentence for size in large.SIZES[2:])  # these differ only in size
        if case.row.operator == operator and case.dtype in (dtypes.FLOAT16, dtypes.UINT64) and not has_million:
            trial = case.make()
            assert trial.expected is not None
            for number in range(0, len(trial.feeds), max(1, len(trial.feeds) // 8)):
                feed = trial.feeds[number]
                if sum(array.size for array in feed) <= 250_000:
                    assert same_bits(trial.expected[number], expected_result(case.row, trial.call, feed)), case.id
                    if trial.without_nan:
                        assert same_bits(trial.without_nan[number], without_nan(case.row, trial.call, feed)), case.id
                    checked += 1
    assert checked > 20


def test_the_keys_give_what_the_reference_gives(monkeypatch: pytest.MonkeyPatch) -> None:
    """Test that integer keys give the reference's results for the calls of a quick run."""
    operators = (*OPERATORS, "ScatterElements", "ScatterND")
    trials = [(case, trial) for operator in operators for dtype in dtypes.ALL for case, trial in quick(operator, dtype)]
    monkeypatch.setattr("maxops.conformance.expected.FEW_ELEMENTS", 0)
    checked: Counter[str] = Counter()
    for case, trial in trials:
        assert trial.expected is not None
        for feed, expected in list(zip(trial.feeds, trial.expected, strict=True))[:5]:
            arrays = [array for array in trial.call.whole(feed) if array is not None]
            if all(0 < array.size <= 5000 for array in arrays if array.dtype == case.dtype.numpy) and expected.size:
                assert same_bits(expected_result(case.row, trial.call, feed), expected), case.id
                checked[case.row.operator] += 1
    assert checked.total() > 200
    assert {*checked} == {*operators}


# ----------------------------------------------------------------------------------------------------- layouts


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("dtype", [dtypes.INT8, dtypes.FLOAT32, dtypes.BFLOAT16], ids=str)
def test_a_layout_is_what_its_name_says(layout: Layout, dtype: DType) -> None:
    """Test that the runtime's array and the script's array have the same values and the layout of the name."""
    data = np.arange(12).reshape(3, 4).astype(dtype.numpy)
    if layout == "zero strides":
        data = np.repeat(data[:1], 3, axis=0)
    here: dict[str, Any] = {"np": np, "a": data.copy()}
    if applies(data, layout):
        exec(text("a", layout), here)
    seen: list[Array] = []

    def run(feed: Feed) -> Array:
        seen.append(feed[0])
        return feed[0].copy()

    (case,) = (case for case in ALL if case.id == f"ONNX.Max-13.inputs/{dtype}/one-input")
    outcome = attempt(Does(run), Trial(case.make().call, ((data,),), (data,), layout=layout), Memory())
    assert outcome.kind == "returned"
    for array in (seen[0], here["a"]):
        assert same_bits(np.ascontiguousarray(array), data)
        differs = {
            "contiguous": False,
            "read-only": not array.flags.writeable,
            "every other element": array.strides[-1] == 2 * array.itemsize,
            "reversed": array.strides[-1] < 0,
            "Fortran order": array.flags.f_contiguous and not array.flags.c_contiguous,
            "padded rows": array.strides[0] > 4 * array.itemsize and array.strides[1] == array.itemsize,
            "zero strides": array.strides[0] == 0,
            "unaligned": not array.flags.aligned,
        }[layout]
        assert differs == applies(data, layout)


def test_what_reads_between_the_elements_of_a_layout_is_seen() -> None:
    data = np.arange(1, 7, dtype=np.float32)
    for layout in ("every other element", "padded rows"):
        for pattern in (0x5A, 0xA5):
            laid = lay(data.reshape(2, 3), layout, pattern)
            assert laid.data.count(bytes((pattern,)) * 4) >= 3


def test_a_layout_that_is_refused_is_no_fault_and_says_so() -> None:
    case, trial = next(each for each in quick("Max", dtypes.FLOAT32) if each[1].layout == "reversed")
    found = judge(case, trial, Outcome("refused", text="ValueError: negative strides"))
    assert (found.verdict, found.message) == (
        "not applicable",
        "arrays with layout 'reversed' are unsupported: ValueError: negative strides",
    )
    assert judge(case, trial, Outcome("crashed", text="SIGSEGV")).verdict == "crashes"


# ------------------------------------------------------------------------------------------ shapes in turn


class Stale(Runtime):
    """A prepared model that reuses results: the first one, the first of the same shape, or maxima with earlier ones."""

    name = "stale"

    def __init__(self, mode: str) -> None:
        self.mode = mode

    def prepare(self, call: Call) -> Prepared:
        kept: dict[str, Array] = {}

        def run(feed: Feed) -> Array:
            right = expected_result(call.row, call, feed)
            before = kept.get("result")
            if before is None:
                kept["result"] = right.copy()
                return right
            if self.mode == "first shape":
                return before
            if self.mode == "same shape":
                return kept.setdefault(str(right.shape), right)
            grown = np.zeros(right.shape, right.dtype)
            inside = tuple(slice(min(pair)) for pair in zip(right.shape, before.shape, strict=True))
            grown[inside] = before[inside]
            kept["result"] = np.maximum(right, grown)
            return kept["result"].copy()

        return run


@pytest.mark.parametrize("mode", ["first shape", "same shape", "never emptied"])
@pytest.mark.parametrize("operator", OPERATORS)
def test_a_stale_buffer_is_found(operator: str, mode: str) -> None:
    (case,) = (case for case, _ in quick(operator, dtypes.FLOAT32) if case.sentence == "one model, shapes in turn")
    trial = case.make()
    assert judge(case, trial, attempt(Stale(mode), trial, Memory())).verdict in FAULTS


# ----------------------------------------------------------------------------------------------------- reports


def test_bounds_are_those_of_the_widest_trial() -> None:
    bounds = widest(bounds_of(trial) for _, trial in quick("Max", dtypes.FLOAT32))
    assert bounds == {"elements": 3_000_000, "rank": 8, "inputs": 1000, "layouts": [*LAYOUTS]}
    run: Any = {"kit": {"repeats": 7, "bounds": {"Max": bounds}}}
    (sentence,) = sentences(run)
    assert sentence.startswith("Max: up to 3,000,000 elements, rank 8 and 1,000 inputs; layouts: contiguous, ")
    assert sentence.endswith("; 7 runs per call")
    assert sentences({"kit": {}}) == []  # type: ignore[typeddict-item]
    (sentence,) = sentences({"kit": {"bounds": {"Max": bounds}}})  # type: ignore[typeddict-item]
    assert sentence.endswith("; 2 runs per call")
    halves: list[Any] = [{**bounds, "layouts": layouts} for layouts in (LAYOUTS[4:], LAYOUTS[:4])]
    assert widest(halves) == bounds


def array_of(*shape: int) -> Array:
    return np.zeros(shape, np.float32)


ONE = Input("a", dtypes.FLOAT32, (None,))
FIXED = replace(ONE, constant=array_of(1, 1, 1, 1, 7))


@pytest.mark.parametrize(
    ("inputs", "feeds", "expected", "elements", "rank"),
    [
        ((), [()], None, 0, 0),  # a call without inputs must be rejected
        ((ONE,), [(array_of(),)], None, 1, 0),
        ((ONE,), [(array_of(2),), (array_of(3, 0),)], None, 2, 2),
        ((ONE, ONE), [(array_of(2), array_of(9)), (array_of(3, 1), array_of(1))], None, 9, 2),
        ((ONE, ONE), [(array_of(2, 1), array_of(1, 3))], [array_of(2, 3)], 6, 2),
        ((ONE,), [(array_of(2),)] * 2, [array_of(1), array_of(1, 1, 8)], 8, 3),
        ((FIXED, None), [()], None, 7, 5),
    ],
)
def test_bounds_are_of_every_array_of_a_trial(
    inputs: Any, feeds: list[Feed], expected: list[Array] | None, elements: int, rank: int
) -> None:
    trial = Trial(Call(spec.MAX_13, inputs), tuple(feeds), None if expected is None else tuple(expected))
    assert bounds_of(trial) == {
        "elements": elements, "rank": rank, "inputs": len(inputs), "layouts": ["contiguous"]
    }  # fmt: skip
