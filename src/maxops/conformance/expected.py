"""Computes the expected result of a call: the planner checks the call, and the reference computes the result.

For large calls, `keys` replaces the reference. Neither shares code with the engines, so both can judge the engines.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from maxops import dtypes, reference
from maxops.calls import MaxCall, ReduceCall, ScatterCall, of_node
from maxops.conformance import keys
from maxops.conformance.case import Call, Feed
from maxops.conformance.pool import is_nan, of_words
from maxops.plan import Array, Plan, plan
from maxops.spec import Spec

FEW_ELEMENTS = 20_000  # the reference computes this number of elements in 0.1 s


def expected_result(row: Spec, call: Call, feed: Feed) -> Array:
    """Return the result that a row of the spec table specifies; an invalid call raises the error of the broken clause.

    >>> from maxops import spec
    >>> from maxops.conformance.case import Input
    >>> call = Call(spec.MAX_13, (Input("a", dtypes.INT8, (None,)), Input("b", dtypes.INT8, (None,))))
    >>> expected_result(spec.MAX_13, call, (np.int8([1, 2]), np.int8([2, 1])))
    array([2, 2], dtype=int8)
    """
    planned = _plan(row, call, feed)
    return _compute(planned, _arrays(planned))


def without_nan(row: Spec, call: Call, feed: Feed) -> Array:
    """Return the maximum of the elements that are not NaN, for standards that do not specify NaN.

    The result is NaN if all elements are NaN. For no elements, the result is the same as that of `expected_result`.
    """
    planned = _plan(row, call, feed)
    arrays, checked = _arrays(planned), planned.call
    present = [~is_nan(array) for array in arrays]
    # dtypes without NaN return here, because they lack nan_bits
    if all(there.all() for there in present) or (isinstance(checked, ReduceCall) and checked.noop_with_empty_axes):
        return _compute(planned, arrays)
    lowest = of_words(planned.dtype, [planned.dtype.lowest_bits]).reshape(())
    passed_over = [np.where(there, array, lowest) for array, there in zip(arrays, present, strict=True)]
    result = _compute(planned, passed_over)
    some = _compute(planned, [there.astype(np.int8) for there in present])
    of_nothing = _compute(planned, [np.ones(array.shape, np.int8) for array in arrays]) != 1
    none = (some == 0) & ~of_nothing
    result[none] = of_words(planned.dtype, [planned.dtype.nan_bits])
    return result


def _plan(row: Spec, call: Call, feed: Feed) -> Plan[Any]:
    return plan(of_node(row, call.whole(feed), dict(call.attributes)))


def _arrays(plan: Plan[Any]) -> list[Array]:
    return [array for name, array in plan.call.arrays if name not in ("segment_ids", "offsets", "indices")]


def _compute(plan: Plan[Any], arrays: Sequence[Array]) -> Array:
    """Compute the plan on its own arrays, or on other arrays of the same shapes."""
    if sum(array.size for array in arrays) > FEW_ELEMENTS and dtypes.of(arrays[0].dtype) is not dtypes.REAL:
        return keys.compute(plan, arrays)
    call = plan.call
    if isinstance(call, MaxCall):
        return reference.maximum(*arrays)
    if isinstance(call, ScatterCall):
        data, updates = arrays
        return reference.scatter_max(data, call.indices, updates, call.axis)
    (data,) = arrays
    if isinstance(call, ReduceCall):
        return reference.reduce_max(data, call.axes, keepdims=call.keepdims, identity=call.noop_with_empty_axes)
    return reference.segment_max(data, call.segment_ids, call.num_segments, call.fill_mode)
