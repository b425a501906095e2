"""Max, ReduceMax and SegmentMax of our own domain, for onnx's reference evaluator."""

from __future__ import annotations

from onnx.reference.op_run import OpRun

from maxops import ops
from maxops.calls import MaxCall, ReduceCall, SegmentCall
from maxops.onnx import schemas
from maxops.plan import Array


class Max(OpRun):
    """maxops.Max: ONNX's, at the version that the node names."""

    op_domain = schemas.DOMAIN

    def _run(self, *inputs: Array, since_version: int | None = None) -> tuple[Array]:
        return (ops.run(MaxCall(inputs, row=schemas.row("Max", since_version))),)


class ReduceMax(OpRun):
    """maxops.ReduceMax: ONNX's, at the version that the node names, with the axes as an input."""

    op_domain = schemas.DOMAIN

    def _run(
        self,
        data: Array,
        axes: Array | None = None,
        keepdims: int | None = 1,
        noop_with_empty_axes: int | None = 0,
        since_version: int | None = None,
    ) -> tuple[Array]:
        keeps = 1 if keepdims is None else keepdims
        row = schemas.row("ReduceMax", since_version)
        return (ops.run(ReduceCall(data, axes, keeps, noop_with_empty_axes or 0, row=row)),)


class SegmentMax(OpRun):
    """maxops.SegmentMax: OpenVINO's."""

    op_domain = schemas.DOMAIN

    def _run(
        self, data: Array, segment_ids: Array, num_segments: Array | None = None, fill_mode: str | None = None
    ) -> tuple[Array]:
        call = SegmentCall(data, segment_ids, num_segments, fill_mode, row=schemas.SEGMENT_MAX)
        return (ops.run(call),)
