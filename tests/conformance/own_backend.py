"""A user's own backends for the kit's command: a correct backend, and backends with one fault each."""

from __future__ import annotations

import ctypes
import os
import signal
import time
from collections.abc import Sequence
from typing import Any, ClassVar

import numpy as np
from numpy.lib.array_utils import byte_bounds
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
    """A correct backend, which calls maxops."""

    was_wrong: ClassVar[bool] = False

    @classmethod
    def prepare(cls, model: ModelProto, device: str = "CPU", **kwargs: Any) -> Representation:
        del device, kwargs
        return Representation(cls, model)

    @classmethod
    def changed(cls, inputs: Sequence[Array], result: Array) -> object:
        del inputs
        return [result]


class GivesTwo(Right):
    @classmethod
    def changed(cls, inputs: Sequence[Array], result: Array) -> object:
        return [result, result]


class SometimesNone(Right):
    @classmethod
    def changed(cls, inputs: Sequence[Array], result: Array) -> object:
        return None if result.dtype == np.int8 else [result]


class Ends(Right):
    """Is killed by a signal for int8, and exits with status 0 for int16. After an error, returns only zeros."""

    @classmethod
    def changed(cls, inputs: Sequence[Array], result: Array) -> object:
        if result.dtype == np.int8:
            os.kill(os.getpid(), signal.SIGSEGV)
        if result.dtype == np.int16:
            os._exit(0)
        return [np.zeros_like(result) if cls.was_wrong else result]


class GivesSwappedBytes(Right):
    """Returns a wrong result in the other byte order."""

    @classmethod
    def changed(cls, inputs: Sequence[Array], result: Array) -> object:
        return [(result + 1).astype(result.dtype.newbyteorder())]


class WritesOutside(Right):
    """Writes one byte after the memory of its last input."""

    @classmethod
    def changed(cls, inputs: Sequence[Array], result: Array) -> object:
        _, end = byte_bounds(inputs[-1])
        ctypes.memset(end, 7, 1)
        return [result]


class Hangs(Right):
    """Hangs for int8."""

    @classmethod
    def changed(cls, inputs: Sequence[Array], result: Array) -> object:
        if result.dtype == np.int8:
            time.sleep(600)
        return [result]
