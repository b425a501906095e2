"""Which engine takes which arrays: the table, and the search through it by the types of all arguments.

Nothing is imported to look a type up: arrays of a library exist only after its import.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable
from typing import Any

from maxops.calls import Call
from maxops.engines.base import Engine, Row, check_options, class_of
from maxops.errors import ConfigurationError, DTypeError, EngineError
from maxops.plan.values import PYTHON_SCALARS, how_to_convert, is_python_scalar
from maxops.spec import Spec

_OUT, _DIM = frozenset({"out"}), frozenset({"dim"})
NUMPY = Row("numpy", ("numpy:ndarray", "numpy:generic"), "maxops.engines.numpy", options=_OUT)
# Any other array that NumPy can look at by a protocol.
INTERCHANGE = Row("interchange", (), "maxops.engines.interchange", frozenset({"numpy"}))
# Asked in this order; `register_engine` puts new rows first.
_rows = [
    NUMPY,
    Row("dask", ("dask.array:Array",), "maxops.engines.dask", frozenset({"numpy"})),
    Row(  # Datasets are refused there, which says how to map them
        "xarray",
        ("xarray:DataArray", "xarray:Variable", "xarray:Dataset", "xarray:DataTree"),
        "maxops.engines.xarray",
        frozenset({"numpy", "dask"}),
        _DIM,
    ),
    Row("torch", ("torch:Tensor",), "maxops.engines.torch", frozenset({"numpy"}), _OUT),
    Row("jax", ("jax:Array", "jax.core:Tracer"), "maxops.engines.jax", frozenset({"numpy"})),
    Row("cupy", ("cupy:ndarray",), "maxops.engines.cupy", options=_OUT),
]
# What holds no values in memory, though `__array__` would give them: it reads the whole file. By class, and what to do.
_READ_WHOLE = (
    ("zarr:Array", "dask.array.from_zarr(...) reads it chunk by chunk, and [...] the whole of it into memory"),
    ("h5py:Dataset", "dask.array.from_array(...) reads it chunk by chunk, and [...] the whole of it into memory"),
)
_known: dict[type, Row] = {}  # classes that were looked up already
_found: dict[tuple[type, ...], Row] = {}  # and the rows for a few together
_NO_ARRAYS = frozenset({type(None), *PYTHON_SCALARS})


def register_engine(
    name: str, types: str | type | Iterable[str | type], engine: str | Engine, *, beside: Iterable[str] = ("numpy",)
) -> None:
    """Have an engine of your own run `maximum`, `reduce_max` and `segment_max` on arrays of its types.

    >>> import numpy as np
    >>> import maxops as mo
    >>> class Meters:
    ...     def __init__(self, values):
    ...         self.values = values
    >>> class MetersEngine:
    ...     def run(self, call):
    ...         return Meters(mo.run(call.map(lambda name, value: getattr(value, "values", value))))
    >>> mo.register_engine("meters", Meters, MetersEngine())
    >>> mo.maximum(Meters(np.array([1, 5])), Meters(np.array([4, 2]))).values
    array([4, 5])

    Args:
        name: a name for messages, and for other engines' ``beside``. An engine of that name is replaced.
        types: the arrays' class or classes. A string "module:class" is looked up only once the module is
            imported.
        engine: an object with a function ``run``, which gets each call as one request, a `maxops.calls.MaxCall`,
            `ReduceCall` or `SegmentCall` with the arguments as they were spelled, and returns what the call does; or
            the name of such a module, to be imported at the first call. `maxops.run` runs a request, such as one of
            other arrays, by which ``call.map`` replaces its own.
        beside: the names of the engines whose arrays this one takes beside its own: "numpy", "dask", "xarray",
            "torch", "jax", "cupy", or another that was registered.

    An engine that is registered later is asked before those that are there. A call goes to the engine that takes
    the types of all its arrays.

    Raises ConfigurationError for types that are none, and for an engine without ``run``.
    """
    listed = (types,) if isinstance(types, (str, type)) else tuple(types)
    if not listed or not all(isinstance(kind, type) or (isinstance(kind, str) and ":" in kind) for kind in listed):
        raise ConfigurationError(f"the types of engine {name!r} are {types!r}; each is a class or 'module:class'")
    if not isinstance(engine, str) and not callable(getattr(engine, "run", None)):
        raise ConfigurationError(f"engine {name!r} has no function run; it runs a call by run(call)")
    row = Row(name, listed, engine, frozenset(beside), _OUT | _DIM)
    _rows[:] = [row, *(row for row in _rows if row.name != name)]
    _known.clear()
    _found.clear()


def _is_traced() -> bool:
    """Whether Dynamo reads these lines, which warns of whatever a traced function keeps."""
    torch = sys.modules.get("torch")
    return torch is not None and bool(torch.compiler.is_dynamo_compiling())


def row_of(kind: type) -> Row | None:
    """The row that takes arrays of a class, or None."""
    if (row := _known.get(kind)) is None:
        row = next((row for row in _rows if row.takes(kind)), None)
        if row is None and (hasattr(kind, "__dlpack__") or hasattr(kind, "__array__")):
            row = INTERCHANGE
        # INTERCHANGE's place an import or `register_engine` may still take
        if row is not None and row is not INTERCHANGE and not _is_traced():
            _known[kind] = row
    return row


def _how_to_read(kind: type) -> str | None:
    """The advice for arrays of a class whose `__array__` would read or compute the whole."""
    if hasattr(kind, "__dask_graph__"):  # every collection of Dask's that is not a dask.array.Array
        return ".values gives a dask.array.Array of it, and .compute() the whole of it in memory"
    return next((advice for name, advice in _READ_WHOLE if (c := class_of(name)) and issubclass(kind, c)), None)


def run(call: Call) -> Any:
    """Run a call on the engine that takes the types of all its arrays; None and Python scalars go with every engine."""
    kinds = call.kinds
    row = _found.get(kinds) or find(call.row, kinds, call.arrays)
    if call.out is not None or call.dim is not None or call.ties.__class__ is not str or call.ties != "even":
        check_options(row, call)
    return row.load().run(call)


def find(spec: Spec, kinds: tuple[type, ...], arrays: Iterable[tuple[str, object]]) -> Row:
    """The row for arrays by name, kept with their types."""
    rows: dict[str, tuple[Row, str, str]] = {}
    for name, value in arrays:
        if value is None or is_python_scalar(value):
            continue
        kind = type(value)
        if (row := row_of(kind)) is None:
            raise DTypeError(
                f"{spec.name} {name} is of type {kind.__name__}, not an array; {how_to_convert(value)}",
                spec.clause("arrays"),
            )
        if row is INTERCHANGE and (advice := _how_to_read(kind)):
            raise EngineError(
                f"{spec.name} {name} is of type {kind.__module__.partition('.')[0]} {kind.__qualname__}, whose values "
                f"are not in memory, and maxops reads none without being told: {advice}"
            )
        rows.setdefault(row.name, (row, name, kind.__name__))
    if not rows:
        return NUMPY
    for row, _, _ in rows.values():
        if all(other == row.name or other in row.beside for other in rows):
            if len(kinds) <= 8 and not _is_traced() and all(kind in _known or kind in _NO_ARRAYS for kind in kinds):
                _found[kinds] = row
            return row
    listed = ", ".join(f"{name} is of type {kind} ({row.name})" for row, name, kind in rows.values())
    raise EngineError(
        f"{spec.name} {listed}: no engine takes these together; convert one to the kind of the other",
        spec.clause("arrays"),
    )
