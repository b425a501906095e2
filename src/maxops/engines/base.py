"""The interface of engines, and the rows of the table that selects an engine by the types of arrays.

An engine runs the max operators on the arrays of one library, such as PyTorch.
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, cast

from maxops import spec
from maxops.calls import Call, MaxCall, ReduceCall, SegmentCall
from maxops.errors import AttributeValueError, OutputError
from maxops.plan import choice
from maxops.shown import shown

TIES = spec.MAXIMUM.choices("ties")


class Engine(Protocol):
    """An object or module with a function `run`, which runs a call of `maxops.calls` and returns its results."""

    def run(self, call: Any, /) -> Any: ...  # noqa: D102


Run = Callable[[Call], Any]


def by_operator(
    maximum: Callable[[MaxCall], Any],
    reduce_max: Callable[[ReduceCall], Any],
    segment_max: Callable[[SegmentCall], Any],
) -> Run:
    """Combine the functions of the operators into a function `run`, which selects one of them by the type of a call."""
    functions: dict[type, Callable[[Any], Any]] = {
        MaxCall: maximum,
        ReduceCall: reduce_max,
        SegmentCall: segment_max,
    }

    def run(call: Call) -> Any:
        return functions[type(call)](call)

    return run


def segments_along(axis: int, moveaxis: Callable[[Any, int, int], Any], results: Any) -> list[Any]:
    """Move the axis of the segments in the results of SegmentMax from the first position to `axis`.

    The mask of empty segments, which has only one axis, is unchanged.
    """
    return [part if axis == 0 or part.ndim == 1 else moveaxis(part, 0, axis) for part in as_tuple(results)]


def as_tuple(result: Any) -> tuple[Any, ...]:
    """Return the results of a call as a tuple, even if there is only one."""
    return result if isinstance(result, tuple) else (result,)


def alone_if_one(results: Sequence[Any]) -> Any:
    """Return a single result, or several results as a tuple. This is the inverse of `as_tuple`."""
    return tuple(results) if len(results) > 1 else results[0]


loaded: dict[str, Engine] = {}


@dataclass(frozen=True)
class Row:
    """A row of the table of engines.

    ``types`` contains the array types of the engine: classes, or strings "module:class" that are looked up after the
    module is imported. ``engine`` is the engine or the name of its module. ``beside`` contains the names of other
    engines whose arrays this engine also accepts. ``options`` lists which of the options "out" and "dim" it
    supports.
    """

    name: str
    types: tuple[str | type, ...]
    engine: str | Engine
    beside: frozenset[str] = frozenset()
    options: frozenset[str] = frozenset()

    def takes(self, kind: type) -> bool:
        """Return whether a class is one of the engine's array types."""
        return any(is_of(kind, named) for named in self.types)

    def load(self) -> Engine:
        """Return the engine, and import it on first use."""
        if not isinstance(self.engine, str):
            return self.engine
        if (engine := loaded.get(self.engine)) is None:
            # Look up the engine in its package first, because PyTorch's compiler cannot trace an import by name.
            package, _, name = self.engine.rpartition(".")
            engine = getattr(sys.modules.get(package), name, None)
        if engine is None:
            engine = loaded[self.engine] = cast(Engine, importlib.import_module(self.engine))
        return engine


def check_options(row: Row, call: Call) -> None:
    """Raise an error for an option that the engine does not support, or for an invalid value of `ties`."""
    check_ties(call)
    if call.out is not None and "out" not in row.options:
        raise OutputError(
            f"{call.row.name} out= is not supported by the {row.name} engine, which always returns new arrays",
            call.row.clause("out"),
        )
    if call.dim is not None and "dim" not in row.options:
        raise AttributeValueError(
            f"{call.row.name} dim= requires xarray arrays, got dim={shown(call.dim)} with arrays of the "
            f"{row.name} engine; pass axis= with axis numbers instead",
            call.row.clause("dim"),
        )


def check_ties(call: Call) -> None:
    """Raise an error unless `ties` is a supported rule for distributing the gradient among tied elements."""
    choice(call.row, "ties", call.ties, TIES)


def is_imported(module: str) -> bool:
    """Return whether a module is imported."""
    return sys.modules.get(module) is not None


def is_of(kind: type, named: str | type) -> bool:
    """Return whether a class is a subclass of `named`. A name "module:class" matches only if the module is imported."""
    if isinstance(named, type):
        return issubclass(kind, named)
    module, _, name = named.partition(":")
    found = getattr(sys.modules.get(module), name, None)
    return isinstance(found, type) and issubclass(kind, found)


# Set the attribute that `torch.compiler.assume_constant_result` sets, without importing torch. Dynamo then calls these
# functions instead of tracing them, because tracing would add a guard for each module in `sys.modules`.
_lookups: tuple[Any, ...] = (is_imported, is_of)
for _lookup in _lookups:
    _lookup._dynamo_marked_constant = True
