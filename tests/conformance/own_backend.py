"""A user's own backends for the kit's command: a correct backend, and backends with a fault each."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Sequence
from typing import Any, ClassVar

import numpy as np
from onnx import ModelProto

from maxops import onnx as mx
from maxops.plan import Array


class Representation:
    def __init__(self, backend: type[Right], model: ModelProto) -> None:
        self.backend, self.model = backend, mx.Backend.prepare(model)

    def run(self, inputs: Sequence[Array]) -> object:
        try:
            result = self.model.run(inputs)[0]
        except Exception:
            self.backend.was_wrong = True
            raise
        return self.backend.changed(inputs, result)


class Right:
    """maxops' own, under another name."""

    was_wrong: ClassVar[bool] = False

    @classmethod
    def prepare(cls, model: ModelProto, device: str = "CPU", **kwargs: Any) -> Representation:
        del device, kwargs
        return Representation(cls, model)

    @classmethod
    def changed(cls, inputs: Sequence[Array], result: Array) -> object:
        del inputs
        return [result]


class ByFloat64(Right):
    """64-bit integers on their way through floats."""

    @classmethod
    def changed(cls, inputs: Sequence[Array], result: Array) -> object:
        return [result.astype(np.float64).astype(result.dtype) if result.dtype == np.uint64 else result]


class WrongInLargeReductions(Right):
    """A NaN is lost where there is much to reduce, whatever else is there."""

    @classmethod
    def changed(cls, inputs: Sequence[Array], result: Array) -> object:
        is_large = inputs[0].ndim == 2 and inputs[0].size > 2000
        return [np.where(np.isnan(result), np.array(-np.inf, result.dtype), result) if is_large else result]


class WrongInLaneSeven(Right):
    """An element that is wrong where vectors have eight of them."""

    @classmethod
    def changed(cls, inputs: Sequence[Array], result: Array) -> object:
        if result.dtype == np.float32 and result.ndim == 1 and len(result) >= 8:
            result[7] = 42
        return [result]


class NegativeZero(Right):
    """The sign of zero lost."""

    @classmethod
    def changed(cls, inputs: Sequence[Array], result: Array) -> object:
        return [np.where(result == 0, -result, result) if result.dtype == np.float32 else result]


class GivesTwo(Right):
    @classmethod
    def changed(cls, inputs: Sequence[Array], result: Array) -> object:
        return [result, result]


class SometimesNone(Right):
    @classmethod
    def changed(cls, inputs: Sequence[Array], result: Array) -> object:
        return None if result.dtype == np.int8 else [result]


class Crashes(Right):
    """A process ended by int8."""

    @classmethod
    def changed(cls, inputs: Sequence[Array], result: Array) -> object:
        if result.dtype == np.int8:
            os.kill(os.getpid(), signal.SIGSEGV)
        return [result]


class PoisonedByErrors(Right):
    """After an error, every answer is 0."""

    @classmethod
    def changed(cls, inputs: Sequence[Array], result: Array) -> object:
        return [np.zeros_like(result) if cls.was_wrong else result]


class Leaks(Right):
    """Memory that nobody wrote, for int8."""

    @classmethod
    def changed(cls, inputs: Sequence[Array], result: Array) -> object:
        return [np.empty(result.shape, result.dtype) if result.dtype == np.int8 else result]


class RefusesRankSeven(Right):
    """Right, but for shapes that it does not take."""

    @classmethod
    def changed(cls, inputs: Sequence[Array], result: Array) -> object:
        if result.ndim == 7:
            raise ValueError("seven axes are too many")
        return [result]


class WritesIntoItsInputs(Right):
    @classmethod
    def changed(cls, inputs: Sequence[Array], result: Array) -> object:
        inputs[0][...] = 0
        return [result]


class Reshapes(Right):
    """The array of the caller, not its elements."""

    @classmethod
    def changed(cls, inputs: Sequence[Array], result: Array) -> object:
        inputs[0].shape = (*inputs[0].shape, 1)
        return [result]


class Reinterprets(Right):
    @classmethod
    def changed(cls, inputs: Sequence[Array], result: Array) -> object:
        inputs[0].dtype = np.dtype(np.uint8)  # type: ignore[misc]
        return [result]


class WritesAndRaises(Right):
    @classmethod
    def changed(cls, inputs: Sequence[Array], result: Array) -> object:
        inputs[-1][...] = 0
        raise ValueError("no")


class Exits(Right):
    """A process ended by int8, by the runtime itself."""

    @classmethod
    def changed(cls, inputs: Sequence[Array], result: Array) -> object:
        if result.dtype == np.int8:
            os._exit(0)
        return [result]


class PrintsAndForks(Right):
    """Wrong types; it also prints natively, and a child process returns."""

    @classmethod
    def changed(cls, inputs: Sequence[Array], result: Array) -> object:
        os.write(1, b'script: running {model}\n"a"\n')
        if result.dtype == np.int16 and os.fork() == 0:
            raise ValueError("the child")
        return [result.astype(np.float64)]


class Hangs(Right):
    """No answer for int8."""

    @classmethod
    def changed(cls, inputs: Sequence[Array], result: Array) -> object:
        if result.dtype == np.int8:
            time.sleep(600)
        return [result]
