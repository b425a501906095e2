"""A user's own backend with a fault for each type, and for some shapes."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence

import numpy as np

from maxops.plan import Array
from own_backend import Right

__version__ = "1.0\n::error::\udc80\x1b[2J\n"


def float32(inputs: Sequence[Array], result: Array) -> object:
    """Return a wrong eighth element of vectors, lose NaN in large reductions, and reject seven axes."""
    if result.ndim == 7:
        raise ValueError("seven axes are too many")
    if len(inputs) == 2 and result.ndim == 1 and len(result) >= 8:
        result[7] = 42
    is_large = inputs[0].ndim == 2 and inputs[0].size > 2000
    return [np.where(np.isnan(result), np.array(-np.inf, result.dtype), result) if is_large else result]


def writes(inputs: Sequence[Array], result: Array) -> object:
    inputs[0][...] = 0
    return [result]


def reshapes(inputs: Sequence[Array], result: Array) -> object:
    inputs[0].shape = (*inputs[0].shape, 1)
    return [result]


def reinterprets(inputs: Sequence[Array], result: Array) -> object:
    inputs[0].dtype = np.dtype(np.uint32)  # type: ignore[misc]
    return [result]


def writes_and_raises(inputs: Sequence[Array], result: Array) -> object:
    inputs[-1][...] = 0
    raise ValueError("no")


def prints_and_forks(inputs: Sequence[Array], result: Array) -> object:
    """Return another type, write to stdout's file descriptor, and raise an error in a forked child."""
    os.write(1, b'script: running {model}\n"a"\n')
    if os.fork() == 0:
        raise ValueError("the child")
    return [result.astype(np.float64)]


FAULTS: dict[str, Callable[[Sequence[Array], Array], object]] = {
    "float16": lambda inputs, result: [np.where(result == 0, -result, result)],
    "float32": float32,
    "int8": writes,
    "int16": reshapes,
    "int32": reinterprets,
    "int64": prints_and_forks,
    "uint8": writes_and_raises,
    "uint16": lambda inputs, result: [np.empty(result.shape, result.dtype)],
    "uint32": lambda inputs, result: None,
    "uint64": lambda inputs, result: [result.astype(np.float64).astype(result.dtype)],
}


class Faulty(Right):
    @classmethod
    def changed(cls, inputs: Sequence[Array], result: Array) -> object:
        fault = FAULTS.get(result.dtype.name)
        return fault(inputs, result) if fault is not None and inputs[0].dtype == result.dtype else [result]
