"""Measures ONNX Runtime's own Max, and maxops' Max in the same runtime: the shortest time per run, in microseconds.

python -m pip install ".[onnxruntime]" && python examples/cost_in_onnxruntime.py
"""

from __future__ import annotations

from time import perf_counter

import numpy as np
import onnx
import onnxruntime
from onnx import TensorProto, helper

import maxops.onnxruntime

ELEMENTS = {"float32": TensorProto.FLOAT, "float16": TensorProto.FLOAT16, "int64": TensorProto.INT64}
SIZES = (1, 1_000, 100_000, 10_000_000)
ROUNDS, SECONDS = 9, 0.02  # seconds for which each round runs each session


def model(element: int) -> onnx.ModelProto:
    """Return a model with one Max node and two inputs."""
    a, b, c = (helper.make_tensor_value_info(name, element, ["n"]) for name in "abc")
    graph = helper.make_graph([helper.make_node("Max", ["a", "b"], ["c"])], "max", [a, b], [c])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=8)


def seconds(session: onnxruntime.InferenceSession, binding: onnxruntime.IOBinding) -> float:
    """Return the average time of one run, over as many runs as fit into a round."""
    runs, began = 0, perf_counter()
    while (passed := perf_counter() - began) < SECONDS or runs == 0:
        session.run_with_iobinding(binding)
        runs += 1
    return passed / runs


def main() -> None:
    """Measure and print a line for each type and size."""
    print(f"onnxruntime {onnxruntime.__version__}, {maxops.get_num_threads()} threads")
    print(f"{'type':8} {'elements':>10} {'own Max, us':>12} {'maxops, us':>10} {'ratio':>6}")
    for name, element in ELEMENTS.items():
        own = onnxruntime.InferenceSession(model(element).SerializeToString(), providers=["CPUExecutionProvider"])
        sessions = (own, maxops.onnxruntime.session(model(element)))
        for size in SIZES:
            arrays = [(np.arange(size) % 1000).astype(name) for _ in "abc"]
            bindings = []
            for session in sessions:
                binding = session.io_binding()
                for tensor, array in zip("ab", arrays, strict=False):
                    binding.bind_input(tensor, "cpu", 0, np.dtype(name), [size], array.ctypes.data)
                binding.bind_output("c", "cpu", 0, np.dtype(name), [size], arrays[2].ctypes.data)
                bindings.append(binding)
            rounds = [[seconds(*pair) for pair in zip(sessions, bindings, strict=True)] for _ in range(ROUNDS)]
            theirs, ours = (min(times) * 1e6 for times in zip(*rounds, strict=True))
            print(f"{name:8} {size:10} {theirs:12.2f} {ours:10.2f} {theirs / ours:6.2f}")


if __name__ == "__main__":
    main()
