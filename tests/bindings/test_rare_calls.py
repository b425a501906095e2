"""Rare calls: unusual arguments and objects, and calls that run out of memory."""

from __future__ import annotations

import gc
import inspect
import re
import sys
import weakref
from collections.abc import Callable
from typing import Any

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
from helpers.instruction_sets import on_each_isa
from helpers.programs import run
from maxops import _native, calls
from maxops.dtypes import FLOAT32
from maxops.errors import DTypeError, SegmentIdsError
from maxops.plan import LARGEST_OUTPUT

BLOCK = 1 << 20  # ids between two polls (native/api_segments.cpp)


def segments(ids: Any, dtype: type = np.int64, **options: Any) -> Any:
    given: Array = np.array(ids, dtype)
    return mo.segment_max(np.ones(len(given), np.int8), given, fill_mode="ZERO", **options)


# ------------------------------------------------------------------------------------------------ segment ids


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
    """Test indices of gathered rows that are too wide to be gathered in one step."""
    whole = mixed(FLOAT32, (7, 2 * 5000))
    data, ids = whole[:, ::2], np.array([0, 0, 1, 3, 3, 3, 4])
    values, rows = mo.segment_max(data, ids, fill_mode="ZERO", return_indices=True)
    assert_same_bits(values, fast_segment_max(data.copy(), ids, 5, "ZERO"))
    assert_same_bits(rows, fast_first_in_segments(data.copy(), ids, values))


# ------------------------------------------------------------------------------------------------ layouts


def test_columns_of_long_rows_in_reverse() -> None:
    data = mixed(FLOAT32, (40, 3000))
    expected = fast_reduce_max(data, (0,))
    on_each_isa(lambda: assert_same_bits(mo.reduce_max(data[::-1], (0,)), expected))


def test_a_row_whose_parts_are_of_several_streams_each() -> None:
    """Test a row whose parts are read as several streams, without a highest value, which would end a part early."""
    data = np.random.default_rng(0).random(6_000_000, np.float32)
    expected = data.max(keepdims=True)
    on_each_isa(lambda: assert_same_bits(mo.reduce_max(data), expected))


def test_reduced_rows_that_are_long_and_apart() -> None:
    """Test rows with gaps, shorter and longer than a strip (native/drivers/reduce.cpp), reduced to one result."""
    for length in (100, 20_000):
        data = mixed(FLOAT32, (5, length + 3))[:, :length]
        assert_same_bits(mo.reduce_max(data, (0, 1)), fast_reduce_max(data.copy(), (0, 1)))


# ------------------------------------------------------------------------------------------------ types


def test_cs_other_name_of_int64() -> None:
    data = np.array([1, 5], np.int64)
    assert_same_bits(mo.maximum(data, np.longlong(3)), fast_maximum(data, np.array([3, 3])))
    assert_same_bits(mo.reduce_max(data, initial=np.longlong(7)), np.array([[7]][0]))


def test_a_build_says_what_it_is_made_of() -> None:
    """Test that a build reports the sources, compiler and flags that `maxops evidence` compares."""
    build = _native.build()
    assert re.fullmatch("[0-9a-f]{64}", build["sources"])
    assert re.fullmatch(r"\w+ \d+(\.\d+)+", build["compiler"])
    assert "/" not in build["flags"]
    assert set(_native.isas()) <= set(build["instruction_sets"])


# ---------------------------------------------------------------------------------------------------- unusual arguments

ANYHOW: Any = mo  # typed as Any, because some arguments are invalid
DATA = np.array([[1, 5, 2], [7, 2, 3]], np.float32)


def of_segments(**options: Any) -> Any:
    return ANYHOW.segment_max(DATA, **{"segment_ids": np.array([0, 1]), "fill_mode": "ZERO"} | options)


def test_names_and_words_that_are_spelled_when_called() -> None:
    """Test strings that Python does not intern, because the program builds them at run time."""
    option = "".join(["keep", "dims"])
    assert ANYHOW.reduce_max(DATA, 1, **{option: False}).tolist() == [5, 7]
    assert mo.reduce_max(DATA, axis=1).tolist() == [5, 7]
    assert mo.maximum(DATA, ties="first").tolist() == DATA.tolist()
    assert of_segments(fill_mode="zero", out_of_range="error").tolist() == DATA.tolist()
    assert of_segments(fill_mode=None, fill_value=2.0, num_segments=3).tolist() == [*DATA.tolist(), [2, 2, 2]]
    with pytest.raises(TypeError, match=r"reduce_max\(\) got an unexpected keyword argument 'smidpeek'$"):
        ANYHOW.reduce_max(DATA, **{option[::-1]: False})
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
    for name in ("count", "counts", "names", "values", "labels", "order"):  # similar to no argument
        with pytest.raises(TypeError, match=rf"got an unexpected keyword argument '{name}'$"):
            getattr(ANYHOW, function)(DATA, 0, **{name: 1})


# ----------------------------------------------------------------------------------- functions of the native module

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


def test_ids_that_the_core_does_not_check() -> None:
    ids = np.array([0, 1])
    right = [ids, False, True, True, None, 2]
    wrong: list[Any] = [(0, each) for each in ([0, 1], ids.astype(complex), ids.reshape(1, 2), ids.astype(np.int8))]
    wrong += [(1, 2), (2, 2), (3, 2), (4, "x"), (5, "x")]
    calls = [[*right[:place], each, *right[place + 1 :]] for place, each in wrong]
    for arguments in ([], [ids[:0], True, True, True, None, 2], *calls):
        with pytest.raises(
            TypeError, match=r"check_indices\(\) expects a 1-D array of int32, int64 or uint64, and its"
        ):
            NATIVE.check_indices(*arguments)
    with pytest.raises(TypeError, match="does not accept arrays of int32 or int64"):
        NATIVE.widened(ids)


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
    looks = re.findall(r'^    "(.*)": lambda', LONG_LOOK, re.MULTILINE)
    assert run(LONG_LOOK, warnings="error").splitlines() == looks


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
    expected = "reduce_max out is read-only; pass a writeable array [maxops.reduce_max.out] 0\n"
    assert run(LOCKED, warnings="error") == expected


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
        NATIVE.set_largest_output(DATA.nbytes)
        assert NATIVE.planned_maximum(DATA, DATA).tolist() == DATA.tolist()
    finally:
        NATIVE.set_largest_output(LARGEST_OUTPUT)


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
    assert run(BROKEN_IMPORTS, _native.__file__).splitlines() == [
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
