"""Our own candidate: the public functions, as anyone calls them, in each way that a case may be written."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from importlib.util import find_spec
from typing import Any

import numpy as np

import maxops as mo
from maxops.bench.candidate import Candidate, Work
from maxops.bench.case import Case
from maxops.bench.inputs import FILL_MODE
from maxops.bench.libraries.torch import as_numpy, as_tensor

# The newest contract of each.
_OPERATORS = {
    "Max": ("ONNX", "Max", 13),
    "ReduceMax": ("ONNX", "ReduceMax", 20),
    "SegmentMax": ("OpenVINO", "SegmentMax", 16),
}


def supports(case: Case) -> bool:
    """Whether a call can be written so here: torch may not be installed, and no operator takes every type."""
    if case.spelling == "torch-tensors":
        return find_spec("torch") is not None
    return case.spelling != "operator" or case.dtype in mo.operator(*_OPERATORS[case.operator]).types


def _itself(array: Any) -> Any:
    return array


def candidate(work: Work) -> Candidate:
    """The call."""
    case = work.case
    convert: Callable[[Any], Any] = _itself
    to_numpy: Callable[[Any], Any] = np.asarray
    if case.spelling == "torch-tensors":
        torch = import_module("torch")
        convert, to_numpy = as_tensor(torch), as_numpy(torch, case.dtype.numpy)
    if case.spelling == "operator":
        standard = _OPERATORS[case.operator]
        return Candidate(f"maxops.operator{standard}", mo.operator(*standard), *_arguments_of_operator(work))
    if case.operator == "Max":
        first, *others = map(convert, work.inputs.arrays)
        if case.spelling == "python-scalar":
            others = [others[0].item()]
        options = {"out": convert(work.inputs.out)} if case.out else {}
        return Candidate("maxops.maximum", mo.maximum, (first, *others), options, to_numpy)
    if case.operator == "ReduceMax":
        axes: Any = None if len(case.axes) == work.data.ndim else case.axes
        if case.spelling == "list-axes":
            axes = list(case.axes)
        return Candidate("maxops.reduce_max", mo.reduce_max, (convert(work.data), axes, False), to_numpy=to_numpy)
    assert case.segments is not None
    options = {} if case.segments.check_ids else {"check_ids": False}
    count = np.int64(work.num_segments) if case.spelling == "numpy-integer" else work.num_segments
    return Candidate(
        "maxops.segment_max",
        mo.segment_max,
        (convert(work.data), convert(work.ids), count),
        {"fill_mode": FILL_MODE, **options},
        to_numpy,
    )


def _arguments_of_operator(work: Work) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """As a node of a model gives them: all inputs are arrays."""
    if work.case.operator == "Max":
        return work.inputs.arrays, {}
    if work.case.operator == "ReduceMax":
        return (work.data, np.array(work.case.axes)), {"keepdims": 0}
    return (work.data, work.ids, np.array(work.num_segments)), {"fill_mode": FILL_MODE}
