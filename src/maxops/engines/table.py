"""Dispatches calls to engines by the types of their arrays.

A lookup never imports a library, because arrays of a library exist only after a program has imported it.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from maxops.calls import Call
from maxops.engines.base import Engine, Row, check_options, is_imported, is_of
from maxops.errors import ConfigurationError, DTypeError, EngineError
from maxops.plan.values import PYTHON_SCALARS, how_to_convert, is_python_scalar
from maxops.spec import Spec

_OUT, _DIM = frozenset({"out"}), frozenset({"dim"})
NUMPY = Row("numpy", ("numpy:ndarray", "numpy:generic"), "maxops.engines.numpy", options=_OUT)
# The engine for arrays of other libraries that NumPy can read through a protocol.
INTERCHANGE = Row("interchange", (), "maxops.engines.interchange", frozenset({"numpy"}))
# The engines in the order of the lookup. `register_engine` inserts new rows at the beginning.
_rows = [
    NUMPY,
    Row("dask", ("dask.array:Array",), "maxops.engines.dask", frozenset({"numpy"})),
    Row(  # the engine rejects Datasets with a hint to map over them
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
# The classes of arrays that are stored in files, each with a hint. Their `__array__` would read the whole array.
_READ_WHOLE = (
    ("zarr:Array", "read it in chunks with dask.array.from_zarr(...), or load all of it with [...]"),
    ("h5py:Dataset", "read it in chunks with dask.array.from_array(...), or load all of it with [...]"),
)
_known: dict[type, Row] = {}  # the engine for each class of arrays
_found: dict[tuple[type, ...], Row] = {}  # the engine for each combination of classes
_NO_ARRAYS = frozenset({type(None), *PYTHON_SCALARS})


def register_engine(
    name: str,
    types: str | type | Iterable[str | type],
    engine: str | Engine,
    *,
    beside: str | Iterable[str] = ("numpy",),
) -> None:
    """Register an engine that runs `maximum`, `reduce_max` and `segment_max` on arrays of its types.

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
        name: the name of the engine in messages and in ``beside`` of other engines. An engine with the same name is
            replaced.
        types: the class or classes of the arrays. A string "module:class" is looked up after the module is imported.
        engine: an object with a function ``run``, or the name of a module that defines ``run`` and is imported at the
            first call. ``run`` receives each call as a `maxops.calls.MaxCall`, `ReduceCall` or `SegmentCall` with the
            unchanged arguments, and returns the results. It can replace the arrays with ``call.map``, and pass the new
            call to `maxops.run`.
        beside: the name or names of other engines whose arrays this engine also accepts: "numpy", "dask", "xarray",
            "torch", "jax", "cupy", or a registered engine.

    A call runs on an engine that accepts the types of all its arrays. If several engines support the same type, the
    engine that was registered last takes precedence.

    Raises ConfigurationError for invalid types or names, and for an engine without ``run``.
    """
    listed, others = (
        tuple(each) if isinstance(each, Iterable) and not isinstance(each, (str, type)) else (each,)
        for each in (types, beside)
    )
    if not listed or not all(isinstance(kind, type) or (isinstance(kind, str) and ":" in kind) for kind in listed):
        raise ConfigurationError(f"types of engine {name!r} must be classes or 'module:class' strings, got {types!r}")
    if not isinstance(engine, str) and not callable(getattr(engine, "run", None)):
        raise ConfigurationError(f"engine {name!r} must have a function run(call)")
    if not all(isinstance(each, str) for each in (name, *others)):
        raise ConfigurationError(f"name and beside of an engine must be strings, got {name!r} and {beside!r}")
    row = Row(name, listed, engine, frozenset(map(str, others)), _OUT | _DIM)
    _rows[:] = [row, *(row for row in _rows if row.name != name)]
    _known.clear()
    _found.clear()


def _is_traced() -> bool:
    """Return whether Dynamo is tracing. If so, callers cache nothing, because Dynamo warns about changed globals."""
    if not is_imported("torch.compiler"):  # not "torch", which may be a stub of a program or its tests
        return False
    import torch  # noqa: PLC0415 - already imported

    return bool(torch.compiler.is_dynamo_compiling())


def row_of(kind: type) -> Row | None:
    """Return the row of the engine for arrays of a class, or None if no engine supports them."""
    if (row := _known.get(kind)) is None:
        row = next((row for row in _rows if row.takes(kind)), None)
        if row is None and (hasattr(kind, "__dlpack__") or hasattr(kind, "__array__")):
            row = INTERCHANGE
        # do not cache INTERCHANGE, because an import or `register_engine` may still add a more specific row
        if row is not None and row is not INTERCHANGE and not _is_traced():
            _known[kind] = row
    return row


def _how_to_read(kind: type) -> str | None:
    """Return a hint for arrays whose `__array__` would read or compute the whole array, or None for other arrays."""
    if hasattr(kind, "__dask_graph__"):  # a Dask collection other than dask.array.Array
        return "convert it to a dask.array.Array with .values, or load all of it with .compute()"
    return next((advice for name, advice in _READ_WHOLE if is_of(kind, name)), None)


def run(call: Call) -> Any:
    """Run a call on an engine that accepts all its arrays. Every engine accepts None and Python scalars."""
    kinds = call.kinds
    row = _found.get(kinds) or find(call.row, kinds, call.arrays)
    if call.out is not None or call.dim is not None or call.ties.__class__ is not str or call.ties != "even":
        check_options(row, call)
    return row.load().run(call)


def find(spec: Spec, kinds: tuple[type, ...], arrays: Iterable[tuple[str, object]]) -> Row:
    """Return the row of an engine that accepts all `arrays`, and cache it by their types.

    Each array is paired with the name of its argument, for error messages. `spec` is the operator's specification.
    """
    rows: dict[str, tuple[Row, str, str]] = {}
    for name, value in arrays:
        if value is None or is_python_scalar(value):
            continue
        kind = type(value)
        if (row := row_of(kind)) is None:
            raise DTypeError(
                f"{spec.name} {name} must be an array, got {kind.__name__}; {how_to_convert(value)}",
                spec.clause("arrays"),
            )
        if row is INTERCHANGE and (advice := _how_to_read(kind)):
            raise EngineError(
                f"{spec.name} {name} of type {kind.__module__.partition('.')[0]} {kind.__qualname__} is not in memory, "
                f"and maxops does not load it implicitly: {advice}"
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
        f"{spec.name} {listed}: no engine supports these types together; convert them to one type",
        spec.clause("arrays"),
    )
