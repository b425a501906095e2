"""Rare calls: unusual arguments and objects, and out of memory."""

from __future__ import annotations

import gc
import inspect
import platform
import re
import subprocess
import sys
import weakref
from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import maxops as mo
from helpers.bits import (
    Array,
    assert_same_bits,
    fast_first_in_segments,
    fast_maximum,
    fast_reduce_max,
    fast_segment_max,
    mixed,
)
from helpers.float_modes import float_modes
from helpers.instruction_sets import on_each_isa
from maxops import _native, calls
from maxops.dtypes import FLOAT32
from maxops.errors import AttributeValueError, AxesError, DTypeError, OutputTooLargeError, SegmentIdsError, ShapeError
from maxops.plan import LARGEST_OUTPUT

BLOCK = 1 << 20  # ids between two polls (native/api_segments.cpp)
FLUSHES = 0x8040  # flush to zero, and denormals are zero


def segments(ids: Any, dtype: type = np.int64, **options: Any) -> Any:
    given: Array = np.array(ids, dtype)
    return mo.segment_max(np.ones(len(given), np.int8), given, fill_mode="ZERO", **options)


# ------------------------------------------------------------------------------------------------ segment ids


def test_dropped_negative_ids_do_not_hide_a_decrease() -> None:
    assert segments([-1, 0, 2], sorted=True, out_of_range="drop").tolist() == [1, 0, 1]
    with pytest.raises(
        SegmentIdsError, match=r"got 2 after 3 at position 2; pass sorted=False .* \[maxops.segment_max.ids\]"
    ):
        segments([-1, 3, 2], sorted=True, out_of_range="drop")


def test_sorted_ids_past_num_segments() -> None:
    with pytest.raises(SegmentIdsError, match=r"got 3 at position 1.*\[maxops.segment_max.out_of_range\]"):
        segments([0, 3], num_segments=2, out_of_range="error")
    assert segments([0, 3], num_segments=4, out_of_range="error").tolist() == [1, 0, 0, 1]
    assert segments([0, 3], out_of_range="error").tolist() == [1, 0, 0, 1]  # all ids lie below what they give
    with pytest.raises(
        SegmentIdsError, match=r"got 1 after 3 at position 1; pass sorted=False .* \[maxops.segment_max.ids\]"
    ):
        segments([3, 1], out_of_range="error")


@pytest.mark.parametrize("rows", [100, 5000])
def test_a_long_run_after_one_of_a_higher_id(rows: int) -> None:
    for ids in ([5, 3], [0, 5, 3, 7]):
        with pytest.raises(
            SegmentIdsError, match=r"got 3 after 5 at position \d+; pass sorted=False .* \[maxops.segment_max.ids\]"
        ):
            segments(np.repeat(ids, rows))


@pytest.mark.parametrize("sorted", [True, False])
def test_the_highest_id_there_is(sorted: bool) -> None:
    with pytest.raises(OutputTooLargeError, match=r"\[maxops.segment_max.shape\]"):
        segments([0, 2**63 - 1], sorted=sorted)


@pytest.mark.parametrize("dtype", [np.int32, np.int64])
def test_the_first_fault_lies_behind_the_first_block_of_ids(dtype: type) -> None:
    ids: Array = np.zeros(BLOCK + 2, dtype)
    ids[-1] = -1
    with pytest.raises(SegmentIdsError, match=rf"negative, got -1 at position {BLOCK + 1}"):
        segments(ids, dtype, sorted=False, num_segments=1)
    ids[-1] = 1
    with pytest.raises(SegmentIdsError, match=rf"num_segments \(1\), got 1 at position {BLOCK + 1}"):
        segments(ids, dtype, sorted=False, num_segments=1)


def test_indices_of_strided_rows_that_fill_the_buffer() -> None:
    """Test indices of gathered rows that are too wide to be gathered at once."""
    whole = mixed(FLOAT32, (7, 2 * 5000))
    data, ids = whole[:, ::2], np.array([0, 0, 1, 3, 3, 3, 4])
    values, rows = mo.segment_max(data, ids, fill_mode="ZERO", return_indices=True)
    assert_same_bits(values, fast_segment_max(data.copy(), ids, 5, "ZERO"))
    assert_same_bits(rows, fast_first_in_segments(data.copy(), ids, values))


@pytest.mark.skipif(platform.machine() != "x86_64" or platform.libc_ver()[0] != "glibc", reason="of x86-64 and glibc")
def test_a_long_run_of_subnormals_where_the_processor_would_flush_them() -> None:
    data = np.arange(1, 513, dtype=np.uint32).view(np.float32)
    with float_modes(FLUSHES):
        result = mo.segment_max(data, np.repeat([0, 1], 256), fill_mode="ZERO")
    assert result.view(np.uint32).tolist() == [256, 512]


# ------------------------------------------------------------------------------------------------ layouts


def test_an_output_that_begins_where_a_smaller_input_does() -> None:
    data, other = np.array([3, 1, 2, 5], np.float32), np.array([0, 4, 0, 0], np.float32)
    assert mo.maximum(data[:1], other, out=data) is data
    assert data.tolist() == [3, 4, 3, 3]


def test_columns_of_long_rows_in_reverse() -> None:
    data = mixed(FLOAT32, (40, 3000))
    expected = fast_reduce_max(data, (0,))
    on_each_isa(lambda: assert_same_bits(mo.reduce_max(data[::-1], (0,)), expected))


def test_a_row_whose_parts_are_of_several_streams_each() -> None:
    """Test a row in parts of several streams each, without a highest value that would stop the search early."""
    data = np.random.default_rng(0).random(6_000_000, np.float32)
    expected = data.max(keepdims=True)
    on_each_isa(lambda: assert_same_bits(mo.reduce_max(data), expected))


def test_reduced_rows_that_are_long_and_apart() -> None:
    """Test long rows with gaps, longer than a strip (native/drivers/reduce.cpp), and one among contiguous rows."""
    for length in (100, 20_000):
        data = mixed(FLOAT32, (5, length + 3))[:, :length]
        assert_same_bits(mo.reduce_max(data, (0, 1)), fast_reduce_max(data.copy(), (0, 1)))


def test_every_second_of_many() -> None:
    data, other = mixed(FLOAT32, (3, 1000)), mixed(FLOAT32, (3, 500), 1)
    expected = fast_maximum(data[:, ::2].copy(), other)
    on_each_isa(lambda: assert_same_bits(mo.maximum(data[:, ::2], other), expected))


@pytest.mark.parametrize("rows", [2, 3, 5])
@pytest.mark.parametrize("length", [4, 8])
def test_few_short_rows(rows: int, length: int) -> None:
    data = mixed(FLOAT32, (rows, length))
    expected = fast_reduce_max(data, (1,))
    on_each_isa(lambda: assert_same_bits(mo.reduce_max(data, (1,)), expected))


# ------------------------------------------------------------------------------------------------ types


def test_cs_other_name_of_int64() -> None:
    data = np.array([1, 5], np.int64)
    assert_same_bits(mo.maximum(data, np.longlong(3)), fast_maximum(data, np.array([3, 3])))
    assert_same_bits(mo.reduce_max(data, initial=np.longlong(7)), np.array([[7]][0]))


def test_types_and_scalars_that_are_none_of_ours() -> None:
    with pytest.raises(DTypeError, match=r"\[maxops.maximum.types\]"):
        mo.maximum(np.zeros(2, ml_dtypes.float8_e5m2), np.zeros(2, ml_dtypes.float8_e5m2))
    with pytest.raises(DTypeError, match=r"\[maxops.reduce_max.initial\]"):
        mo.reduce_max(np.zeros(2, np.int64), initial=np.uint64(7))


def test_an_instruction_set_that_is_none() -> None:
    assert not _native.use_isa("z80")


def test_a_build_says_what_it_is_made_of() -> None:
    """Test that a build reports its origin as `maxops evidence` compares it."""
    build = _native.build()
    assert re.fullmatch("[0-9a-f]{64}", build["sources"])
    assert re.fullmatch(r"\w+ \d+(\.\d+)+", build["compiler"])
    assert "/" not in build["flags"]
    assert set(_native.isas()) <= set(build["instruction_sets"])


# ------------------------------------------------------------------------------------- arguments that are no plain ones

ANYHOW: Any = mo  # of any type, because some arguments are invalid
DATA = np.array([[1, 5, 2], [7, 2, 3]], np.float32)


def of_segments(**options: Any) -> Any:
    return ANYHOW.segment_max(DATA, **{"segment_ids": np.array([0, 1]), "fill_mode": "ZERO"} | options)


class RaisingInteger(np.int64):
    """An np.int64 subclass whose conversion raises."""

    def __index__(self) -> int:
        raise ZeroDivisionError("it has no value")


class HugeInteger(np.int64):
    """An np.int64 subclass that returns a value beyond its type."""

    def __index__(self) -> int:
        return 2**70


@pytest.mark.parametrize(
    ("call", "error", "says"),
    [
        (lambda: mo.maximum(DATA, ties="last"), AttributeValueError, "ties must be .*, got 'last' .*maximum.ties]"),  # type: ignore[call-overload]
        (
            lambda: ANYHOW.segment_max(DATA, np.zeros(len(DATA), np.int64), fill_mode="\ud800"),
            AttributeValueError,
            "fill_mode",
        ),
        (lambda: ANYHOW.maximum(DATA, ties=5), AttributeValueError, "ties must be .*, got 5 .*maximum.ties]"),
        (lambda: mo.maximum(np.ones(2), 2**63 - 1), DTypeError, "float64, .* cannot represent exactly.*scalars]"),
        (lambda: mo.reduce_max(DATA, ties="first "), AttributeValueError, "got 'first ' .*reduce_max.ties]"),  # type: ignore[call-overload]
        (lambda: mo.reduce_max(DATA, dim="x"), AttributeValueError, "got dim='x' .*reduce_max.dim]"),  # type: ignore[call-overload]
        (
            lambda: ANYHOW.reduce_max(DATA, return_indices=2),
            AttributeValueError,
            "return_indices must be True, False, 1 or 0, got 2",
        ),
        (lambda: mo.reduce_max(DATA, 0, axis=1), AxesError, "axes 0 and axis 1; pass only one of them"),
        (lambda: mo.reduce_max(DATA, range(65)), AxesError, "data of rank 2, got 2"),
        (lambda: mo.reduce_max(DATA, (0,) * 65), AxesError, "got axis 0 twice"),
        (lambda: mo.reduce_max(DATA, np.zeros(65, np.int64)), AxesError, "got axis 0 twice"),
        (lambda: mo.reduce_max(DATA, np.zeros(1, complex)), AxesError, "got complex128 of shape"),
        (lambda: mo.reduce_max(DATA, RaisingInteger(0)), ZeroDivisionError, "it has no value"),
        (lambda: mo.reduce_max(DATA, HugeInteger(0)), AxesError, f"data of rank 2, got {2**70}"),
        (lambda: mo.reduce_max(DATA, initial="x"), DTypeError, "initial must be a NumPy array, got str"),  # type: ignore[call-overload]
        (lambda: mo.reduce_max(DATA, initial=DATA[0, :1]), ShapeError, r"initial must be a scalar, got shape \(1,\)"),
        (lambda: of_segments(initial=1.0), AttributeValueError, "fill_mode 'ZERO' and initial"),
        (
            lambda: of_segments(initial=1.0, fill_mode=None, fill_value=2.0),
            AttributeValueError,
            "fill_value and initial",
        ),
        (lambda: of_segments(initial="x", fill_mode=None), DTypeError, "initial must be a NumPy array, got str"),
        (lambda: of_segments(fill_value=2.0), AttributeValueError, "fill_mode 'ZERO' and fill_value"),
        (lambda: of_segments(fill_value="x", fill_mode=None), DTypeError, "fill_value must be a NumPy array, got str"),
        (
            lambda: of_segments(fill_mode="ZER0"),
            AttributeValueError,
            "fill_mode must be 'ZERO' or 'LOWEST', got 'ZER0'",
        ),
        (
            lambda: of_segments(fill_mode="ZERA"),
            AttributeValueError,
            "fill_mode must be 'ZERO' or 'LOWEST', got 'ZERA'",
        ),
        (
            lambda: of_segments(fill_mode="zer\u00f6"),
            AttributeValueError,
            "fill_mode must be 'ZERO' or 'LOWEST', got 'zer\u00f6'",
        ),
        (lambda: of_segments(check_ids=2), AttributeValueError, "check_ids must be True, False, 1 or 0, got 2"),
        (
            lambda: of_segments(return_indices=2),
            AttributeValueError,
            "return_indices must be True, False, 1 or 0, got 2",
        ),
        (
            lambda: of_segments(return_empty="x"),
            AttributeValueError,
            "return_empty must be True, False, 1 or 0, got 'x'",
        ),
        (lambda: of_segments(ties="odd"), AttributeValueError, "got 'odd' .*segment_max.ties]"),
        (
            lambda: of_segments(out_of_range="errors"),
            AttributeValueError,
            "out_of_range must be 'error' or 'drop', got 'errors'",
        ),
        (
            lambda: of_segments(segment_ids=None, offsets=np.array([0, 1, 2]), out_of_range="drop"),
            AttributeValueError,
            "out_of_range= require segment_ids; omit them with offsets",
        ),
        (
            lambda: of_segments(segment_ids=None, offsets=np.array([0, 1, 2]), sorted=False),
            AttributeValueError,
            "sorted=False and .* require segment_ids; omit them",
        ),
    ],
)
def test_arguments_that_the_native_way_in_leaves_to_the_planner(
    call: Callable[[], object], error: type[Exception], says: str
) -> None:
    with pytest.raises(error, match=says):
        call()


def test_names_and_words_that_are_spelled_when_called() -> None:
    """Test strings that Python does not intern, because the program builds them at run time."""
    option = "".join(["keep", "dims"])
    assert ANYHOW.reduce_max(DATA, 1, **{option: False}).tolist() == [5, 7]
    assert mo.reduce_max(DATA, axis=1).tolist() == [5, 7]
    assert mo.maximum(DATA, ties="first").tolist() == DATA.tolist()
    assert of_segments(fill_mode="zero", out_of_range="error").tolist() == DATA.tolist()
    assert of_segments(fill_mode=None, fill_value=2.0, num_segments=3).tolist() == [*DATA.tolist(), [2, 2, 2]]
    with pytest.raises(TypeError, match=r"reduce_max\(\) got an unexpected keyword argument 'keepdi'"):
        ANYHOW.reduce_max(DATA, **{option[:-2]: False})
    with pytest.raises(TypeError, match=r"reduce_max\(\) got an unexpected keyword argument 'keepdim'; use keepdims"):
        ANYHOW.reduce_max(DATA, **{option[:-1]: False})


@pytest.mark.parametrize("function", calls.INSTEAD)
def test_an_argument_of_another_library_names_ours(function: str) -> None:
    for name in calls.INSTEAD[function]:
        assert name not in inspect.signature(getattr(mo, function)).parameters
        with pytest.raises(TypeError, match=rf"{function}\(\) got an unexpected keyword argument '{name}'; ") as caught:
            getattr(ANYHOW, function)(DATA, 0, **{name: 1})
        if called := re.search(r"use (\w+)", str(caught.value)):
            assert called[1] in inspect.signature(getattr(mo, function)).parameters


# ------------------------------------------------------------------------------------------ the native module's own

NATIVE: Any = _native  # of any type, like ANYHOW


@pytest.mark.parametrize(
    ("rules", "error", "says"),
    [
        ((), TypeError, "missing required argument 'operator'"),
        (("minimum",), ValueError, "unknown native operator 'minimum'"),
        ((5,), ValueError, "unknown native operator 5"),
        (("maximum", {"types": 5}), TypeError, "not iterable"),
        (("maximum", {"types": ["float32", "float8"]}), ValueError, "unknown type 'float8'"),
        (("maximum", {"types": (5,)}), ValueError, "unknown type 5"),
        (("reduce_max", {"index_types": ["int5"]}), ValueError, "unknown type 'int5'"),
        (("reduce_max", {"keywords": ["axes", "x"]}), ValueError, "unknown parameter 'x'"),
        (("reduce_max", {"keywords": [5]}), ValueError, "unknown parameter 5"),
        (("reduce_max", {"broadcast": "some"}), ValueError, "broadcast must be none, numpy or strict, got some"),
        (("reduce_max", {"positional": -2}), ValueError, "'reduce_max' has no -2 parameters"),
        (("reduce_max", {"positional": 12}), ValueError, "'reduce_max' has no 12 parameters"),
        (("maximum", {"positional": 1}), ValueError, "'maximum' has no 1 parameters"),  # takes arrays, not parameters
    ],
)
def test_an_entry_of_wrong_rules(rules: Any, error: type[Exception], says: str) -> None:
    operator, options = rules[:1], rules[1] if rules[1:] else {}
    with pytest.raises(error, match=says):
        NATIVE.Entry(len, *operator, **options)


def test_an_entry_of_no_function_of_ours(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(AttributeError, match="__name__"):
        NATIVE.entry(5)
    with pytest.raises(ValueError, match="unknown native operator 'len'"):
        NATIVE.entry(len)
    monkeypatch.setitem(sys.modules, "functools", None)
    with pytest.raises(ImportError, match="functools"):
        NATIVE.entry(ANYHOW.maximum.__wrapped__)


def test_an_entry_is_an_object_of_python() -> None:
    entry: Any = NATIVE.Entry(len, "maximum", positional=0)
    known = weakref.ref(entry)
    assert repr(entry) == "<function maxops.len>"
    del entry
    gc.collect()
    assert known() is None


def test_an_entry_in_a_class_is_a_method() -> None:
    class Own:
        larger: Any = mo.maximum

    own = Own()
    assert Own.larger is mo.maximum
    assert own.larger.__self__ is own
    with pytest.raises(DTypeError, match="input 0 must be an array, got Own"):
        own.larger(DATA)


@pytest.mark.parametrize(
    ("call", "error", "says"),
    [
        (lambda: NATIVE.use_isa(5), TypeError, "bad argument"),
        (lambda: NATIVE.use_isa("\ud800"), UnicodeEncodeError, "surrogates"),
        (lambda: NATIVE.set_num_threads("x"), TypeError, "integer"),
        (lambda: NATIVE.set_num_threads(-1), ValueError, "got -1 threads, expected 1 to 1024"),
        (lambda: NATIVE.set_num_threads(0), ValueError, "got 0 threads, expected 1 to 1024"),
        (lambda: NATIVE.set_num_threads(1025), ValueError, "got 1025 threads, expected 1 to 1024"),
        (lambda: NATIVE.set_cache_limit(-1), OverflowError, "negative"),
        (lambda: NATIVE.set_largest_output("x"), TypeError, "integer"),
    ],
)
def test_settings_that_are_wrong(call: Callable[[], object], error: type[Exception], says: str) -> None:
    before = NATIVE.get_num_threads(), NATIVE.cache_info()[0], NATIVE.isa()
    with pytest.raises(error, match=says):
        call()
    assert (NATIVE.get_num_threads(), NATIVE.cache_info()[0], NATIVE.isa()) == before


IDS = np.array([0, 1])


@pytest.mark.parametrize(
    "arguments",
    [
        (),
        ([0, 1], False, True, True, None, 2),
        (IDS.astype(complex), False, True, True, None, 2),
        (IDS.reshape(1, 2), False, True, True, None, 2),
        (IDS, 2, True, True, None, 2),
        (IDS, False, 2, True, None, 2),
        (IDS, False, True, 2, None, 2),
        (IDS, False, True, True, "x", 2),
        (IDS, False, True, True, None, "x"),
        (IDS.astype(np.int8), False, True, True, None, 2),
        (IDS[:0], True, True, True, None, 2),
    ],
    ids=str,
)
def test_ids_that_cannot_be_looked_at(arguments: tuple[Any, ...]) -> None:
    with pytest.raises(
        TypeError, match=r"check_indices\(\) expects a 1-D array of int32, int64 or uint64, and its rules"
    ):
        NATIVE.check_indices(*arguments)


@pytest.mark.parametrize("dtype", [np.int32, np.int64, np.uint64])
def test_ids_that_are_looked_at(dtype: type) -> None:
    ids: Array = np.array([0, 3, 1], dtype)
    assert NATIVE.check_indices(ids, False, False, True, None, 3) is None
    assert NATIVE.check_indices(ids[:0], False, True, True, None, 0) is None
    assert NATIVE.check_indices(ids, False, True, True, 4, 3)[1:] == (2, 1, 3)
    assert NATIVE.check_indices(ids, False, False, True, 3, 3)[1:3] == (1, 3)


LONG_LOOK = """
import signal
import numpy as np
import maxops as mo
from maxops import _native, calls
def stop(*_):
    raise TimeoutError("stopped")
signal.signal(signal.SIGALRM, stop)
ids = np.broadcast_to(np.int64(1), 1 << 40)  # without memory of their own
LOOKS = {
    "ids in order": lambda: _native.check_indices(ids, False, True, True, None, len(ids)),
    "uint64": lambda: _native.check_indices(ids.view(np.uint64), False, True, True, 5, len(ids)),
    "uint64 offsets": lambda: _native.check_indices(zeros.view(np.uint64), True, True, True, None, 1),
    "offsets, past the rows": lambda: _native.check_indices(zeros, True, True, True, None, 1),
    "int32 offsets": lambda: _native.check_indices(narrow, True, True, True, None, 1),
    "drop": lambda: mo.segment_max(data, ids, 2, fill_mode="ZERO", out_of_range="drop"),
    "drop, int32": lambda: mo.segment_max(data, narrow, 2, fill_mode="ZERO", out_of_range="drop"),
    "drop, uint64": lambda: mo.segment_max(data, ids.view(np.uint64), 2, fill_mode="ZERO", out_of_range="drop"),
    "offsets of a call": lambda: mo.segment_max(data[:1], offsets=zeros, fill_mode="ZERO"),
    "uint64 offsets of a call": lambda: mo.segment_max(data[:1], offsets=zeros.view(np.uint64), fill_mode="ZERO"),
    "in any order": lambda: mo.segment_max(data, narrow, 2, fill_mode="ZERO", sorted=False),
    "unchecked": lambda: mo.segment_max(data, narrow, 2, fill_mode="ZERO", check_ids=False),
    "the mask": lambda: mo.segment_max(data, ids, 2, fill_mode="ZERO", return_empty=True, sorted=False),
    "the rows": lambda: mo.segment_max(data, ids, 2, fill_mode="ZERO", return_indices=True, check_ids=False),
}
zeros, narrow = np.broadcast_to(np.int64(0), 1 << 40), np.broadcast_to(np.int32(0), 1 << 40)
data = np.broadcast_to(np.int8(0), 1 << 40)
for name, look in LOOKS.items():
    signal.setitimer(signal.ITIMER_REAL, 0.1)
    try:
        look()
    except TimeoutError:
        print(name)
"""


def test_a_signal_ends_a_look_at_ids() -> None:
    """Test that a signal ends the validation of ids, which would otherwise take hours."""
    command = [sys.executable, "-X", "faulthandler", "-c", LONG_LOOK]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=120)
    looks = re.findall(r'^    "(.*)": lambda', LONG_LOOK, re.MULTILINE)
    assert (done.stdout.splitlines(), done.stderr) == (looks, "")


LOCKED = """
import signal
import numpy as np, maxops as mo
mo.set_num_threads(min(2, mo.get_num_threads()))
values, out = np.zeros(1 << 21, np.int8), np.zeros((), np.int8)
windows = np.lib.stride_tricks.sliding_window_view(values, 1 << 20)  # 2^40 elements: seconds at the least
def lock(*_):
    out.setflags(write=False)
    values[:] = 127  # the highest: the call has no more to look for
signal.signal(signal.SIGALRM, lock)
signal.setitimer(signal.ITIMER_REAL, 0.2)
try:
    mo.reduce_max(windows, None, False, out=out, return_indices=True)
except mo.errors.OutputError as error:
    print(error, out)
"""


def test_an_output_that_is_read_only_when_its_values_are_there() -> None:
    command = [sys.executable, "-X", "faulthandler", "-c", LOCKED]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=120)
    expected = "reduce_max out is read-only; pass a writeable array [maxops.reduce_max.out] 0\n"
    assert (done.stdout, done.stderr) == (expected, "")


def test_a_planned_call_says_that_memory_ended() -> None:
    """Test that a planned call raises MemoryError itself, because it no longer falls back to the planner."""
    assert NATIVE.planned_maximum(DATA, "x") is None
    NATIVE.set_largest_output(8)
    references = sys.getrefcount(DATA.dtype)
    try:
        for _ in range(100):
            assert NATIVE.maximum(DATA, DATA) is None
            with pytest.raises(MemoryError, match="larger than the 8 bytes of memory"):
                NATIVE.planned_maximum(DATA, DATA)
        assert sys.getrefcount(DATA.dtype) < references + 50  # the failed calls keep no references
    finally:
        NATIVE.set_largest_output(LARGEST_OUTPUT)
    assert NATIVE.planned_maximum(DATA, DATA).tolist() == DATA.tolist()


BROKEN_IMPORTS = """
import importlib.util, sys, threading
import ml_dtypes, numpy
import numpy._core._multiarray_umath as core
def load():
    spec = importlib.util.spec_from_file_location("maxops._native", sys.argv[1])
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module
def fails():
    try:
        load()
    except Exception as error:
        return type(error).__name__, str(error).splitlines()[-1]
def without(place, name):
    had = getattr(place, name)
    delattr(place, name)
    print(name, *fails())
    setattr(place, name, had)
without(core, "_ARRAY_API")
without(numpy, "memmap")
without(threading, "main_thread")
without(threading.Thread, "ident")
for name in ("ml_dtypes", "numpy", "threading"):
    had, sys.modules[name] = sys.modules[name], None
    print(name, *fails())
    sys.modules[name] = had
class Odd:
    ident = -1
had, threading.main_thread = threading.main_thread, Odd
print(*fails())
threading.main_thread = had
print(load().isas() != [])
"""


def test_an_import_beside_modules_that_lack_something() -> None:
    """Test that importing the core raises the error of a missing module or attribute, and succeeds afterwards."""
    command = [sys.executable, "-X", "faulthandler", "-c", BROKEN_IMPORTS, _native.__file__]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == [
        "_ARRAY_API ImportError numpy._core.multiarray failed to import",
        "memmap AttributeError module 'numpy' has no attribute 'memmap'",
        "main_thread AttributeError module 'threading' has no attribute 'main_thread'",
        "ident AttributeError '_MainThread' object has no attribute 'ident'",
        "ml_dtypes ModuleNotFoundError import of ml_dtypes halted; None in sys.modules",
        "numpy ImportError numpy._core.multiarray failed to import",
        "threading ModuleNotFoundError import of threading halted; None in sys.modules",
        "OverflowError can't convert negative value to unsigned int",
        "True",
    ]
