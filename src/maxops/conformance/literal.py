"""Formats arrays as Python expressions that reproduce every bit, for use in scripts."""

from __future__ import annotations

import base64
import zlib

import numpy as np

from maxops import dtypes
from maxops.dtypes import DType
from maxops.plan import Array

MAX_SPELLED = 64  # size up to which every element is always written out
MAX_LISTED = 4096  # size up to which arrays are lists; larger ones are compressed
MAX_RUNS = 32  # maximum number of runs of equal elements that are written by their lengths


def literal(array: Array) -> str:
    """Return an expression that creates the array; it uses np and, if necessary, ml_dtypes, Fraction, base64 and zlib.

    >>> literal(np.int8([[1, -2]]))
    'np.array([[1, -2]], np.int8)'
    >>> literal(np.float32([-0.0, np.inf]))
    'np.array([-0.0, np.inf], np.float32)'
    >>> literal(np.float16([np.nan]))
    'np.array([0x7E00], np.uint16).view(np.float16)'

    Large arrays with few runs, or with one repeated row, have short expressions:

    >>> literal(np.full((100, 3), 7, np.int8))
    'np.repeat(np.array([7], np.int8), [300]).reshape(100, 3)'
    >>> literal(np.tile(np.int8([1, 2]), (100, 1)))
    'np.tile(np.array([1, 2], np.int8), (100, 1))'

    Large vectors of integers that rise in equal steps also have short expressions:

    >>> literal(np.arange(5000) // 3)
    'np.arange(0, 5000) // 3'
    """
    dtype = dtypes.of(array.dtype)
    if dtype is None:
        raise TypeError(f"cannot write an array of dtype {array.dtype} as text")
    if array.size == 0:
        return f"np.empty({array.shape}, {type_text(dtype)})"
    if dtype == dtypes.REAL:
        return f"np.array({array.tolist()}, object)"
    native = array.astype(dtype.numpy, order="C", copy=True)
    if native.size > MAX_SPELLED and (text := _repeated(native, dtype)):
        return text
    if native.size > MAX_LISTED:
        if native.ndim == 1 and dtype.kind in ("int", "uint") and (text := _stepped(native, dtype)):
            return text
        return _compressed(native, dtype)
    if dtype.kind != "float":
        return f"np.array({native.tolist()}, {type_text(dtype)})"
    words = native.reshape(-1).view(dtype.word).reshape(native.shape)
    if dtype != dtypes.BFLOAT16 and not np.isnan(native).any():
        # Python's text of a float is exact for each type, but long for narrow types; NumPy's is shorter and round-trips
        text = _nested([str(item) for item in native.reshape(-1)], native.shape)
        return f"np.array({text.replace('inf', 'np.inf')}, {type_text(dtype)})"
    bits = _nested([f"0x{int(word):0{dtype.bits // 4}X}" for word in words.reshape(-1)], native.shape)
    return f"np.array({bits}, np.{dtype.word}).view({type_text(dtype)})"


def type_text(dtype: DType) -> str:
    """Return a Python expression for the NumPy type."""
    if dtype == dtypes.BFLOAT16:
        return "ml_dtypes.bfloat16"
    return {"bool": "np.bool_", "real": "object"}.get(dtype.name, f"np.{dtype}")


def _repeated(native: Array, dtype: DType) -> str:
    """Return an expression that repeats runs of equal bits or the first row, or "" if neither reproduces the array."""
    words = native.reshape(-1).view(dtype.word)
    starts = np.flatnonzero(np.concatenate([[True], words[1:] != words[:-1]]))
    if len(starts) <= MAX_RUNS:
        counts = np.diff(np.append(starts, len(words))).tolist()
        runs = f"np.repeat({literal(native.reshape(-1)[starts])}, {counts})"
        return runs if native.ndim == 1 else f"{runs}.reshape{native.shape}"
    rows = words.reshape(len(native), -1)
    if len(native) > 1 and (rows == rows[0]).all():
        return f"np.tile({literal(native[0])}, ({len(native)}, {', '.join(['1'] * (native.ndim - 1))}))"
    return ""


def _stepped(native: Array, dtype: DType) -> str:
    """Return an expression for integers that increase by 1 after each run of a fixed length, or "" for others."""
    count = int(np.searchsorted(native, native[0], side="right"))
    first = int(native[0]) * count
    numbers = np.arange(first, first + len(native)) // count if 0 < count < len(native) else native[:0]
    if not np.array_equal(numbers, native):
        return ""
    steps = f"np.arange({first}, {first + len(native)}){f' // {count}' if count > 1 else ''}"
    return steps if dtype is dtypes.INT64 else f"({steps}).astype({type_text(dtype)})"


def _compressed(native: Array, dtype: DType) -> str:
    """Return an expression for the compressed bytes in pieces, so lines can break. It uses base64 and zlib."""
    data = base64.b85encode(zlib.compress(native.tobytes(), 9)).decode()
    pieces = " ".join(f'"{data[start : start + 100]}"' for start in range(0, len(data), 100))
    text = f"np.frombuffer(bytearray(zlib.decompress(base64.b85decode({pieces}))), {type_text(dtype)})"
    return f"{text}.reshape({native.shape})"


def _nested(texts: list[str], shape: tuple[int, ...]) -> str:
    """Return nested lists as text. The elements are already text."""
    return str(np.array(texts, object).reshape(shape).tolist()).replace("'", "")
