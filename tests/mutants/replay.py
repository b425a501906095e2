"""The calls of the enumerations, recorded with what they gave, to be made again in a fraction of the time.

An enumeration spends most of its time on inputs and on what it expects. Here it runs once, its calls are kept, and
then they run alone, some at a time: against a mutant only those that it can change. Their inputs lie at the end of a
page, or at the beginning of one, beside pages that nobody may read.
"""

from __future__ import annotations

import ctypes
import functools
import mmap
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from types import ModuleType, SimpleNamespace
from typing import Any

import numpy as np

Array = np.ndarray[Any, np.dtype[Any]]
CHUNK = 24  # calls


def base_of(array: Array) -> Any:
    """What an array is a view of, in the end."""
    base = array
    while isinstance(base, np.ndarray) and base.base is not None:
        base = base.base
    return base


class Fence:
    """Memory between pages that end the process which reads them."""

    SIZE = 1 << 16

    def __init__(self) -> None:
        page = mmap.PAGESIZE
        self._all = mmap.mmap(-1, self.SIZE + 2 * page, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
        whole = np.frombuffer(self._all, np.uint8)
        self.bytes = whole[page : page + self.SIZE]
        libc = ctypes.CDLL(None, use_errno=True)
        for at in (0, page + self.SIZE):
            if libc.mprotect(ctypes.c_void_p(whole.ctypes.data + at), page, 0) != 0:
                raise OSError(ctypes.get_errno(), "mprotect")


class Fenced:
    """Arrays of a call as they lie in fences, one for each memory that they are views of."""

    def __init__(self, fences: list[Fence], at_end: bool, without: Array | None) -> None:
        self.fences, self.at_end, self.without = fences, at_end, without
        self.places: dict[int, tuple[Array, Array]] = {}  # by memory: its bytes, and where they are put

    def placed(self, value: Any) -> Any:
        """The same array in a fence; what is none, is part of the output or is too large, as it is."""
        if type(value) is not np.ndarray or value.dtype.hasobject:
            return value
        base = base_of(value)
        if type(base) is not np.ndarray or base is self.without or not 0 < base.nbytes <= Fence.SIZE:
            return value
        if not (base.flags.c_contiguous or base.flags.f_contiguous):
            return value
        if id(base) not in self.places:
            number = len(self.places)
            if number == len(self.fences):
                self.fences.append(Fence())
            place = self.fences[number].bytes
            there = place[Fence.SIZE - base.nbytes :] if self.at_end else place[: base.nbytes]
            self.places[id(base)] = base.reshape(-1, order="A").view(np.uint8), there
        there = self.places[id(base)][1]
        offset = value.__array_interface__["data"][0] - base.__array_interface__["data"][0]
        array: Array = np.ndarray(value.shape, value.dtype, there, offset, value.strides)
        array.flags.writeable = value.flags.writeable
        return array

    def fill(self) -> None:
        """Put what the memories hold into their places."""
        for was, there in self.places.values():
            there[...] = was


@dataclass
class Call:
    """One call: its output's memory as it was before, and what it gave."""

    function: Callable[..., Any]
    inputs: tuple[Any, ...]
    options: dict[str, Any]
    threads: int
    memory: Array | None  # all that `out` is a part of
    before: Array | None
    unspecified: bool  # what `out` holds: of wrong ids that nobody checks, only that nothing else changed
    fenced: Fenced
    expected: Any = None

    def make(self) -> Any:
        """What it gives, as bytes, and how a new output is laid out."""
        self.fenced.fill()
        if self.memory is not None:
            self.memory[...] = self.before
        try:
            given = self.function(*self.inputs, **self.options)
        except (ValueError, TypeError, ArithmeticError, LookupError, RuntimeError, MemoryError) as error:
            return type(error), str(error), None if self.memory is None else self.memory.tobytes()
        if self.memory is not None:
            if self.unspecified:
                self.options["out"][...] = 0
            return self.memory.tobytes()
        return [(x.dtype, x.shape, x.strides, x.tobytes()) for x in (given if isinstance(given, tuple) else (given,))]


class Recorder:
    """Stands where an enumeration has `maxops`, and keeps its calls."""

    def __init__(self, maxops: ModuleType) -> None:
        self.maxops = maxops
        self.calls: list[Call] = []
        self.fences: list[Fence] = []
        self.threads = 1
        self.mode: Callable[[], AbstractContextManager[None]] | None = None  # of the processor, for the calls

    def record(self, modules: Sequence[ModuleType], task: Callable[[], None]) -> None:
        """Run an enumeration of these modules on one thread, whichever number it asks for."""
        names = ("mo", "threads", "subnormals_as_zero")
        before: list[tuple[ModuleType, list[Any]]] = [
            (module, [vars(module).get(name) for name in names]) for module in modules
        ]
        for module, (_, _, mode) in before:
            module.mo, module.threads = self, self._threads  # type: ignore[attr-defined]
            module.subnormals_as_zero = functools.partial(self._in_mode, mode)  # type: ignore[attr-defined]
        try:
            task()
        finally:
            for module, were in before:
                for name, was in zip(names, were, strict=True):
                    setattr(module, name, was)

    @contextmanager
    def _threads(self, count: int) -> Iterator[None]:
        self.threads = count
        yield
        self.threads = 1

    @contextmanager
    def _in_mode(self, mode: Any) -> Iterator[None]:
        self.mode = mode
        yield
        self.mode = None

    @property
    def _native(self) -> Any:
        """As maxops._native, for what must not be left to the planner: there it is None, and noticed."""
        native = self.maxops._native
        return SimpleNamespace(segment_max=lambda *inputs, **options: self._call(native.segment_max, inputs, options))

    def _call(self, function: Callable[..., Any], inputs: tuple[Any, ...], options: dict[str, Any]) -> Any:
        out = options.get("out")
        memory = None if out is None else base_of(out)
        before = None if memory is None else memory.copy()
        ids = np.asarray(inputs[1]) if options.get("check_ids") is False else np.zeros(1)
        if self.mode is not None:
            function = functools.partial(_within, self.mode, function)
        unspecified = bool((ids[1:] < ids[:-1]).any())
        fenced = Fenced(self.fences, len(self.calls) % 2 == 0, memory)
        near = tuple(map(fenced.placed, inputs))
        near_options = {name: value if name == "out" else fenced.placed(value) for name, value in options.items()}
        call = Call(function, near, near_options, self.threads, memory, before, unspecified, fenced)
        call.expected = call.make()
        self.calls.append(call)
        return _again(call)

    def call(self, function: Callable[..., Any], *inputs: Any, **options: Any) -> Any:
        """A call of another function, which gives arrays."""
        return self._call(function, inputs, options)

    def maximum(self, *inputs: Any, **options: Any) -> Any:
        """As maxops.maximum."""
        return self._call(self.maxops.maximum, inputs, options)

    def reduce_max(self, *inputs: Any, **options: Any) -> Any:
        """As maxops.reduce_max."""
        return self._call(self.maxops.reduce_max, inputs, options)

    def segment_max(self, *inputs: Any, **options: Any) -> Any:
        """As maxops.segment_max."""
        return self._call(self.maxops.segment_max, inputs, options)


def _within(
    mode: Callable[[], AbstractContextManager[None]], function: Callable[..., Any], *inputs: Any, **options: Any
) -> Any:
    with mode():
        return function(*inputs, **options)


def _again(call: Call) -> Any:
    """The call's result or error, for the enumeration to look at."""
    call.fenced.fill()
    if call.memory is not None:
        call.memory[...] = call.before
    return call.function(*call.inputs, **call.options)


def chunks(calls: list[Call]) -> list[list[Call]]:
    """Some at a time, of one number of threads."""
    made: list[list[Call]] = []
    for call in calls:
        if not made or len(made[-1]) == CHUNK or made[-1][0].threads != call.threads:
            made.append([])
        made[-1].append(call)
    return made
