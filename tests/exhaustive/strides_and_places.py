"""Tests ReduceMax and Max with strides and alignments that select different loops around the kernels.

The tests include views of every small stride in bytes, broadcast views of very many elements, inputs with every order
of axes, many inputs, and in-place outputs at every position of a cache line.
"""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np

import maxops as mo

from .states import Array, counted, fail, subnormals_as_zero


def _bytes(n: int) -> Array:
    """Return unordered bytes that repeat after 251 elements."""
    return (np.arange(n) * 77 % 251 - 125).astype(np.int8)


def _reduced(given: Array, axes: Any, what: str) -> None:
    got, expected = mo.reduce_max(given, axes), given.max(axes, keepdims=True)
    if got.tobytes() != expected.tobytes():
        fail(f"reduce_max, {what}", expected, got, data=given, axes=axes)
    counted[f"reduce_max: {what}"] += 1


def _largest(inputs: list[Array], out: Array, what: str) -> None:
    expected = np.maximum.reduce(np.broadcast_arrays(*inputs))
    given = mo.maximum(*inputs, out=out)
    if given.tobytes() != expected.tobytes():
        fail(f"maximum, {what}", expected, given, inputs=inputs)
    counted[f"maximum: {what}"] += 1


def steps() -> None:
    """Test rows and elements with every small stride in bytes, which overlap or have gaps."""
    for dtype, n, step in itertools.product((np.int8, np.int16, np.int32), range(1, 8), range(1, 16)):
        item = np.dtype(dtype).itemsize
        _reduced(np.ndarray((13, n), dtype, _bytes(224), 0, (step, item)), 0, "rows by steps")
    for first, second, n in itertools.product((2, 3, 5, 9), (1, 2, 3), (2, 3)):
        given: Array = np.ndarray((12, 7, n), np.int8, _bytes(128), 0, (first, second, 1))
        for axes in ((0, 1), (0, 2), (0, 1, 2)):
            _reduced(given, axes, "matrices by steps")
        given = np.ndarray((3, 3, n), np.int16, _bytes(64), 0, (first, 2, second))
        _reduced(given, (0, 1, 2), "elements that share bytes")


def follow() -> None:
    """Test many contiguous rows of a few bytes."""
    for length, n in itertools.product((90, 200, 300), range(1, 9)):
        for place in (0, 1, length // 2, length - 1):
            given = np.full((length, n), -100, np.int8)
            given[(place + np.arange(n)) % length, np.arange(n)] = np.arange(n)
            _reduced(given, 0, "many short rows")


def apart() -> None:
    """Test a single result from rows with gaps, of rank three and longer than a strip, with the maximum anywhere."""
    for place in range(4 * 3 * 5):
        whole = np.zeros((4, 3, 5), np.float32)
        whole.flat[place] = place + 1
        _reduced(whole[:, :2, :4], None, "matrices apart")
    for n, place in itertools.product((45, 50, 64), range(0, 3 * 70, 3)):
        line = np.full((3, 70), -100, np.int8)
        line.flat[place + n % 3] = place % 100
        _reduced(line[:, :n], None, "strips")


def repeats() -> None:
    """Test broadcast arrays of 2^40 repeated elements, which must not be read one by one."""
    few = np.arange(1, 4, dtype=np.float32)
    many = 1 << 40
    for given, axes in (
        (np.broadcast_to(few[2], (many,)), 0), (np.broadcast_to(few[:, None], (3, many)), 1),
        (np.broadcast_to(few, (many, 3)), 0), (np.broadcast_to(few[::-1], (many, 3)), (0, 1)),
    ):  # fmt: skip
        got = mo.reduce_max(given, axes, keepdims=False)
        expected = few.max(keepdims=True) if got.size == 1 else few
        if got.tobytes() != expected.tobytes():
            fail("reduce_max, repeats", expected, got, few=few, shape=given.shape, axes=axes)
        counted["reduce_max: repeats"] += 1


def orders() -> None:
    """Test Max of a matrix and a 3-D array with every order of axes, into an output with every order of axes."""
    shape = (3, 4, 5)
    orders = list(itertools.permutations(range(3)))
    for left_out, second, third in itertools.product(range(3), orders, orders):
        size = tuple(1 if axis == left_out else length for axis, length in enumerate(shape))
        matrix = (np.arange(np.prod(size)) * 7 % 61).reshape(size).astype(np.float32)
        all_axes = (np.arange(60) * 7 % 61).astype(np.float32).reshape(shape)
        transposed = np.ascontiguousarray(all_axes.transpose(second)).transpose(np.argsort(second))
        out = np.zeros([shape[axis] for axis in third], np.float32).transpose(np.argsort(third))
        for inputs in ([matrix, transposed], [transposed, matrix]):
            _largest(inputs, out, "every order of axes")


def many() -> None:
    """Test eight inputs of several lengths, many strided inputs, and a matrix with several transposed ones."""
    dtypes: tuple[Any, ...] = (np.int8, np.int16, np.float32, np.float64)
    for dtype, n in itertools.product(dtypes, (3, 9, 20, 40, 77)):
        given = np.random.default_rng(n).permutation(8 * n).reshape(8, n) % 251 - 125
        _largest(list(given.astype(dtype)), np.zeros(n, dtype), "eight inputs")
    for dtype, count in itertools.product((dtypes[0], dtypes[2]), (15, 16, 17, 23, 24)):
        long = np.random.default_rng(count).permutation(80 * count).reshape(count, 80) % 251 - 125
        _largest(list(long.astype(dtype)[:, ::2]), np.zeros(40, dtype), "inputs that are gathered")
    for dtype, count in itertools.product((dtypes[0], *dtypes[2:]), range(1, 8)):
        squares = np.random.default_rng(count).permutation((count + 1) * 400).reshape(-1, 20, 20) % 251 - 125
        plain, *across = squares.astype(dtype)
        _largest([plain, *(each.T for each in across)], np.zeros((20, 20), dtype), "inputs across")


def close() -> None:
    """Test elements with a stride of one byte, as the first and as the second input."""
    for n, at, dtype in itertools.product((2, 3, 5, 9, 20), range(4), (np.int16, np.int32)):
        near: Array = np.ndarray((n,), dtype, _bytes(32)[at:], 0, (1,))
        other = (np.arange(n) * 100).astype(dtype)
        for inputs in ([near, other], [other, near]):
            _largest(inputs, np.zeros(n, dtype), "elements a byte apart")


def in_place() -> None:
    """Test outputs that are also an input, at every item of a cache line."""
    for dtype in (np.float32, np.float64):
        item = np.dtype(dtype).itemsize
        memory = np.empty(1024, np.uint8)
        memory = memory[-memory.ctypes.data % 64 :][:512]
        for n, offset in itertools.product((64 // item, 64 // item + 1, 150 // item), range(0, 64, item)):
            out: Array = np.ndarray((n,), dtype, memory, offset)
            other = (np.arange(n) % 100).astype(dtype)
            memory[:] = 191  # negative numbers close to zero
            expected = np.maximum(out, other)
            mo.maximum(out, other, out=out)
            if out.tobytes() != expected.tobytes():
                fail("maximum, in place", expected, out, n=n, offset=offset)
            counted["maximum: in place, every offset"] += 1


def modes() -> None:
    """Test subnormals with a scalar or a column, in the floating-point mode "denormals are zero"."""
    for dtype, words in ((np.float32, np.uint32), (np.float64, np.uint64)):
        for n in (1, 3, 9, 20, 40):
            bits = (np.arange(2 * n) * 7 % 50 + 1).astype(words).reshape(2, n)
            for others in (words(20).reshape(1), np.array([[20], [30]], words)):
                with subnormals_as_zero():
                    got = mo.maximum(bits.view(dtype), others.view(dtype))
                expected = np.maximum(bits, others)
                if got.tobytes() != expected.tobytes():
                    fail("maximum of subnormals", expected, got.view(words), bits=bits, others=others)
                counted["subnormals as zero"] += 1
