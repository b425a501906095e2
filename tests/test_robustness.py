"""What was attacked and held: memory that may not be touched, ids that are garbage, the processor's modes, leaks.

Each attack has a process of its own, which would end by a signal.
"""

from __future__ import annotations

import os
import platform
import subprocess
import sys

import pytest

from instruction_sets import EACH_SOURCE
from maxops import _native

HANGS_AFTER = 120.0  # seconds

# Arrays with a page before and a page behind that may be neither read nor written.
FENCED = """
import ctypes, mmap, sys
import ml_dtypes, numpy as np
import maxops as mo
from maxops import _native
assert _native.use_isa(sys.argv[1])
types = "float16 bfloat16 float32 float64 int8 int16 int32 int64 uint8 uint16 uint32 uint64 bool".split()
dtypes = [np.dtype(ml_dtypes.bfloat16 if name == "bfloat16" else name) for name in types]
page, protect = mmap.PAGESIZE, ctypes.CDLL(None).mprotect
protect.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int]
ROOM = 4 << 20
spaces = []
def fenced_space():
    space = mmap.mmap(-1, ROOM + 2 * page)
    start = ctypes.addressof(ctypes.c_char.from_buffer(space)) + page
    assert protect(start - page, page, 0) == 0 == protect(start + ROOM, page, 0)
    spaces.append((space, start))
    return start
STARTS = [fenced_space() for _ in range(3)]
def fenced(k, shape, dtype, at_end):
    size = int(np.prod(shape)) * dtype.itemsize
    start = STARTS[k] + (ROOM - size if at_end else 0)
    return np.frombuffer((ctypes.c_char * max(size, 1)).from_address(start), dtype, int(np.prod(shape))).reshape(shape)
random = np.random.default_rng(0)
"""

FENCES = """
LENGTHS = [*range(1, 34), 63, 64, 65, 127, 128, 129, 255, 1023, 1025, 4097]
done = 0
for dtype in dtypes:
    for at_end in (False, True):
        for n in LENGTHS:
            values = random.integers(0, 99, (n, 3)).astype(dtype)
            a, b, out = (fenced(k, (n,), dtype, at_end) for k in range(3))
            a[:], b[:] = values[:, 0], values[:, 1]
            mo.maximum(a, b, out=out)
            assert out.tobytes() == np.maximum(a, b).tobytes()
            mo.maximum(a[::-1], b, a, out=out)
            mo.reduce_max(a, out=out[:1])
            assert out[0] == a.max()
            out = fenced(2, (n // 3 + 1,), dtype, at_end)
            ids = fenced(1, (n,), np.dtype(np.int64 if n % 2 else np.int32), at_end)
            ids[:] = np.arange(n) // 3
            mo.segment_max(a, ids, len(out), fill_mode="ZERO", out=out)
            assert out[: n // 3].tolist() == a[: n // 3 * 3].reshape(-1, 3).max(1).tolist()
            mo.segment_max(a, ids, len(out), fill_mode="ZERO", out=out, sorted=False)
            mo.segment_max(a, random.permutation(ids), len(out), fill_mode="ZERO", out=out, sorted=False)
            rows, best = fenced(0, (n, 3), dtype, at_end), fenced(2, (1, 3), dtype, at_end)
            rows[:] = values
            mo.reduce_max(rows, 0, out=best)
            assert best[0].tolist() == rows.max(0).tolist()
            best = fenced(2, (n, 1), dtype, at_end)
            mo.reduce_max(rows, 1, out=best)
            assert best[:, 0].tolist() == rows.max(1).tolist()
            best = fenced(2, (n // 3 + 1, 3), dtype, at_end)
            mo.segment_max(rows, ids, len(best), fill_mode="ZERO", out=best)
            done += 1
print(done)
"""

GARBAGE = """
n = 100_000
done = 0
for dtype in map(np.dtype, ("float16", "int32", "float64")):
    for width in (1, 3):
        data = random.integers(0, 99, (n, width)).astype(dtype)
        for id_dtype in (np.int32, np.int64):
            limits = np.iinfo(id_dtype)
            near = random.integers(-4, 1500, n).astype(id_dtype)
            kinds = [random.integers(limits.min, limits.max, n, id_dtype, endpoint=True), near, np.sort(near)]
            kinds += [np.where(random.random(n) < 0.99, np.arange(n) // 80, kind).astype(id_dtype) for kind in kinds]
            for kind in kinds:
                ids, out = fenced(1, (n,), kind.dtype, True), fenced(2, (1250, width), dtype, done % 2 == 0)
                ids[:] = kind
                rows = data if width > 1 else data[:, 0]
                to = out if width > 1 else out[:, 0]
                for sorted_ in (True, False):
                    mo.segment_max(rows, ids, 1250, fill_mode="ZERO", out=to, sorted=sorted_, check_ids=False)
                more = {"return_indices": True, "return_empty": True, "check_ids": False}
                mo.segment_max(rows, ids, 1250, fill_mode="ZERO", **more)
                mo.segment_max(rows, offsets=ids[:1251], fill_mode="ZERO", out=to, check_ids=False)
                done += 1
print(done)
"""

MODES = """
# Of MXCSR: rounding up, down and to zero; subnormals flushed and taken for zero; all exceptions end the process.
ROUNDINGS, FLUSH, MASKS = (0x0000, 0x2000, 0x4000, 0x6000), 0x8040, 0x1F80
library = ctypes.CDLL(None)
def set_modes(to):
    environment = ctypes.create_string_buffer(32)
    assert library.fegetenv(environment) == 0
    environment.raw = environment.raw[:28] + to.to_bytes(4, "little")
    assert library.fesetenv(environment) == 0
specials = {
    2: [0x7D01, 0xFD01, 0x7C00, 0xFC00, 0x0001, 0x8001, 0x0000, 0x8000, 0x3C00, 0xBC00],  # signalling NaNs first
    4: [0x7FA00001, 0xFFA00001, 0x7F800000, 0xFF800000, 1, 0x80000001, 0, 0x80000000, 0x3F800000, 0xBF800000],
    8: [x << 48 for x in (0x7FF4, 0xFFF4, 0x7FF0, 0xFFF0)] + [1, 1 << 63 | 1, 0, 1 << 63, 0x3FF << 52, 0xBFF << 52],
}
ids = np.arange(400) // 3
def calls(a, table):
    b = a[::-1].copy()
    return [
        lambda: mo.maximum(a, b), lambda: mo.maximum(a, b[:1]), lambda: mo.maximum(a, b, a, b, a),
        lambda: mo.reduce_max(table, 0), lambda: mo.reduce_max(table, 1), lambda: mo.reduce_max(a),
        lambda: mo.segment_max(a, ids, fill_mode="LOWEST"), lambda: mo.segment_max(table, ids, fill_mode="ZERO"),
        lambda: mo.segment_max(a, ids[::-1], fill_mode="LOWEST", sorted=False),
    ]
done = 0
for name in ("float16", "bfloat16", "float32", "float64"):
    dtype = np.dtype(ml_dtypes.bfloat16 if name == "bfloat16" else name)
    words = np.array(specials[dtype.itemsize], f"u{dtype.itemsize}")
    for first in range(0, 10, 2):  # without NaNs, too
        table = np.resize(words[first:], (400, 7)).view(dtype)
        a = np.resize(np.roll(words[first:], 1), 400).view(dtype)
        plain = [call().tobytes() for call in calls(a, table)]
        for rounding in ROUNDINGS:
            for modes in (rounding | MASKS, rounding | MASKS | FLUSH, rounding, rounding | FLUSH):
                todo = calls(a, table)
                set_modes(modes)
                results = [call() for call in todo]
                set_modes(MASKS)
                assert [result.tobytes() for result in results] == plain, (name, first, hex(modes))
                done += 1
print(done)
"""

LEAKS = """
import resource
a, ids = np.ones(16_384, np.float32), np.arange(16_384) // 5  # results of 64 KiB
def once():
    mo.maximum(a, a, a[::-1])
    mo.reduce_max(a[:, None], 1, initial=np.array(3, np.float32), return_indices=True)
    mo.segment_max(a, ids, 16_384, fill_mode="ZERO", return_indices=True, return_empty=True)
    mo.segment_max(a, ids[::-1], 16_384, fill_mode="ZERO", sorted=False)
    for bad in (
        lambda: mo.maximum(a, ids),
        lambda: mo.reduce_max(a, 3),
        lambda: mo.segment_max(a, ids[::-1], 16_384, fill_mode="ZERO"),
        lambda: mo.segment_max(a, ids, 1 << 60, fill_mode="ZERO"),
    ):
        try:
            bad()
        except mo.errors.MaxopsError:
            pass
        else:
            raise AssertionError("no error")
def resident():
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * page
for _ in range(50):
    once()
before = resident()
for _ in range(500):
    once()
print(resident() - before < 8 << 20)  # one result a turn would be 32 MiB
"""

SUBINTERPRETER = """
import warnings
warnings.simplefilter("ignore", UserWarning)  # of NumPy, which does not promise to work there
try:
    import _interpreters as interpreters
except ImportError:  # before Python 3.13
    import _xxsubinterpreters as interpreters
one = interpreters.create()
code = '''
try:
    import numpy as np
except ImportError:  # newer ones refuse
    print("refused")
else:
    import maxops as mo
    a = np.arange(3_000_000)
    assert mo.maximum(a, a[::-1])[0] == 2_999_999 == mo.reduce_max(a)[0]
    print("right")
'''
assert interpreters.run_string(one, code) is None
interpreters.destroy(one)
print("left")
"""


def run(code: str, *arguments: str) -> str:
    """What a fresh process prints, which must end well."""
    command = [sys.executable, "-X", "faulthandler", "-c", code, *arguments]
    # Of AddressSanitizer (make sanitize): it would keep freed memory, which the test of leaks takes for a leak.
    options = f"{os.environ.get('ASAN_OPTIONS', '')}:quarantine_size_mb=1:thread_local_quarantine_size_kb=64"
    done = subprocess.run(
        command,
        env=os.environ | {"ASAN_OPTIONS": options},
        capture_output=True,
        text=True,
        timeout=HANGS_AFTER,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.parametrize("isa", EACH_SOURCE)
def test_nothing_beside_the_arrays_is_touched(isa: str) -> None:
    assert int(run(FENCED + FENCES, isa)) == 13 * 2 * 43


@pytest.mark.parametrize("isa", EACH_SOURCE)
def test_ids_that_are_garbage_stay_in_bounds_unchecked(isa: str) -> None:
    assert int(run(FENCED + GARBAGE, isa)) == 3 * 2 * 2 * 6


@pytest.mark.skipif(platform.machine() != "x86_64" or platform.libc_ver()[0] != "glibc", reason="of x86-64 and glibc")
@pytest.mark.parametrize("isa", EACH_SOURCE)
def test_every_float_mode_of_the_processor(isa: str) -> None:
    """Whatever rounding, flushing, and exceptions that would end the process: there is no arithmetic with floats."""
    assert int(run(FENCED + MODES, isa)) == 4 * 5 * 4 * 4


@pytest.mark.skipif(sys.platform != "linux", reason="reads what is resident as Linux lists it")
def test_neither_results_nor_errors_leak() -> None:
    assert run(FENCED + LEAKS, _native.isas()[0]) == "True\n"


def test_calls_in_a_subinterpreter() -> None:
    assert run(SUBINTERPRETER).split()[-1] == "left"


RESHAPED = """
import sys, threading, time
import numpy as np, maxops as mo
from maxops import _native
data, ids = np.zeros(1 << 18, np.float32), np.zeros(1 << 18, np.int64)
bad, narrow, halves = np.arange(1 << 18)[::-1].copy(), np.zeros(1 << 18, np.int8), np.full(1 << 18, 1, np.uint64)
arrays = data, ids, bad, narrow, halves
def of(ids, **options):
    return lambda: mo.segment_max(data, ids, fill_mode="ZERO", **options)
calls = [
    of(bad), of(bad, out_of_range="drop"), of(bad, num_segments=9, sorted=False), of(bad, return_empty=True),
    of(narrow), of(narrow, sorted=False, return_indices=True), of(halves), of(halves, out_of_range="drop"),
    lambda: mo.segment_max(data, offsets=bad, fill_mode="ZERO"),
    lambda: mo.segment_max(data, offsets=narrow, fill_mode="ZERO", check_ids=False, return_empty=True),
    lambda: mo.reduce_max(data, return_indices=True),
    lambda: mo.maximum(data[:, None] if data.ndim == 1 else data, data[:3]),
    lambda: _native.check_indices(bad, False, True, True, None, len(bad)),
    lambda: _native.check_indices(ids, False, True, True, None, len(ids)),
    lambda: _native.widened(narrow),
    lambda: mo.maximum(data, data, out=data),
    lambda: mo.reduce_max(data, initial=1.0),
    lambda: mo.segment_max(data, ids, fill_mode="ZERO", return_indices=True),
    lambda: mo.segment_max(data, ids, fill_mode="ZERO", sorted=False),
]
stop = time.monotonic() + 3
def reshape():
    while time.monotonic() < stop:
        for array in arrays:
            array.shape = (1 << 9, 1 << 9)
            array.shape = (1 << 18,)
thread = threading.Thread(target=reshape)
thread.start()
while time.monotonic() < stop:
    for call in calls:
        try:
            call()
        except (mo.errors.MaxopsError, TypeError, IndexError, ValueError):  # as the shapes were just then
            pass
thread.join()
"""


def test_arguments_are_reshaped_during_a_call() -> None:
    """Assigning to `shape` frees the sizes that a call without the GIL would read."""
    # which NumPy 2.5 warns of, and does
    command = [sys.executable, "-W", "ignore::DeprecationWarning", "-c", RESHAPED]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=120)
    assert (done.returncode, done.stderr) == (0, "")
