"""The engine for xarray's DataArray and Variable. It converts names to axes, and calls the engine for the inner arrays.

xarray sets the names, coordinates and attributes of the results. Inner Dask arrays stay lazy.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from types import EllipsisType
from typing import Any, Literal

import numpy as np

from maxops.extras import needed

with needed("maxops.engines.xarray", "xarray"):
    import xarray as xr

from maxops.calls import Call, MaxCall, ReduceCall, SegmentCall
from maxops.engines import table
from maxops.engines.base import Run, alone_if_one, as_tuple, by_operator
from maxops.errors import AttributeValueError, AxesError, DTypeError, EngineError, NumSegmentsError, ShapeError
from maxops.plan import abstract, axis_of, plan_reduce_max
from maxops.plan.values import is_python_scalar
from maxops.shown import shown
from maxops.spec import Spec

Named = xr.DataArray | xr.Variable
# As in xarray's arithmetic, the result keeps the attributes that are equal in all inputs. With the option
# keep_attrs=False, the attributes are removed afterwards, because "drop" would also remove those of coordinates.
KEEP_ATTRS: Literal["drop_conflicts"] = "drop_conflicts"


def _maximum(call: MaxCall) -> Any:
    row, arrays = call.row, call.inputs
    _check(call)
    _check_sizes(row, arrays)

    def run(*within: Any) -> Any:
        return table.run(call._replace(inputs=within))

    try:
        # Every other join would drop elements with different labels, or add NaNs, which may change the dtype.
        result = xr.apply_ufunc(run, *arrays, join="exact", dask="allowed", keep_attrs=KEEP_ATTRS)
    except xr.AlignmentError as error:
        raise _labels_differ(row, "inputs", error) from error
    if not _keeps_attrs():
        result.attrs = {}
    if isinstance(result, xr.DataArray):
        labelled = {array.name for array in arrays if isinstance(array, xr.DataArray)}
        result.name = labelled.pop() if len(labelled) == 1 else None  # as in xarray's arithmetic
        return _of_class(_most_derived(arrays, xr.DataArray), result)
    return _of_class(_most_derived(arrays, xr.Variable), result)


def _reduce_max(call: ReduceCall) -> Any:
    """Run a ReduceMax call, with names converted to axes."""
    row, data = call.row, call.data
    _check(call)
    if call.dim is not None:
        if call.axes is not None:
            raise AttributeValueError(f"{row.name} got both dim and axes; pass only one of them", row.clause("dim"))
        axes = _axes_of(row, data, call.dim, call.noop_with_empty_axes)
        call = call._replace(axes=axes, dim=None)
    planned = plan_reduce_max(call._replace(data=abstract(data.shape, data.dtype)), in_memory=False).call
    result = table.run(call._replace(data=data.data))
    gone = [data.dims[axis] for axis in sorted(planned.axes)]
    left = [name for name in data.dims if planned.keepdims or name not in gone]
    return alone_if_one([_dress(data, part, gone, left, values=i == 0) for i, part in enumerate(as_tuple(result))])


def _segment_max(call: SegmentCall) -> Any:
    """Run a SegmentMax call. A segment dimension, named after the ids, replaces the row dimension."""
    row, data, segment_ids = call.row, call.data, call.segment_ids
    _check(call)
    if not isinstance(data, Named):
        raise EngineError(
            f"{row.name} data must be an xarray object if segment_ids or offsets is one, got {type(data).__name__}; "
            "pass xarray.DataArray(data, dims=...), or the .data of segment_ids and offsets",
            row.clause("arrays"),
        )
    along = _rows_of(row, data, segment_ids, _dim_of(row, data, call))
    axis = 0 if along is None else data.dims.index(along)
    if along is not None:
        _check_labels(row, data, segment_ids)
    within = call._replace(axis=axis, dim=None)
    result = table.run(within.map(lambda _, value: value.data if isinstance(value, Named) else value))
    assert along is not None  # the plan has rejected data without axes
    parts = list(as_tuple(result))
    if parts[0].shape[axis] != parts[0].shape[axis]:  # NaN, an unknown size in Dask
        raise NumSegmentsError(
            f"{row.name} requires num_segments for Dask ids, because xarray does not support dimensions of unknown "
            "size; pass num_segments=, or ids in memory",
            row.clause("num_segments"),
        )
    segments = _name_of_segments(row, data, segment_ids, along)
    empty = [parts.pop()] if call.return_empty else []
    dims = [segments if name == along else name for name in data.dims]
    dressed = [_dress(data, part, [along], dims, values=i == 0) for i, part in enumerate(parts)]
    # Create a Variable first, because a DataArray from a Dask array would use the array's key as its name.
    plain: list[Any] = [xr.Variable([segments], part) for part in empty]
    if isinstance(data, xr.DataArray):
        plain = [xr.DataArray(part) for part in plain]
    return alone_if_one([*dressed, *(_of_class(type(data), part) for part in plain)])


run: Run = by_operator(_maximum, _reduce_max, _segment_max)


# -------------------------------------------------------------------------------------------------- the call


def _check(call: Call) -> None:
    """Raise an error for Datasets, DataTrees, arrays without a NumPy dtype, and arrays that repeat a dimension."""
    row = call.row
    for name, value in call.arrays:
        if isinstance(value, (xr.Dataset, xr.DataTree)):
            raise DTypeError(
                f"{row.name} {name} must be a single array, got a {type(value).__name__}; select one, as in "
                "data['name'], or use dataset.map(maxops.reduce_max, dim=...), or xarray.apply_ufunc(maxops.maximum, "
                "..., dask='allowed') for several Datasets",
                row.clause("arrays"),
            )
        if isinstance(value, Named) and not isinstance(value.dtype, np.dtype):
            raise DTypeError(
                f"{row.name} {name} must have a NumPy dtype, got {value.dtype}; convert it with .astype(...), or pass "
                "its .data",
                row.clause("arrays"),
            )
        if isinstance(value, Named) and len(set(value.dims)) < value.ndim:
            raise ShapeError(
                f"{row.name} {name} has dimensions {value.dims}, but dimensions must be unique; rename one of them, or "
                "pass .data",
                row.clause("arrays"),
            )


def _check_sizes(row: Spec, arrays: Sequence[Any]) -> None:
    """Raise an error unless dimensions with equal names have equal sizes, and unnamed arrays broadcast to them."""
    sizes: dict[Hashable, tuple[int, int]] = {}
    for number, array in enumerate(arrays):
        for axis, (name, size) in enumerate(array.sizes.items() if isinstance(array, Named) else ()):
            other, where = sizes.setdefault(name, (size, number))
            if size != other:
                raise ShapeError(
                    f"{row.name} input {number} of shape {array.shape} does not match input {where} in dimension "
                    f"{name!r}: axis {axis - array.ndim} has size {size}, expected {other}",
                    row.clause("shape"),
                )
    whole = tuple(size for size, _ in sizes.values())
    for number, array in enumerate(arrays):
        if isinstance(array, Named) or is_python_scalar(array):
            continue
        fits = len(array.shape) <= len(whole) and all(
            size in (1, other) for size, other in zip(array.shape[::-1], whole[::-1], strict=False)
        )
        if not fits:
            raise ShapeError(
                f"{row.name} input {number} has shape {array.shape} and no dimension names, and does not broadcast to "
                f"the named dimensions {dict(zip(sizes, whole, strict=True))}",
                row.clause("shape"),
            )


def _check_labels(row: Spec, data: Named, ids: object) -> None:
    """Raise an error if the ids and the rows of data have different labels."""
    if not (isinstance(data, xr.DataArray) and isinstance(ids, xr.DataArray)):
        return
    if ids.shape != tuple(data.sizes[name] for name in ids.dims):  # the plan raises its own error
        return
    try:
        xr.align(data, ids, join="exact", copy=False)
    except xr.AlignmentError as error:
        raise _labels_differ(row, "data and segment_ids", error) from error


def _labels_differ(row: Spec, what: str, error: Exception) -> ShapeError:
    return ShapeError(
        f"{row.name} {what} have different labels, and maxops never drops or fills elements silently; align them first "
        f"with xarray.align(..., join=...) ({error})",
        row.clause("labels"),
    )


def _axes_of(row: Spec, data: Named, dim: Any, noop_with_empty_axes: object) -> tuple[int, ...]:
    """Return the axes of the named dimensions."""
    if isinstance(dim, EllipsisType):
        return tuple(range(data.ndim))
    listed = [dim] if isinstance(dim, str) or not isinstance(dim, Iterable) else list(dim)
    # an empty list is ambiguous: xarray reduces nothing, but ONNX reduces all axes
    if not listed and not noop_with_empty_axes:
        raise AttributeValueError(
            f"{row.name} dim must name at least one dimension; pass dim=... for all", row.clause("dim")
        )
    axes = tuple(_axis_of(row, data, name) for name in listed)
    if len(set(axes)) < len(axes):
        raise AxesError(f"{row.name} dim must not repeat a dimension, got {shown(dim)}", row.clause("dim"))
    return axes


def _axis_of(row: Spec, data: Named, name: Hashable) -> int:
    if name not in data.dims:
        there = ", ".join(map(repr, data.dims)) or "none"
        raise AttributeValueError(
            f"{row.name} dim must be a dimension of data ({there}), got {shown(name)}", row.clause("dim")
        )
    return data.dims.index(name)


def _dim_of(row: Spec, data: Named, call: SegmentCall) -> Hashable | None:
    """Return the dimension that dim or axis selects, or None for the default, axis=0."""
    axis = axis_of(row, call.axis, data.ndim) if data.ndim else 0
    if data.ndim == 0 or call.axis == 0:
        named: Hashable | None = call.dim
        return named
    if call.dim is not None:
        raise AttributeValueError(f"{row.name} got both dim and axis; pass only one of them", row.clause("dim"))
    return data.dims[axis]


def _rows_of(row: Spec, data: Named, ids: object, dim: Hashable | None) -> Hashable | None:
    """Return the dimension of the rows: `dim`, or the dimension of the ids, or the first dimension of data."""
    if data.ndim == 0:
        return None
    own = ids.dims[0] if isinstance(ids, Named) and ids.ndim == 1 else dim
    if dim is None:
        if own is not None and own not in data.dims:
            raise ShapeError(
                f"{row.name} segment_ids has dimension {own!r}, but data has {', '.join(map(repr, data.dims))}",
                row.clause("ids.shape"),
            )
        return data.dims[0] if own is None else own
    if own != dim:
        raise AttributeValueError(
            f"{row.name} dim is {shown(dim)}, but segment_ids has dimension {own!r}", row.clause("dim")
        )
    return data.dims[_axis_of(row, data, dim)]


def _name_of_segments(row: Spec, data: Named, ids: object, along: Hashable) -> Hashable:
    """Return the name of the segment dimension: the name of the ids, or of the row dimension if the ids have none."""
    if not isinstance(ids, xr.DataArray) or ids.name is None or ids.name == along:
        return along
    if ids.name == getattr(ids.data, "name", None):  # the key of a Dask array, which xarray uses as a name
        return along
    stays = [name for name in data.dims if name != along]
    if isinstance(data, xr.DataArray):
        stays += [name for name, coordinate in data.coords.items() if along not in coordinate.dims]
    if ids.name in stays:
        raise AttributeValueError(
            f"{row.name} segment_ids names the segment dimension {ids.name!r}, but data already has a dimension or "
            f"coordinate {ids.name!r}; rename one of them",
            row.clause("labels"),
        )
    return ids.name


# ----------------------------------------------------------------------------------------------- the results


def _dress(data: Named, part: Any, gone: Sequence[Hashable], dims: Sequence[Hashable], *, values: bool) -> Any:
    """Return a result with the dimensions `dims`, and the coordinates of data that do not use removed dimensions.

    Only maxima keep the name and the attributes of data. Indices do not, because their units differ.
    """
    others = [name for name in data.dims if name not in gone]
    new = [name for name in dims if name not in others]
    last = xr.Variable(dims, part).transpose(*others, *new).data  # apply_ufunc returns new dimensions last
    nothing = np.broadcast_to(np.uint8(0), data.shape)  # xarray would read data, or add it to a graph
    template = (
        data.copy(deep=False, data=nothing)
        if isinstance(data, xr.DataArray)
        else xr.Variable(data.dims, nothing, data.attrs)
    )
    result = xr.apply_ufunc(
        lambda _: last,
        template,
        input_core_dims=[gone],
        output_core_dims=[new],
        exclude_dims=set(gone),
        dask="allowed",
        keep_attrs=KEEP_ATTRS,
    ).transpose(*dims)
    if not (values and _keeps_attrs()):
        result.attrs = {}
    if not values and isinstance(result, xr.DataArray):
        result.name = None
    return _of_class(type(data), result)


def _most_derived(arrays: Iterable[Any], base: type[Named]) -> type[Named]:
    """Return the most derived class of the DataArrays or Variables. If several classes qualify, return the first."""
    kinds = [type(array) for array in arrays if isinstance(array, base)]
    return next(kind for kind in kinds if not any(other is not kind and issubclass(other, kind) for other in kinds))


def _of_class(kind: Any, result: Any) -> Any:
    """Convert the result to the class of the data, because xarray.apply_ufunc returns xarray's own classes."""
    if type(result) is kind or issubclass(kind, xr.IndexVariable):  # an IndexVariable can contain only a 1-D index
        return result
    if isinstance(result, xr.Variable):
        return kind(result.dims, result.data, result.attrs)
    # The constructor would deep-copy the coordinates and their attributes.
    return kind(result.variable, name=result.name).assign_coords(result.coords)


def _keeps_attrs() -> bool:
    options: Any = xr.get_options  # xarray does not annotate this function
    return options()["keep_attrs"] is not False
