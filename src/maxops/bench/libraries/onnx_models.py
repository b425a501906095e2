"""One-operator ONNX models of cases, for the runtimes that take such models."""

from __future__ import annotations

from importlib import import_module
from typing import Any

import numpy as np

from maxops.bench.candidate import UnsupportedError
from maxops.bench.case import Case

OPSET = 20
IR_VERSION = 10


def model(case: Case) -> bytes:
    """Views as nodes before the operator, so that a runtime may fuse them."""
    onnx = import_module("onnx")
    make: Any = import_module("onnx.helper")
    element: int = make.np_dtype_to_tensor_dtype(case.dtype.numpy)
    nodes, initializers, names = [], [], []
    for number, operand in enumerate(case.operands):
        name = f"input{number}"
        if operand.view == "transposed":
            nodes.append(make.make_node("Transpose", [name], [f"view{number}"]))
        elif operand.view != "whole":
            steps = {
                "starts": [0],
                "ends": [operand.shape[-1] if operand.view == "half-rows" else operand.base_shape[-1]],
                "axes": [len(operand.shape) - 1],
                "steps": [2 if operand.view == "every-second" else 1],
            }
            initializers += [
                make.make_tensor(f"{key}{number}", onnx.TensorProto.INT64, [1], value) for key, value in steps.items()
            ]
            nodes.append(make.make_node("Slice", [name, *(f"{key}{number}" for key in steps)], [f"view{number}"]))
        names.append(name if operand.view == "whole" else f"view{number}")
    if case.operator == "ReduceMax":
        names.append("axes")
        initializers.append(make.make_tensor("axes", onnx.TensorProto.INT64, [len(case.axes)], case.axes))
        nodes.append(make.make_node("ReduceMax", names, ["output"], keepdims=0))
    elif case.operator == "Max":
        nodes.append(make.make_node("Max", names, ["output"]))
    else:
        raise UnsupportedError("ONNX has no SegmentMax")
    graph = make.make_graph(
        nodes,
        "case",
        [
            make.make_tensor_value_info(f"input{number}", element, operand.base_shape)
            for number, operand in enumerate(case.operands)
        ],
        [make.make_tensor_value_info("output", element, case.shape)],
        initializers,
    )
    opsets = [make.make_opsetid("", OPSET)]
    whole = make.make_model(graph, opset_imports=opsets, ir_version=IR_VERSION, producer_name="maxops bench")
    return bytes(whole.SerializeToString())


def element_type(case: Case) -> int:
    """ONNX's number of the case's type."""
    helper: Any = import_module("onnx.helper")
    return int(helper.np_dtype_to_tensor_dtype(np.dtype(case.dtype.numpy)))
