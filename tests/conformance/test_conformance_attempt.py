"""A trial in one process: the arguments that a runtime gets, and the outcomes of its results."""

from __future__ import annotations

import itertools
import pickle
import sys
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from maxops import dtypes, spec
from maxops.conformance.attempt import REUSES, attempt, error_line
from maxops.conformance.case import Call, Feed, Trial
from maxops.conformance.outcome import Outcome
from maxops.conformance.poison import Memory
from maxops.conformance.runtimes.runtime import NotApplicableError, Prepared, Runtime
from maxops.dtypes import DType
from maxops.plan import Array
from trials import GOOD, WRONG, call_of, returned, trial_of


class Returns(Runtime):
    """A runtime that returns the results of a function."""

    name = "given"
    result: Any = staticmethod(np.maximum)

    def prepare(self, call: Call) -> Prepared:
        return lambda feed: self.result(*feed)


class AtOnce(Returns):
    def run(self, call: Call, feeds: Sequence[Feed]) -> list[Any]:
        return self.result(feeds)  # type: ignore[no-any-return]


def with_result(kind: type[Returns], result: Any) -> Returns:
    runtime = kind()
    runtime.result = result
    return runtime


@pytest.mark.parametrize(
    ("result", "text"),
    [
        (None, "expected an array, got None"),
        ([np.array([1], np.float32), np.array([2], np.float32)], "expected an array, got a list of length 2"),
        ((), "expected an array, got a tuple of length 0"),
        ("text", "expected an array, got an object of type str"),
        (1.0, "expected an array, got an object of type float"),
        (np.array(["a"]), "returned an array of the unsupported dtype <U1"),
        (np.array([None]), "returned an array of the unsupported dtype object"),
        (np.array([(1, 2.0)], "i4,f4"), "returned an array of the unsupported dtype [('f0', '<i4'), ('f1', '<f4')]"),
    ],
    ids=lambda value: value if isinstance(value, str) and "returned" in value else "",
)
def test_what_is_no_array_is_garbage(result: object, text: str) -> None:
    outcome = attempt(with_result(Returns, lambda *_: result), GOOD, Memory())
    assert (outcome.kind, outcome.text) == ("garbage", text)


@pytest.mark.parametrize(
    ("result", "text", "feed"),
    [
        (lambda feeds: None, "expected a list of 2 results, got None", 0),
        (lambda feeds: [np.maximum(*feeds[0])], "expected a list of 2 results, got a list of length 1", 0),
        (lambda feeds: [np.maximum(*feeds[0]), None], "expected an array, got None", 1),
    ],
    ids=["None", "too few", "None for one"],
)
def test_all_feeds_at_once(result: Any, text: str, feed: int) -> None:
    assert attempt(with_result(AtOnce, result), WRONG, Memory()) == Outcome("garbage", text=text, feed=feed)
    right = attempt(with_result(AtOnce, lambda feeds: [np.maximum(*each) for each in feeds]), WRONG, Memory())
    assert returned(right, WRONG)


def test_an_error_only_in_the_second_run_is_told_as_such() -> None:
    calls: list[int] = []

    def compute(a: Array, b: Array) -> Array:
        calls.append(1)
        if len(calls) > 2:
            raise RuntimeError("tired")
        return np.maximum(a, b)

    outcome = attempt(with_result(Returns, compute), WRONG, Memory())
    text = "RuntimeError: tired, in a second run on the same arrays"
    assert outcome == Outcome("refused", text=text, feed=1)


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("", "ValueError"),
        ("\n\n one\ntwo", "ValueError: one"),
        ("Exception from a.cpp:105:\nCheck 'false' failed at b.hpp:34:\nno such mode\n", "ValueError: no such mode"),
        ("only this:", "ValueError: only this:"),
    ],
    ids=["nothing", "lines", "places first", "a colon"],
)
def test_an_error_in_a_line(text: str, line: str) -> None:
    assert error_line(ValueError(text)) == line


def test_constants_are_prepared_again_for_the_second_run() -> None:
    constant = np.array([1, 2, 3, 4], np.float32)

    class Folds(Runtime):
        name = "folds"

        def prepare(self, call: Call) -> Prepared:
            folded = np.empty(1 << 16, np.float32)  # in this process, only large blocks are poisoned
            return lambda feed: folded

    trial = Trial(call_of(constant=constant), ((constant,),), (constant,))
    assert attempt(Folds(), trial, Memory()).kind == "nondeterministic"


@pytest.mark.parametrize(("count", "note"), [(1, ""), (2, REUSES), (16, REUSES)])
def test_a_result_that_the_next_call_writes_over_is_copied_before_it_and_noted(count: int, note: str) -> None:
    buffer, trial = np.empty(4, np.float32), trial_of(*range(3, 3 + count))
    for result in (lambda a, b: np.maximum(a, b, out=buffer), lambda a, b: np.maximum(a, b, out=buffer)[::-1][::-1]):
        outcome = attempt(with_result(Returns, result), trial, Memory())
        assert returned(outcome, trial)
        assert outcome.note == note
    assert attempt(Returns(), trial, Memory()).note == ""


@pytest.mark.parametrize("dtype", [dtype for dtype in dtypes.ALL if dtype is not dtypes.REAL], ids=str)
def test_a_scalar_of_numpy_is_an_array_of_rank_0(dtype: DType) -> None:
    one = np.array(1).astype(dtype.numpy)
    trial = Trial(call_of(dtype), ((one, one),), (one,))
    outcome = attempt(with_result(Returns, lambda a, b: b[()]), trial, Memory())
    assert (outcome.kind, [(each.dtype, each.shape) for each in outcome.outputs]) == ("returned", [(one.dtype, ())])
    assert returned(outcome, trial)


@pytest.mark.parametrize("feed", range(3))
@pytest.mark.parametrize(
    ("runs", "text"),
    [
        ("AB", "two runs differ"),
        ("AAB", "2 different results in 3 runs"),
        ("ABAB", "2 different results in 4 runs"),
        ("ABCBCA", "3 different results in 6 runs"),
    ],
)
@pytest.mark.parametrize("kind", [Returns, AtOnce])
def test_runs_that_differ_in_any_feed_are_each_kept_once(kind: type[Returns], runs: str, text: str, feed: int) -> None:
    trial, calls = trial_of(3.0, 4.0, 5.0), itertools.count()
    assert trial.expected is not None

    def outputs(letter: str) -> list[Array]:
        assert trial.expected is not None
        return [each + "ABC".index(letter) * (number == feed) for number, each in enumerate(trial.expected)]

    def one(a: Array, b: Array) -> Array:
        return outputs(runs[next(calls) // 3])[int(a[0]) - 3]

    result = one if kind is Returns else lambda feeds: outputs(runs[next(calls)])
    outcome = attempt(with_result(kind, result), trial, Memory(), len(runs))
    assert (outcome.kind, outcome.text, outcome.feed) == ("nondeterministic", text, feed)
    assert [[each.tolist() for each in run] for run in outcome.runs] == [
        [each.tolist() for each in outputs(letter)] for letter in sorted(set(runs))
    ]


@pytest.mark.parametrize("kind", [Returns, AtOnce])
def test_feeds_run_in_order_and_then_in_reverse(kind: type[Returns]) -> None:
    """Test that feeds also run in reverse, to detect state from an earlier feed. Batches keep the runtime's order."""
    trial, seen = trial_of(3.0, 4.0, 5.0), []

    def one(a: Array, b: Array) -> Array:
        seen.append(int(a[0]))
        return np.maximum(a, b)

    result = one if kind is Returns else lambda feeds: [one(*each) for each in feeds]
    assert returned(attempt(with_result(kind, result), trial, Memory(), 3), trial)
    assert seen == [3, 4, 5, *([5, 4, 3] if kind is Returns else [3, 4, 5]), 3, 4, 5]


@pytest.mark.parametrize("run", range(3))
@pytest.mark.parametrize("valid", [True, False], ids=["a valid call", "an invalid call"])
@pytest.mark.parametrize("error", [ValueError("no"), SystemExit(3), None], ids=["refused", "crashed", "garbage"])
def test_an_error_in_any_run_is_told(run: int, valid: bool, error: BaseException | None) -> None:
    """Test that an error in any run is reported, and that a rejection in one run excuses no other run."""
    trial, calls = trial_of(3.0, refusal=not valid), itertools.count()

    def result(a: Array, b: Array) -> Any:
        if next(calls) == run:
            if error is not None:
                raise error
            return None
        return np.maximum(a, b)

    outcome = attempt(with_result(Returns, result), trial, Memory(), 3)
    kind = "garbage" if error is None else "crashed" if isinstance(error, SystemExit) else "refused"
    if kind == "refused" and not valid:
        assert outcome.kind == "returned"
        return
    text = {"garbage": "expected an array, got None", "crashed": "raised SystemExit(3)", "refused": "ValueError: no"}[
        kind
    ]
    when = ("", ", in a second run on the same arrays", ", in run 3 on the same arrays")[run]
    assert (outcome.kind, outcome.text) == (kind, text + when)


@pytest.mark.parametrize(
    ("values", "kind", "told"),
    [
        ((0.0, 0.0), "refused", "in run 3"),
        ((-0.0,), "refused", "in a second run"),  # the other zero, which a standard may permit
        ((7.0,), "returned", "in a second run"),
        ((7.0, 7.0), "returned", "in run 3"),
        ((0.0, 7.0), "nondeterministic", "2 different results in 4 runs"),
    ],
)
def test_a_wrong_result_is_not_lost_to_a_later_refusal(values: tuple[float, ...], kind: str, told: str) -> None:
    trial = replace(trial_of(1.0), expected=(np.zeros(4, np.float32),))
    outputs = iter(values)

    def result(a: Array, b: Array) -> Array:
        for value in outputs:
            return np.full(4, value, np.float32)
        raise ValueError("no")

    outcome = attempt(with_result(Returns, result), trial, Memory(), 4)
    assert outcome.kind == kind
    assert told in (outcome.note if kind == "returned" else outcome.text)


@pytest.mark.parametrize("constant", [True, False])
def test_an_error_while_a_model_is_prepared_is_of_no_later_feed(constant: bool) -> None:
    """Test that a preparation error affects no later feed, whether the model is prepared once or for each feed."""
    value = np.array([1, 2, 3, 4], np.float32)
    prepared = itertools.count(1)

    class Refuses(Runtime):
        name = "refuses"

        def prepare(self, call: Call) -> Prepared:
            if next(prepared) == 1 + constant:
                raise ValueError("no")
            return lambda feed: feed[0].copy()

    feeds = ((value,), (value,)) if constant else ((value, value),) * 2
    trial = Trial(call_of(constant=value if constant else None), feeds, (value, value))
    text = f"ValueError: no{', in a second run on the same arrays' if constant else ''}"
    assert attempt(Refuses(), trial, Memory()) == Outcome("refused", text=text)


def test_not_applicable() -> None:
    def result(*arrays: Array) -> Array:
        raise NotApplicableError("no such function")

    assert attempt(with_result(Returns, result), GOOD, Memory()) == Outcome("not applicable", text="no such function")


@pytest.mark.parametrize("dtype", dtypes.ALL, ids=str)
def test_arrays_arrive_as_they_are(dtype: DType) -> None:
    values = [1, 0, 1] if dtype is dtypes.BOOL else [1, 2, 3]
    shapes: list[tuple[int, ...]] = [(3,), (1, 3), (), (0, 2)]
    arrays = [np.array(values, dtype.numpy).flat[: int(np.prod(shape))].reshape(shape) for shape in shapes]
    trial = Trial(call_of(dtype), tuple((array, array) for array in arrays), tuple(arrays))
    seen: list[Array] = []

    def result(a: Array, b: Array) -> Array:
        assert a.flags.c_contiguous
        assert a.flags.writeable
        assert dtype is dtypes.REAL or a.ctypes.data % 64 == 0
        assert not np.shares_memory(a, b)
        seen.append(a)
        return b

    outcome = attempt(with_result(Returns, result), trial, Memory())
    assert outcome.kind == "returned"
    for actual, array in zip(outcome.outputs, arrays, strict=True):
        assert (actual.dtype, actual.shape, actual.tolist()) == (array.dtype, array.shape, array.tolist())
    assert len(seen) == 2 * len(arrays)


def test_changed_objects_are_seen() -> None:
    def result(a: Array, b: Array) -> Array:
        a[0] = 9
        return b

    array = np.array([1, 2], object)
    outcome = attempt(with_result(Returns, result), Trial(call_of(dtypes.REAL), ((array, array),), (array,)), Memory())
    assert (outcome.kind, outcome.text) == ("overwrote", "modified its input")


def test_types_and_rows_arrive_as_the_receivers_own() -> None:
    bfloat16 = np.array([1, 2], ml_dtypes.bfloat16)
    sent = Trial(call_of(dtypes.BFLOAT16), ((bfloat16, bfloat16),), None)
    result = pickle.loads(pickle.dumps(sent))
    assert result.call.row is spec.MAX_13
    assert result.call.dtype is dtypes.BFLOAT16
    assert result.feeds[0][0].dtype == bfloat16.dtype
    own = Call(spec.MAXIMUM, sent.call.inputs)  # a row that is not in the table
    assert pickle.loads(pickle.dumps(own)) == own


def test_a_feed_more_is_a_few_calls_more() -> None:
    """Test the number of Python calls, because their time depends on the machine."""
    assert GOOD.expected is not None
    feeds, expected, memory = GOOD.feeds, GOOD.expected, Memory()

    def calls(count: int) -> int:
        trial = Trial(call_of(), feeds * count, expected * count)
        seen = itertools.count()
        sys.setprofile(lambda _frame, event, _arg: next(seen) if event in ("call", "c_call") else None)
        try:
            outcome = attempt(Returns(), trial, memory)
        finally:
            sys.setprofile(None)
        assert outcome.kind == "returned"
        return next(seen)

    calls(1)  # imports on the first call do not count
    few, more, many = calls(100), calls(200), calls(400)
    assert many - more < 2.1 * (more - few)
    assert (many - few) / 300 < 80  # 59 on Python 3.11
