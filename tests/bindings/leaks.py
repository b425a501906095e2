"""Measures leaks by repeated calls: objects, memory, mappings, open files and references.

    PYTHONPATH=tests python tests/bindings/leaks.py GROUP

The script prints a line for each call that leaks. test_leaks.py runs each group in a separate process, because garbage
of other groups would be counted as well.
"""

from __future__ import annotations

import ctypes
import gc
import os
import resource
import signal
import sys
import tempfile
from array import array
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np

import maxops
from helpers.engine_adapter import Adapter
from helpers.engine_adapters import ADAPTERS, NUMPY
from helpers.lent import Lent
from maxops import _native as native_module
from maxops.compat import numpy as compat

mo: Any = maxops  # typed as Any, because some calls are invalid
_native: Any = native_module

Call = Callable[[], object]
ROUNDS = 3
# Calls per round. If a round seems to leak, rounds with four times as many calls follow, because the growth of a
# temporary cache in a library does not depend on the number of calls.
TIMES = {"numpy": 340, "natives": 340, "errors": 340, "where memory ends": 3, "interrupted": 4}
FEW = 15  # for slow calls, which take a millisecond
MORE = (1, 4, 16, 64, 256)
MOST_KIB = 3 << 20  # a process with more memory than this certainly leaks
BYTES = 40  # the smallest leak per call that counts
# ONNX Runtime itself leaks up to 130 bytes per session of any model. LeakSanitizer detects leaks in our C++ code (make
# sanitize).
BYTES_OF_A_SESSION = 400


class _Memory(ctypes.Structure):
    _fields_ = tuple((name, ctypes.c_size_t) for name in (
        "arena", "ordblks", "smblks", "hblks", "hblkhd", "usmblks", "fsmblks", "uordblks", "fordblks", "keepcost",
    ))  # fmt: skip


_mallinfo = getattr(ctypes.CDLL(None), "mallinfo2", None)
if _mallinfo is not None:
    _mallinfo.restype = _Memory

# The arguments of the calls below, and objects that calls use without owning them.
f4, i8 = np.arange(24, dtype=np.float32).reshape(4, 6), np.arange(24).reshape(4, 6)
ids, mixed, narrow = np.array([0, 0, 1, 3]), np.array([3, 0, 1, 0]), np.array([0, 0, 1, 3], np.int8)
swapped, halves = f4.astype(">f4"), f4.astype(ml_dtypes.bfloat16)
out, row, scalar, axes = np.empty((4, 6), np.float32), np.empty((1, 6), np.float32), np.float32(3), [0, 1]
large = np.zeros(5 << 18, np.float32)  # results use the cache
WATCHED: dict[str, object] = {
    **{name: value for name, value in vars().copy().items() if isinstance(value, (np.ndarray, np.generic, list))},
    **{name: np.dtype(name) for name in ("float32", "int64", "int8", "bool")},
    "bfloat16": np.dtype(ml_dtypes.bfloat16), "None": None, "True": True, "False": False, "ndarray": np.ndarray,
    "maximum": mo.maximum, "reduce_max": mo.reduce_max, "segment_max": mo.segment_max, "_native": _native,
    **{error.__name__: error for error in vars(mo.errors).values() if isinstance(error, type)},
}  # fmt: skip


NAMES = ["objects", "bytes", "mappings", "files", *(f"references to {name}" for name in WATCHED)]


def state(values: array[int]) -> None:
    """Write the current counts of NAMES into an array, because new integers would change the counts."""
    for at, value in enumerate(WATCHED.values(), 4):
        values[at] = sys.getrefcount(value)
    if sys.platform == "linux":
        values[2] = Path("/proc/self/maps").read_bytes().count(b"\n")
        values[3] = len(os.listdir("/proc/self/fd"))
    if _mallinfo is not None:
        now = _mallinfo()
        values[1] = now.uordblks + now.hblkhd
    values[0] = sys.getallocatedblocks()


def left_by(call: Call, times: int, least: int = BYTES) -> dict[str, int]:
    """Return the names whose counts change in every round, with few calls per round and with many."""
    for _ in range(times // 4 + 2):
        call()
    left: dict[str, int] = {}
    for more in MORE:
        left = left_in_rounds(call, times * more, least)
        if not left or resident_kib() > MOST_KIB:
            break
    return left


def resident_kib() -> int:
    """Return the current resident memory of this process in KiB. (Its peak may be that of the parent process.)"""
    if sys.platform != "linux":
        return 0  # continues the rounds
    return int(Path("/proc/self/statm").read_text().split()[1]) * (resource.getpagesize() // 1024)


def left_in_rounds(call: Call, times: int, least_bytes: int) -> dict[str, int]:
    """Like left_by, with a given number of calls per round. Stop after the first round without growth."""
    before, after = (array("q", [0] * len(NAMES)) for _ in range(2))
    least = array("q", [2**62] * len(NAMES))
    left: dict[str, int] = {}
    for _ in range(ROUNDS):
        gc.collect()
        state(before)
        for _ in range(times):
            call()
        gc.collect()
        state(after)
        for at in range(len(NAMES)):
            least[at] = min(least[at], after[at] - before[at], key=abs)
        left = {
            name: growth for name, growth in zip(NAMES, least, strict=True) if is_leak(name, growth, times, least_bytes)
        }
        if not left:
            break
    return left


def is_leak(name: str, growth: int, times: int, least_bytes: int) -> bool:
    """Return whether a count grew as if each call leaked. A count of references may also shrink."""
    least = times * least_bytes if name == "bytes" else times * 9 // 10
    return growth >= least or (name.startswith("references") and -growth >= least)


# ------------------------------------------------------------------------------------------------------ the calls


def operators(give: Callable[[Any], Any]) -> dict[str, Call]:
    """Return calls of each operator with the options of an engine."""
    data, other, index, any_index, bounds = map(give, (f4, f4[::-1].copy(), ids, mixed, np.array([0, 1, 4])))
    zero: dict[str, Any] = {"fill_mode": "ZERO"}
    columns = data.T
    return {
        "maximum": lambda: mo.maximum(data, other),
        "maximum of columns": lambda: mo.maximum(columns, columns),
        "maximum of one": lambda: mo.maximum(data),
        "maximum and a number": lambda: mo.maximum(data, 1.5),
        "reduce_max": lambda: mo.reduce_max(data, (0,)),
        "reduce_max of all": lambda: mo.reduce_max(data, keepdims=False),
        "reduce_max, initial": lambda: mo.reduce_max(data, (1,), initial=2.0),
        "reduce_max, indices": lambda: mo.reduce_max(data, (1,), return_indices=True),
        "segment_max": lambda: mo.segment_max(data, index, 4, **zero),
        "segment_max, indices": lambda: mo.segment_max(data, index, 4, **zero, return_indices=True, return_empty=True),
        "segment_max of columns": lambda: mo.segment_max(columns, index, 4, axis=1, **zero, return_indices=True),
        "segment_max, any order": lambda: mo.segment_max(data, any_index, 4, **zero, sorted=False),
        "segment_max, offsets": lambda: mo.segment_max(data, offsets=bounds, **zero),
        "segment_max, fill_value": lambda: mo.segment_max(data, index, 5, fill_value=1.0),
    }


def numpys() -> Iterator[tuple[str, Call]]:
    """Yield calls of the native entry and of the planner, with every kind of argument."""
    yield from operators(lambda array: array).items()
    zero: dict[str, Any] = {"fill_mode": "ZERO"}
    eight = mo.operator("ONNX", "Max", version=8)
    twenty = mo.operator("ONNX", "ReduceMax", version=20)
    sixteen = mo.operator("OpenVINO", "SegmentMax")
    rationals = np.array([1, 2], object)
    yield from {
        "out": lambda: mo.maximum(f4, f4, out=out),
        "out that overlaps": lambda: mo.maximum(out[::-1], f4, out=out),
        "swapped": lambda: mo.maximum(swapped, swapped),
        "swapped and not": lambda: mo.maximum(swapped, f4),
        "bfloat16": lambda: mo.maximum(halves, halves),
        "a scalar of bfloat16": lambda: mo.maximum(halves, halves[0, 0]),
        "NumPy's scalar": lambda: mo.maximum(f4, scalar),
        "scalars alone": lambda: mo.maximum(scalar, scalar),
        "integers": lambda: mo.maximum(i8, 7),
        "a large integer": lambda: mo.maximum(f4, 2**70),
        "many inputs": lambda: mo.maximum(*[f4] * 40),
        "a large result": lambda: mo.maximum(large, large),
        "axes in a list": lambda: mo.reduce_max(f4, axes),
        "axes in a range": lambda: mo.reduce_max(f4, range(2)),
        "axes in an array": lambda: mo.reduce_max(f4, np.array([0])),
        "axis": lambda: mo.reduce_max(f4, -1),
        "noop": lambda: mo.reduce_max(f4, (), noop_with_empty_axes=True),
        "initial by an array": lambda: mo.reduce_max(f4, initial=np.array(3, np.float32)),
        "reduce_max, out": lambda: mo.reduce_max(f4, (0,), out=row),
        "narrow ids": lambda: mo.segment_max(f4, narrow, **zero),
        "ids in a list": lambda: mo.segment_max(f4, [0, 0, 1, 3], **zero),
        "ids of uint64": lambda: mo.segment_max(f4, ids.astype(np.uint64), **zero),
        "strided offsets": lambda: mo.segment_max(f4, offsets=np.array([0, 9, 1, 9, 4])[::2], **zero),
        "dropped ids": lambda: mo.segment_max(f4, ids - 1, 3, **zero, out_of_range="drop"),
        "unchecked ids": lambda: mo.segment_max(f4, mixed, 4, **zero, check_ids=False),
        "the number of segments by an array": lambda: mo.segment_max(f4, ids, np.array(4), **zero),
        "initial of segments": lambda: mo.segment_max(f4, ids, 5, initial=1.0),
        "rationals": lambda: mo.maximum(rationals, rationals),
        "Max-8": lambda: eight(f4, f4),
        "ReduceMax-20": lambda: twenty(f4, np.array([0]), keepdims=0),
        "SegmentMax-16": lambda: sixteen(f4, ids, 4, fill_mode="LOWEST"),
        "an operator": lambda: mo.operator("SONNX", "Max"),
        "operators": mo.operators,
        "DLPack": lambda: mo.maximum(Lent(f4)),
        "threads": lambda: (mo.set_num_threads(2), mo.maximum(large, large), mo.set_num_threads(1)),
    }.items()


def natives() -> Iterator[tuple[str, Call]]:
    """Yield calls of native functions other than operators."""
    rules: dict[str, Any] = mo.ops._native_rules(mo.operator("ONNX", "Max", version=13).spec)
    yield from {
        "build": _native.build,
        "isas": _native.isas,
        "isa": _native.isa,
        "use_isa": lambda: _native.use_isa(_native.isa()),
        "use_isa that is none": lambda: _native.use_isa("none"),
        "types": _native.types,
        "parameters": _native.parameters,
        "progress": _native.progress,
        "cache_info": _native.cache_info,
        "get_num_threads": _native.get_num_threads,
        "widened": lambda: _native.widened(narrow),
        "reduceat": lambda: compat.maximum.reduceat(f4, [0, 2]),
        "reduceat, not increasing": lambda: compat.maximum.reduceat(f4, [0, 2, 1]),
        "reduceat, out of range": _refused(lambda: compat.maximum.reduceat(f4, [0, 99]), IndexError),
        "promoted": lambda: compat.maximum(f4, narrow[:, None]),
        "promoted to an unsupported dtype": lambda: compat.maximum(f4, np.array(1j)),
        "two numbers": lambda: compat.maximum(2.5, 1),
        "a large number": _refused(lambda: compat.maximum(2**70, 1), OverflowError),
        "check_indices": lambda: _native.check_indices(ids, False, True, True, None, 4),
        "check_indices that are wrong": lambda: _native.check_indices(mixed, False, True, True, None, 4),
        "can_write_through": lambda: _native.can_write_through(f4, i8, False),
        "Entry": lambda: _native.Entry(mo.maximum.__wrapped__, **rules),
        "an Entry's attributes": lambda: _native.Entry(mo.maximum.__wrapped__, **rules).__dict__,
        "empty_cache": lambda: (mo.maximum(large, large), _native.empty_cache()),
        "set_num_threads that is wrong": _refused(lambda: _native.set_num_threads(0), ValueError),
        "can_write_through that is wrong": _refused(lambda: _native.can_write_through(1, 2, False), TypeError),
        "Entry that is wrong": _refused(lambda: _native.Entry(mo.maximum, wrong=1), TypeError),
    }.items()


def _refused(call: Call, errors: Any) -> Call:
    def refused() -> None:
        try:
            call()
        except errors:
            return
        raise AssertionError("no error")

    return refused


def errors() -> Iterator[tuple[str, Call]]:
    """Yield every invalid call of test_bad_input."""
    from test_bad_input import CASES  # noqa: PLC0415

    for case in CASES:
        shape, dtype = (3,), np.float32
        given = np.zeros(shape, dtype)
        yield case.id, _refused(partial(case.call, given), Exception)


# If memory runs out in a call of a Python function, CPython 3.11 occasionally keeps the arguments.
BY_PLANNER = (
    "a large integer", "noop", "ids in a list", "ids of uint64", "rationals", "DLPack", "an operator", "operators",
    "threads", "a large result", "empty_cache", "reduceat, not increasing", "reduceat, out of range", "a large number",
    "promoted to an unsupported dtype",
)  # fmt: skip


def where_memory_ends() -> Iterator[tuple[str, Call]]:
    """Yield calls on NumPy arrays and native functions in which each allocation fails in turn.

    Requires failing_malloc.c instead of malloc, and Python objects that are allocated with malloc.
    """
    library = ctypes.CDLL(None)
    fail, failed = library.fail_allocations, library.failed_allocations
    fail.argtypes, failed.restype = [ctypes.c_long] * 2, ctypes.c_long

    def each_failing(call: Call) -> None:
        first, ended = 0, False
        while not ended:
            with suppress(Exception):  # test_out_of_memory.py checks the error
                fail(first, 1)
                call()
            while True:
                try:
                    fail(0, 0)
                    break
                except (MemoryError, ctypes.ArgumentError):  # the injected failure was in this call
                    pass
            first, ended = first + 1, failed() == 0

    for name, call in (*numpys(), *natives()):
        if name not in BY_PLANNER:
            yield name, partial(each_failing, call)


class _StoppedError(Exception):
    pass


def interrupted() -> Iterator[tuple[str, Call]]:
    """Yield calls that a signal handler interrupts after 50 ms."""

    def stop(*_: object) -> None:
        raise _StoppedError

    signal.signal(signal.SIGALRM, stop)
    # many rows in little memory: each row begins one element after the previous row
    rows = np.lib.stride_tricks.as_strided(np.zeros((1 << 22) + 512, np.float16), (1 << 22, 512), (2, 2))
    one = np.broadcast_to(np.int64(0), len(rows))
    more = {"fill_mode": "ZERO", "return_indices": True, "return_empty": True}

    def stopped(call: Call) -> None:
        signal.setitimer(signal.ITIMER_REAL, 0.001)
        call()

    for name, call in {
        "maximum": lambda: mo.maximum(rows, rows),
        "reduce_max, indices": lambda: mo.reduce_max(rows, 0, return_indices=True),
        "segment_max, indices": lambda: mo.segment_max(rows, one, **more),
        "segment_max, any order": lambda: mo.segment_max(rows, one, 1, sorted=False, **more),
    }.items():
        yield name, _refused(partial(stopped, call), _StoppedError)


def columns() -> Iterator[tuple[str, Call]]:
    """Yield calls on tables and columns of pandas, Polars and Arrow."""
    import pandas  # noqa: PLC0415
    import polars  # noqa: PLC0415
    import pyarrow  # noqa: PLC0415

    frame, series = pandas.DataFrame(f4), pandas.Series(f4[0])
    table, column = polars.DataFrame(f4), polars.Series(f4[0])
    arrow, chunked = pyarrow.table({"a": f4[0], "b": f4[1]}), pyarrow.chunked_array([f4[0]])
    for name, value in (("pandas", frame), ("pandas series", series), ("polars", table), ("polars series", column),
                        ("arrow", arrow), ("arrow chunks", chunked)):  # fmt: skip
        yield f"maximum, {name}", partial(mo.maximum, value, value)
        yield f"reduce_max, {name}", partial(mo.reduce_max, value)
        yield f"refused, {name}", _refused(partial(mo.maximum, value, i8), mo.errors.MaxopsError)


def onnxruntimes() -> Iterator[tuple[str, Call]]:
    """Yield sessions and runs of ONNX Runtime with the operators of this package."""
    import onnxruntime  # noqa: PLC0415
    from onnx import TensorProto, helper  # noqa: PLC0415

    from maxops import onnxruntime as ours  # noqa: PLC0415

    node = helper.make_node("SegmentMax", ["data", "ids"], ["y"], domain="maxops", fill_mode="ZERO")
    graph = helper.make_graph(
        [node], "g",
        [helper.make_tensor_value_info("data", TensorProto.FLOAT, [4, 6]),
         helper.make_tensor_value_info("ids", TensorProto.INT64, [4])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)],
    )  # fmt: skip
    made = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20), helper.make_opsetid("maxops", 1)])
    made.ir_version = 10
    model = made.SerializeToString()
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    options.intra_op_num_threads = 1  # threads of a session keep memory for a while
    ours.register(options)

    def session() -> Any:
        return onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"])

    there = session()
    yield "a session", lambda: session().run(None, {"data": f4, "ids": ids})
    yield "a run", lambda: there.run(None, {"data": f4, "ids": ids})
    yield "a run that fails", _refused(lambda: there.run(None, {"data": f4, "ids": mixed}), Exception)


def gradients() -> Iterator[tuple[str, Call]]:
    """Yield gradients and transforms of torch."""
    WATCHED["None"] = WATCHED  # in torch 2.13, each autograd.Function takes a reference to None
    import torch  # noqa: PLC0415

    x, y, index = torch.tensor(f4, requires_grad=True), torch.tensor(f4), torch.tensor(ids)

    def backward(make: Callable[[], Any]) -> Call:
        def call() -> None:
            x.grad = None
            make().sum().backward()

        return call

    yield "maximum", backward(lambda: mo.maximum(x, y))
    yield "reduce_max", backward(lambda: mo.reduce_max(x, (1,)))
    yield "segment_max", backward(lambda: mo.segment_max(x, index, 4, fill_mode="ZERO"))
    yield "vmap", lambda: torch.func.vmap(lambda row: mo.reduce_max(row))(y)  # noqa: PLW0108
    yield "grad", lambda: torch.func.grad(lambda a: mo.maximum(a, y).sum())(y)


def engine(adapter: Adapter) -> Iterator[tuple[str, Call]]:
    """Yield calls of each operator on a framework's arrays."""
    yield from operators(adapter.give).items()


ENGINES = {each.name: each for each in ADAPTERS if each.name in ("dask", "jax", "torch", "torch-any-device", "xarray")}
GROUPS: dict[str, Callable[[], Iterator[tuple[str, Call]]]] = {
    "numpy": numpys,
    "natives": natives,
    "errors": errors,
    "where memory ends": where_memory_ends,
    "interrupted": interrupted,
    "columns": columns,
    "onnxruntime": onnxruntimes,
    "gradients": gradients,
    **{name: partial(engine, adapter) for name, adapter in ENGINES.items()},
}
NEEDS = {"columns": ("pandas", "polars", "pyarrow"), "onnxruntime": ("onnxruntime", "onnx"), "gradients": ("torch",)}


def main() -> None:
    """Run a group and print a line for each leak."""
    group = sys.argv[1]
    mo.set_num_threads(1)
    around = ENGINES.get(group, NUMPY).around
    with tempfile.TemporaryDirectory() as folder, around():
        os.chdir(folder)
        looked = 0
        calls = [*GROUPS[group]()]
        gc.freeze()  # garbage collections skip existing objects
        for name, call in calls:
            least = BYTES_OF_A_SESSION if name == "a session" else BYTES
            if left := left_by(call, TIMES.get(group, FEW), least):
                print(f"{name}: {left}")
            looked += 1
    print(f"{looked} calls")


if __name__ == "__main__":
    main()
