"""Computes the maximum of 3000000000 and 1 in int64 with OpenVINO and with maxops.

python -m pip install openvino && python examples/wrong_in_openvino.py
"""

import numpy as np
import openvino
from onnx import TensorProto, helper

import maxops as mo

a = np.full(4, 3_000_000_000, np.int64)
b = np.ones(4, np.int64)

tensors = [helper.make_tensor_value_info(name, TensorProto.INT64, [4]) for name in ("a", "b", "maximum")]
graph = helper.make_graph([helper.make_node("Max", ["a", "b"], ["maximum"])], "max", tensors[:2], tensors[2:])
model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=8)
compiled = openvino.compile_model(openvino.Core().read_model(model.SerializeToString()), "CPU")
result = compiled({"a": a, "b": b})[0]

print("openvino", openvino.__version__.partition("-")[0], result)
print("maxops  ", mo.maximum(a, b))
if result.tolist() == a.tolist():
    raise SystemExit("this release of OpenVINO returns the correct maximum; the example requires an older release")
