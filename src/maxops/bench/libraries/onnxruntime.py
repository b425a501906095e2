"""onnxruntime: a session of one operator with IO binding to NumPy's memory."""

from __future__ import annotations

from typing import Any

import numpy as np

from maxops.bench.candidate import Candidate, UnsupportedError, Work
from maxops.bench.libraries.library import Library
from maxops.bench.libraries.onnx_models import element_type, model


class OnnxRuntime(Library):
    """The CPU execution provider."""

    name = "onnxruntime"

    def set_threads(self, threads: int) -> None:
        """Of each session, whose threads do not spin."""
        options = self.module.SessionOptions()
        options.intra_op_num_threads = threads
        options.inter_op_num_threads = 1
        options.log_severity_level = 4
        for pool in ("intra_op", "inter_op"):
            options.add_session_config_entry(f"session.{pool}.allow_spinning", "0")
        self.options = options

    def _bound(self, work: Work) -> list[Candidate]:
        case = work.case
        if not all(array.size for array in work.inputs.bases):
            raise UnsupportedError("empty inputs are not measured")
        session = self.module.InferenceSession(model(case), self.options, providers=["CPUExecutionProvider"])
        binding, element = session.io_binding(), element_type(case)
        for number, base in enumerate(work.inputs.bases):
            binding.bind_input(f"input{number}", "cpu", 0, element, list(base.shape), base.ctypes.data)
        if work.inputs.out is not None:
            binding.bind_output("output", "cpu", 0, element, list(case.shape), work.inputs.out.ctypes.data)
        else:
            binding.bind_output("output", "cpu")

        def to_numpy(_: Any) -> Any:
            return work.inputs.out if case.out else np.asarray(binding.get_outputs()[0].numpy())

        return [Candidate("IO binding", session.run_with_iobinding, (binding,), to_numpy=to_numpy)]

    def maximum(self, work: Work) -> list[Candidate]:
        """Max-13."""
        return self._bound(work)

    def reduce_max(self, work: Work) -> list[Candidate]:
        """ReduceMax-20."""
        return self._bound(work)


LIBRARY = OnnxRuntime
