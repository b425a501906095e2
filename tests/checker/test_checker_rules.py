"""Every clause of every row, checked on facts without models: cases that hold, are broken, or are unknown."""

from __future__ import annotations

import pkgutil
from collections.abc import Callable
from dataclasses import FrozenInstanceError, fields, is_dataclass
from importlib import import_module
from itertools import product
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import maxops.checker
from maxops import shapes, sizes, spec
from maxops.checker.facts import OPEN, Invalid, Known, Node
from maxops.checker.report import RULES, Finding, judge
from maxops.dtypes import BOOL, FLOAT32, FLOAT64, INT32, INT64
from maxops.sizes import Dims, Size
from maxops.spec import Spec

Case = Callable[[Spec], Node]
HOLDS, BROKEN, UNKNOWN = "holds", "broken", "unknown"
REDUCE_MAX_ROWS = [row for row in spec.ALL if row.operator == "ReduceMax"]


def value(dims: Dims | None = (2, 3), dtype: Any = FLOAT32, *, declared: bool = True, **more: Any) -> Known:
    return Known(more.pop("name", "v"), dtype, dims, declared, **more)


def make(
    row: Spec, *inputs: Known | None, output: Known | None = None, opset: str | None = "18", **attributes: Any
) -> Node:
    return Node("there", row.operator, inputs, () if output is None else (output,), attributes, row, opset=opset)


def of(*inputs: Known | None, **more: Any) -> Case:
    return lambda row: make(row, *inputs, **more)


def constant(values: Any, dtype: Any = INT64) -> Known:
    array = np.array(values, dtype.numpy)
    return value(array.shape, dtype, constant=array)


def ruling(node: Node, short: str) -> Finding:
    """Return the finding about the clause of the node's row with this short name."""
    assert node.row is not None
    (found,) = [each for each in judge(node).findings if each.clause == node.row.clause(short)]
    return found


# ---------------------------------------------------------------------------------------------------- Max

TWO = of(value(), value((3,)), output=value())
COUNT = {HOLDS: [TWO, of(value())], BROKEN: [of(), of(value(), None)]}
VALUES = {UNKNOWN: [TWO]}
STRICT_OR_NUMPY = {
    HOLDS: [TWO, of(value(("n", 1)), value(("n", 4))), of(value(("n",)), value((1,))), of(value((0,)), value((0,)))],
    BROKEN: [of(value((4,)), value((3,))), of(value((0,)), value((2,))), of(value(None), value((4,)), value((3,)))],
    UNKNOWN: [
        of(value(("n",)), value((4,))),
        of(value(("n",)), value(("m",))),
        of(value((None,)), value((None,))),
        of(value(), value(None)),
        of(),
    ],
}
MAX: dict[str, dict[str, list[Case]]] = {
    "inputs": COUNT,
    "L": COUNT,
    "T": {
        HOLDS: [TWO, of(value(), output=value(dtype=None, declared=False))],
        BROKEN: [
            of(value(), value(dtype=FLOAT64)),
            of(value(dtype="string")),
            of(value(dtype=BOOL)),
            of(value(), output=value(dtype=FLOAT64)),
            of(value(dtype=None), value(dtype="complex64")),
        ],
        UNKNOWN: [of(value(dtype=None)), of(value(), value(dtype=None)), of()],
    },
    "GR2": {
        HOLDS: [TWO],
        BROKEN: [of(value(declared=False)), of(value(), output=value(declared=False))],
    },
    "GR3": {
        HOLDS: [TWO, of(value(dtype=FLOAT64), value(dtype=FLOAT64)), of(value(dtype="string"))],
        BROKEN: [
            of(value(), value(dtype=FLOAT64)),
            of(value(), value(dtype="complex64")),
            of(value(), value(dtype=BOOL)),
        ],
        UNKNOWN: [of(value(dtype=None)), of(value(), value(dtype=None)), of()],
    },
    "GR4": {HOLDS: [TWO, of()]},
    "GR1": {
        HOLDS: [TWO],
        BROKEN: [of(value(), value(sparse=True)), of(value(written_sparse=True))],
        UNKNOWN: [of(value(dtype=None))],
    },
    "static": {
        HOLDS: [TWO, of(value((0,))), of(value(()))],
        BROKEN: [of(value(("n", 3))), of(value((None,))), of(value(None)), of(value(), output=value((2, "m")))],
        UNKNOWN: [of(value(), value(("n",), declared=False)), of(value(None, declared=False))],
    },
    "opset": {
        HOLDS: [TWO, *(of(value(), opset=number) for number in ("13", "14", "28"))],
        BROKEN: [of(value(), opset=number) for number in (None, "12", "7", "1", "0", "-3")],
        UNKNOWN: [of(value(), opset="opset1")],
    },
    "C1": STRICT_OR_NUMPY,
    "C2": {
        HOLDS: [TWO, of(value((2, 1)), value((3,)), output=value((2, 3))), of(value(), output=value((None, "m")))],
        BROKEN: [of(value(), output=value((2, 4))), of(value(), output=value((3,))), of(value(()), output=value((1,)))],
        UNKNOWN: [of(value(("n",)), output=value((4,))), of(value(None)), of(value((2,)), value((3,))), of()],
    },
    "zero-size": {
        HOLDS: [
            TWO,
            of(value((0, 2)), value((0, 1))),
            of(value(("n",)), value((4,))),
            of(value(("n",)), value(("n",))),
        ],
        BROKEN: [
            of(value((0,)), value((1,))),
            of(value((2, 0)), value((2, 1))),
            of(value((0,)), value(())),
            of(value((0, "n")), value((1, None))),
        ],
        UNKNOWN: [
            of(value(("n",)), value((1,))),
            of(value(("n",)), value(())),
            of(value(("n",)), value((0,))),
            of(value((None,)), value((None,))),
            of(value(None)),
        ],
    },
    "value": VALUES,
    "NaN": VALUES,
    "nan": VALUES,
    "consumed_inputs": {
        HOLDS: [TWO, of(value(), consumed_inputs=(0,))],
        BROKEN: [of(value(), consumed_inputs=Invalid("x"))],
    },
}
# The clause "shape" combines C1 and C2; before version 8, inputs do not broadcast.
SHAPE = {
    "numpy": {
        HOLDS: [*STRICT_OR_NUMPY[HOLDS], *MAX["C2"][HOLDS], of(value((0,)), value((1,)))],
        BROKEN: [*STRICT_OR_NUMPY[BROKEN], *MAX["C2"][BROKEN], of(value(("n",)), value((4,)), output=value((3,)))],
        UNKNOWN: [*STRICT_OR_NUMPY[UNKNOWN], of(value(("n",)), output=value((4,)))],
    },
    "none": {
        HOLDS: [
            of(value(), value(), output=value()),
            of(value(("n",)), value(("n",)), output=value((None,))),
            of(value((None,)), output=value((None,))),
        ],
        BROKEN: [
            TWO,
            of(value((2,)), value((1,))),
            of(value(), output=value((2, 4))),
            of(value(()), value((1,))),
            of(value((2,)), value(("n",)), output=value((3,))),
        ],
        UNKNOWN: [of(value(("n",)), value((4,))), of(value(), value(None)), of(), of(value(None))],
    },
}


# ---------------------------------------------------------------------------------------------------- ReduceMax


def axes(given: Any, data: Known | None = None, **more: Any) -> Case:
    """Return a case with axes in the form of the version: an attribute or a constant input."""

    def case(row: Spec) -> Node:
        first = value() if data is None else data
        if row.axes_input:
            return make(row, first, constant(list(given)), **more)
        return make(row, first, **more, axes=tuple(given))

    return case


def open_axes(row: Spec) -> Node:
    return make(row, value(), value((1,), INT64)) if row.axes_input else make(row, value(), axes=OPEN)


def axes_of_rank_2(row: Spec) -> Node:
    return make(row, value(), value((1, 1), INT64)) if row.axes_input else make(row, value(), axes=Invalid("x"))


def left_out_axes(row: Spec) -> Node:
    return make(row, value(), None) if row.axes_input else make(row, value())


def wrong_axes(row: Spec) -> Node:
    return make(row, value(), value((1,), INT32)) if row.axes_input else make(row, value(), axes=Invalid("x"))


def flag_cases(name: str) -> dict[str, list[Case]]:
    return {
        HOLDS: [of(value(), **{name: 0}), of(value(), **{name: 1}), of(value())],
        BROKEN: [of(value(), **{name: 2}), of(value(), **{name: -1}), of(value(), **{name: Invalid("x")})],
        UNKNOWN: [of(value(), **{name: OPEN})],
    }


REDUCE_MAX: dict[str, dict[str, list[Case]]] = {
    "inputs": {HOLDS: [of(value()), left_out_axes], BROKEN: [of(), of(None), of(value(), constant([0]), value())]},
    "T": {
        HOLDS: [of(value(), output=value()), of(value())],
        BROKEN: [of(value(dtype="string")), of(value(), output=value(dtype=INT64)), of(value(sparse=True))],
        UNKNOWN: [of(value(dtype=None)), of()],
    },
    "axes": {
        HOLDS: [
            of(value()),
            axes([0, 1]),
            axes([]),
            axes([1], value(None)),
            # an axis out of range violates only the clause of the range
            axes([0, 2]),
            axes([1, -3]),
            # without a rank, axes of the same sign are unambiguous
            *(axes(given, value(None)) for given in ([], [0], [0, 1], [-2, -1])),
        ],
        BROKEN: [wrong_axes, axes_of_rank_2],
        UNKNOWN: [open_axes],
    },
    "axes.unique": {
        HOLDS: [of(value()), axes([0, 1]), axes([]), axes([0, 2]), axes([-2, -1], value(None))],
        # ONNX does not define whether an axis may be repeated
        UNKNOWN: [
            *(axes(given) for given in ([0, 0], [1, 0, 1], [0, -2], [1, -1])),
            axes([0, 0], value(None)),
            axes([0, -1], value(None)),
            *(open_axes, wrong_axes, axes_of_rank_2),
        ],
    },
    "axes.range": {
        HOLDS: [of(value()), axes([0, 1]), axes([], value(()))],
        BROKEN: [axes([2]), axes([-3]), axes([0], value(())), axes([2**62])],
        UNKNOWN: [open_axes, axes([0], value(None)), wrong_axes],
    },
    "axes.default": {
        HOLDS: [
            of(value()),
            axes([0]),
            of(value(), output=value((1, 1))),
            of(value(None), output=value(()), keepdims=0),
            of(value(), output=value((1, 1)), noop_with_empty_axes=1),
        ],
        BROKEN: [
            of(value(), output=value((2, 3))),
            of(value(), output=value((1, 1)), keepdims=0),
            of(value(), value((0,), INT64), output=value((2, 3))),
        ],
        UNKNOWN: [
            open_axes,
            of(value(None), output=value((1,))),
            of(value(), output=value(), keepdims=OPEN),
        ],
    },
    "keepdims": {
        HOLDS: [
            *flag_cases("keepdims")[HOLDS],
            axes([1], output=value((2, 1))),
            axes([1], output=value((2,)), keepdims=0),
        ],
        BROKEN: [
            *flag_cases("keepdims")[BROKEN],
            axes([1], output=value((2,))),
            axes([1], output=value((2, 1)), keepdims=0),
            axes([0], output=value((2, 3))),
            axes([-2], output=value((2, 3))),
            axes([1], output=value((2,)), noop_with_empty_axes=OPEN),
        ],
        UNKNOWN: flag_cases("keepdims")[UNKNOWN],
    },
    "noop_with_empty_axes": {
        HOLDS: [
            *flag_cases("noop_with_empty_axes")[HOLDS],
            axes([0], noop_with_empty_axes=1),
            of(value(), output=value(), noop_with_empty_axes=1),
            of(value(), output=value(), noop_with_empty_axes=1, keepdims=0),
            of(value(), output=value((1, 1))),
        ],
        BROKEN: [
            *flag_cases("noop_with_empty_axes")[BROKEN],
            of(value(), output=value((1, 1)), noop_with_empty_axes=1),
            of(value(), output=value((1, 1)), noop_with_empty_axes=1, keepdims=OPEN),
        ],
        UNKNOWN: [
            *flag_cases("noop_with_empty_axes")[UNKNOWN],
            of(value(), value((None,), INT64), output=value(), noop_with_empty_axes=1),
        ],
    },
    "value": {UNKNOWN: [of(value())]},
    "nan": {UNKNOWN: [of(value())]},
    "empty": {
        HOLDS: [of(value()), axes([1], value((0, 3))), of(value(()))],
        UNKNOWN: [of(value((0, 3))), of(value(("n", 3))), of(value(None)), open_axes],
    },
}

# --------------------------------------------------------------------------------------------------- SegmentMax

IDS, NO_IDS = value((2,), INT64), value((0,), INT64)
SORTED = constant([0, 2])


def segments(*inputs: Known | None, mode: Any = "ZERO", **more: Any) -> Case:
    return of(*inputs, fill_mode=mode, **more)


SEGMENT_MAX: dict[str, dict[str, list[Case]]] = {
    "inputs": {
        HOLDS: [of(value(), IDS), of(value(), IDS, constant(3)), of(value(), IDS, None)],
        BROKEN: [of(value()), of(value(), None), of(value(), IDS, constant(3), IDS)],
    },
    "T": {
        HOLDS: [of(value(), IDS, output=value())],
        BROKEN: [of(value(dtype=BOOL), IDS), of(value(), IDS, output=value(dtype=INT64))],
        UNKNOWN: [of(value(dtype=None), IDS)],
    },
    "data": {HOLDS: [of(value())], BROKEN: [of(value(()))], UNKNOWN: [of(value(None)), of()]},
    "T_IDX": {
        HOLDS: [of(value(), IDS), of(value(), IDS, value((), INT32)), of(value(), IDS, constant(3), value())],
        BROKEN: [of(value(), value((2,))), of(value(), IDS, value(()))],
        UNKNOWN: [of(value(), value((2,), None)), of(value())],
    },
    "ids.shape": {
        HOLDS: [of(value(), IDS), of(value(("n", 3)), value(("n",), INT64))],
        BROKEN: [
            of(value(), value((3,), INT64)),
            of(value(), value((2, 1), INT64)),
            of(value(), value((), INT64)),
            of(value(None), value((2, 1), INT64)),
        ],
        UNKNOWN: [
            of(value(("n",)), IDS),
            of(value(), value(None, INT64)),
            of(value(None), IDS),
            of(None, IDS),
            of(value()),
        ],
    },
    "ids": {
        HOLDS: [of(value(), SORTED), of(value((0,)), value((0,), INT64)), of(value(), constant([3, 3]))],
        BROKEN: [of(value(), constant([1, 0])), of(value(), constant([-1, 0]))],
        UNKNOWN: [of(value(), IDS), of(value(), constant([1, 0], FLOAT32))],
    },
    "num_segments": {
        HOLDS: [of(value(), IDS), of(value(), IDS, constant(0))],
        BROKEN: [of(value(), IDS, constant(-1)), of(value(), IDS, constant([3]))],
        UNKNOWN: [
            of(value(), IDS, value((), INT64)),
            of(value(), IDS, value(None, INT64)),
            of(value(), IDS, value(None, INT64, constant=np.array([3, 4]))),
        ],
    },
    "num_segments.default": {
        HOLDS: [of(value(), IDS, constant(7)), of(value(), SORTED, output=value((3, 3)))],
        BROKEN: [of(value(), SORTED, output=value((2, 3)))],
        UNKNOWN: [
            of(value(), IDS, output=value()),
            of(value(), SORTED, output=value((None, 3))),
            of(value(), SORTED, output=value(())),
            of(value(), SORTED),
            of(value((0,)), constant([]), output=value((0,))),
        ],
    },
    "num_segments.no_ids": {
        HOLDS: [
            of(value(), IDS),
            of(value(), IDS, constant(0)),
            of(value((0,)), NO_IDS, output=value((0,))),
            of(value((0,)), NO_IDS, constant(0), output=value((1,))),
            of(value((1,)), value((1,), INT64)),
            of(value((0, "n")), NO_IDS, output=value((0, "n"))),
            # the rank violates another clause
            of(value(), value((2, "n"), INT64)),
            of(value(), value((2, 0), INT64)),
        ],
        BROKEN: [
            of(value((0,)), NO_IDS, output=value((1,))),
            of(value((0, 0)), NO_IDS, output=value((1, 0))),
        ],
        UNKNOWN: [
            of(value(("n",)), value(("n",), INT64)),
            of(value((0,)), NO_IDS),
            of(value((0,)), NO_IDS, output=value(())),
            of(value((0,)), NO_IDS, output=value(("n",))),
            of(value()),
        ],
    },
    "num_segments.smaller": {
        HOLDS: [of(value(), IDS), of(value(), SORTED, constant(3))],
        UNKNOWN: [
            of(value(), SORTED, constant(2)),
            of(value(), IDS, constant(2)),
            of(value(), SORTED, constant([3, 4])),
        ],
    },
    "num_segments.larger": {
        HOLDS: [of(value(), IDS), of(value(), SORTED, constant(3)), of(value((0,)), constant([]), constant(0))],
        UNKNOWN: [
            of(value(), SORTED, constant(4)),
            of(value(), constant([0, 0]), constant(2)),
            of(value((0,)), constant([]), constant(1)),
            of(value(), IDS, value((), INT64)),
        ],
    },
    "fill_mode": {
        HOLDS: [segments(value(), IDS, mode="zero"), segments(value(), IDS, mode="LOWEST")],
        BROKEN: [of(value(), IDS), segments(value(), IDS, mode="none"), segments(value(), IDS, mode=Invalid("x"))],
        UNKNOWN: [segments(value(), IDS, mode=OPEN)],
    },
    "lowest": {
        HOLDS: [segments(value(), IDS, mode="Zero")],
        UNKNOWN: [segments(value(), IDS, mode="lowest"), of(value(), IDS)],
    },
    "shape": {
        HOLDS: [
            of(value(), IDS, constant(5), output=value((5, 3))),
            of(value(), IDS, constant(5), output=value((None, 3))),
            of(value(), IDS, output=value((7, 3))),
            of(value(), IDS, output=value(None)),
        ],
        BROKEN: [
            of(value(), IDS, constant(5), output=value((4, 3))),
            of(value(), IDS, output=value((4, 4))),
            of(value(), IDS, output=value((4,))),
        ],
        UNKNOWN: [
            of(value(), IDS, value((), INT64), output=value((4, 3))),
            of(value(None), IDS, output=value()),
            of(value((2, "n")), IDS, output=value((4, 3))),
        ],
    },
    "value": {UNKNOWN: [of(value(), IDS)]},
    "nan": {UNKNOWN: [of(value(), IDS)]},
}

# --------------------------------------------------------------------------------- ScatterElements, ScatterND

# Data of shape (2, 1), for which both operators interpret indices of shape (2, 1) alike.
DATA, COLUMN = value((2, 1)), value((2, 1), INT64)
GOOD = of(DATA, COLUMN, value((2, 1)), output=DATA)


def placed(places: Any, data: Known = DATA, **more: Any) -> Case:
    return of(data, constant(places), value(np.shape(places)), **more)


SCATTER: dict[str, dict[str, list[Case]]] = {
    "inputs": {HOLDS: [GOOD], BROKEN: [of(DATA, COLUMN), of(DATA, None, DATA), of(DATA, COLUMN, DATA, DATA)]},
    "T": {
        HOLDS: [GOOD, of(value(dtype=BOOL), COLUMN, value(dtype=BOOL))],
        BROKEN: [
            of(DATA, COLUMN, value((2, 1), FLOAT64)),
            of(value(dtype="string"), COLUMN, value(dtype="string")),
            of(DATA, COLUMN, DATA, output=value((2, 1), INT64)),
        ],
        UNKNOWN: [of(value(dtype=None), COLUMN, value(dtype=None)), of()],
    },
    "data": {HOLDS: [GOOD], BROKEN: [of(value(()), COLUMN, DATA)], UNKNOWN: [of(value(None)), of()]},
    "T_IDX": {
        HOLDS: [GOOD],
        BROKEN: [of(DATA, value((2, 1)), DATA), of(DATA, value((2, 1), BOOL), DATA)],
        UNKNOWN: [of(DATA, value((2, 1), None), DATA), of(DATA)],
    },
    "reduction": {
        HOLDS: [of(DATA, COLUMN, DATA, reduction="max")],
        BROKEN: [GOOD, of(DATA, COLUMN, DATA, reduction="add"), of(DATA, COLUMN, DATA, reduction=Invalid("x"))],
        UNKNOWN: [of(DATA, COLUMN, DATA, reduction=OPEN)],
    },
    "shape": {
        HOLDS: [GOOD, of(DATA, COLUMN, DATA), of(value(("n", 1)), COLUMN, DATA, output=value(("n", 1)))],
        BROKEN: [of(DATA, COLUMN, DATA, output=value((2, 2))), of(DATA, COLUMN, DATA, output=value((2,)))],
        UNKNOWN: [of(value(None), COLUMN, DATA, output=DATA), of(value(("n", 1)), COLUMN, DATA, output=DATA)],
    },
    "copy": {UNKNOWN: [GOOD]},
    "value": {UNKNOWN: [GOOD]},
    "nan": {UNKNOWN: [GOOD]},
    "indices": {
        HOLDS: [placed([[0], [1]]), placed([[-2], [-1]]), of(DATA, value((0, 1), INT64), value((0, 1)))],
        BROKEN: [placed([[0], [2]]), placed([[-3], [0]]), placed([[2**62]], value((2, "n")))],
        UNKNOWN: [
            GOOD,
            placed([[0]], value(("n", 1))),
            placed([[0]], value(None)),
            of(DATA, constant([[5.0]], FLOAT32), DATA),
            of(DATA),
            of(),
        ],
    },
}
SCATTER_ELEMENTS: dict[str, dict[str, list[Case]]] = {
    **SCATTER,
    "T_IDX": {**SCATTER["T_IDX"], HOLDS: [GOOD, of(DATA, value((2, 1), INT32), DATA)]},
    "indices": {
        HOLDS: [*SCATTER["indices"][HOLDS], placed([[0, 2]], value(), axis=1), placed([[2]], value(), axis=-1)],
        BROKEN: [*SCATTER["indices"][BROKEN], placed([[3]], value(), axis=1)],
        UNKNOWN: [
            *SCATTER["indices"][UNKNOWN],
            *(placed([[5]], axis=axis) for axis in (2, -3, OPEN, Invalid("x"))),
        ],
    },
    "indices.shape": {
        HOLDS: [GOOD, of(value(("n", "m")), COLUMN)],
        BROKEN: [of(DATA, IDS, IDS), of(DATA, value((), INT64)), of(value(None), value((), INT64))],
        UNKNOWN: [of(value(None), COLUMN), of(DATA, value(None, INT64)), of()],
    },
    "indices.size": {
        HOLDS: [
            GOOD,
            of(value(), value((9, 3), INT64)),
            of(value(), value((2, 9), INT64), axis=1),
            of(value((2, "n")), value((9, "n"), INT64)),
            of(value((2, "n")), value((9, 0), INT64)),
        ],
        BROKEN: [of(value(), value((2, 4), INT64)), of(value(), value((3, 1), INT64), axis=-1)],
        UNKNOWN: [
            of(value((2, "n")), value((2, 1), INT64)),
            of(value(), value((2, "n"), INT64)),
            of(value(), value((2, 4), INT64), axis=OPEN),
            of(value(), IDS),
            of(value(None), COLUMN),
            of(),
        ],
    },
    "updates.shape": {
        HOLDS: [GOOD, of(value(None), COLUMN, DATA), of(DATA, value(("n", 1), INT64), value(("n", 1)))],
        BROKEN: [of(DATA, COLUMN, value((2,))), of(DATA, COLUMN, value((1, 1)))],
        UNKNOWN: [of(DATA, COLUMN, value(None)), of(DATA, COLUMN, value(("n", 1))), of(DATA, COLUMN), of()],
    },
    "axis": {
        HOLDS: [GOOD, of(DATA, axis=1), of(DATA, axis=-2)],
        BROKEN: [of(DATA, axis=2), of(DATA, axis=-3), of(DATA, axis=Invalid("x"))],
        UNKNOWN: [of(value(None), axis=0), of(DATA, axis=OPEN), of()],
    },
}
SCATTER_ND: dict[str, dict[str, list[Case]]] = {
    **SCATTER,
    "T_IDX": {**SCATTER["T_IDX"], BROKEN: [*SCATTER["T_IDX"][BROKEN], of(DATA, value((2, 1), INT32), DATA)]},
    "indices": {
        HOLDS: [*SCATTER["indices"][HOLDS], placed([[1, 2], [-2, -3]], value())],
        BROKEN: [*SCATTER["indices"][BROKEN], placed([[0, 0], [0, 3]], value())],
        UNKNOWN: [*SCATTER["indices"][UNKNOWN], placed([[0, 0, 9]], value()), placed(0)],
    },
    "indices.shape": {
        HOLDS: [GOOD, of(value(), value((2, 2), INT64)), of(value(), value(("n", 0), INT64))],
        BROKEN: [of(value(), value((2, 3), INT64)), of(value(), value((), INT64))],
        UNKNOWN: [of(value(), value((2, "n"), INT64)), of(value(None), COLUMN), of()],
    },
    "updates.shape": {
        HOLDS: [GOOD, of(value(), value((5, 2), INT64), value((5,))), of(value(), value((1,), INT64), value((3,)))],
        BROKEN: [of(value(), value((5, 2), INT64), value((5, 3))), of(value(), COLUMN, value((2, 2)))],
        UNKNOWN: [
            of(value(), value((5, "n"), INT64), value((5,))),
            of(value(), value((5, 3), INT64), value((5,))),
            of(value(("n", "m")), COLUMN, value((2, 2))),
            of(value(None), COLUMN, DATA),
            of(),
        ],
    },
}

CASES = {
    "Max": MAX,
    "ReduceMax": REDUCE_MAX,
    "SegmentMax": SEGMENT_MAX,
    "ScatterElements": SCATTER_ELEMENTS,
    "ScatterND": SCATTER_ND,
}
# Clauses that a model cannot break, because only the operator can, and clauses whose verdict is never "unknown".
NEVER = {
    BROKEN: {
        *("value", "nan", "NaN", "copy", "empty", "lowest", "GR4", "axes.unique"),
        *("num_segments.smaller", "num_segments.larger"),
    },
    HOLDS: {"value", "nan", "NaN", "copy"},
    UNKNOWN: {"inputs", "L", "GR2", "GR4", "consumed_inputs"},
}


def cases_of(row: Spec, short: str) -> dict[str, list[Case]]:
    if (row.operator, short) == ("Max", "shape"):
        return SHAPE["none" if row.broadcast == "none" else "numpy"]
    return CASES[row.operator][short]


EVERY = [
    pytest.param(row, short, verdict, id=f"{row.clause(short)}-{verdict}")
    for row in spec.ALL
    for short, _ in row.rules
    for verdict in cases_of(row, short)
]


@pytest.mark.parametrize(("row", "short", "verdict"), EVERY)
def test_verdict(row: Spec, short: str, verdict: str) -> None:
    for number, case in enumerate(cases_of(row, short)[verdict]):
        finding = ruling(case(row), short)
        assert (finding.verdict, finding.message, number) == (verdict, finding.message, number)
        assert finding.message
        assert finding.node == "there"


@pytest.mark.parametrize("row", spec.ALL, ids=lambda row: f"{row.standard} {row.name}")
def test_every_clause_has_every_verdict(row: Spec) -> None:
    for short, _ in row.rules:
        for verdict in (HOLDS, BROKEN, UNKNOWN):
            assert (verdict in cases_of(row, short)) is (short not in NEVER[verdict]), (short, verdict)


@pytest.mark.parametrize("row", spec.ALL, ids=lambda row: f"{row.standard} {row.name}")
def test_every_clause_is_judged_once(row: Spec) -> None:
    judged = judge(make(row, value(), IDS, output=value(), fill_mode="ZERO"))
    assert [finding.clause for finding in judged.findings] == [clause.id for clause in row.clauses]


def test_no_rule_is_without_a_clause() -> None:
    for operator, rules in RULES.items():
        assert set(rules) == {short for row in spec.ALL if row.operator == operator for short, _ in row.rules}


def test_a_clause_without_a_rule_is_found() -> None:
    row = spec.SONNX_MAX
    more = spec.Spec(row.standard, row.operator, None, row.dtypes, (*row.rules, ("new", ("x", "y", "must"))))
    with pytest.raises(KeyError, match="new"):
        judge(make(more, value()))


def test_negative_axes_follow_the_version() -> None:
    for row in REDUCE_MAX_ROWS:
        assert ruling(axes([-1])(row), "axes.range").verdict == (HOLDS if row.negative_axes else BROKEN)
        assert ruling(axes([1, -1])(row), "axes.unique").verdict == UNKNOWN
        # a version without negative axes needs no rank to reject one
        without_rank = axes([-1], value(None))(row)
        assert ruling(without_rank, "axes.range").verdict == (UNKNOWN if row.negative_axes else BROKEN)


def test_values_are_for_a_run_to_show() -> None:
    for row in spec.ALL:
        judged = judge(make(row, value(), IDS, output=value(), fill_mode="LOWEST"))
        shown = {finding.clause.rsplit(".", 1)[1] for finding in judged.findings if finding.at_run_time}
        assert {"value", "nan"} <= shown <= {"value", "nan", "NaN", "lowest", "copy"}


# ------------------------------------------------------------------------------------------------------- sizes

DIMS = st.lists(st.integers(0, 3), max_size=3).map(tuple)


@given(st.lists(DIMS, min_size=1, max_size=4))
def test_broadcast_of_known_sizes_is_that_of_shapes(given_shapes: list[tuple[int, ...]]) -> None:
    found = sizes.broadcast(given_shapes)
    for strict in (False, True):
        fails = bool(found.conflicts or (strict and found.zero_with_one))
        try:
            assert shapes.broadcast(given_shapes, zero_with_one=not strict) == found.dims
            assert not fails
        except shapes.MismatchError:
            assert fails
    assert not found.open
    assert not found.perhaps_zero_with_one


@given(st.lists(st.lists(st.sampled_from([0, 1, 2, 3, "n", "m", None]), max_size=3).map(tuple), min_size=1, max_size=3))
def test_an_open_verdict_is_right_for_every_size(given_shapes: list[Dims]) -> None:
    """Test that a definite verdict is the same for all values of unknown sizes, and that "unknown" becomes both."""
    found = sizes.broadcast(given_shapes)
    seen, zeros = set(), set()
    for choice in range(4**2):
        sizes_of = {"n": choice % 4, "m": choice // 4}
        for gap in range(4):
            whole: list[tuple[int, ...]] = []
            for number, dims in enumerate(given_shapes):
                filled = (sizes_of[s] if isinstance(s, str) else (gap + number) % 4 if s is None else s for s in dims)
                whole.append(tuple(filled))
            certain = sizes.broadcast(whole)
            seen.add(bool(certain.conflicts))
            zeros.add(bool(certain.zero_with_one) and not certain.conflicts)
            if not certain.conflicts and found.dims is not None:
                assert sizes.admits(found.dims, certain.dims) is not False
    if found.conflicts:
        assert seen == {True}
    elif not found.open:
        assert seen == {False}
    if not found.zero_with_one and not found.perhaps_zero_with_one:
        assert True not in zeros


# ------------------------------------------------------------------------------------------------------- texts

A, B, C = value(name="a"), value(name="b", dtype=FLOAT64), value(name="c", dtype=FLOAT64)


@pytest.mark.parametrize(
    ("clause", "case", "text"),
    [
        ("ONNX.Max-13.T", of(A, A), "float32"),
        ("ONNX.Max-13.T", of(A, B, C), "'b' is float64, but 'a' is float32; all must have the same type"),
        ("ONNX.Max-1.consumed_inputs", of(value(), consumed_inputs=(0,)), "ignored"),
        ("ONNX.Max-13.inputs", of(), "expected 1 to 2147483647 inputs, got 0"),
        ("ONNX.ReduceMax-13.inputs", of(value(), constant([0])), "expected 1 input, got 2"),
        ("ONNX.ReduceMax-18.inputs", of(), "expected 1 to 2 inputs, got 0"),
        ("OpenVINO.SegmentMax-16.T_IDX", of(value(), value(dtype=INT64, name="i")), "'i' is int64"),
        ("OpenVINO.SegmentMax-16.T_IDX", of(value(), value(dtype=FLOAT64)), "'v' must be int32 or int64, got float64"),
        (
            "OpenVINO.SegmentMax-16.T_IDX",
            of(value(), value(dtype=INT64, sparse=True)),
            "'v' must be int32 or int64, got sparse int64",
        ),
        (
            "ONNX.Max-13.shape",
            of(*(value(dims, name=name) for name, dims in (("a", (4, 1)), ("b", ()), ("c", (3, 5)), ("d", (2, 6))))),
            "axis -2 does not broadcast: 'a' (4, 1), 'b' (), 'c' (3, 5)",
        ),
        (
            "ONNX.Max-13.shape",
            of(
                *(
                    value(dims, name=name)
                    for name, dims in (("a", (1,)), ("b", ()), ("c", (4,)), ("d", (3,)), ("e", (5,)))
                )
            ),
            "axis -1 does not broadcast: 'a' (1,), 'c' (4,), 'd' (3,)",
        ),
        (
            "ONNX.Max-13.shape",
            of(value(("n", "m"), name="a"), value((4, 3), name="b"), value((4, 1), name="c")),
            "it is unknown whether axis -2 broadcasts: 'a' (n, m), 'b' (4, 3)",
        ),
        (
            "ONNX.Max-13.shape",
            of(value((None,), name="a"), value((None,), name="b"), value((4,), name="c")),
            "it is unknown whether axis -1 broadcasts: 'a' (?,), 'b' (?,), 'c' (4,)",
        ),
        (
            "SONNX.Max.zero-size",
            of(value((0, 0), name="a"), value((1, 1), name="b")),
            "size 1 is broadcast against size 0 along axis -2: 'a' (0, 0), 'b' (1, 1)",
        ),
        (
            "SONNX.Max.zero-size",
            of(value(("n", "n"), name="a"), value((1, 1), name="b")),
            "size 1 may be broadcast against size 0 along axis -2: 'a' (n, n), 'b' (1, 1)",
        ),
        ("SONNX.Max.GR1", of(value(sparse=True)), "'v' is a sparse tensor"),
        ("ONNX.ReduceMax-1.axes.range", axes([2]), "axes must be between 0 and 1, got 2"),
        ("ONNX.ReduceMax-20.axes.range", axes([2]), "axes must be between -2 and 1, got 2"),
        ("ONNX.ReduceMax-20.axes.range", axes([0], value(())), "a scalar has no axes, got 0"),
        ("ONNX.ReduceMax-20.axes.default", open_axes, "the axes are unknown"),
        (
            "ONNX.ReduceMax-20.axes.default",
            of(value(), value((1,), INT64), noop_with_empty_axes=1),
            "the axes are unknown",
        ),
        ("ONNX.ReduceMax-20.axes.default", of(value(), noop_with_empty_axes=1), "noop_with_empty_axes is 1"),
        ("ONNX.ReduceMax-20.axes.default", of(value(), noop_with_empty_axes=OPEN), "noop_with_empty_axes is unknown"),
        ("ONNX.ReduceMax-20.noop_with_empty_axes", of(value()), "noop_with_empty_axes is 0"),
        ("ONNX.ReduceMax-20.noop_with_empty_axes", axes([0]), "the node has axes"),
        (
            "ONNX.ReduceMax-20.noop_with_empty_axes",
            of(value(), value((1,), INT64), noop_with_empty_axes=1),
            "the axes are unknown",
        ),
        ("ONNX.ReduceMax-20.empty", of(value(("n", 3))), "reduced axis 0 has unknown size n, which may be 0"),
        ("ONNX.ReduceMax-20.empty", of(value((None, 3))), "reduced axis 0 has unknown size ?, which may be 0"),
        (
            "OpenVINO.SegmentMax-16.ids",
            of(value(), constant([-3, 0, -1])),
            "segment_ids must not be negative, got -3 at position 0",
        ),
        (
            "OpenVINO.SegmentMax-16.ids",
            of(value(), constant([2, 1, 0])),
            "segment_ids must be non-decreasing, got 1 after 2 at position 1",
        ),
        (
            "OpenVINO.SegmentMax-16.ids.shape",
            of(value(), value((2, 1), INT64)),
            "segment_ids must be 1-D, got 'v' (int64, (2, 1))",
        ),
        (
            "OpenVINO.SegmentMax-16.num_segments.default",
            of(value(), SORTED, output=value()),
            "'v' has 2 segments; the ids require 3",
        ),
        (
            "OpenVINO.SegmentMax-16.num_segments.no_ids",
            of(value((0, 3)), NO_IDS, output=value()),
            "there are no ids, and 'v' has 2 segments, but must have 0",
        ),
        (
            "OpenVINO.SegmentMax-16.shape",
            of(value(), IDS, output=value((None, 3))),
            "data and num_segments give (?, 3)",
        ),
        (
            "OpenVINO.SegmentMax-16.shape",
            of(value(), IDS, output=value((7, 3))),
            "all sizes after the first match data",
        ),
        (
            "ONNX.ReduceMax-20.empty",
            of(value(), noop_with_empty_axes=OPEN),
            "without a known shape and valid axes, a reduced axis may have size 0",
        ),
        ("SONNX.Max.GR1", of(value(written_sparse=True)), "'v' is stored as a sparse tensor"),
    ],
)
def test_a_rule_says_which(clause: str, case: Case, text: str) -> None:
    ((row, short),) = [(row, short) for row in spec.ALL for short, _ in row.rules if row.clause(short) == clause]
    assert ruling(case(row), short).message == text


@pytest.mark.parametrize("keeps", [0, 1])
@pytest.mark.parametrize("number", [None, "k", 1, 2, 3])
def test_keepdims_with_unknown_axes(number: Size, keeps: int) -> None:
    """Test that a rank is invalid only if no axes of this number explain it. ONNX does not define repeated axes."""
    for row, rank, output in product(REDUCE_MAX_ROWS, (None, 1, 2, 3), (None, *range(5))):
        dims = [None if each is None else (5,) * each for each in (rank, output)]
        known = make(row, value(dims[0]), value((number,), INT64), output=value(dims[1]), keepdims=keeps)
        count = number
        if not row.axes_input:
            known, count = make(row, value(dims[0]), output=value(dims[1]), keepdims=keeps, axes=OPEN), None
        lists = product(range(rank or 0), repeat=count) if isinstance(count, int) else [range(n) for n in range(5)]
        ranks = {rank} if keeps else {(rank or 0) - len({*each}) for each in lists}
        assert ruling(known, "keepdims").verdict == (HOLDS if None in (rank, output) or output in ranks else BROKEN)


def test_keepdims_and_a_rank_that_no_axes_give() -> None:
    for keeps, number, text in ((1, "k", "rank 2"), (0, 1, "rank 1"), (0, 2, "rank 0 to 1"), (0, "k", "rank 0 to 2")):
        node = make(spec.REDUCE_MAX_18, value(), value((number,), INT64), output=value((4,) * 5), keepdims=keeps)
        assert ruling(node, "keepdims").message == f"'v' has shape (4, 4, 4, 4, 4), but keepdims={keeps} gives {text}"


def test_axes_of_unknown_rank_and_none() -> None:
    for row in (row for row in spec.ALL if row.axes_input):
        for known, verdict in ((value(None, INT64), UNKNOWN), (value((0,), INT64), HOLDS)):
            assert ruling(make(row, value(), known), "axes").verdict == verdict


def test_an_attribute_of_later_versions_does_nothing() -> None:
    for row in REDUCE_MAX_ROWS:
        node = make(row, value(), output=value(), noop_with_empty_axes=1)
        assert ruling(node, "axes.default").verdict == (HOLDS if "noop_with_empty_axes" in row.attributes else BROKEN)


@pytest.mark.parametrize(
    ("known", "words", "sentence"),
    [
        (value(), "'v' (float32, (2, 3))", "'v' has shape (2, 3)"),
        (value(("n",), None), "'v' (of unknown type, (n,))", "'v' has shape (n,)"),
        (value(None, "complex64"), "'v' (complex64, of unknown rank)", "'v' is of unknown rank"),
        (value((), INT64, sparse=True), "'v' (sparse int64, ())", "'v' has shape ()"),
        (value((None,), written_sparse=True), "'v' (float32, (?,))", "'v' has shape (?,)"),
        (Known("w"), "'w' (of unknown type, of unknown rank)", "'w' is of unknown rank"),
    ],
    ids=str,
)
def test_what_is_known_in_words(known: Known, words: str, sentence: str) -> None:
    assert (str(known), known.shape_in_words) == (words, sentence)
    assert (Known("w").declared, Known("w").sparse, Known("w").written_sparse) == (False, False, False)


def test_the_output_of_a_node_is_its_first() -> None:
    node = make(spec.MAXIMUM, value(), None, value(name="u"), output=value(name="o"))
    assert node.output == value(name="o")
    more = Node("there", "Max", (), (value(name="first"), value(name="second")), {}, None)
    assert (more.output, more.input(0)) == (value(name="first"), None)
    assert Node("there", "Max", (), (), {}, None).output is None
    assert [node.input(number) for number in range(4)] == [value(), None, value(name="u"), None]
    twice = value()
    assert make(spec.MAXIMUM, twice, None, twice).distinct_inputs == [twice]


KINDS: set[type] = {
    kind
    for module in pkgutil.iter_modules(maxops.checker.__path__, "maxops.checker.")
    for kind in vars(import_module(module.name)).values()
    if isinstance(kind, type)
    and is_dataclass(kind)
    and kind.__module__ == module.name
    and kind.__name__ != "_Net"  # filled while the layers are read
}


@pytest.mark.parametrize("kind", sorted(KINDS, key=str))
def test_what_is_known_and_found_does_not_change(kind: type) -> None:
    name = fields(kind)[0].name
    with pytest.raises(FrozenInstanceError):
        setattr(object.__new__(kind), name, None)
