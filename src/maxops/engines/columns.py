"""Convert columns and tables of pandas, Polars and Arrow to NumPy arrays without changing values, or raise an error.

The libraries' own conversions to NumPy may turn integers with nulls, and columns of several dtypes, into floats. This
module reads the element type first, and never requests an array of another dtype.
"""

from __future__ import annotations

import sys
from bisect import bisect_left
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from maxops import dtypes
from maxops.engines.base import is_of
from maxops.errors import DTypeError, ShapeError
from maxops.plan import Array
from maxops.plan.values import int_of, is_integer
from maxops.spec import Spec


def array_of(row: Spec, name: str, value: Any) -> Array | None:
    """Return the elements of a column, or of a table with columns of one type. Return None for other values."""
    where = f"{row.name} {name} of type {type(value).__name__}"
    for library, look in (("pandas", _of_pandas), ("polars", _of_polars), ("pyarrow", _of_arrow)):
        module = sys.modules.get(library)  # a value can be from a library only if the library is imported
        if module is not None and (array := look(row, where, module, value)) is not None:
            return array
    return None


def check_labels(row: Spec, named: Iterable[tuple[str, Any]]) -> None:
    """Raise an error if two values have different labels along the same axis. Axes are counted from the last."""
    seen: dict[int, tuple[str, Any]] = {}
    for name, value in named:
        for axis, labels in _labels(value).items():
            before, other = seen.setdefault(axis, (name, labels))
            _check_equal(row, name, labels, before, other)


def check_rows(row: Spec, data: Any, segment_ids: Any, axis: Any) -> None:
    """Raise an error if ids and data along `axis` have different labels. The planner rejects an invalid axis."""
    rows, ids = _labels_along(data, axis), _labels_along(segment_ids, 0)
    if rows is not None and ids is not None:
        _check_equal(row, "segment_ids", ids, "data", rows)


def _check_equal(row: Spec, name: str, labels: Any, before: str, other: Any) -> None:
    if not _are_equal(labels, other):
        raise ShapeError(
            f"{row.name} {name} and {before} have different labels: {_first_difference(labels, other)}; maxops does "
            "not align labels; align them first with left.align(right), right.reindex(left.index) or "
            "table.select(names), or drop them with .to_numpy()",
            row.clause("labels"),
        )


# ------------------------------------------------------------------------------------------------ the types


def _one_type(row: Spec, where: str, columns: Sequence[tuple[Any, Any]], element: Any) -> np.dtype[Any]:
    """Return the common NumPy dtype of columns, given as pairs of a name and the library's dtype."""
    if not columns:
        raise DTypeError(f"{where} has no columns, and therefore no dtype", row.clause("types"))
    found: dict[Any, Any] = {}
    seen: set[Any] = set()
    for label, own in columns:
        if own in seen:
            continue
        seen.add(own)
        dtype = element(own)
        if dtype is None or dtypes.of(dtype) is None:
            column = "" if label is None else f" in column {label!r}"
            raise DTypeError(f"{where} has unsupported dtype {own}{column}; {_HINT}", row.clause("types"))
        found.setdefault(dtype, label)
    if len(found) > 1:
        listed = ", ".join(f"{dtype} in column {label!r}" for dtype, label in found.items())
        raise DTypeError(
            f"{where} has columns of different dtypes, {listed}; select columns of one dtype, or convert them with "
            ".astype(...) or .cast(...), which may change values",
            row.clause("types"),
        )
    one: np.dtype[Any] = next(iter(found))
    return one


_HINT = (
    "convert it to numbers: text to ids (pandas.factorize(...)[0] or, in Polars, .rank('dense') - 1), categories to "
    "codes (.cat.codes, .to_physical()) or values, times to integers in a unit of your choice"
)


def _refuse_nulls(row: Spec, where: str, count: int) -> None:
    if count:
        nulls, them = ("1 null", "it") if count == 1 else (f"{count} nulls", "them")
        raise DTypeError(
            f"{where} contains {nulls}, which NumPy arrays cannot represent; fill {them} with .fillna(...) or "
            f".fill_null(...), or drop {them} with .dropna() or .drop_nulls()",
            row.clause("types"),
        )


# -------------------------------------------------------------------------------------------- the libraries


def _is_a(value: Any, *classes: str) -> bool:
    """Return whether a value is of one of the classes. Classes that a module lacks match no value.

    A module lacks them while another thread imports it, or if a program or its tests replace it with a stub.
    """
    return any(is_of(type(value), named) for named in classes)


def _of_pandas(row: Spec, where: str, pandas: Any, value: Any) -> Array | None:
    if _is_a(value, "pandas:DataFrame"):
        columns = list(value.dtypes.items())
    elif _is_a(value, "pandas:Series", "pandas:Index", "pandas.api.extensions:ExtensionArray"):
        columns = [(None, value.dtype)]
    else:
        return None
    sparse = pandas.SparseDtype
    dtype = _one_type(row, where, columns, lambda own: own.subtype if isinstance(own, sparse) else _pandas_element(own))
    # NaN in NumPy's float dtypes is a value and not a null.
    may_hold_nulls = [i for i, (_, own) in enumerate(columns) if not isinstance(own, (np.dtype, sparse))]
    if may_hold_nulls:
        part = value.iloc[:, may_hold_nulls] if isinstance(value, pandas.DataFrame) else value
        _refuse_nulls(row, where, int(np.count_nonzero(part.isna())))
    array: Array = value.to_numpy(dtype=dtype)
    return array


def _pandas_element(dtype: Any) -> Any:
    """Return the NumPy equivalent of a pandas dtype, or None if NumPy has no equivalent."""
    if isinstance(dtype, np.dtype):
        return dtype
    own = getattr(dtype, "numpy_dtype", None)
    return own if isinstance(own, np.dtype) and own != np.dtype(object) else None


def _of_polars(row: Spec, where: str, polars: Any, value: Any) -> Array | None:
    if _is_a(value, "polars:DataFrame"):
        columns, parts = list(value.schema.items()), value.get_columns()
        for label, own in columns:
            if isinstance(own, polars.Array):  # Polars converts such tables to object arrays
                raise DTypeError(
                    f"{where} has unsupported dtype {own} in column {label!r}, because each column of a table must "
                    f"contain scalars; pass the column alone, such as table[{label!r}]",
                    row.clause("types"),
                )
    elif _is_a(value, "polars:Series"):
        columns, parts = [(None, value.dtype)], [value]
    else:
        return None
    _one_type(row, where, columns, _polars_element)
    _refuse_nulls(row, where, sum(map(_polars_nulls, parts)))
    array: Array = value.to_numpy()
    return array


def _polars_element(dtype: Any) -> Any:
    """Return the NumPy equivalent of a Polars dtype (for an Array dtype, of its elements), or None if it has none."""
    while hasattr(dtype, "inner") and hasattr(dtype, "shape"):
        dtype = dtype.inner
    name = "bool" if str(dtype) == "Boolean" else str(dtype).lower()
    return next((row.numpy for row in dtypes.ALL if row.name == name), None)


def _polars_nulls(series: Any) -> int:
    count = int(series.null_count())
    while count == 0 and hasattr(series.dtype, "inner"):
        series = series.explode()
        count = int(series.null_count())
    return count


def _of_arrow(row: Spec, where: str, arrow: Any, value: Any) -> Array | None:
    if _is_a(value, "pyarrow:Table", "pyarrow:RecordBatch"):
        columns = [(field.name, field.type) for field in value.schema]
        parts = value.columns
    elif _is_a(value, "pyarrow:Array", "pyarrow:ChunkedArray"):
        columns, parts = [(None, value.type)], [value]
    else:
        return None
    _one_type(row, where, columns, _arrow_element)
    _refuse_nulls(row, where, sum(part.null_count for part in parts))
    arrays = [
        part.to_numpy(zero_copy_only=False) if isinstance(part, arrow.Array) else part.to_numpy() for part in parts
    ]
    return arrays[0] if columns[0][0] is None else np.column_stack(arrays)


def _arrow_element(kind: Any) -> Any:
    """Return the NumPy equivalent of an Arrow type, or None if NumPy has no equivalent."""
    try:
        dtype = np.dtype(kind.to_pandas_dtype())
    except NotImplementedError:
        return None
    return None if dtype == np.dtype(object) else dtype


# ----------------------------------------------------------------------------------------------- the labels


def _labels(value: Any) -> dict[int, Any]:
    """Return the row and column labels of a value, keyed by axis. Axes are counted from the last."""
    if _is_a(value, "pandas:DataFrame"):
        return {-2: value.index, -1: value.columns}
    if _is_a(value, "pandas:Series"):
        return {-1: value.index}
    if _is_a(value, "polars:DataFrame"):
        return {-1: value.columns}
    if _is_a(value, "pyarrow:Table", "pyarrow:RecordBatch"):
        return {-1: value.schema.names}
    return {}


def _labels_along(value: Any, axis: Any) -> Any:
    """Return the labels of a value along an axis, or None if it has none. The rows of a Polars table have no labels."""
    labels = _labels(value)
    if not labels or not is_integer(axis):
        return None
    place = int_of(axis)
    return labels.get(place - len(value.shape) if place >= 0 else place)


def _are_equal(labels: Any, other: Any) -> bool:
    if hasattr(labels, "equals") and hasattr(other, "equals"):
        return bool(labels.equals(other))
    return list(labels) == list(other)


def _first_difference(labels: Any, other: Any) -> str:
    if len(labels) != len(other):
        return f"{len(labels)} and {len(other)} labels"
    # Compare slices from the start, because single labels may be nulls, which are not equal to themselves.
    position = bisect_left(range(1, len(labels)), True, key=lambda n: not _are_equal(labels[:n], other[:n]))
    return f"{labels[position]!r} and {other[position]!r} at position {position}"
