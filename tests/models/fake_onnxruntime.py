"""A fake of ONNX Runtime's C interface (native/bindings/onnxruntime_abi.h), in which each function can fail.

It also passes values that no model can contain. It requires a separate process, because operators are registered once.
The fake tests how the operators react to its answers, not whether ONNX Runtime gives the same answers.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from ctypes import CFUNCTYPE, POINTER, Structure, c_char_p, c_int, c_int64, c_size_t, c_uint32, c_void_p
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from maxops import _native
from maxops.plan import Array

INT64, FLOAT32 = 7, 1  # ONNX's type numbers
NO_POINTER = c_void_p(None)

# The functions of the interface by their index, with their arguments; all but the last two return a status.
FUNCTIONS: dict[str, tuple[int, Sequence[Any]]] = {
    "create_status": (0, (c_int, c_char_p)),
    "create_domain": (26, (c_char_p, POINTER(c_void_p))),
    "add_operator": (27, (c_void_p, c_void_p)),
    "add_domain": (28, (c_void_p, c_void_p)),
    "tensor_data": (51, (c_void_p, POINTER(c_void_p))),
    "element_type": (60, (c_void_p, POINTER(c_int))),
    "rank": (61, (c_void_p, POINTER(c_size_t))),
    "dimensions": (62, (c_void_p, POINTER(c_int64), c_size_t)),
    "tensor_info": (65, (c_void_p, POINTER(c_void_p))),
    "attribute_int64": (86, (c_void_p, c_char_p, POINTER(c_int64))),
    "attribute_string": (87, (c_void_p, c_char_p, c_void_p, POINTER(c_size_t))),
    "input_count": (88, (c_void_p, POINTER(c_size_t))),
    "input": (90, (c_void_p, c_size_t, POINTER(c_void_p))),
    "output": (91, (c_void_p, c_size_t, POINTER(c_int64), c_size_t, POINTER(c_void_p))),
    "release_status": (93, (c_void_p,)),
    "release_tensor_info": (99, (c_void_p,)),
}
GIVE_NOTHING = ("release_status", "release_tensor_info")


class Operator(Structure):
    """The part of CustomOperator, the runtime's view of an operator, that is used here."""

    _fields_ = (
        ("version", c_uint32),
        ("create_kernel", c_void_p),
        ("name", CFUNCTYPE(c_char_p, c_void_p)),
        ("execution_provider", c_void_p),
        ("input_type", CFUNCTYPE(c_int, c_void_p, c_size_t)),
        ("unused", c_void_p * 4),
        ("destroy", c_void_p),
        ("more", c_void_p * 7),
        ("create", CFUNCTYPE(c_void_p, c_void_p, c_void_p, c_void_p, POINTER(c_void_p))),
        ("compute", CFUNCTYPE(c_void_p, c_void_p, c_void_p)),
    )


@dataclass
class Tensor:
    """The declared type and shape of an input or output, and the array with its data, if any."""

    shape: tuple[int, ...]
    element: int = FLOAT32
    array: Array | None = None


def tensor(array: Array) -> Tensor:
    """Return an array as a float32 or int64 tensor."""
    return Tensor(array.shape, INT64 if array.dtype == np.int64 else FLOAT32, array)


@dataclass
class Runtime:
    """A runtime: its inputs, its answers, and the functions that fail."""

    fails_at: int | None = None  # which of the calls that return a status fails, counted from 0
    failing: str = ""  # the name of a function whose calls all fail
    calls: int = 0
    statuses: dict[int, tuple[int, str]] = field(default_factory=dict)
    made: int = 0
    infos: int = 0
    operators: list[int] = field(default_factory=list)
    attributes: dict[str, int | bytes] = field(default_factory=dict)
    tensors: list[Tensor | None] = field(default_factory=list)
    given_output: Array | None = None  # an output that the caller has bound
    result: Tensor | None = None

    def __post_init__(self) -> None:
        self._kept: list[Any] = []
        table = (c_void_p * 100)()
        for name, (place, arguments) in FUNCTIONS.items():
            gives = None if name in GIVE_NOTHING else c_void_p
            table[place] = self._pointer(CFUNCTYPE(gives, *arguments), self._answer(name))
        self.api = table
        self.base = (c_void_p * 2)(self._pointer(CFUNCTYPE(c_void_p, c_uint32), self.get_api), None)
        self.newest = 16
        self.asked: list[int] = []

    def _pointer(self, kind: Any, function: Callable[..., Any]) -> int | None:
        self._kept.append(kind(function))
        return ctypes.cast(self._kept[-1], c_void_p).value

    def _answer(self, name: str) -> Callable[..., Any]:
        own = getattr(self, name)
        if name in (*GIVE_NOTHING, "create_status"):
            return own  # type: ignore[no-any-return]

        def answer(*arguments: Any) -> int | None:
            self.calls += 1
            if self.calls - 1 == self.fails_at or name == self.failing:
                return self.create_status(9, f"{name} fails".encode())
            return own(*arguments)  # type: ignore[no-any-return]

        return answer

    # ---- the interface

    def get_api(self, version: int) -> int | None:
        self.asked.append(version)
        return ctypes.addressof(self.api) if version <= self.newest else None

    def create_status(self, code: int, text: bytes) -> int:
        self.made += 1
        self.statuses[self.made] = code, text.decode()
        return self.made

    def release_status(self, status: int) -> None:
        del self.statuses[status]

    def create_domain(self, _name: bytes, out: Any) -> None:
        out[0] = 1

    def add_operator(self, _domain: int, operator: int) -> None:
        self.operators.append(operator)

    def add_domain(self, _options: int, _domain: int) -> None:
        pass

    def attribute_int64(self, _info: int, name: bytes, out: Any) -> int | None:
        value = self.attributes.get(name.decode())
        if not isinstance(value, int):
            return self.create_status(1, b"no such attribute")
        out[0] = value
        return None

    def attribute_string(self, _info: int, name: bytes, out: int | None, size: Any) -> int | None:
        value = self.attributes.get(name.decode())
        if not isinstance(value, bytes):
            return self.create_status(1, b"no such attribute")
        size[0] = len(value) + 1
        if out is not None:
            ctypes.memmove(out, value + b"\0", len(value) + 1)
        return None

    def input_count(self, _context: int, out: Any) -> None:
        out[0] = len(self.tensors)

    def input(self, _context: int, index: int, out: Any) -> None:
        out[0] = None if self.tensors[index] is None else index + 1

    def output(self, _context: int, _index: int, dims: Any, rank: int, out: Any) -> None:
        shape = tuple(dims[:rank])
        array = np.zeros(shape, np.float32) if self.given_output is None else self.given_output
        self.result = Tensor(shape, FLOAT32, array)
        out[0] = len(self.tensors) + 1

    def _of(self, value: int) -> Tensor:
        found = [*self.tensors, self.result][value - 1]
        assert found is not None
        return found

    def tensor_info(self, value: int, out: Any) -> None:
        self.infos += 1
        out[0] = value

    def release_tensor_info(self, _info: int) -> None:
        self.infos -= 1

    def element_type(self, info: int, out: Any) -> None:
        out[0] = self._of(info).element

    def rank(self, info: int, out: Any) -> None:
        out[0] = len(self._of(info).shape)

    def dimensions(self, info: int, out: Any, rank: int) -> None:
        for axis in range(rank):
            out[axis] = self._of(info).shape[axis]

    def tensor_data(self, value: int, out: Any) -> None:
        array = self._of(value).array
        out[0] = None if array is None else array.ctypes.data

    # ---- what a session does

    def register(self) -> tuple[int, str] | None:
        """Register the operators."""
        function = ctypes.CDLL(_native.__file__).RegisterCustomOps
        function.restype, function.argtypes = c_void_p, [c_void_p, c_void_p]
        return self._take(function(None, ctypes.addressof(self.base)))

    def _take(self, status: int | None) -> tuple[int, str] | None:
        """Return the content of a status, which must be the only unreleased one."""
        left, self.statuses = self.statuses, {}
        assert [*left] == ([] if status is None else [status]), left
        assert self.infos == 0
        return None if status is None else left[status]

    def create(self, name: str, **attributes: int | bytes) -> tuple[c_void_p, tuple[int, str] | None]:
        """Return a node's kernel for float32 and int64, or the error."""
        self.attributes = attributes
        self.operator = next(
            operator
            for operator in map(Operator.from_address, self.operators)
            for of_int64 in [name != "SegmentMax" or operator.input_type(ctypes.addressof(operator), 1) == INT64]
            if operator.name(ctypes.addressof(operator)) == name.encode()
            and operator.input_type(ctypes.addressof(operator), 0) == FLOAT32
            and of_int64
        )
        kernel = c_void_p()
        place = ctypes.addressof(self.operator)
        status = self.operator.create(place, ctypes.addressof(self.api), NO_POINTER, ctypes.byref(kernel))
        return kernel, self._take(status)

    @contextmanager
    def node(self, name: str, **attributes: int | bytes) -> Iterator[Callable[..., Any]]:
        """Yield a node's kernel as a function of the inputs that returns the result or the status."""
        kernel, status = self.create(name, **attributes)
        assert status is None, status

        def compute(*inputs: Tensor | None) -> Any:
            self.tensors, self.result = [*inputs], None
            failed = self._take(self.operator.compute(kernel, NO_POINTER))
            return failed if failed is not None or self.result is None else self.result.array

        yield compute
        CFUNCTYPE(None, c_void_p)(self.operator.destroy)(kernel)
