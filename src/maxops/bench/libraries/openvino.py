"""openvino: a compiled model of one operator, on tensors that share NumPy's memory."""

from __future__ import annotations

from importlib import import_module
from typing import Any

import numpy as np

from maxops.bench.candidate import Candidate, Work
from maxops.bench.libraries.library import Library
from maxops.bench.libraries.onnx_models import model
from maxops.plan import Array


class OpenVino(Library):
    """The CPU plugin, set to keep the case's precision."""

    name = "openvino"

    def set_threads(self, threads: int) -> None:
        """Of each compiled model."""
        self.threads = threads
        self.core: Any = self.module.Core()

    def _tensor(self, array: Array) -> Any:
        if array.dtype.name == "bfloat16":
            return self.module.Tensor(array.view(np.uint16), list(array.shape), self.module.Type.bf16)
        return self.module.Tensor(array, shared_memory=True)

    def _request(self, graph: Any, work: Work, arrays: tuple[Array, ...]) -> list[Candidate]:
        options: dict[str, Any] = {"PERFORMANCE_HINT": "LATENCY", "INFERENCE_NUM_THREADS": self.threads}
        if work.case.dtype.kind == "float":
            options["INFERENCE_PRECISION_HINT"] = {"float16": "f16", "bfloat16": "bf16"}.get(
                str(work.case.dtype), "f32"
            )
        request = self.core.compile_model(graph, "CPU", options).create_infer_request()
        for number, array in enumerate(arrays):
            request.set_input_tensor(number, self._tensor(array))
        if work.inputs.out is not None:
            request.set_output_tensor(self._tensor(work.inputs.out))

        def to_numpy(_: Any) -> Array:
            data = np.asarray(request.get_output_tensor().data)
            return data.view(work.case.dtype.numpy) if work.case.dtype.name == "bfloat16" else data

        return [Candidate("infer", request.infer, to_numpy=to_numpy)]

    def _from_onnx(self, work: Work) -> list[Candidate]:
        return self._request(self.core.read_model(model(work.case), b""), work, work.inputs.bases)

    def maximum(self, work: Work) -> list[Candidate]:
        """By way of the ONNX front end."""
        return self._from_onnx(work)

    def reduce_max(self, work: Work) -> list[Candidate]:
        """By way of the ONNX front end."""
        return self._from_onnx(work)

    def segment_max(self, work: Work) -> list[Candidate]:
        """SegmentMax-16, with LOWEST."""
        operators: Any = import_module("openvino.opset16")
        name = str(work.case.dtype)
        element = self.module.Type(work.case.dtype.numpy) if name != "bfloat16" else self.module.Type.bf16
        data = operators.parameter(list(work.data.shape), element)
        ids = operators.parameter(list(work.ids.shape), self.module.Type(work.ids.dtype))
        count = operators.constant(np.array(work.num_segments, work.ids.dtype))
        node = operators.segment_max(data, ids, count, fill_mode="LOWEST")
        graph = self.module.Model([node], [data, ids], "case")
        return self._request(graph, work, (work.data, work.ids))


LIBRARY = OpenVino
