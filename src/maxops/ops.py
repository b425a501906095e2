"""`maximum`, `reduce_max` and `segment_max`, and the operators of every standard and version as callables.

Results are always arrays, never NumPy scalars, because the results of operators are tensors.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any, Literal, NoReturn, Self, SupportsIndex, TypeAlias, Unpack, overload

import numpy as np
from numpy.typing import NDArray

from maxops import _native, spec
from maxops.calls import Call, MaxCall, ReduceCall, ScatterCall, SegmentCall, check_attributes, of_node
from maxops.dtypes import REAL, DType
from maxops.engines import numpy as engine
from maxops.engines import table
from maxops.engines.base import is_imported
from maxops.errors import AttributeValueError, AxesError
from maxops.plan import Array, flag, integers_of
from maxops.shown import shown
from maxops.spec import NOT_GIVEN, Clause, NotGiven, Spec
from maxops.typing import (
    AnyArray,
    ArrayT,
    Attributes,
    Axes,
    Count,
    Dims,
    FillMode,
    Flag,
    Ids,
    Indices,
    NanRule,
    OutOfRange,
    PythonScalar,
    Real,
    RealT,
    ReduceOptions,
    Scalar,
    SegmentOptions,
    SupportsArray,
    Ties,
)


def run(call: Call | ScatterCall) -> Any:
    """Run a request, such as a `maxops.calls.MaxCall`.

    A request for a function of maxops runs on the engine for its arrays. A request for an operator of a standard runs
    on the NumPy engine.

    >>> from maxops.calls import MaxCall
    >>> run(MaxCall([np.array([1, 5]), np.array([4, 2])]))
    array([4, 5])
    """
    if not isinstance(call, Call | ScatterCall):
        raise TypeError(f"run() expects a request, such as maxops.calls.MaxCall([x, y]), got {type(call).__name__}")
    if isinstance(call, ScatterCall) or call.row.standard != "maxops":
        return engine.run(call)
    return table.run(call)


def _readable_call(self: Any, *args: Any, **options: Any) -> Any:
    """Run one of the functions below in Python, for compilers that trace Python code and cannot trace native code."""
    if is_imported("torch"):
        # an import statement, because the compiler cannot trace importlib.import_module
        import maxops.engines.torch  # noqa: F401, PLC0415
    return self.__wrapped__(*args, **options)


# The native entry points have the docstrings of the functions below. They run simple, valid calls themselves, and pass
# all others to these functions.
#
# In the overloads for type checkers, NumPy arrays keep their dtype, and arrays of PyTorch, JAX, Dask, xarray and the
# array API standard keep their kind. For other arrays, and for flags of unknown value, the result is `Any`. No overload
# accepts everything, because it would hide mistakes in the others.

_Numpy: TypeAlias = NDArray[RealT] | RealT
_Beside: TypeAlias = "NDArray[Real] | Real | PythonScalar"  # arguments that can be combined with every kind of array


@overload
def maximum(
    *arrays: _Numpy[RealT] | PythonScalar,
    out: NDArray[RealT] | None = None,
    ties: Ties = "even",
    nan: NanRule = "propagate",
) -> NDArray[RealT]: ...
@overload
def maximum(
    first: ArrayT,
    /,
    *arrays: ArrayT | _Beside,
    out: ArrayT | None = None,
    ties: Ties = "even",
    nan: NanRule = "propagate",
) -> ArrayT: ...
@overload
def maximum(
    first: _Beside,
    second: ArrayT,
    /,
    *arrays: ArrayT | _Beside,
    out: ArrayT | None = None,
    ties: Ties = "even",
    nan: NanRule = "propagate",
) -> ArrayT: ...
@overload
def maximum(
    first: SupportsArray,
    /,
    *arrays: SupportsArray | _Beside,
    out: Any = None,
    ties: Ties = "even",
    nan: NanRule = "propagate",
) -> Any: ...
@overload
def maximum(
    first: _Beside,
    second: SupportsArray,
    /,
    *arrays: SupportsArray | _Beside,
    out: Any = None,
    ties: Ties = "even",
    nan: NanRule = "propagate",
) -> Any: ...


@_native.entry
def maximum(
    *arrays: AnyArray, out: AnyArray | None = None, ties: Ties = "even", nan: NanRule = "propagate"
) -> AnyArray:
    """Return the element-wise maximum of one or more arrays.

    >>> import numpy as np
    >>> import maxops as mo
    >>> mo.maximum(np.array([1.0, -0.0, np.nan]), np.array([3.0, 0.0, 1.0]))
    array([ 3.,  0., nan])
    >>> mo.maximum(np.array([1.0, np.nan]), np.array([np.nan, np.nan]), nan="ignore")
    array([ 1., nan])
    >>> mo.maximum(np.array([[1], [5]], np.int8), np.array([2, 3], np.int8), 4)
    array([[4, 4],
           [5, 5]], dtype=int8)

    Args:
        arrays: one or more arrays or NumPy scalars of the same type, with shapes that broadcast. They may be arrays of
            NumPy, Dask, xarray, PyTorch, JAX or CuPy, or any other arrays with ``__array__`` or, on the CPU,
            ``__dlpack__``. Python scalars take the type of the arrays: a float is rounded to the nearest value, and any
            other number must be exactly representable. A third array is a third input, not ``out`` as in NumPy.
        out: an array of the result's shape and type. It may overlap the inputs.
        ties: how gradients treat several inputs that equal the maximum. "even" divides the gradient equally among these
            inputs, as PyTorch and JAX do. "first" assigns the whole gradient to the first of them. This option has no
            effect on results.
        nan: "propagate", or "ignore", which ignores NaN like `numpy.fmax` and ``skipna=True``: NaN ranks below every
            number, and a maximum is NaN only if all the elements are NaN.

    Returns:
        ``out``, or a new array of the broadcast shape and of the arguments' kind (for columns and tables, a NumPy
        array). A result of rank 0 is an array, not a NumPy scalar.

    A NaN result is always the quiet NaN with sign 0 and payload 0, and -0 < +0. The types are float16, bfloat16,
    float32, float64, the integers, bool, and object arrays of `fractions.Fraction` and int.

    Raises:
        InputCountError: no arrays are passed.
        DTypeError: the types differ, a type is not supported, or a type cannot represent a Python scalar.
        ShapeError: the shapes do not broadcast.
        AttributeValueError: ties or nan has an invalid value.
        OutputError: out has the wrong shape or type, or is read-only.
        OutputTooLargeError: the result does not fit in memory.
        EngineError: no engine supports this combination of arrays.

    Source: ONNX Max-13, with more types.
    """
    return table.run(MaxCall(arrays, out, ties, nan))


@overload
def reduce_max(
    data: _Numpy[RealT],
    axes: Axes | None = None,
    keepdims: Flag | None = None,
    noop_with_empty_axes: Flag = False,
    out: NDArray[RealT] | None = None,
    *,
    dim: None = None,
    return_indices: Literal[False] = False,
    **options: Unpack[ReduceOptions],
) -> NDArray[RealT]: ...
@overload
def reduce_max(
    data: _Numpy[RealT],
    axes: Axes | None = None,
    keepdims: Flag | None = None,
    noop_with_empty_axes: Flag = False,
    out: NDArray[RealT] | None = None,
    *,
    dim: None = None,
    return_indices: Literal[True],
    **options: Unpack[ReduceOptions],
) -> tuple[NDArray[RealT], Indices]: ...
@overload
def reduce_max(
    data: _Numpy[RealT],
    axes: Axes | None = None,
    keepdims: Flag | None = None,
    noop_with_empty_axes: Flag = False,
    out: NDArray[RealT] | None = None,
    *,
    dim: None = None,
    return_indices: Flag,
    **options: Unpack[ReduceOptions],
) -> Any: ...
@overload
def reduce_max(
    data: ArrayT,
    axes: Axes | None = None,
    keepdims: Flag | None = None,
    noop_with_empty_axes: Flag = False,
    out: ArrayT | None = None,
    *,
    dim: Dims | None = None,
    return_indices: Literal[False] = False,
    **options: Unpack[ReduceOptions],
) -> ArrayT: ...
@overload
def reduce_max(
    data: ArrayT,
    axes: Axes | None = None,
    keepdims: Flag | None = None,
    noop_with_empty_axes: Flag = False,
    out: ArrayT | None = None,
    *,
    dim: Dims | None = None,
    return_indices: Literal[True],
    **options: Unpack[ReduceOptions],
) -> tuple[ArrayT, ArrayT]: ...
@overload
def reduce_max(
    data: SupportsArray,
    axes: Axes | None = None,
    keepdims: Flag | None = None,
    noop_with_empty_axes: Flag = False,
    out: Any = None,
    *,
    dim: Dims | None = None,
    return_indices: Flag = False,
    **options: Unpack[ReduceOptions],
) -> Any: ...


@_native.entry
def reduce_max(
    data: AnyArray,
    axes: Axes | None = None,
    keepdims: Flag | None = None,
    noop_with_empty_axes: Flag = False,
    out: AnyArray | None = None,
    *,
    axis: Axes | NotGiven | None = NOT_GIVEN,
    dim: Dims | None = None,
    initial: Scalar | None = None,
    return_indices: Flag = False,
    ties: Ties = "even",
    nan: NanRule = "propagate",
) -> AnyArray | tuple[AnyArray, ...]:
    """Return the maximum along axes.

    ``axes`` follows ONNX: reduced axes are kept with size 1, and ``axes=()`` reduces all axes. ``axis`` follows NumPy:
    reduced axes are dropped, and ``axis=()`` reduces no axes. An explicit ``keepdims`` overrides both defaults.

    >>> import numpy as np
    >>> import maxops as mo
    >>> x = np.array([[1, 5], [7, 2]], np.int32)
    >>> mo.reduce_max(x, axes=(-1,))
    array([[5],
           [7]], dtype=int32)
    >>> mo.reduce_max(x, axis=0)
    array([7, 5], dtype=int32)
    >>> mo.reduce_max(np.zeros((0, 2), np.float32), axis=0)
    array([-inf, -inf], dtype=float32)
    >>> mo.reduce_max(x, axis=0, initial=6, return_indices=True)
    (array([7, 6], dtype=int32), array([ 1, -1]))

    Args:
        data: an array of any shape, and of any kind that `maximum` accepts.
        axes: an integer, or a sequence or array of distinct integers in -r..r-1, where r is the rank. None or
            an empty sequence reduces all axes.
        keepdims: True keeps the reduced axes with size 1, and False drops them. Default: False with ``axis`` or
            ``dim``, and True without them.
        noop_with_empty_axes: if True and ``axes`` is None or empty, reduce no axes, and return the data bit for bit.
        out: an array of the result's shape and type. It may overlap the data.
        axis: the axes by NumPy's convention, instead of ``axes``. None reduces all axes. An empty tuple reduces no
            axes, like ``noop_with_empty_axes``.
        dim: for xarray, the name of an axis, or several names, instead of ``axes``.
        initial: a scalar of the data's type, or a Python scalar as in `maximum`: an additional element in each
            reduction, and therefore the result of an empty reduction.
        return_indices: also return the indices of the maxima (argmax).
        ties: how gradients treat several elements that equal the maximum, as in `maximum`.
        nan: "propagate" or "ignore", as in `maximum`. This option does not change the maximum of no elements.

    Returns:
        ``out``, or a new array of the data's kind (for columns and tables, a NumPy array). A result of rank 0 is an
        array, not a NumPy scalar. The maximum of no elements is -Inf, the lowest integer, or False.

        With ``return_indices``, the result is a pair: the maxima, and an int64 array of the same shape. This array
        contains the index of the first element that equals each maximum, or -1 if no element equals it (because the
        reduction is empty, or only ``initial`` equals it). Indices count along the reduced axis, or through several
        reduced axes in C order.

    Raises:
        DTypeError: the type is not supported.
        ShapeError: initial is not a scalar.
        AxesError: an axis is out of range, repeated, or not an integer.
        AttributeValueError: an option has an invalid value.
        EmptyReductionError: a reduction is empty, and the type has no lowest value.
        OutputError: out has the wrong shape or type, or is read-only.
        OutputTooLargeError: the result does not fit in memory.

    Source: ONNX ReduceMax-20, with more types.
    """
    if axis is not NOT_GIVEN:
        for name, value in (("axes", axes), ("dim", dim)):
            if value is not None:
                raise AxesError(
                    f"{spec.REDUCE_MAX.name} got both {name} {shown(value)} and axis {shown(axis)}; "
                    "pass only one of them",
                    spec.REDUCE_MAX.clause("axes"),
                )
        if flag(spec.REDUCE_MAX, "noop_with_empty_axes", noop_with_empty_axes):
            raise AttributeValueError(
                f"{spec.REDUCE_MAX.name} got both noop_with_empty_axes and axis {shown(axis)}; pass axis=() to return "
                "the data unchanged",
                spec.REDUCE_MAX.clause("noop_with_empty_axes"),
            )
        axes = axis
        has_axes = axis is None or type(axis) is int or (type(axis) in (tuple, list) and bool(axis))
        noop_with_empty_axes = not has_axes  # axis=() reduces no axes
    if keepdims is None:
        keepdims = axis is NOT_GIVEN and dim is None
    return table.run(
        ReduceCall(data, axes, keepdims, noop_with_empty_axes, out, dim, initial, return_indices, ties, nan)
    )


@overload
def segment_max(
    data: NDArray[RealT],
    segment_ids: Ids | None = None,
    num_segments: Count | None = None,
    *,
    out: NDArray[RealT] | None = None,
    offsets: Ids | None = None,
    dim: None = None,
    return_indices: Literal[False] = False,
    return_empty: Literal[False] = False,
    **options: Unpack[SegmentOptions],
) -> NDArray[RealT]: ...
@overload
def segment_max(
    data: NDArray[RealT],
    segment_ids: Ids | None = None,
    num_segments: Count | None = None,
    *,
    out: NDArray[RealT] | None = None,
    offsets: Ids | None = None,
    dim: None = None,
    return_indices: Literal[True],
    return_empty: Literal[False] = False,
    **options: Unpack[SegmentOptions],
) -> tuple[NDArray[RealT], Indices]: ...
@overload
def segment_max(
    data: NDArray[RealT],
    segment_ids: Ids | None = None,
    num_segments: Count | None = None,
    *,
    out: NDArray[RealT] | None = None,
    offsets: Ids | None = None,
    dim: None = None,
    return_indices: Literal[False] = False,
    return_empty: Literal[True],
    **options: Unpack[SegmentOptions],
) -> tuple[NDArray[RealT], NDArray[np.bool]]: ...
@overload
def segment_max(
    data: NDArray[RealT],
    segment_ids: Ids | None = None,
    num_segments: Count | None = None,
    *,
    out: NDArray[RealT] | None = None,
    offsets: Ids | None = None,
    dim: None = None,
    return_indices: Literal[True],
    return_empty: Literal[True],
    **options: Unpack[SegmentOptions],
) -> tuple[NDArray[RealT], Indices, NDArray[np.bool]]: ...
@overload
def segment_max(
    data: NDArray[RealT],
    segment_ids: Ids | None = None,
    num_segments: Count | None = None,
    *,
    out: NDArray[RealT] | None = None,
    offsets: Ids | None = None,
    dim: None = None,
    return_indices: Flag = False,
    return_empty: Flag = False,
    **options: Unpack[SegmentOptions],
) -> Any: ...
@overload
def segment_max(
    data: ArrayT,
    segment_ids: ArrayT | Ids | None = None,
    num_segments: Count | None = None,
    *,
    out: ArrayT | None = None,
    offsets: ArrayT | Ids | None = None,
    dim: str | None = None,
    return_indices: Literal[False] = False,
    return_empty: Literal[False] = False,
    **options: Unpack[SegmentOptions],
) -> ArrayT: ...
@overload
def segment_max(
    data: ArrayT,
    segment_ids: ArrayT | Ids | None = None,
    num_segments: Count | None = None,
    *,
    out: ArrayT | None = None,
    offsets: ArrayT | Ids | None = None,
    dim: str | None = None,
    return_indices: Literal[True],
    return_empty: Literal[False] = False,
    **options: Unpack[SegmentOptions],
) -> tuple[ArrayT, ArrayT]: ...
@overload
def segment_max(
    data: ArrayT,
    segment_ids: ArrayT | Ids | None = None,
    num_segments: Count | None = None,
    *,
    out: ArrayT | None = None,
    offsets: ArrayT | Ids | None = None,
    dim: str | None = None,
    return_indices: Literal[False] = False,
    return_empty: Literal[True],
    **options: Unpack[SegmentOptions],
) -> tuple[ArrayT, ArrayT]: ...
@overload
def segment_max(
    data: ArrayT,
    segment_ids: ArrayT | Ids | None = None,
    num_segments: Count | None = None,
    *,
    out: ArrayT | None = None,
    offsets: ArrayT | Ids | None = None,
    dim: str | None = None,
    return_indices: Literal[True],
    return_empty: Literal[True],
    **options: Unpack[SegmentOptions],
) -> tuple[ArrayT, ArrayT, ArrayT]: ...
@overload
def segment_max(
    data: SupportsArray,
    segment_ids: SupportsArray | Ids | None = None,
    num_segments: Count | None = None,
    *,
    out: Any = None,
    offsets: SupportsArray | Ids | None = None,
    dim: str | None = None,
    return_indices: Flag = False,
    return_empty: Flag = False,
    **options: Unpack[SegmentOptions],
) -> Any: ...


@_native.entry
def segment_max(
    data: AnyArray,
    segment_ids: AnyArray | None = None,
    num_segments: Count | None = None,
    *,
    fill_mode: FillMode | None = None,  # optional, because the planner's error is more informative than Python's
    fill_value: Scalar | None = None,
    out: AnyArray | None = None,
    check_ids: Flag = True,
    offsets: AnyArray | None = None,
    sorted: Flag = True,
    out_of_range: OutOfRange | None = None,
    axis: SupportsIndex = 0,
    dim: str | None = None,
    initial: Scalar | None = None,
    return_indices: Flag = False,
    return_empty: Flag = False,
    ties: Ties = "even",
    nan: NanRule = "propagate",
) -> AnyArray | tuple[AnyArray, ...]:
    """Return the maximum of each segment of rows. Segments are defined by ids or by offsets.

    >>> import numpy as np
    >>> import maxops as mo
    >>> mo.segment_max(np.array([3.0, 1.0, -2.0]), np.array([0, 0, 2]), fill_mode="ZERO")
    array([ 3.,  0., -2.])
    >>> mo.segment_max(np.array([[1, 9], [4, 2]], np.int8), np.array([1, 1]), 3, fill_mode="LOWEST")
    array([[-128, -128],
           [   4,    9],
           [-128, -128]], dtype=int8)
    >>> mo.segment_max(np.array([3.0, 1.0, -2.0]), np.array([0, 0, 2]), fill_value=np.nan)
    array([ 3., nan, -2.])
    >>> mo.segment_max(np.array([3.0, 1.0, -2.0]), offsets=np.array([0, 2, 2, 3]), initial=-np.inf)
    array([  3., -inf,  -2.])
    >>> ids = np.array([2, 0, 2])
    >>> mo.segment_max(np.array([3, 1, 3]), ids, fill_mode="ZERO", sorted=False, return_indices=True, return_empty=True)
    (array([1, 0, 3]), array([ 1, -1,  0]), array([False,  True, False]))

    Args:
        data: an array of shape ``(n, *row)``, or with n elements along ``axis``, of any kind that `maximum` accepts.
        segment_ids: integers of any type and of shape ``(n,)``, non-negative and, if ``sorted``, non-decreasing: an
            array, or a list, tuple or range. uint64 ids above 2^63 - 1 exceed any number of segments.
        num_segments: the number of segments, a Python or NumPy integer. Segments without rows are empty. Default:
            with segment_ids, the highest id + 1 (0 if there are no ids); with offsets, ``len(offsets) - 1``.
        fill_mode: the value of empty segments: "ZERO", or "LOWEST", the lowest finite value. Required unless fill_value
            or initial is given.
        fill_value: the value of empty segments, instead of fill_mode: a scalar of the data's type, or a Python
            scalar as in `maximum`. It may be NaN.
        out: an array of the result's shape and type. It may overlap the inputs.
        check_ids: False skips the validation of ids and offsets. Invalid ids or offsets then produce wrong results,
            but never corrupt memory.
        offsets: the bounds of the segments, instead of segment_ids: integers of any type and of shape
            ``(segments + 1,)``, non-decreasing, from 0 to n (the row pointer of CSR), in an array, list, tuple or
            range. Segment i consists of the rows ``offsets[i]`` to ``offsets[i + 1] - 1``.
        sorted: False accepts ids in any order.
        out_of_range: how to treat ids that are negative or >= num_segments. "error" raises an error, and "drop" ignores
            their rows. Default: "error" for unsorted ids. For sorted ids, the default follows OpenVINO: negative ids
            raise an error, and rows with ids >= num_segments are ignored.
        axis: the axis along which data is divided into rows, in -r..r-1 where r is the rank. In the result, this axis
            has one entry for each segment.
        dim: for xarray, the name of this axis, instead of ``axis``.
        initial: an additional element of each segment, and therefore the value of empty segments: a scalar of the
            data's type, or a Python scalar as in `maximum`. It replaces fill_mode and fill_value.
        return_indices: also return the indices of the maxima (argmax).
        return_empty: also return a mask of the empty segments.
        ties: how gradients treat several elements that equal the maximum, as in `maximum`.
        nan: "propagate" or "ignore", as in `maximum`. This option does not change the value of empty segments.

    Returns:
        ``out``, or a new array of shape ``(num_segments, *row)``, or with num_segments elements along ``axis``. It
        is of the arguments' kind (for columns and tables, a NumPy array). A new NumPy array has the memory order of the
        data. As an exception, if ``axis`` and the axes that vary faster in memory have few elements in total, the
        segment axis varies slowest in memory.

        With ``return_indices`` or ``return_empty``, the result is a tuple, and its first element is the array of the
        maxima. With ``return_indices``, the next element is an int64 array of the same shape. It contains the index of
        the first row that contains each maximum, or -1 if no row contains it. With ``return_empty``, the last element
        is a bool array of shape ``(num_segments,)``, which is True for empty segments.

    Raises:
        DTypeError: the type is not supported.
        ShapeError: the data has rank 0, or fill_value or initial is not a scalar.
        InputCountError: segment_ids and offsets are both missing or both given.
        AxesError: the axis is out of range, or not an integer.
        SegmentIdsError: an id is out of range or out of order, or the number of ids differs from the number of rows.
        OffsetsError: the offsets decrease, or do not run from 0 to n.
        NumSegmentsError: the number of segments is negative, or not an integer.
        AttributeValueError: fill_mode is missing, or an option has an invalid value.
        EmptyReductionError: a segment is empty, and the type has no lowest value.
        OutputError: out has the wrong shape or type, or is read-only.
        OutputTooLargeError: the result does not fit in memory.
        EngineError: no engine supports this combination of arrays.

    Source: OpenVINO SegmentMax-16, with more types; fill_value, offsets, sorted, out_of_range, axis, initial,
    return_indices, return_empty, ties and nan are extensions of maxops.
    """
    return table.run(
        SegmentCall(
            data,
            integers_of(spec.SEGMENT_MAX, "segment_ids", segment_ids),
            num_segments,
            fill_mode,
            fill_value,
            out,
            check_ids,
            integers_of(spec.SEGMENT_MAX, "offsets", offsets),
            sorted,
            out_of_range,
            axis,
            dim,
            initial,
            return_indices,
            return_empty,
            ties,
            nan,
        )
    )


class Operator(_native.Entry):
    """One version of a standard's operator, or a function of maxops. It accepts only the arguments of this version.

    Inputs are positional arguments. Attributes and ``out`` are keyword arguments.

    >>> import numpy as np
    >>> operator("ONNX", "Max", 8)(np.float32([1, 2]), np.float32([2, 1]))
    array([2., 2.], dtype=float32)
    """

    spec: Spec
    __wrapped__: Callable[..., Any]

    def __new__(cls, spec: Spec) -> Self:
        """Return the operator of a row of the spec table."""
        function = partial(_run_plain if spec.operator in _PLAIN else _run_operator, spec)
        self = super().__new__(cls, function, **_native_rules(spec))
        self.__dict__.update(
            spec=spec, __wrapped__=function, __name__=spec.name, __doc__=_document(spec), __signature__=_signature(spec)
        )
        return self

    if TYPE_CHECKING:  # the call itself is native

        @overload
        def __call__(
            self,
            data: _Numpy[RealT],
            /,
            *inputs: _Beside | None,
            out: NDArray[RealT] | None = None,
            **attributes: Unpack[Attributes],
        ) -> NDArray[RealT]: ...
        @overload  # for the plain functions, whose flags request more results, and which accept arrays of every kind
        def __call__(
            self,
            data: _Numpy[RealT],
            /,
            *inputs: _Beside | None,
            out: NDArray[RealT] | None = None,
            return_indices: Flag = False,
            return_empty: Flag = False,
            **attributes: Unpack[Attributes],
        ) -> Any: ...
        @overload
        def __call__(
            self,
            data: SupportsArray,
            /,
            *inputs: SupportsArray | _Beside | None,
            out: Any = None,
            return_indices: Flag = False,
            return_empty: Flag = False,
            **attributes: Unpack[Attributes],
        ) -> Any: ...
        def __call__(self, *inputs: Any, **attributes: Any) -> Any:
            """Run the operator."""

    def __setattr__(self, name: str, value: object) -> NoReturn:
        raise AttributeError(f"{self!r} is immutable: cannot set {name!r}")

    def __delattr__(self, name: str) -> NoReturn:
        raise AttributeError(f"{self!r} is immutable: cannot delete {name!r}")

    def __get__(self, instance: object, owner: type | None = None) -> Self:  # do not bind as a method
        return self

    def __reduce__(self) -> tuple[type[Self], tuple[Spec]]:
        return type(self), (self.spec,)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Operator) and self.spec == other.spec

    def __hash__(self) -> int:
        return hash(self.spec)

    @property
    def standard(self) -> str:
        """The standard: "ONNX", "SONNX", "SONNX draft" or "OpenVINO", or "maxops" for the functions of maxops."""
        return self.spec.standard

    @property
    def name(self) -> str:
        """The name of the operator, without its version."""
        return self.spec.operator

    @property
    def version(self) -> int | None:
        """The version, or None if the standard has no versions."""
        return self.spec.version

    @property
    def types(self) -> tuple[DType, ...]:
        """The supported element types."""
        return self.spec.dtypes

    @property
    def clauses(self) -> tuple[Clause, ...]:
        """The clauses (rules) of the operator's specification."""
        return self.spec.clauses

    def __repr__(self) -> str:
        return f"<{self.standard} {self.spec.name}>"


_CALLS: dict[str, type[ReduceCall | SegmentCall | ScatterCall]] = {
    "ReduceMax": ReduceCall,
    "SegmentMax": SegmentCall,
    **dict.fromkeys(spec.SCATTERS, ScatterCall),
}


def _signature(row: Spec) -> inspect.Signature:
    """Return the signature of an operator (positional inputs, keyword attributes), or of a function of maxops."""
    if row.operator in _PLAIN:
        return inspect.signature(_PLAIN[row.operator])
    parameter = inspect.Parameter
    if row.operator == "Max":
        inputs = [parameter("inputs", parameter.VAR_POSITIONAL)]
        defaults: Mapping[str, Any] = dict.fromkeys(row.attributes)
    else:
        defaults = _CALLS[row.operator]._field_defaults
        inputs = [
            parameter(name, parameter.POSITIONAL_ONLY, default=None if is_optional else parameter.empty)
            for name, is_optional in row.inputs
        ]
    named = [
        parameter(name, parameter.KEYWORD_ONLY, default=parameter.empty if name == "fill_mode" else defaults[name])
        for name in row.attributes
    ]
    return inspect.Signature([*inputs, *named, parameter("out", parameter.KEYWORD_ONLY, default=None)])


def _document(row: Spec) -> str:
    """Return the docstring of an operator."""
    if row.operator in _PLAIN:
        return str(_PLAIN[row.operator].__doc__)
    clauses = "\n".join(f"    {clause.id}: {clause.statement}" for clause in row.clauses)
    return (
        f"{row.standard} {row.name}, exactly as specified.\n\n"
        f"Types: {', '.join(map(str, row.dtypes))}.\n\n"
        "Inputs are positional arguments. Attributes and ``out`` are keyword arguments. "
        f"Returns ``out`` or a new array.\n\nEach error names one of these clauses:\n\n{clauses}\n"
    )


# This call follows the class Operator, because calls to subclasses of Entry that are created later would run
# `_readable_call`.
_native.set_readable_call(_readable_call)


_PLAIN: dict[str, Callable[..., Any]] = {"maximum": maximum, "reduce_max": reduce_max, "segment_max": segment_max}


def _run_plain(row: Spec, /, *inputs: Any, out: Any = None, **attributes: Any) -> Any:
    check_attributes(row, attributes)
    return _PLAIN[row.operator](*inputs, **attributes, **({} if out is None else {"out": out}))


def _run_operator(row: Spec, /, *inputs: Any, out: Array | None = None, **attributes: Any) -> Any:
    return engine.run(of_node(row, inputs, attributes, out))


def _native_rules(row: Spec) -> dict[str, Any]:
    """Return the rules that the native entry point checks. It passes calls that violate them to the planner."""
    if row.operator in _PLAIN:
        return {"operator": row.operator, "keywords": ["out", *row.attributes]}
    if row.is_scatter:  # matches no call, so that every call goes to the planner
        return {"operator": "segment_max", "types": [], "positional": 0, "keywords": []}
    name, positional = {
        "Max": ("maximum", 0),
        "ReduceMax": ("reduce_max", 1 + row.axes_input),
        "SegmentMax": ("segment_max", 3),
    }[row.operator]
    return {
        "operator": name,
        "types": [dtype.name for dtype in row.dtypes if dtype is not REAL],
        "index_types": [dtype.name for dtype in row.index_dtypes],
        "broadcast": row.broadcast,
        "negative_axes": row.negative_axes,
        "positional": positional,
        "keywords": ["out", *(name for name in row.attributes if name != "consumed_inputs")],  # ignored by Max
    }


def operator(standard: str, name: str, version: int | None = None, *, opset: int | None = None) -> Operator:
    """Return one version of a standard's operator, as a callable that accepts only the arguments of this version.

    >>> operator("onnx", "reducemax", version=13)
    <ONNX ReduceMax-13>
    >>> operator("ONNX", "Max", opset=17)
    <ONNX Max-13>
    >>> operator("SONNX", "Max").clauses[0].id
    'SONNX.Max.L'

    Args:
        standard: "ONNX", "SONNX", "SONNX draft" or "OpenVINO", or "maxops" for its own functions. Case does not matter.
        name: the operator's name in that standard. Case does not matter.
        version: the version. Optional if the standard has only one version.
        opset: the number of the operator set that a model imports, instead of ``version``. It selects the newest
            version of the operator in this set.

    Raises:
        UnknownOperatorError: the operator or version is unknown. The message lists the known operators or versions.
        VersionError: the version or opset is not an integer, or both are given.
    """
    return Operator(spec.find(standard, name, version, opset))


def operators() -> tuple[Operator, ...]:
    """Return every version of every operator, and the functions of maxops, as callables with their types and clauses.

    >>> len(operators())
    19
    >>> operators()[-1].clauses[1].id
    'maxops.segment_max.types'
    """
    return tuple(map(Operator, (*spec.ALL, *spec.PLAIN)))
