"""Check the output array of a call, or the size of a new one."""

from __future__ import annotations

from decimal import Decimal
from math import prod

import numpy as np

from maxops import dtypes
from maxops.dtypes import DType
from maxops.errors import OutputError, OutputTooLargeError
from maxops.physical_memory import physical_memory
from maxops.plan.values import Array
from maxops.shapes import Shape
from maxops.shown import shown
from maxops.spec import Spec

# An output larger than the machine's memory is an error before any computation, because operating systems grant such
# allocations and then kill the process when it writes to them.
LARGEST_OUTPUT = physical_memory()
_LONGEST_AXIS = int(np.iinfo(np.intp).max)


def output_of(
    spec: Spec, out: object, dtype: DType, shape: Shape, clause: str, *, in_memory: bool = True
) -> Array | None:
    """Return a view of the caller's `out`. If it is None, check that a new output fits in memory, and return None."""
    if out is None:
        size = prod(shape) * (dtype.bits // 8 or np.dtype(object).itemsize)
        if in_memory and size > LARGEST_OUTPUT:
            raise OutputTooLargeError(
                f"{spec.name} output of shape {shown(shape)} and dtype {dtype} needs {Decimal(size) / 2**30:.4g} GiB, "
                f"but this machine has {LARGEST_OUTPUT / 2**30:.4g} GiB of memory",
                spec.clause(clause),
            )
        if any(isinstance(size, int) and size > _LONGEST_AXIS for size in shape):  # other sizes are symbols
            raise OutputTooLargeError(
                f"{spec.name} output would have shape {shown(shape)}, but an axis can have at most {_LONGEST_AXIS} "
                "elements",
                spec.clause(clause),
            )
        return None
    if not isinstance(out, np.ndarray) or type(out) not in (np.ndarray, np.memmap):
        raise OutputError(f"{spec.name} out must be a NumPy array, got {type(out).__name__}", spec.clause("out", "T"))
    view = out.view(np.ndarray)  # a new object, whose shape and dtype no other thread can set
    found = dtypes.of(view.dtype)
    if found is not dtype:
        raise OutputError(
            f"{spec.name} out is {found or view.dtype}, but the inputs are {dtype}", spec.clause("out", "T")
        )
    if view.shape != shape:
        raise OutputError(
            f"{spec.name} out has shape {view.shape}, but the result has shape {shape}", spec.clause("out", clause)
        )
    if not view.flags.writeable:
        clause = spec.clause("out") if spec.has("out") else ""  # no standard has this clause
        raise OutputError(f"{spec.name} out is read-only; pass a writeable array", clause)
    return view
