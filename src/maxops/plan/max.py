"""Check calls to Max, and return their plans."""

from __future__ import annotations

from maxops import shapes
from maxops.calls import MaxCall
from maxops.errors import DTypeError, InputCountError, ShapeError
from maxops.plan.output import output_of
from maxops.plan.plan import Plan
from maxops.plan.values import WITH_ASTYPE, Array, array_of, dtype_of, is_python_scalar, nan_rule, scalar_as

MOST_INPUTS = 2**31 - 1


def plan_max(call: MaxCall, *, in_memory: bool = True) -> Plan[MaxCall]:
    """Check a call to Max, and return its plan. If `in_memory` is False, the result may be larger than memory."""
    spec, inputs = call.row, call.inputs
    shape_clause = "C1" if spec.has("C1") else "shape"
    if not 1 <= len(inputs) <= MOST_INPUTS:
        raise InputCountError(
            f"{spec.name} expects 1 to {MOST_INPUTS} inputs, got {len(inputs)}", spec.clause("inputs", "L")
        )
    names = [f"input {number}" for number in range(len(inputs))]
    arrays = [None if is_python_scalar(value) else array_of(spec, names[i], value) for i, value in enumerate(inputs)]
    first = next((i for i, array in enumerate(arrays) if array is not None), None)
    if first is None:
        raise DTypeError(
            f"{spec.name} got only Python scalars, which have no dtype; pass at least one NumPy array or scalar, "
            "such as numpy.float32(...)",
            spec.clause("scalars", "T"),
        )
    first_array = arrays[first]
    assert first_array is not None
    dtype = dtype_of(spec, names[first], first_array)
    whole: list[Array] = []
    for i, (name, array) in enumerate(zip(names, arrays, strict=True)):
        if array is None:
            whole.append(scalar_as(spec, name, inputs[i], dtype, beside=names[first]))
            continue
        if (found := dtype_of(spec, name, array)) is not dtype:
            raise DTypeError(
                f"{spec.name} {name} is {found}, but {names[first]} is {dtype}; all inputs must have the same dtype: "
                f"convert one of them {WITH_ASTYPE}",
                spec.clause("T", "types"),
            )
        whole.append(array)

    if spec.broadcast == "none" and (odd := [i for i, array in enumerate(whole) if array.shape != whole[0].shape]):
        raise ShapeError(
            f"{spec.name} input {odd[0]} has shape {whole[odd[0]].shape}, but input 0 has shape {whole[0].shape}; "
            f"version {spec.version} does not broadcast: all shapes must be equal",
            spec.clause(shape_clause),
        )
    try:
        shape = shapes.broadcast([array.shape for array in whole], zero_with_one=spec.broadcast != "strict")
    except shapes.MismatchError as mismatch:
        zero_with_one = {mismatch.size, mismatch.other} == {0, 1}
        rule = "size 0 does not broadcast with size 1" if zero_with_one else "sizes must be equal, or one must be 1"
        raise ShapeError(
            f"{spec.name} input {mismatch.number} has shape {whole[mismatch.number].shape}, which does not broadcast "
            f"with the inputs before it: axis {mismatch.axis} has size {mismatch.size}, expected {mismatch.other}; "
            f"{rule}",
            spec.clause("zero-size" if zero_with_one else shape_clause),
        ) from None
    nan = nan_rule(spec, call.nan)
    output_clause = "C2" if spec.has("C2") else shape_clause
    out = output_of(spec, call.out, dtype, shape, output_clause, in_memory=in_memory)
    return Plan(dtype, shape, MaxCall(tuple(whole), out, call.ties, nan, spec))
