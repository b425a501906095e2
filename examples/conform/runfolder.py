"""A program that runs the model of a test folder on each data set, and writes the results next to the inputs."""

import sys
from pathlib import Path

import onnx
from onnx import numpy_helper
from onnx.reference import ReferenceEvaluator

folder = Path(sys.argv[-1])
if not (folder / "model.onnx").exists():
    sys.exit("ONNX models only")  # any exit status except 0 is a refusal, and the last line of stderr is the reason
evaluator = ReferenceEvaluator(str(folder / "model.onnx"))
for data_set in folder.glob("test_data_set_*"):
    tensors = [onnx.load_tensor(path) for path in sorted(data_set.glob("input_*.pb"))]
    feed = {tensor.name: numpy_helper.to_array(tensor) for tensor in tensors}
    (result,) = evaluator.run(None, feed)
    onnx.save_tensor(numpy_helper.from_array(result), data_set / "output_0.pb")
