"""The calls of the enumerations, recorded with what they gave, to be made again in a fraction of the time.

An enumeration spends most of its time on inputs and on what it expects. Here it runs once, its calls are kept, and
then they run alone, some at a time: against a mutant only those that it can change.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from types import ModuleType
from typing import Any

import numpy as np

Array = np.ndarray[Any, np.dtype[Any]]
CHUNK = 24  # calls


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
    expected: Any = None

    def make(self) -> Any:
        """What it gives, as bytes."""
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
        return [(x.dtype, x.shape, x.tobytes()) for x in (given if isinstance(given, tuple) else (given,))]


class Recorder:
    """Stands where an enumeration has `maxops`, and keeps its calls."""

    def __init__(self, maxops: ModuleType) -> None:
        self.maxops = maxops
        self.calls: list[Call] = []
        self.threads = 1

    def record(self, modules: list[ModuleType], task: Callable[[], None]) -> None:
        """Run an enumeration of these modules on one thread, whichever number it asks for."""
        before = [(module, vars(module).get("mo"), vars(module).get("threads")) for module in modules]
        for module in modules:
            module.mo, module.threads = self, self._threads  # type: ignore[attr-defined]
        try:
            task()
        finally:
            for module, maxops, threads in before:
                module.mo, module.threads = maxops, threads  # type: ignore[attr-defined]

    @contextmanager
    def _threads(self, count: int) -> Iterator[None]:
        self.threads = count
        yield
        self.threads = 1

    def _call(self, function: Callable[..., Any], inputs: tuple[Any, ...], options: dict[str, Any]) -> Any:
        out = options.get("out")
        memory = out
        while memory is not None and memory.base is not None:
            memory = memory.base
        before = None if memory is None else memory.copy()
        ids = np.asarray(inputs[1]) if options.get("check_ids") is False else np.zeros(1)
        call = Call(function, inputs, options, self.threads, memory, before, bool((ids[1:] < ids[:-1]).any()))
        call.expected = call.make()
        self.calls.append(call)
        return _again(call)

    def maximum(self, *inputs: Any, **options: Any) -> Any:
        """As maxops.maximum."""
        return self._call(self.maxops.maximum, inputs, options)

    def reduce_max(self, *inputs: Any, **options: Any) -> Any:
        """As maxops.reduce_max."""
        return self._call(self.maxops.reduce_max, inputs, options)

    def segment_max(self, *inputs: Any, **options: Any) -> Any:
        """As maxops.segment_max."""
        return self._call(self.maxops.segment_max, inputs, options)


def _again(call: Call) -> Any:
    """The call's result or error, for the enumeration to look at."""
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
