"""Every operator, option and code path in threads of Python and of the pool with 128 KiB of stack, as in musl."""

from __future__ import annotations

import platform

import pytest

from helpers.instruction_sets import EACH
from helpers.programs import run

CODE = """
import ctypes, sys, threading
import ml_dtypes, numpy as np
import maxops as mo
from maxops import _native
STACK = 128 << 10
assert _native.use_isa(sys.argv[1])
mo.set_num_threads(3)
if sys.argv[2] == "glibc":  # of the pool's threads, as threading.stack_size is of Python's
    class Attributes(ctypes.Structure):
        _fields_ = [("space", ctypes.c_char * 64)]
    attributes, library = Attributes(), ctypes.CDLL(None)
    assert library.pthread_attr_init(ctypes.byref(attributes)) == 0
    assert library.pthread_attr_setstacksize(ctypes.byref(attributes), ctypes.c_size_t(STACK)) == 0
    assert library.pthread_setattr_default_np(ctypes.byref(attributes)) == 0
threading.stack_size(STACK)

types = "float16 bfloat16 float32 float64 int8 int16 int32 int64 uint8 uint16 uint32 uint64 bool".split()
random = np.random.default_rng(0)
def data(name, *shape):
    return random.integers(0, 99, shape).astype(ml_dtypes.bfloat16 if name == "bfloat16" else name)
def unaligned(array):
    memory = np.zeros(array.nbytes + 1, np.uint8)[1:].view(array.dtype).reshape(array.shape)
    memory[...] = array
    return memory
def maxima(a):
    square, swapped = a[: min(a.shape)], a.astype(a.dtype.newbyteorder())
    many = [a, a[::-1], a[:, ::-1]] * 4
    return [
        lambda: mo.maximum(a, a[::-1]),
        lambda: mo.maximum(a, a[:1]),
        lambda: mo.maximum(a, a[:, :1]),
        lambda: mo.maximum(a[:, :1], a[:1]),
        lambda: mo.maximum(square[:, : len(square)], square[:, : len(square)].T),
        lambda: mo.maximum(*many),
        lambda: mo.maximum(swapped, a),
        lambda: mo.maximum(unaligned(a), a),
        lambda: mo.maximum(a[:, ::3], a[::-1, ::3], out=np.empty_like(a)[:, ::3]),
    ]
def reductions(a):
    layouts = [a, a.T, a[:, ::3], a[::-1, 1:], a.astype(a.dtype.newbyteorder())]
    layouts += [a.reshape(-1, 3), a.reshape(-1, 1, 2, 3)]
    return [
        lambda x=x, axes=axes, more=more: mo.reduce_max(x, axes, **more)
        for x in layouts
        for axes in (None, 0, -1, (0, -1))
        for more in ({}, {"return_indices": True}, {"initial": x.ravel()[0]})
    ]
def segments(a):
    n = len(a)
    rows = np.arange(n)
    runs = {"singles": rows, "short": rows // 3, "long": rows // 300, "gaps": rows // 3 * 2}
    shuffled = {name: random.permutation(ids) for name, ids in runs.items()}
    bounds = np.append(np.arange(0, n, 7), n)
    both = {"return_indices": True, "return_empty": True}
    column = np.ascontiguousarray(a[:, 0])
    calls = []
    for x in (a, column, a[:, :1], a[:, ::3], a.astype(a.dtype.newbyteorder()), np.asfortranarray(a)):
        for more in ({"fill_mode": "ZERO"}, {"fill_mode": "LOWEST", **both}, {"initial": column[0]}):
            calls += [lambda x=x, ids=ids, more=more: mo.segment_max(x, ids, **more) for ids in runs.values()]
            calls += [lambda x=x, more=more: mo.segment_max(x, runs["short"].astype(np.int32), 17 * n, **more)]
            calls += [lambda x=x, more=more: mo.segment_max(x, runs["short"][:, None].repeat(2, 1)[:, 0], **more)]
            calls += [lambda x=x, more=more: mo.segment_max(x, offsets=bounds, **more)]
            calls += [
                lambda x=x, ids=ids, more=more: mo.segment_max(x, ids, sorted=False, **more)
                for ids in shuffled.values()
            ]
    return calls
def bytes_of(result):
    return [part.tobytes() for part in (result if isinstance(result, tuple) else (result,))]
done = 0
def in_thread(calls):
    def work():
        for call in calls:
            results.append(bytes_of(call()))
    results = []
    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    return results
for name in types:
    shapes = [(60, 12), (6000, 48)] if name == "float32" else [(60, 12)]
    for shape in shapes:
        a = data(name, *shape)
        for calls in (maxima(a), reductions(a), segments(a)):
            results = in_thread(calls)
            assert len(results) == len(calls), "a call raised in the thread"
            done += len(calls)
            if len(a) < 100:
                assert results == [bytes_of(call()) for call in calls]
print(done)
"""


@pytest.mark.parametrize("isa", EACH)
def test_every_call_in_a_thread_with_a_small_stack(isa: str) -> None:
    assert int(run(CODE, isa, platform.libc_ver()[0])) > 3000
