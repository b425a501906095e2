"""Calls that run out of memory: they raise a MemoryError with a clear message, and leave `out` unchanged.

The tests also check the bounds in docs/safety.md on the memory that a call allocates.

Some tests run under a process limit that grows until the call succeeds. In others, each allocation of a call fails in
turn, because small allocations succeed under any limit.
"""

from __future__ import annotations

import platform
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from helpers.programs import run
from maxops import _native

# Calls that write to `out`, with its shape and type, for every code path that allocates memory.
CALLS = """
import numpy as np
import maxops as mo
mo.set_num_threads(4)
random = np.random.default_rng(0)
table = random.integers(-99, 99, (400, 700)).astype(np.int32)
n = 60_000
column = random.integers(-99, 99, n)
rows = random.integers(-99, 99, (n, 4)).astype(np.float64)
ids = np.sort(random.integers(0, 500, n))
mixed = random.permutation(ids)
with_lowest = np.where(np.arange(n) % 50, column, np.iinfo(np.int64).min)
offsets = np.arange(0, n + 1, 100)
def reduce(data, axes, **more):
    return lambda out: mo.reduce_max(data, axes, False, out=out, **more)
def segment(data, **more):
    return lambda out: mo.segment_max(data, **{"num_segments": len(out), **more}, out=out)
zero, anyhow = {"fill_mode": "ZERO"}, {"fill_mode": "ZERO", "sorted": False}
both = {"return_indices": True, "return_empty": True}
sheets = random.integers(-99, 99, (3, n, 4)).astype(np.float64)
def along(data, count, **more):
    return segment(data, num_segments=count, axis=1, **more)
CALLS = {
    "maximum": (lambda out: mo.maximum(table, table[::-1], out=out), table.shape, np.int32),
    "maximum_of_many": (lambda out: mo.maximum(*[table, table[::-1]] * 5, out=out), table.shape, np.int32),
    "maximum_over_an_input": (lambda out: mo.maximum(out[::-1], table, out=out), table.shape, np.int32),
    "reduce_max": (reduce(table, 0), (700,), np.int32),
    "reduce_max_to_one": (reduce(table, None), (), np.int32),
    "reduce_max_initial": (reduce(table, 0, initial=5), (700,), np.int32),
    "reduce_max_of_nothing_initial": (reduce(table[:0], 0, initial=5), (700,), np.int32),
    "reduce_max_indices": (reduce(table, 0, return_indices=True), (700,), np.int32),
    "reduce_max_of_no_axes_indices": (
        lambda out: mo.reduce_max(table, noop_with_empty_axes=True, out=out, return_indices=True),
        table.shape,
        np.int32,
    ),
    "segment_max": (segment(rows, segment_ids=ids, **zero), (500, 4), np.float64),
    "segment_max_of_a_column": (segment(column, segment_ids=ids, **zero), (500,), np.int64),
    "segment_max_mostly_empty": (segment(rows, segment_ids=ids * 2000, **zero), (1_000_000, 4), np.float64),
    "segment_max_initial": (segment(rows, segment_ids=ids, initial=7.0), (500, 4), np.float64),
    "segment_max_by_offsets": (segment(rows, offsets=offsets, **zero), (600, 4), np.float64),
    "segment_max_by_strided_offsets": (segment(rows, offsets=np.repeat(offsets, 2)[::2], **zero), (600, 4), np.float64),
    "segment_max_unsorted": (segment(rows, segment_ids=mixed, **anyhow), (500, 4), np.float64),
    "segment_max_unsorted_with_lowest": (segment(with_lowest, segment_ids=mixed, **anyhow), (500,), np.int64),
    "segment_max_unsorted_into_many": (segment(column, segment_ids=mixed * 100, **anyhow), (50_000,), np.int64),
    "segment_max_unsorted_initial": (segment(column, segment_ids=mixed, sorted=False, initial=7), (500,), np.int64),
    "segment_max_narrow_ids": (segment(rows, segment_ids=(ids // 4).astype(np.int8), **zero), (500, 4), np.float64),
    "segment_max_indices": (segment(rows, segment_ids=ids, **zero, **both), (500, 4), np.float64),
    "segment_max_unsorted_indices": (segment(column, segment_ids=mixed, **anyhow, **both), (500,), np.int64),
    "segment_max_empty": (segment(column, segment_ids=ids, **zero, return_empty=True), (500,), np.int64),
    "segment_max_along": (along(sheets, 500, segment_ids=ids, **zero), (3, 500, 4), np.float64),
    "segment_max_along_short": (along(sheets[:, :200], 5, segment_ids=ids[:200], **zero), (3, 5, 4), np.float64),
    "segment_max_along_unsorted": (along(sheets, 500, segment_ids=mixed, **anyhow), (3, 500, 4), np.float64),
    "segment_max_along_by_strided_offsets": (
        along(sheets, 600, offsets=np.repeat(offsets, 2)[::2], **zero),
        (3, 600, 4),
        np.float64,
    ),
    "segment_max_along_initial": (
        along(sheets.transpose(0, 2, 1).copy().transpose(0, 2, 1), 500, segment_ids=mixed, sorted=False, initial=7.0),
        (3, 500, 4),
        np.float64,
    ),
    "segment_max_along_indices": (along(sheets, 500, segment_ids=mixed, **anyhow, **both), (3, 500, 4), np.float64),
}
"""

# Functions of failing_malloc.c: the allocations that fail, and how many failed.
PRELUDE = """
import ctypes
library = ctypes.CDLL(None)
fail, failed = library.fail_allocations, library.failed_allocations
fail.argtypes, failed.restype = [ctypes.c_long] * 2, ctypes.c_long
def stop_failing():
    while True:
        try:
            return fail(0, 0)
        except (MemoryError, ctypes.ArgumentError):  # the last injected failure was in this call
            pass
"""

FAILING = """
# NumPy's own functions that return no result and no error where memory ends; the planner uses them.
NUMPYS = ("numpy.ufunc", "error return without exception set")
FAILS, ERRORS = 0, (MemoryError, SystemError)  # a tuple asks for memory, too
for name, (call, shape, dtype) in CALLS.items():
    before = np.full(shape, 77, dtype)
    right = before.copy()
    call(right)
    for count in (1, 3):
        first = 0
        while True:
            out, error = before.copy(), None
            fail(first, count)
            try:
                try:
                    call(out)
                except ERRORS as caught:
                    error = caught
            except MemoryError as caught:  # Python's own, on its way into the handler
                error = caught
            stop_failing()
            where = (name, first, count)
            if error is None:
                assert out.tobytes() == right.tobytes(), where
                if failed() == 0:
                    break
            else:
                assert out.tobytes() == before.tobytes(), (*where, "written")
                assert "thread" not in str(error), (*where, error)
                assert isinstance(error, MemoryError) or any(text in str(error) for text in NUMPYS), (*where, error)
            FAILS += 1
            first += 1
print(FAILS)
"""

# Tests the import of the native module, its functions, and calls that create Python objects last. Each of Python's own
# allocations fails as well, because its free lists are empty.
OBJECTS = """
import gc, ml_dtypes
import numpy as np
import maxops as mo
from maxops import _native, ops
gc.disable()
in_use = []
def use_up():
    for number in range(100):
        in_use.extend([[number], {number: number}, (number,), (number, number), (number, number, number)])
data, ids, brain = np.ones((4, 2), np.float32), np.array([0, 0, 1, 3]), ml_dtypes.bfloat16(3)
brains = np.zeros(3, ml_dtypes.bfloat16)
three = {"fill_mode": "ZERO", "return_indices": True, "return_empty": True}
CALLS = {
    "isas": _native.isas,
    "types": _native.types,
    "parameters": _native.parameters,
    "entry": lambda: _native.entry(mo.maximum.__wrapped__).__name__,
    "rules": lambda: repr(_native.Entry(len, "reduce_max", types=["int8"], keywords=("axes",))),
    "three results": lambda: [each.tolist() for each in mo.segment_max(data, ids, **three)],
    "readable call": lambda: _native.set_readable_call(ops._readable_call),
    "bfloat16": lambda: mo.maximum(brains, brain).tolist(),
    "check_indices": lambda: _native.check_indices(ids[::-1], False, True, True, None, 4),
}
for name, call in CALLS.items():
    right, first, errors = call(), 0, 0
    while True:
        result = error = None
        use_up()
        try:
            fail(first, 1)
            result = call()
        except BaseException as caught:
            error = caught
        stop_failing()
        if error is None:
            assert result == right, (name, first, result)
            if failed() == 0:
                break
        else:
            assert isinstance(error, MemoryError), (name, first, error)
            errors += 1
        first += 1
    print(errors)
"""

# The same for the import of the native module, in one process per failure, because types are initialized only once.
IMPORT = """
import _imp, gc, importlib.util, os, sys, threading
import ml_dtypes
import numpy as np
spec = importlib.util.spec_from_file_location("maxops._native", sys.argv[1])
data = np.ones((4, 2), np.float32)
ENDED, ERROR, RIGHT = 10, 11, 12
def begin(first):
    gc.disable()
    in_use, error = [], None
    for number in range(100):
        in_use.extend([[number], {number: number}, (number,), (number, number), (number, number, number)])
    module = _imp.create_dynamic(spec)
    try:
        fail(first, 1)
        _imp.exec_dynamic(module)
    except BaseException as caught:
        error = caught
    stop_failing()
    if error is not None:
        # of NumPy's own import, begun again here, the error says no more than that it failed; nor do those of Python's
        # locks, and of a type's name that PyType_FromSpec copies
        others = "numpy", "lock", "without setting an exception"
        assert isinstance(error, MemoryError) or any(text in str(error) for text in others), (first, error)
        return ERROR
    assert module.maximum(data, data).tolist() == data.tolist() and module.isas()
    return RIGHT if failed() else ENDED
ends = []
while ends[-1:] != [ENDED]:
    child = os.fork()
    if child == 0:
        end = begin(len(ends))
        # what is torn down is the same for each, and takes longer than all the rest
        sys.exit(end) if len(ends) % 16 == 0 else os._exit(end)
    ends.append(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
    assert ends[-1] in (ENDED, ERROR, RIGHT), ends
print(ends.count(ERROR))
"""

# A thread's first call allocates its scratch memory before anything else.
FIRST_CALL = """
import threading
import numpy as np
import maxops as mo
from maxops import _native
data = np.ones((4, 2), np.float32)
def first_call():
    fail(0, 1)
    try:
        _native.planned_maximum(data, data)
    except MemoryError as error:
        print(error)
    print(_native.planned_maximum(data, data).shape)
thread = threading.Thread(target=first_call)
thread.start()
thread.join()
"""

# The bounds on memory in docs/safety.md: per input, for results in addition to `out`, and for each code path, by the
# bytes of data and ids.
BOUNDED = """
import ctypes
asked = ctypes.CDLL(None).allocated_bytes
asked.restype = ctypes.c_long
THREADS = mo.get_num_threads()
KIB, MIB = 1 << 10, 1 << 20
single, wide = np.ones(3 << 20, np.float32), random.integers(-99, 99, (40_000, 40)).astype(np.float32)
few_outputs = random.integers(-99, 99, (4000, 1000)).astype(np.float32)
flipped = np.asfortranarray(wide)
few = np.sort(random.integers(0, 50, len(wide)))
shuffled = random.permutation(few)
def fewer(inputs): return 4 * KIB * (inputs + 2)
def parts(data): return min(data // 2, 4 * max(16, THREADS) * 128 * KIB) if data >= MIB else 0
def shares(data, row): return 64 * row if data >= MIB else 0
def copies(data, segments): return segments + data // 4
def ids_of(data): return data.nbytes + 8 * len(data)
BOUNDS = {
    "maximum": fewer(2),
    "maximum_of_many": fewer(10),
    "maximum_over_an_input": table.nbytes + fewer(2),
    "maximum_of_transposed": fewer(2),
    "reduce_max": fewer(1),
    "reduce_max_initial": fewer(1),
    "reduce_max_indices": 700 * (4 + 8) + fewer(1),
    "segment_max": shares(ids_of(rows), 32) + fewer(2),
    "segment_max_by_offsets": shares(ids_of(rows), 32) + fewer(2),
    "segment_max_by_strided_offsets": 8 * 601 + shares(ids_of(rows), 32) + fewer(2),
    "segment_max_unsorted": copies(ids_of(rows), 500) + fewer(2),
    "segment_max_unsorted_into_many": copies(ids_of(column), 50_000) + fewer(2),
    "segment_max_indices": 500 * (4 * 16 + 1) + shares(ids_of(rows), 4 * 16) + 64 * 8 + fewer(2),
    "reduce_max_in_parts": parts(single.nbytes) + fewer(1),
    "reduce_max_of_columns_in_parts": parts(few_outputs.nbytes) + fewer(1),
    "segment_max_of_wide_rows": shares(ids_of(wide), 160) + fewer(2),
    "segment_max_narrow_ids": 4 * len(wide) + shares(ids_of(wide), 160) + fewer(2),
    "segment_max_unsorted_of_wide_rows": copies(ids_of(wide), 50) + fewer(2),
}
# What allocates nothing at all, but for the little that Python does to call a function of keyword arguments.
f = np.ones(999, np.float32)
NONE = {
    "alike": (lambda out: mo.maximum(f, f, out=out), f.shape, np.float32),
    "alike, in shares": (lambda out: mo.maximum(single, single, out=out), single.shape, np.float32),
    "rows": (lambda out: mo.reduce_max(few_outputs, 1, False, out=out), (4000,), np.float32),
    "columns of few": (lambda out: mo.reduce_max(table[:9], 0, False, out=out), (700,), np.int32),
}
CALLS |= NONE | {
    "maximum_of_transposed": (lambda out: mo.maximum(wide, flipped, out=out), wide.shape, np.float32),
    "reduce_max_in_parts": (reduce(single, None), (), np.float32),
    "reduce_max_of_columns_in_parts": (reduce(few_outputs, 0), (1000,), np.float32),
    "segment_max_of_wide_rows": (segment(wide, segment_ids=few, **zero), (50, 40), np.float32),
    "segment_max_narrow_ids": (segment(wide, segment_ids=few.astype(np.int8), **zero), (50, 40), np.float32),
    "segment_max_unsorted_of_wide_rows": (segment(wide, segment_ids=shuffled, **anyhow), (50, 40), np.float32),
}
for name, bound in (BOUNDS | dict.fromkeys(NONE, 256)).items():
    call, shape, dtype = CALLS[name]
    out = np.zeros(shape, dtype)
    call(out), call(out)  # threads and their working memory, which a worker may yet begin late to ask for
    before = asked()
    call(out)
    assert asked() - before <= bound + (THREADS - 1) * 96 * KIB, (name, asked() - before, bound)
print(len(BOUNDS))
"""

LIMITED = """
import resource
import numpy as np
import maxops as mo
from maxops.errors import OutputTooLargeError
mo.set_num_threads(4)
n = 1 << 20
wide = np.broadcast_to(np.float32(1), (3, n))  # without memory of its own
tall = np.broadcast_to(np.int64(1), 2 * n)
shuffled = np.random.default_rng(0).integers(0, n // 32, 2 * n).astype(np.int32)
three = np.array([0, 0, 1])
CALLS = {
    "reduce_max": (lambda out: mo.reduce_max(wide, 0, False, out=out, return_indices=True), n, np.float32),
    "segment_max": (
        lambda out: mo.segment_max(wide, three, fill_mode="ZERO", out=out, return_indices=True), (2, n), np.float32
    ),
    "return_empty": (
        lambda out: mo.segment_max(
            np.ones(3, np.int8), three, 8 * n, fill_mode="ZERO", out=out, return_empty=True), 8 * n, np.int8
    ),
    "unsorted": (
        lambda out: mo.segment_max(tall, shuffled, n // 32, fill_mode="ZERO", sorted=False, out=out), n // 32, np.int64
    ),
}
def mapped():
    with open("/proc/self/statm") as file:
        return int(file.read().split()[0]) * resource.getpagesize()
for name, (call, shape, dtype) in CALLS.items():
    out, kept = np.full(shape, 77, dtype), np.full(shape, 77, dtype)
    call(np.empty(shape, dtype))  # workers and libraries have what they need
    errors = 0
    for spare in range(0, 256 << 20, 1 << 20 if name == "unsorted" else 4 << 20):
        resource.setrlimit(resource.RLIMIT_AS, (mapped() + spare, resource.RLIM_INFINITY))
        try:
            call(out)
        except OutputTooLargeError as error:
            assert "thread" not in str(error), error
            errors += 1
        else:
            break
        finally:
            resource.setrlimit(resource.RLIMIT_AS, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
        assert out.tobytes() == kept.tobytes(), (name, spare)
    assert errors > 0 and out.tobytes() != kept.tobytes(), name
print("right")
"""


@pytest.mark.skipif(sys.platform != "linux", reason="reads what is mapped as Linux lists it")
def test_nothing_is_written_under_any_limit_of_memory() -> None:
    no_kept_blocks = {"MAXOPS_OUTPUT_CACHE": "0", "MALLOC_MMAP_THRESHOLD_": "65536"}
    assert run(LIMITED, **no_kept_blocks) == "right\n"


@pytest.fixture(scope="module")
def failing_malloc(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Compile and return the library that replaces malloc."""
    if platform.libc_ver()[0] != "glibc":
        pytest.skip("it stands before glibc's own malloc")
    compiler = next(filter(None, map(shutil.which, ("cc", "gcc", "clang"))), None)
    if compiler is None:
        pytest.skip("not installed: a C compiler")
    library = tmp_path_factory.mktemp("malloc") / "failing_malloc.so"
    source = Path(__file__).parent / "programs" / "failing_malloc.c"
    subprocess.run([compiler, "-O1", "-shared", "-fPIC", "-o", library, source], check=True)
    return str(library)


def test_nothing_is_written_whichever_allocation_fails(failing_malloc: str) -> None:
    """Test that nothing is written if any allocation fails, alone or with the next two, which report the error."""
    assert int(run(PRELUDE + CALLS + FAILING, LD_PRELOAD=failing_malloc)) > 50


def test_pythons_objects_that_memory_ends_among(failing_malloc: str) -> None:
    message = run(PRELUDE + OBJECTS, LD_PRELOAD=failing_malloc, PYTHONMALLOC="malloc")
    errors = [int(count) for count in message.split()]
    assert len(errors) == 9
    assert min(errors) > 0


def test_an_import_that_memory_ends_in(failing_malloc: str) -> None:
    assert int(run(PRELUDE + IMPORT, _native.__file__, LD_PRELOAD=failing_malloc, PYTHONMALLOC="malloc")) > 40


def test_a_threads_first_call_where_memory_ends(failing_malloc: str) -> None:
    assert run(PRELUDE + FIRST_CALL, LD_PRELOAD=failing_malloc) == "out of memory\n(4, 2)\n"


@pytest.mark.parametrize("threads", [1, 4])
def test_a_call_asks_for_no_more_than_its_bound(failing_malloc: str, threads: int) -> None:
    code = (CALLS + BOUNDED).replace("mo.set_num_threads(4)", f"mo.set_num_threads({threads})")
    assert int(run(code, LD_PRELOAD=failing_malloc, PYTHONMALLOC="malloc")) > 10


NOT_ALLOCATED = """
import resource, sys
import numpy as np
import maxops as mo
from maxops import _native
_native.set_cache_limit(int(sys.argv[1]))
data = np.broadcast_to(np.float32(1), 1 << 28)
with open("/proc/self/statm") as file:
    in_use = int(file.read().split()[0]) * resource.getpagesize()
resource.setrlimit(resource.RLIMIT_AS, (in_use + (1 << 29), resource.getrlimit(resource.RLIMIT_AS)[1]))
handler = np._core.multiarray.get_handler_name()
try:
    mo.maximum(data, data)
except MemoryError as error:
    print(error)
assert np._core.multiarray.get_handler_name() == handler
"""


@pytest.mark.skipif(sys.platform != "linux", reason="reads what is mapped as Linux lists it")
@pytest.mark.parametrize("limit", [0, 64 << 20], ids=["without the cache", "from the cache"])
def test_an_array_that_cannot_be_allocated(limit: int) -> None:
    """Test that NumPy's error names the requested size, and that NumPy's allocator is restored afterwards."""
    said = run(NOT_ALLOCATED, str(limit), OPENBLAS_NUM_THREADS="1")
    assert "Unable to allocate 1.00 GiB for an array with shape (268435456,) and data type float32" in said
