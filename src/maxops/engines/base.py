"""An engine: `run(call)`, the arrays that it takes, and the options that only it takes."""

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
    """An object or a module with `run`, which takes a request of `maxops.calls` and gives the results."""

    def run(self, call: Any, /) -> Any: ...  # noqa: D102


Run = Callable[[Call], Any]


def by_operator(
    maximum: Callable[[MaxCall], Any],
    reduce_max: Callable[[ReduceCall], Any],
    segment_max: Callable[[SegmentCall], Any],
) -> Run:
    """A `run` of three functions."""
    functions: dict[type, Callable[[Any], Any]] = {
        MaxCall: maximum,
        ReduceCall: reduce_max,
        SegmentCall: segment_max,
    }

    def run(call: Call) -> Any:
        return functions[type(call)](call)

    return run


def segments_along(axis: int, moveaxis: Callable[[Any, int, int], Any], results: Any) -> list[Any]:
    """Results of SegmentMax along the first axis, with the segments at `axis`.

    The mask of empty segments does not change, because it has one axis.
    """
    return [part if axis == 0 or part.ndim == 1 else moveaxis(part, 0, axis) for part in as_tuple(results)]


def as_tuple(result: Any) -> tuple[Any, ...]:
    """The results of a call, which is one of them where there are no others."""
    return result if isinstance(result, tuple) else (result,)


def alone_if_one(results: Sequence[Any]) -> Any:
    """The return value for these results: the inverse of `as_tuple`."""
    return tuple(results) if len(results) > 1 else results[0]


_imported: dict[str, Engine] = {}


@dataclass(frozen=True)
class Row:
    """An engine: its name, its array types, where it is, and the names of those whose arrays it takes beside its own.

    A type is a class, or "module:class" to be looked up once the module is imported. `options` are those of
    "out" and "dim" that it takes: where arrays never change there is no output, and few arrays' axes have names.
    """

    name: str
    types: tuple[str | type, ...]
    engine: str | Engine
    beside: frozenset[str] = frozenset()
    options: frozenset[str] = frozenset()

    def takes(self, kind: type) -> bool:
        """Whether arrays of this class are this engine's own."""
        return any(issubclass(kind, found) for named in self.types if (found := class_of(named)) is not None)

    def load(self) -> Engine:
        """The engine, imported now if it was not."""
        if not isinstance(self.engine, str):
            return self.engine
        if (engine := _imported.get(self.engine)) is None:
            # Looked up in its package first: PyTorch's compiler follows that, and no import by name.
            package, _, name = self.engine.rpartition(".")
            engine = getattr(sys.modules.get(package), name, None)
        if engine is None:
            engine = _imported[self.engine] = cast(Engine, importlib.import_module(self.engine))
        return engine


def check_options(row: Row, call: Call) -> None:
    """Raise for an option that the engine does not take, and for a choice of `ties` that is none."""
    check_ties(call)
    if call.out is not None and "out" not in row.options:
        raise OutputError(
            f"{call.row.name} out is given, but results of the {row.name} engine are always new arrays; leave it out",
            call.row.clause("out"),
        )
    if call.dim is not None and "dim" not in row.options:
        raise AttributeValueError(
            f"{call.row.name} dim is {shown(call.dim)}; only the dimensions of xarray's arrays have names; "
            "axis= takes numbers",
            call.row.clause("dim"),
        )


def check_ties(call: Call) -> None:
    """Raise unless `ties` names a rule for the gradient of equal maxima."""
    choice(call.row, "ties", call.ties, TIES)


def class_of(named: str | type) -> type | None:
    """A class, or the one that "module:class" names if the module is imported."""
    if isinstance(named, type):
        return named
    module, _, name = named.partition(":")
    found = getattr(sys.modules.get(module), name, None)
    return found if isinstance(found, type) else None
