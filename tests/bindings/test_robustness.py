"""Robustness: inaccessible memory, random ids, floating-point modes, subinterpreters, and arrays that change.

Each test runs in a separate process, because a failure would end it by a signal.
"""

from __future__ import annotations

import platform
import sys
from pathlib import Path

import pytest

from helpers.instruction_sets import ISAS
from helpers.programs import run
from maxops import _native

# Arrays between two inaccessible pages.
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

SCALARS = """
integers = [dtype for dtype in dtypes if dtype.kind in "iu"]
def placed(k, values, dtype, at_end, swapped=False, step=1):
    # values, `step` elements apart, whose last byte or first is the space's
    values = np.asarray(values)
    room = (values.shape[0] - 1) * abs(step) + 1 if values.ndim else ()
    made = fenced(k, room, dtype.newbyteorder("S") if swapped else dtype, at_end)
    made = made[::step] if values.ndim else made
    made[...] = values
    return made
def check(result, expected):
    assert np.asarray(result).tolist() == expected, (result, expected)
done = 0
for dtype in dtypes:
    x, lowest = np.zeros(4, dtype), np.zeros(4, dtype)
    for at_end in (False, True):
        for swapped in (False, True):
            one = placed(0, 1, dtype, at_end, swapped)
            out = fenced(1, (), dtype, at_end)
            check(mo.maximum(one), 1)
            check(mo.maximum(one, one, out=out), 1)
            for beside in (x, x[::2], x[:1], np.zeros((2, 3), dtype), np.zeros(40_000, dtype)):
                expected = np.ones(beside.shape, dtype).tolist()
                check(mo.maximum(one, beside), expected)
                check(mo.maximum(beside, one), expected)
                check(mo.maximum(beside, one, beside, one), expected)
            check(mo.reduce_max(one, out=out), 1)
            check(mo.reduce_max(one, return_indices=True)[0], 1)
            check(mo.reduce_max(x, initial=one), [1])
            check(mo.reduce_max(x[:0], initial=one, return_indices=True)[0], [1])
            for route in (
                {"segment_ids": [0, 0, 2, 2]},
                {"segment_ids": np.array([2, 0, 2, 0]), "sorted": False},
                {"offsets": [0, 2, 2, 4]},
                {"segment_ids": np.array([0, 0, 2, 2]), "return_indices": True, "return_empty": True},
            ):
                for argument, expected in (("fill_value", [0, 1, 0]), ("initial", [1, 1, 1])):
                    result = mo.segment_max(x, **route, **{argument: one})
                    check(result[0] if isinstance(result, tuple) else result, expected)
            for n in range(1, 10):
                for step in (1, -1, 2, -3):
                    some = placed(0, [1] * n, dtype, at_end, swapped, step)
                    check(mo.maximum(some, some[:1]), [1] * n)
                    check(mo.reduce_max(some, return_indices=True), [[1], [0]])
                    check(mo.segment_max(some, [0] * n, fill_mode="ZERO"), [1])
                    # (NumPy reads no swapped bfloat16)
                    into = placed(1, [0] * n, dtype, at_end, swapped and dtype.kind != "V", step)
                    check(mo.maximum(some, some, out=into), [1] * n)
                    check(mo.segment_max(some, range(n), fill_mode="ZERO", out=into), [1] * n)
            done += 1
data = np.arange(24.0).reshape(2, 3, 4)
for dtype in integers:
    for at_end in (False, True):
        for swapped in (False, True):
            three = placed(0, 3, dtype, at_end, swapped)
            for route in ({"segment_ids": [0, 1]}, {"segment_ids": [1, 0], "sorted": False}, {"offsets": [0, 1, 2]}):
                assert mo.segment_max(data, num_segments=three, fill_mode="ZERO", **route).shape == (3, 3, 4)
            check(mo.reduce_max(data, placed(0, 1, dtype, at_end, swapped)), data.max(1, keepdims=True).tolist())
            for step in (1, -1, 2, -3):
                for axes in ([1], [2, 0], [0, 1, 2]):
                    given = placed(0, axes, dtype, at_end, swapped, step)
                    check(mo.reduce_max(data, given), data.max(tuple(axes), keepdims=True).tolist())
                for n in range(1, 10):
                    rows = np.arange(n, dtype=np.float32)
                    ids = placed(0, range(n), dtype, at_end, swapped, step)
                    more = {"fill_mode": "ZERO", "return_empty": True, "return_indices": True}
                    for options in ({}, {"sorted": False}, {"check_ids": False}, {"out_of_range": "drop"}):
                        check(mo.segment_max(rows, ids, **options, **more)[:2], [rows.tolist(), list(range(n))])
                    ids = placed(0, range(n), dtype, at_end, swapped, step)
                    check(mo.segment_max(rows[1:], offsets=ids, **more)[0], rows[1:].tolist())
                    if dtype.itemsize == 8:
                        assert _native.check_indices(ids, False, True, True, None, n) is None
            done += 1
print(done)
"""

RUNTIME = """
import onnx
from onnx import helper, parser
import maxops.onnxruntime
from maxops.onnx.tensors import DTYPES
numbers = {dtype.numpy: number for number, dtype in DTYPES.items()}
def run(model, **arrays):
    binding = model.io_binding()
    for name, array in arrays.items():
        shape = list(array.shape)
        binding.bind_input(name, "cpu", 0, numbers[array.dtype], shape, array.ctypes.data)
    binding.bind_output("y", "cpu")
    model.run_with_iobinding(binding)
    value = binding.get_outputs()[0]
    size = int(np.prod(value.shape())) * 4
    return np.frombuffer(ctypes.string_at(value.data_ptr(), size), np.float32).tolist()
def session(text):
    return maxops.onnxruntime.session(parser.parse_model(text))
head = '<ir_version: 10, opset_import: ["": 20, "maxops": 1]> g '
done = 0
f4 = np.dtype(np.float32)
largest = session(head + "(float[n] x, float s) => (float[n] y) { y = Max (x, s) }")
reduced = session(head + "(float[a, b] x, int64[k] axes) => (float y) { y = ReduceMax <keepdims = 0> (x, axes) }")
segments = {
    (id_type, count_type): session(
        head + f"(float[n] x, {id_type}[n] ids, {count_type} count) => (float[k] y) "
        '{ y = maxops.SegmentMax <fill_mode = "ZERO"> (x, ids, count) }'
    )
    for id_type in ("int32", "int64") for count_type in ("int32", "int64")
}
def placed(k, values, dtype, at_end):
    made = fenced(k, np.shape(values), np.dtype(dtype), at_end)
    made[...] = values
    return made
for at_end in (False, True):
    for n in range(1, 10):
        x, one = placed(0, [0] * n, f4, at_end), placed(1, 1, f4, at_end)
        assert run(largest, x=x, s=one) == [1] * n
        for (id_type, count_type), model in segments.items():
            ids, count = placed(1, range(n), id_type, at_end), placed(2, n + 1, count_type, at_end)
            x[...] = np.arange(n) + 1
            assert run(model, x=x, ids=ids, count=count) == [*range(1, n + 1), 0]
            done += 1
    x = placed(0, np.arange(6).reshape(2, 3), f4, at_end)
    for axes, expected in (([0], [3, 4, 5]), ([-1], [2, 5]), ([1, 0], [5])):
        assert run(reduced, x=x, axes=placed(1, axes, np.int64, at_end)) == expected
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


@pytest.mark.parametrize("isa", ISAS)
def test_nothing_beside_the_arrays_is_touched(isa: str) -> None:
    assert int(run(FENCED + FENCES, isa)) == 13 * 2 * 43


def test_nothing_beside_scalars_and_few_elements_is_touched() -> None:
    """Test scalars and small arrays of each type and layout at either end of accessible memory."""
    assert int(run(FENCED + SCALARS, _native.isa())) == 13 * 4 + 8 * 4


def test_nothing_beside_tensors_of_onnxruntime_is_touched() -> None:
    pytest.importorskip("onnxruntime")
    pytest.importorskip("maxops.onnxruntime")
    assert int(run(FENCED + RUNTIME, _native.isa())) == 2 * (9 * 4 + 3)


@pytest.mark.parametrize("isa", ISAS)
def test_ids_that_are_garbage_stay_in_bounds_unchecked(isa: str) -> None:
    assert int(run(FENCED + GARBAGE, isa)) == 3 * 2 * 2 * 6


@pytest.mark.skipif(platform.machine() != "x86_64" or platform.libc_ver()[0] != "glibc", reason="of x86-64 and glibc")
@pytest.mark.parametrize("isa", ISAS)
def test_every_float_mode_of_the_processor(isa: str) -> None:
    """Test every rounding, flushing and trapping mode: results do not change, because there is no float arithmetic."""
    assert int(run(FENCED + MODES, isa)) == 4 * 5 * 4 * 4


def test_calls_in_a_subinterpreter() -> None:
    assert run(SUBINTERPRETER).split()[-1] == "left"


@pytest.mark.skipif(
    sys.platform != "linux" or platform.machine() not in ("x86_64", "aarch64"), reason="reads ELF's 64-bit relocations"
)
def test_arguments_are_reshaped_the_moment_the_gil_is_released() -> None:
    """Test each call that releases the GIL, with arrays whose shape changes when it does."""
    program = Path(__file__).with_name("released.py").read_text(encoding="utf-8")
    assert int(run(program, warnings="ignore::DeprecationWarning")) == 61
