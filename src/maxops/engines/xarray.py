"""The engine for xarray's DataArray and Variable: it converts names to axes, and calls the inner arrays' engine.

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
from maxops.errors import (
    AttributeValueError,
    AxesError,
    DTypeError,
    EngineError,
    NumSegmentsError,
    ShapeError,
)
from maxops.plan import abstract, axis_of, plan_reduce_max
from maxops.plan.values import is_python_scalar
from maxops.shown import shown
from maxops.spec import Spec

Named = xr.DataArray | xr.Variable
# As xarray's arithmetic: attributes are kept where the inputs agree. Without them under the option keep_attrs=False,
# but "drop" would take those of the coordinates, too.
KEEP_ATTRS: Literal["drop_conflicts"] = "drop_conflicts"


def _maximum(call: MaxCall) -> Any:
    row, arrays = call.row, call.inputs
    _check(call)
    _check_sizes(row, arrays)

    def run(*within: Any) -> Any:
        return table.run(call._replace(inputs=within))

    try:
        # Labels that differ would drop elements, or add NaNs of another type, under every other join.
        result = xr.apply_ufunc(run, *arrays, join="exact", dask="allowed", keep_attrs=KEEP_ATTRS)
    except xr.AlignmentError as error:
        raise _labels_differ(row, "the inputs", error) from error
    if not _keeps_attrs():
        result.attrs = {}
    if isinstance(result, xr.DataArray):
        labelled = {array.name for array in arrays if isinstance(array, xr.DataArray)}
        result.name = labelled.pop() if len(labelled) == 1 else None  # as xarray's own arithmetic has it
        return _of_class(_most_derived(arrays, xr.DataArray), result)
    return _of_class(_most_derived(arrays, xr.Variable), result)


def _reduce_max(call: ReduceCall) -> Any:
    """Run a call of ReduceMax, with axes instead of names."""
    row, data = call.row, call.data
    _check(call)
    if call.dim is not None:
        if call.axes is not None:
            raise AttributeValueError(f"{row.name} got both dim and axes; give one of them", row.clause("dim"))
        axes = _axes_of(row, data, call.dim, call.noop_with_empty_axes)
        call = call._replace(axes=axes, dim=None)
    planned = plan_reduce_max(call._replace(data=abstract(data.shape, data.dtype)), in_memory=False).call
    result = table.run(call._replace(data=data.data))
    gone = [data.dims[axis] for axis in sorted(planned.axes)]
    left = [name for name in data.dims if planned.keepdims or name not in gone]
    return alone_if_one([_dress(data, part, gone, left, values=i == 0) for i, part in enumerate(as_tuple(result))])


def _segment_max(call: SegmentCall) -> Any:
    """Run a call of SegmentMax. The segments' dimension, with the name of the ids, replaces the rows' dimension."""
    row, data, segment_ids = call.row, call.data, call.segment_ids
    _check(call)
    if not isinstance(data, Named):
        raise EngineError(
            f"{row.name} data is of type {type(data).__name__}, without the names that segment_ids or offsets have; "
            "give it names, as xarray.DataArray(data, dims=...), or give their .data",
            row.clause("arrays"),
        )
    along = _rows_of(row, data, segment_ids, _dim_of(row, data, call))
    axis = 0
    if along is not None:
        axis = data.dims.index(along)
        _check_labels(row, data, segment_ids)
    within = call._replace(axis=axis, dim=None)
    result = table.run(within.map(lambda _, value: value.data if isinstance(value, Named) else value))
    assert along is not None  # without an axis there are no rows, and the plan has refused
    parts = list(as_tuple(result))
    if parts[0].shape[axis] != parts[0].shape[axis]:  # Dask's NaN
        raise NumSegmentsError(
            f"{row.name} num_segments is missing: it goes by the values of a Dask array, and xarray has no dimensions "
            "of unknown size; give num_segments, or the ids in memory",
            row.clause("num_segments"),
        )
    segments = _name_of_segments(row, data, segment_ids, along)
    empty = [parts.pop()] if call.return_empty else []
    dims = [segments if name == along else name for name in data.dims]
    dressed = [_dress(data, part, [along], dims, values=i == 0) for i, part in enumerate(parts)]
    # Through a Variable, since a DataArray would take a Dask array's key for its name.
    plain: list[Any] = [xr.Variable([segments], part) for part in empty]
    if isinstance(data, xr.DataArray):
        plain = [xr.DataArray(part) for part in plain]
    return alone_if_one([*dressed, *(_of_class(type(data), part) for part in plain)])


run: Run = by_operator(_maximum, _reduce_max, _segment_max)


# -------------------------------------------------------------------------------------------------- the call


def _check(call: Call) -> None:
    """Raise for Datasets and for arrays that hold pandas' own types."""
    row = call.row
    for name, value in call.arrays:
        if isinstance(value, (xr.Dataset, xr.DataTree)):
            raise DTypeError(
                f"{row.name} {name} is a {type(value).__name__}, which is many arrays; take one, as data['name'], or "
                "each: dataset.map(maxops.reduce_max, dim=...), or xarray.apply_ufunc(maxops.maximum, ..., "
                "dask='allowed') for several Datasets",
                row.clause("arrays"),
            )
        if isinstance(value, Named) and not isinstance(value.dtype, np.dtype):
            raise DTypeError(
                f"{row.name} {name} holds pandas' {value.dtype}, not elements of a NumPy type", row.clause("arrays")
            )


def _check_sizes(row: Spec, arrays: Sequence[Any]) -> None:
    """Raise unless dimensions with the same name have the same size, and arrays without names fit the named ones."""
    sizes: dict[Hashable, tuple[int, int]] = {}
    for number, array in enumerate(arrays):
        for axis, (name, size) in enumerate(array.sizes.items() if isinstance(array, Named) else ()):
            other, where = sizes.setdefault(name, (size, number))
            if size != other:
                raise ShapeError(
                    f"{row.name} input {number} has shape {array.shape}: dimension {name!r}, axis {axis - array.ndim} "
                    f"has size {size} against {other} of input {where}; dimensions of one name have one size",
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
                f"{row.name} input {number} has shape {array.shape} and no names; beside named dimensions it "
                f"broadcasts to theirs, which are {dict(zip(sizes, whole, strict=True))}",
                row.clause("shape"),
            )


def _check_labels(row: Spec, data: Named, ids: object) -> None:
    """Raise if ids and the rows of the data have different labels."""
    if not (isinstance(data, xr.DataArray) and isinstance(ids, xr.DataArray)):
        return
    if ids.shape != tuple(data.sizes[name] for name in ids.dims):  # the plan says it in its own words
        return
    try:
        xr.align(data, ids, join="exact", copy=False)
    except xr.AlignmentError as error:
        raise _labels_differ(row, "data and segment_ids", error) from error


def _labels_differ(row: Spec, what: str, error: Exception) -> ShapeError:
    return ShapeError(
        f"{row.name} {what} have labels that differ, and no element is dropped or made up silently: "
        f"xarray.align(..., join=...) says which are meant ({error})",
        row.clause("labels"),
    )


def _axes_of(row: Spec, data: Named, dim: Any, noop_with_empty_axes: object) -> tuple[int, ...]:
    """Return the axes of the named dimensions."""
    if isinstance(dim, EllipsisType):
        return tuple(range(data.ndim))
    listed = [dim] if isinstance(dim, str) or not isinstance(dim, Iterable) else list(dim)
    # xarray reduces nothing over no names, and ONNX everything over no axes
    if not listed and not noop_with_empty_axes:
        raise AttributeValueError(
            f"{row.name} dim names no dimension; give at least one, or ... for all", row.clause("dim")
        )
    axes = tuple(_axis_of(row, data, name) for name in listed)
    if len(set(axes)) < len(axes):
        raise AxesError(f"{row.name} dim is {shown(dim)}, which names a dimension twice", row.clause("dim"))
    return axes


def _axis_of(row: Spec, data: Named, name: Hashable) -> int:
    if name not in data.dims:
        there = ", ".join(map(repr, data.dims)) or "none"
        raise AttributeValueError(
            f"{row.name} dim is {shown(name)}, but the dimensions of data are: {there}", row.clause("dim")
        )
    return data.dims.index(name)


def _dim_of(row: Spec, data: Named, call: SegmentCall) -> Hashable | None:
    """Return the dimension that dim or axis names; None for neither, which means axis=0."""
    axis = axis_of(row, call.axis, data.ndim) if data.ndim else 0
    if data.ndim == 0 or call.axis == 0:
        named: Hashable | None = call.dim
        return named
    if call.dim is not None:
        raise AttributeValueError(f"{row.name} got dim and axis; one of them names the dimension", row.clause("dim"))
    return data.dims[axis]


def _rows_of(row: Spec, data: Named, ids: object, dim: Hashable | None) -> Hashable | None:
    """Return the dimension of the rows: the named dimension, the dimension of the ids, or the first dimension."""
    if data.ndim == 0:
        return None
    own = ids.dims[0] if isinstance(ids, Named) and ids.ndim == 1 else None
    if dim is None:
        along = data.dims[0] if own is None else own
    else:
        along = dim
        if own is not None and own != dim:
            raise AttributeValueError(
                f"{row.name} dim is {shown(dim)}, but segment_ids has the dimension {own!r}", row.clause("dim")
            )
    if along not in data.dims and dim is None:
        raise ShapeError(
            f"{row.name} segment_ids has the dimension {along!r}, but data has {', '.join(map(repr, data.dims))}",
            row.clause("ids.shape"),
        )
    return data.dims[_axis_of(row, data, along)]


def _name_of_segments(row: Spec, data: Named, ids: object, along: Hashable) -> Hashable:
    """Return the name of the ids, if they have one; otherwise the name of the rows' dimension."""
    if not isinstance(ids, xr.DataArray) or ids.name is None or ids.name == along:
        return along
    if ids.name == getattr(ids.data, "name", None):  # a Dask array's key, which xarray takes for a name
        return along
    stays = [name for name in data.dims if name != along]
    if isinstance(data, xr.DataArray):
        stays += [name for name, coordinate in data.coords.items() if along not in coordinate.dims]
    if ids.name in stays:
        raise AttributeValueError(
            f"{row.name} segment_ids is named {ids.name!r}, as the segments' dimension would be, but data has a "
            f"dimension or coordinate {ids.name!r} that stays; rename one of them",
            row.clause("labels"),
        )
    return ids.name


# ----------------------------------------------------------------------------------------------- the results


def _dress(data: Named, part: Any, gone: Sequence[Hashable], dims: Sequence[Hashable], *, values: bool) -> Any:
    """Return a result with these dimensions, and with the data's coordinates that do not lie along removed dimensions.

    Only values keep the name and the attributes, because indices have other units.
    """
    others = [name for name in data.dims if name not in gone]
    new = [name for name in dims if name not in others]
    last = xr.Variable(dims, part).transpose(*others, *new).data  # where apply_ufunc has what is new
    nothing = np.broadcast_to(np.uint8(0), data.shape)  # not the data, which would be read or put into a graph again
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
    """Return the first class of the DataArrays, or Variables, that has no subclass among the others."""
    kinds = [type(array) for array in arrays if isinstance(array, base)]
    return next(kind for kind in kinds if not any(other is not kind and issubclass(other, kind) for other in kinds))


def _of_class(kind: Any, result: Any) -> Any:
    """Return the result as an instance of the data's class, because xarray.apply_ufunc returns instances of its own."""
    if type(result) is kind or issubclass(kind, xr.IndexVariable):  # which holds an index, of rank 1
        return result
    if isinstance(result, xr.Variable):
        return kind(result.dims, result.data, result.attrs)
    # Not by the constructor, because it copies coordinates and their attributes deeply.
    return kind(result.variable, name=result.name).assign_coords(result.coords)


def _keeps_attrs() -> bool:
    options: Any = xr.get_options  # which xarray leaves without types
    return options()["keep_attrs"] is not False
