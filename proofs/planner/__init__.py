"""Claims about arguments: the error of each invalid small call, and the shape and type of each valid call.

The planner checks arguments in Python (src/maxops/plan). The native core checks simple calls in C++ (native/api*.cpp,
native/bindings), and leaves all others to the planner. This package states each rule again, in a few lines, without
using maxops. Each call runs three times: as shipped, in the planner only, and in the core only. Each result must follow
the rules: a type and a shape, or the error and the id of a broken clause. If a call breaks several rules, any of their
errors is correct, because no clause defines an order. The core must handle all calls that the planner accepts, except
those for which `is_left_to_planner` returns True.

    python proofs/verify.py --only planner.ids    # check one claim
"""

from __future__ import annotations

import platform
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from claims import ROOT, Check, Claim, require_this_tree

from planner import trials
from planner.rows import MAX, REDUCE, SEGMENT, Row, Seen, Trial, bits_of

DECIDE = ("src/maxops/plan/*.py", "native/api*", "native/bindings/arguments.*", "native/bindings/operators.*")
FILES = (
    "proofs/claims.py", *(f"proofs/planner/{name}.py" for name in ("__init__", "rows", "trials")),
    *(f"src/maxops/{name}.py" for name in ("spec", "ops", "calls", "dtypes", "errors", "shapes")),
    *(f"src/maxops/engines/{name}.py" for name in ("base", "native", "numpy", "rational", "table")),
    "native/bindings/module.cpp", "native/bindings/output.cpp", "native/bindings/output.h",
    *(str(path.relative_to(ROOT)) for pattern in DECIDE for path in ROOT.glob(pattern)),
)  # fmt: skip
ASSUMES = (
    "the outcome of a call does not depend on the values of elements, except for ids, offsets and maxima of no elements"
)


NOT_HANDLED: Seen = ("None",)  # the core leaves the call to the planner


class Says(NamedTuple):
    """The calls that verify a claim, the statement of the claim, and its bounds."""

    trials: Callable[[], Iterator[Trial]]
    says: str
    bounds: str
    with_values: bool = False


RULES = {
    "planner.broadcast": Says(
        trials.broadcasting,
        "Max returns a result of the shape that the broadcasting rule of its version specifies, and rejects shapes "
        "that the rule does not allow",
        "every row of Max: one, two and three shapes of up to 2 axes, and two of up to 3, of sizes 0 to 3; also "
        "rationals",
    ),
    "planner.scalars": Says(
        trials.python_scalars,
        "plain functions accept a Python scalar next to an array, as initial or as fill_value, if it is a float within "
        "the range of the array's type, or another value that the type represents exactly; they reject all others",
        "each type: integers within 1 of a power of two, up to 2^67 and near the limits of the float formats; floats "
        "near the precision and the limits of each format; bools and fractions; instead of the Python scalar, also "
        "NumPy arrays and scalars of every type",
    ),
    "planner.types": Says(
        trials.types,
        "data, ids, offsets and numbers of segments are accepted if the operator allows their types, and otherwise "
        "rejected",
        "every row: one, two and three inputs of 14 types and 10 unsupported types, ids and numbers of segments of "
        "each type, in both byte orders and as scalars, and objects that are not arrays",
    ),
    "planner.axes": Says(
        trials.axes,
        "distinct axes in the range that the operator allows are dropped, kept with size 1, or replaced by the axis of "
        "the segments; other axes are rejected",
        "every row of ReduceMax: every list of up to 3 axes in -r-1..r of ranks 0 to 3, as list, tuple, array and "
        "integer, with each keepdims and noop_with_empty_axes; arrays of 24 types; integers of more than 64 bits; "
        "rationals; for SegmentMax, every axis of ranks 0 to 3 and sizes 0 to 2, with ids and with offsets",
    ),
    "planner.empty": Says(
        trials.empty_sets,
        "the maximum of no elements is the lowest value or initial; for rationals without initial, it is rejected",
        "every row of ReduceMax and type: each shape of up to 3 axes of sizes 0 to 2, each set of its axes",
        True,
    ),
    "planner.ids": Says(
        trials.ids,
        "ids are accepted, rejected or dropped, and determine the number of segments, as the operator and the options "
        "of the call specify",
        "both rows of SegmentMax: every list of up to 4 ids in -2..3 (of up to 3 in each integer type, swapped and "
        "strided), 7 numbers of segments, each sorted, out_of_range and check_ids, 3 row widths, with and without out, "
        "and rationals; uint64 around 2^63; every pair of shapes of up to 2 axes of sizes 0 to 3",
    ),
    "planner.offsets": Says(
        trials.offsets,
        "non-decreasing offsets from 0 to the number of rows are accepted, and other offsets are rejected",
        "every list of up to 4 offsets in -1..4, 0 to 3 rows, 7 numbers of segments, with and without checks, 3 row "
        "widths",
    ),
    "planner.fills": Says(
        trials.fills,
        "an empty segment has the value that fill_mode, fill_value or initial specifies; exactly one of them is "
        "required",
        "both rows of SegmentMax and each type: 9 values of fill_mode, with and without each other fill option; sorted "
        "ids of up to 2 rows in 3 segments, and offsets; for floats, -0 and NaNs of both signs, quiet and signalling, "
        "with payloads, as NumPy scalars and as arrays of rank 0, also with unsorted ids",
        True,
    ),
    "planner.options": Says(
        trials.flags,
        "options whose values are 0 and 1, or a few words, accept these values and no others",
        "every row: 10 valid values, 13 invalid values, 10 words",
    ),
    "planner.inputs": Says(
        trials.inputs,
        "each operator accepts the numbers of inputs and the attributes that its specification allows",
        "every row: up to 5 inputs (Max: up to 1000, but not up to the limit of 2^31), and 19 names of attributes",
    ),
    "planner.outputs": Says(
        trials.outputs,
        "out is accepted if it is a writable array of the type and shape of the result, and otherwise rejected",
        "every row: outputs of each shape of up to 2 axes of sizes 0 to 3 and of 15 types, for results of 4 shapes",
    ),
}


def ways_of(row: Row) -> tuple[Callable[..., Any], Callable[..., Any], Callable[..., Any]]:
    """Return three functions that run a row's operator: as shipped, in the planner only, and in the core only.

    The last function returns None for calls that the core leaves to the planner.
    """
    import maxops as mo  # noqa: PLC0415
    from maxops import _native, ops  # noqa: PLC0415

    if row.is_plain:
        function = getattr(mo, row.operator)
        return function, function.__wrapped__, getattr(_native, row.operator)
    operator = mo.operator(row.standard, row.operator, row.version)
    core = _native.Entry(lambda *_, **__: None, **ops._native_rules(operator.spec))
    return operator, operator.__wrapped__, core


def seen(call: Callable[..., Any], args: tuple[Any, ...], options: dict[str, Any], with_values: bool) -> Seen:
    """Run a call. Return the type and shape of the result, or the class and the clause of the error."""
    try:
        result = call(*args, **options)
    except Exception as error:  # noqa: BLE001  (any error is a result here)
        return type(error).__name__, getattr(error, "clause", str(error))
    if result is None:
        return NOT_HANDLED
    if isinstance(result, tuple):
        return tuple((part.dtype, part.shape) for part in result)
    return (result.dtype, result.shape, *([bits_of(result)] if with_values else []))


def is_left_to_planner(row: Row, args: tuple[Any, ...], options: dict[str, Any]) -> bool:
    """Return whether the core may leave a valid call to the planner, because such calls are rare or not native."""
    values = [*args, *options.values()]
    indices = [*args[1:], options.get("offsets")]  # ids or offsets
    return (
        any(isinstance(each, np.ndarray) and each.dtype == object for each in values)
        or any(isinstance(each, np.ndarray) and each.dtype == np.uint64 for each in indices)
        or any(isinstance(each, int) and not -(2**63) <= each < 2**63 for each in values)
        or any(isinstance(each, np.ndarray) and each.shape == () for each in (options.get("axes"), options.get("axis")))
        or bool(options.get("noop_with_empty_axes"))
        or np.size(options.get("axis", 0)) == 0
        or options.get("keepdims", 0) is None
        or (row in MAX[:-1] and any(isinstance(each, (int, float)) for each in args))
        or "consumed_inputs" in options
    )


def claim(name: str, *, all_calls: bool = True) -> Claim:
    """Run the calls of a claim, and return the claim. Without `all_calls`, stop at the first wrong call."""
    require_this_tree()
    says = RULES[name]
    ways = {row: ways_of(row) for row in (*MAX, *REDUCE, *SEGMENT)}
    cases, accepted, by_core = 0, 0, 0
    wrong: dict[Row, list[str]] = {}
    for row, args, options, allowed in says.trials():
        found = wrong.setdefault(row, [])
        cases += 1
        shipped, planner, core = (seen(way, args, options, says.with_values) for way in ways[row])
        is_accepted, is_taken = not isinstance(planner[0], str), core != NOT_HANDLED
        accepted, by_core = accepted + is_accepted, by_core + is_taken
        given = {"": shipped, "the planner: ": planner} | ({"the core: ": core} if is_taken else {})
        said = [
            f"gives {what}, not one of {sorted(allowed, key=str)}" for what in given.values() if what not in allowed
        ]
        if is_taken and core != planner:
            said.append(f"gives {core} by the core, and {planner} by the planner")
        if is_accepted and not is_taken and not is_left_to_planner(row, args, options):
            said.append("is accepted by the planner, and the core leaves it")
        found += [f"{args!r:.200} {options!r:.200} {each}" for each in said]
        if found and not all_calls:
            break
    still_open = [f"{row.standard} {row.name}: {len(found)} wrong: {found[0]}" for row, found in wrong.items() if found]
    both = f"the planner accepts {accepted} calls; the core handles {by_core} of them itself, with the same result"
    tool = f"CPython {platform.python_version()}, NumPy {np.__version__}"
    bounds = f"{says.bounds}; {both}"
    return Claim(name, says.says, "exhaustive", tool, FILES, len(wrong), tuple(still_open), cases, bounds, ASSUMES)


# The longest checks first.
CHECKS = tuple(Check(name, partial(claim, name)) for name in ("planner.ids", *(RULES.keys() - {"planner.ids"})))
