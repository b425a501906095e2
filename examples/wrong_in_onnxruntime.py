"""What onnxruntime answers for the maximum of 3000000000 and 1 in int64, and what maxops answers.

python -m pip install onnxruntime && python examples/wrong_in_onnxruntime.py
"""

import numpy as np
import onnxruntime
from onnx import TensorProto, helper

import maxops as mo

a = np.full(4, 3_000_000_000, np.int64)
b = np.ones(4, np.int64)

tensors = [helper.make_tensor_value_info(name, TensorProto.INT64, [4]) for name in ("a", "b", "highest")]
graph = helper.make_graph([helper.make_node("Max", ["a", "b"], ["highest"])], "max", tensors[:2], tensors[2:])
model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=8)
session = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])

print("onnxruntime", onnxruntime.__version__, *session.run(None, {"a": a, "b": b}))
print("maxops     ", mo.maximum(a, b))
