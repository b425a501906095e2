"""The maximum functions of PyTorch 2.13, with the same signatures, type promotion, results and gradients.

>>> import torch
>>> from maxops.compat import torch as mtorch
>>> mtorch.max(torch.tensor([[1.0, 5.0], [7.0, 2.0]]), dim=1)
torch.return_types.max(
values=tensor([5., 7.]),
indices=tensor([1, 0]))

Differences:

- NaN results are always the quiet NaN with sign bit 0, and +0 is greater than -0. Gradients follow the same order: -0
  and +0 are not a tie, but two NaNs are.
- With ``include_self=False``, the gradient of a maximum goes only to elements of src. In PyTorch, the elements of input
  that equal the maximum also count as ties, and their share of the gradient is lost.
- If several elements equal the maximum, the index of the first one is returned, on every device.
- ``segment_reduce`` accepts every dtype that maxops supports, and checks offsets.
- Some invalid arguments raise errors of maxops: a repeated ``dim`` raises `AxesError`, and an out-of-range index raises
  `SegmentIdsError`.
- maxops passes unsupported calls to PyTorch, such as calls with complex numbers or empty tensors. It also passes
  ``segment_reduce`` with ``indices``, ``unsafe=True`` or multidimensional lengths, and scattering to a scalar.
- ``scatter_reduce`` and ``index_reduce`` support only ``reduce="amax"``, and ``segment_reduce`` supports only
  ``reduce="max"``.
"""

from __future__ import annotations

import math
import operator
from typing import Any, cast

import numpy as np

from maxops.extras import needed

with needed("maxops.compat.torch", "torch"):
    import torch

import maxops.engines.torch  # noqa: F401  (registers the operators)
from maxops import _native, ops
from maxops.compat import at_once, index_error
from maxops.engines.torch import plain
from maxops.engines.torch.dispatch import is_tracing
from maxops.engines.torch.memory import DTYPES, tensor_of, unsupported_kind
from maxops.errors import AxesError, OffsetsError, SegmentIdsError

__all__ = ["amax", "argmax", "fmax", "index_reduce", "max", "maximum", "scatter_reduce", "segment_reduce"]

_LOWEST: dict[torch.dtype, float | int | bool] = {
    dtype: -torch.inf if row.kind == "float" else False if row.kind == "bool" else torch.iinfo(dtype).min
    for dtype, row in DTYPES.items()
}

Tensor = torch.Tensor
_NOT_GIVEN: Any = type("_NotGiven", (), {"__repr__": lambda _: "False"})()  # shown as PyTorch's default in signatures

_maximum, _reduce_max, _segment_max = map(at_once, ("maximum", "reduce_max", "segment_max"))


def maximum(input: Tensor, other: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Return the element-wise maximum of two tensors, promoted to a common dtype by PyTorch's rules.

    >>> maximum(torch.tensor([1, 5]), torch.tensor(2.5))
    tensor([2.5000, 5.0000])

    Source: PyTorch, `torch.maximum`.
    """
    if type(input) is type(other) is Tensor and (out is None or type(out) is Tensor):
        result: Tensor | None = _maximum(input, other, out=out)
        if result is not None:
            return result
    pair = _in_one_type(input, other)
    return torch.maximum(input, other, out=out) if pair is None else _given(ops.maximum(*pair), out)


def fmax(input: Tensor, other: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Return the element-wise maximum of two tensors. If one element is NaN, the result is the other element.

    >>> fmax(torch.tensor([1.0, float("nan")]), torch.tensor([float("nan"), 2.0]))
    tensor([1., 2.])

    Source: PyTorch, `torch.fmax`.
    """
    if type(input) is type(other) is Tensor and (out is None or type(out) is Tensor):
        result: Tensor | None = _maximum(input, other, out=out, nan="ignore")
        if result is not None:
            return result
    pair = _in_one_type(input, other)
    if pair is None:
        return torch.fmax(input, other, out=out)
    return _given(ops.maximum(*pair, ties="first", nan="ignore"), out)


def amax(
    input: Tensor,
    dim: int | tuple[int, ...] | list[int] = (),
    keepdim: bool = False,
    *,
    axis: int | tuple[int, ...] | list[int] | None = None,
    keepdims: bool | None = None,
    out: Tensor | None = None,
) -> Tensor:
    """Return the maximum along the given dimensions or, by default, of all elements.

    >>> amax(torch.tensor([[1, 5], [7, 2]]), 1)
    tensor([5, 7])

    Source: PyTorch, `torch.amax`.
    """
    if axis is not None or keepdims is not None:
        dim, keepdim = _aliased(("dim", dim, "axis", axis, ()), ("keepdim", keepdim, "keepdims", keepdims, False))
    axes = None if isinstance(dim, (tuple, list)) and not dim else dim
    if type(input) is Tensor and type(keepdim) is bool and out is None and input.numel():
        result: Tensor | None = _reduce_max(input, axis=axes, keepdims=keepdim)
        if result is not None:
            return result
    if not _is_taken(input, keepdim):
        named: dict[str, Any] = {} if out is None else {"out": out}
        return torch.amax(input, dim, keepdim, **named)
    reduced: Tensor = _reduced(input, axes, keepdim)
    return reduced if out is None else torch.amax(reduced[None], 0, out=out)


def max(
    input: Tensor,
    dim_or_other: int | Tensor | None = None,
    keepdim: bool = _NOT_GIVEN,
    *,
    dim: int | Tensor | None = None,
    axis: int | None = None,
    keepdims: bool | None = None,
    other: Tensor | None = None,
    out: Any = None,
) -> Any:
    """Return the maximum of all elements, the maxima along ``dim`` with their indices, or the `maximum` of two tensors.

    >>> max(torch.tensor([[1, 5], [7, 2]]))
    tensor(7)

    The second positional argument is ``other`` if it is a tensor, and ``dim`` otherwise. As an exception, a tensor is
    ``dim`` if ``keepdim`` or a pair of output tensors is passed.

    Source: PyTorch, `torch.max`.
    """
    if dim_or_other is not None:
        is_other = isinstance(dim_or_other, torch.Tensor) and not isinstance(out, (tuple, list))
        if is_other and keepdim is _NOT_GIVEN and axis is keepdims is None:
            (other,) = _aliased(("the second argument", dim_or_other, "other", other, None))
        else:
            (dim,) = _aliased(("the second argument", dim_or_other, "dim", dim, None))
    if axis is not None or keepdims is not None:
        dim, keepdim = _aliased(
            ("dim", dim, "axis", axis, None), ("keepdim", keepdim, "keepdims", keepdims, _NOT_GIVEN)
        )
    if other is not None or (keepdim is not _NOT_GIVEN and dim is None):
        if other is None or dim is not None or keepdim is not _NOT_GIVEN:
            raise TypeError("max() expects dim with keepdim, or other with neither dim nor keepdim")
        return maximum(input, other, out=out)
    keepdim = False if keepdim is _NOT_GIVEN else keepdim
    if type(input) is Tensor and type(keepdim) is bool and out is None and input.numel():
        result = _reduce_max(input, axis=dim, keepdims=keepdim, return_indices=dim is not None)
        if result is not None:
            return result if dim is None else torch.return_types.max(result)
    if not _is_taken(input, keepdim):
        named: dict[str, Any] = {} if out is None else {"out": out}
        return torch.max(input, **named) if dim is None else torch.max(input, cast("int", dim), keepdim, **named)
    if dim is None:
        return _given(_reduced(input, None, keepdim), out)
    if isinstance(dim, torch.Tensor) and dim.dim():
        raise TypeError(f"max() expects dim to be one integer, got a tensor of shape {tuple(dim.shape)}")
    if out is not None and (isinstance(out, torch.Tensor) or len(out) != 2):
        raise TypeError("max() with dim expects two tensors as out, for the values and the indices")
    values, indices = _reduced(input, dim, keepdim, return_indices=True, ties="first")
    if out is None:
        return torch.return_types.max((values, indices))
    pair: Any = torch.return_types
    return pair.max_out((_given(values, out[0]), _given(indices, out[1])))


def argmax(
    input: Tensor,
    dim: int | None = None,
    keepdim: bool = False,
    *,
    axis: int | None = None,
    keepdims: bool | None = None,
) -> Tensor:
    """Return the index of the first maximum along a dimension or, by default, in the flattened tensor.

    >>> argmax(torch.tensor([[1, 5], [7, 2]]), 1)
    tensor([1, 0])

    Source: PyTorch, `torch.argmax`.
    """
    if axis is not None or keepdims is not None:
        dim, keepdim = _aliased(("dim", dim, "axis", axis, None), ("keepdim", keepdim, "keepdims", keepdims, False))
    if type(input) is Tensor and type(keepdim) is bool and input.numel() and input.dtype is not torch.bool:
        pair = _reduce_max(input, axis=dim, keepdims=keepdim, return_indices=True)
        if pair is not None:
            return pair[1]  # type: ignore[no-any-return]
    if not _is_taken(input, keepdim) or input.dtype is torch.bool:
        return torch.argmax(input, dim, keepdim)
    indices: Tensor = _reduced(input.detach(), dim, keepdim, return_indices=True)[1]
    return indices


def scatter_reduce(
    input: Tensor, dim: int, index: Tensor, src: Tensor, reduce: str, *, include_self: bool = True
) -> Tensor:
    """Scatter src into a copy of input by index along a dimension, keeping the maximum of elements with the same index.

    >>> scatter_reduce(torch.zeros(3), 0, torch.tensor([0, 0, 2]), torch.tensor([1.0, 4.0, -2.0]), "amax")
    tensor([4., 0., 0.])

    Source: PyTorch, `torch.scatter_reduce`.
    """
    _check(reduce, "amax")
    if (
        type(index) is type(src) is Tensor
        and index.dim() == 1 == src.dim()
        and (result := _scattered_at_once(input, index, src, dim, include_self)) is not None
    ):
        return result
    if (result := _scattered_by_each_at_once(input, index, src, dim, include_self)) is not None:
        return result
    if not (_go_together(input, src, dim) and _is_index_of(index, input, src, dim)):
        return torch.scatter_reduce(input, dim, index, src, reduce, include_self=include_self)
    if src.shape != index.shape:
        src = src[tuple([slice(size) for size in index.shape])]
    try:
        return _scattered_by_each(input, index, src, dim, include_self)
    except SegmentIdsError as error:
        raise index_error(error, index, input.size(dim)) from None


def index_reduce(
    input: Tensor, dim: int, index: Tensor, source: Tensor, reduce: str, *, include_self: bool = True
) -> Tensor:
    """Scatter slices of source into a copy of input by a 1-D index, keeping the maximum of slices with the same index.

    >>> index_reduce(torch.zeros(3, 2), 0, torch.tensor([0, 2]), torch.tensor([[1.0, -1.0], [-2.0, 2.0]]), "amax")
    tensor([[1., 0.],
            [0., 0.],
            [0., 2.]])

    Source: PyTorch, `torch.index_reduce`.
    """
    _check(reduce, "amax")
    if isinstance(index, torch.Tensor) and index.dim() == 0:
        index = index.reshape(1)
    if (result := _scattered_at_once(input, index, source, dim, include_self)) is not None:
        return result
    is_here = isinstance(index, torch.Tensor) and _go_together(input, source, dim)
    if not (is_here and _sizes_beside(input, dim) == _sizes_beside(source, dim)):
        return torch.index_reduce(input, dim, index, source, reduce, include_self=include_self)
    try:
        return _scattered(input, index, source, dim, include_self)
    except SegmentIdsError as error:
        raise index_error(error, index, input.size(dim)) from None


def segment_reduce(
    data: Tensor,
    reduce: str,
    *,
    lengths: Tensor | None = None,
    indices: Tensor | None = None,
    offsets: Tensor | None = None,
    axis: int = 0,
    unsafe: bool = False,
    initial: Any = None,
) -> Tensor:
    """Return the maximum of each segment along the first dimension, given lengths or offsets.

    >>> segment_reduce(torch.tensor([1.0, 3.0, 2.0]), "max", lengths=torch.tensor([2, 0, 1]))
    tensor([3., -inf, 2.])

    Source: PyTorch, `torch.segment_reduce`.
    """
    _check(reduce, "max")
    is_number = isinstance(initial, (int, np.floating, np.integer)) or (
        isinstance(initial, torch.Tensor) and initial.dim() == 0
    )
    if is_number and isinstance(data, torch.Tensor) and data.is_floating_point():
        initial = float(initial)  # PyTorch converts numbers, and rounds them to the dtype of data
    empty = (
        {"initial": initial}
        if initial is not None
        else {"fill_value": _LOWEST.get(data.dtype) if isinstance(data, Tensor) else None}
    )
    is_plain = lengths is None and indices is None and axis == 0 and not unsafe
    if is_plain and type(data) is type(offsets) is Tensor and data.numel():
        found: Tensor | None = _segment_max(data, offsets=offsets, **empty)
        if found is not None:
            return found
    given = offsets if lengths is None else lengths
    is_plain = isinstance(given, torch.Tensor) and given.dtype is not torch.bool and given.dim() == 1
    is_ours = _is_taken(data) and axis == 0 and is_plain and given is not None and given.numel() > 0
    if not is_ours or indices is not None or unsafe or (lengths is not None and offsets is not None):
        return torch.segment_reduce(
            data, reduce, lengths=lengths, indices=indices, offsets=offsets, axis=axis, unsafe=unsafe, initial=initial
        )
    if lengths is not None:
        offsets = torch.cat([lengths.new_zeros(1), lengths.cumsum(0)])
    try:
        result: Tensor = ops.segment_max(data, offsets=offsets, **empty)
    except OffsetsError as error:
        if lengths is None:
            raise
        raise OffsetsError(
            f"lengths must not be negative and must add up to the number of rows ({data.size(0)}), got a "
            f"minimum of {lengths.min()} and a sum of {lengths.sum()}",
            error.clause,
        ) from None
    return result


# --------------------------------------------------------------------------------------------------------------------


def _is_dense(tensor: object) -> bool:
    """Return whether maxops supports a tensor. PyTorch runs calls with sparse, nested and masked tensors."""
    return isinstance(tensor, torch.Tensor) and not unsupported_kind(tensor) and tensor.dtype in _LOWEST


def _is_taken(tensor: object, keepdim: object = False) -> bool:
    """Return whether maxops runs a call. PyTorch runs calls with empty tensors or a `keepdim` that is not a bool."""
    return type(keepdim) is bool and _is_dense(tensor) and tensor.numel() > 0  # type: ignore[attr-defined]


def _go_together(input: Tensor, source: Tensor, dim: int) -> bool:
    """Return whether maxops can scatter `source` into `input` along a dimension. Otherwise, PyTorch runs the call."""
    taken = _is_taken(input) and _is_taken(source) and input.dtype is source.dtype
    return taken and input.dim() == source.dim() > 0 and -input.dim() <= dim < input.dim()


def _is_index_of(index: Tensor, input: Tensor, src: Tensor, dim: int) -> bool:
    """Return whether `index` has the rank of `input`, and is no larger than `src` or, except along `dim`, `input`."""
    if not isinstance(index, torch.Tensor):
        return False
    sizes = enumerate(zip(index.shape, src.shape, input.shape, strict=False))
    return index.dim() == input.dim() and all(
        size <= most and (size <= beside or axis == dim % input.dim()) for axis, (size, most, beside) in sizes
    )


def _sizes_beside(tensor: Tensor, dim: int) -> list[int]:
    """Return the sizes of all dimensions except one."""
    return [size for axis, size in enumerate(tensor.shape) if axis != dim % tensor.dim()]


def _in_one_type(input: Tensor, other: Tensor) -> tuple[Tensor, Tensor] | None:
    """Promote two tensors to a common dtype, or return None if PyTorch must run the call."""
    if not (_is_dense(input) and _is_dense(other)):
        return None
    if input.dtype is other.dtype:
        return input, other
    dtype = torch.result_type(input, other)
    return (input.to(dtype), other.to(dtype)) if dtype in _LOWEST else None


def _given(result: Tensor, out: Tensor | None) -> Tensor:
    """Return the result. If `out` is passed, write the result to `out`, as PyTorch does."""
    return result if out is None else torch.maximum(result, result, out=out)


def _integer(dim: Any) -> Any:
    """Convert a tensor to an integer, as PyTorch does."""
    return operator.index(dim) if isinstance(dim, torch.Tensor) else dim


def _aliased(*arguments: tuple[str, Any, str, Any, Any]) -> list[Any]:
    """Return the value of each argument or of its alias.

    An argument is given as its name and value, the name and value of its alias, and its default.
    """
    for name, value, alias, other, default in arguments:
        if other is not None and value != default:
            raise TypeError(f"{alias} is an alias of {name}; pass only one of them")
    return [value if other is None else other for _, value, _, other, _ in arguments]


def _reduced(input: Tensor, dim: Any, keepdim: bool, **options: Any) -> Any:
    dim = [*map(_integer, dim)] if isinstance(dim, (tuple, list)) else _integer(dim)
    if input.dim() > 0:
        return ops.reduce_max(input, axis=dim, keepdims=keepdim, **options)
    for axis in dim if isinstance(dim, list) else [dim]:
        if isinstance(axis, int) and axis not in (0, -1):
            raise AxesError(f"dim must be 0 or -1 for a tensor of rank 0, got {axis}", "maxops.reduce_max.axes.range")
    return ops.reduce_max(input.reshape(1), axis=dim, **options)  # PyTorch accepts an axis for scalars


def _scattered_at_once(input: Tensor, index: Tensor, source: Tensor, dim: int, include_self: bool) -> Tensor | None:
    """Scatter plain, valid tensors by a 1-D index, or return None if further checks are necessary."""
    if not type(input) is type(index) is type(source) is Tensor or input.dim() == 0 or type(dim) is not int:
        return None
    lowest = _LOWEST.get(input.dtype)
    if lowest is None or not input.numel() or not source.numel():
        return None
    count, kept = input.size(dim), not include_self
    found = _segment_max(source, index, count, fill_value=lowest, sorted=False, axis=dim, return_empty=kept)
    if found is None:
        return None
    values, empty = found if kept else (found, None)
    if values.shape != input.shape:
        return None
    if empty is None:
        return _maximum(input, values, out=values)  # type: ignore[no-any-return]
    if values.dtype is not input.dtype:
        return None
    return torch.where(_along(empty, input, dim), input, values).contiguous()


def _along(mask: Tensor, input: Tensor, dim: int) -> Tensor:
    """Reshape a 1-D mask along a dimension so that it broadcasts to a tensor."""
    if input.dim() == 1:
        return mask
    shape = [1] * input.dim()
    shape[dim] = -1
    return mask.reshape(shape)


def _scattered(input: Tensor, index: Tensor, source: Tensor, dim: int, include_self: bool) -> Tensor:
    """Scatter `source` into a copy of `input`, keeping the maxima. Elements that no index selects are unchanged."""
    count = input.size(dim)
    options: Any = {"sorted": False, "axis": dim}
    if not include_self:
        values, empty = ops.segment_max(source, index, count, fill_mode="ZERO", return_empty=True, **options)
        return torch.where(_along(empty, input, dim), input, values).contiguous()
    if torch.is_grad_enabled() and (input.requires_grad or source.requires_grad):
        # one call, because all elements that equal a maximum share its gradient
        index = torch.cat([torch.arange(count, dtype=index.dtype, device=index.device), index])
        joined: Tensor = ops.segment_max(torch.cat([input, source], dim), index, count, fill_mode="ZERO", **options)
        return joined
    alone: Tensor = ops.segment_max(source, index, count, fill_value=_LOWEST[input.dtype], **options)
    return ops.maximum(input, alone)


def _scattered_by_each(input: Tensor, index: Tensor, src: Tensor, dim: int, include_self: bool) -> Tensor:
    """Scatter `src` into a copy of `input` by an index with the shape of `src`."""
    if input.dim() == 1:
        return _scattered(input, index, src, 0, include_self)
    if dim % input.dim():
        moved, index, src = [each.movedim(dim, 0) for each in (input, index, src)]
        return _scattered_by_each(moved, index, src, 0, include_self).movedim(0, dim).contiguous()
    # flatten the tensors, and use one segment per element of input
    rows = input.size(0)
    columns = input.numel() // rows
    places = torch.arange(columns, device=input.device).reshape(input.shape[1:])
    if index.shape[1:] != places.shape:
        places = places[tuple([slice(size) for size in index.shape[1:]])]
    if index.dtype is torch.int64:  # because the products of values far out of range would overflow
        index = index.clamp(-1, rows)
    ids = torch.add(places, index, alpha=columns)
    return _scattered(input.reshape(-1), ids.reshape(-1), src.reshape(-1), 0, include_self).reshape(input.shape)


def _scattered_by_each_at_once(
    input: Tensor, index: Tensor, src: Tensor, dim: int, include_self: bool
) -> Tensor | None:
    """Scatter plain, valid CPU tensors by an index with the shape of `src`, or return None if checks are necessary."""
    if not type(input) is type(index) is type(src) is Tensor or type(dim) is not int or index.dtype is not torch.int64:
        return None
    shape, lowest = input.shape, _LOWEST.get(input.dtype)
    if torch.compiler.is_compiling() or is_tracing() or len(shape) < 2:
        return None
    if not -len(shape) <= dim < len(shape) or src.dtype is not input.dtype or lowest is None or not src.numel():
        return None
    rows, beside = shape[dim], [*shape]
    beside[dim] = index.size(dim)
    views = plain.at_once((input, index, src)) if [*index.shape] == beside == [*src.shape] else None
    if views is None or _native.check_indices(views[1].reshape(-1), False, False, True, rows, index.numel()):
        return None
    # use one segment per element of input, in C order
    inner = math.prod(shape[dim % len(shape) + 1 :])
    outer = input.numel() // (rows * inner)
    ids = views[1].reshape(outer, -1, inner) * inner
    ids += np.arange(inner)
    if outer > 1:
        ids += np.arange(0, input.numel(), rows * inner).reshape(-1, 1, 1)
    values, updates = views[0].reshape(-1), views[2].reshape(-1)
    options: Any = {"fill_value": lowest, "sorted": False, "return_empty": not include_self}
    result = _native.segment_max(updates, ids.reshape(-1), values.size, **options)
    if include_self and result is not None:
        result = _native.maximum(values, result, out=result)
    elif result is not None:
        result, empty = result
        np.copyto(result, values, where=empty)
    return None if result is None else tensor_of(result.reshape(shape))


def _check(reduce: str, name: str) -> None:
    if reduce != name:
        raise ValueError(f"reduce must be {name!r}, got {reduce!r}; use PyTorch for other reductions")
