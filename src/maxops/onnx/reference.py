"""The operators of maxops for onnx's reference evaluator."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from onnx import TypeProto, helper, reference
from onnx.reference.op_run import OpRun
from onnx.reference.ops import op_loop, op_scatter_elements, op_scatternd

from maxops import ops, spec
from maxops.calls import MaxCall, ReduceCall, ScatterCall, SegmentCall
from maxops.errors import MaxopsError, ModelError
from maxops.onnx import schemas
from maxops.plan import Array
from maxops.spec import Spec


class Max(OpRun):
    """The operator Max. The operator set determines its version, or ``since_version`` in the `maxops` domain."""

    op_domain = ""

    def _run(self, *inputs: Array, since_version: int | None = None) -> tuple[Array]:
        return (ops.run(MaxCall(inputs, row=_row(self, since_version))),)


class ReduceMax(OpRun):
    """The operator ReduceMax. Its version is determined as for Max. In the `maxops` domain, axes is an input."""

    op_domain = ""

    def _run(
        self,
        data: Array,
        axes: Any = None,
        keepdims: int | None = 1,
        noop_with_empty_axes: int | None = 0,
        since_version: int | None = None,
    ) -> tuple[Array]:
        keeps = 1 if keepdims is None else keepdims
        row = _row(self, since_version)
        return (ops.run(ReduceCall(data, axes, keeps, noop_with_empty_axes or 0, row=row)),)


class SegmentMax(OpRun):
    """The custom operator maxops.SegmentMax, with the semantics of OpenVINO's SegmentMax-16."""

    op_domain = schemas.DOMAIN

    def _run(
        self, data: Array, segment_ids: Array, num_segments: Array | None = None, fill_mode: str | None = None
    ) -> tuple[Array]:
        call = SegmentCall(data, segment_ids, num_segments, fill_mode, row=schemas.SEGMENT_MAX)
        return (ops.run(call),)


class _Scatter(OpRun):
    """The base class of the scatter operators. maxops runs the reduction "max", and onnx runs all other reductions."""

    op_domain = ""

    def _run(
        self, data: Array, indices: Array, updates: Array, since_version: int | None = None, **attributes: Any
    ) -> tuple[Array]:
        if attributes.get("reduction") != "max" and self.op_domain != schemas.DOMAIN:
            given: tuple[Array] = super()._run(data, indices, updates, **attributes)  # type: ignore[no-untyped-call, safe-super]
            return given
        call = ScatterCall(data, indices, updates, **attributes, row=_row(self, since_version))
        return (ops.run(call),)


class ScatterElements(_Scatter, op_scatter_elements.ScatterElements):  # type: ignore[misc]
    """The operator ScatterElements. maxops runs the reduction "max", and onnx runs all other reductions."""


class ScatterND(_Scatter, op_scatternd.ScatterND):  # type: ignore[misc]
    """The operator ScatterND. maxops runs the reduction "max", and onnx runs all other reductions."""


class Loop(op_loop.Loop):
    """The operator Loop. onnx's own Loop runs no iterations without a condition, and concatenates 2-D scan outputs."""

    op_domain = ""
    body: Any  # the evaluator of the body
    _run_body: Any

    def _run(  # type: ignore[override]
        self,
        trips: Array | None,
        condition: Array | None,
        *values: Any,
        context: Mapping[str, Any] | None = None,
        attributes: Any = None,
        bindings: Any = None,
        **_: Any,
    ) -> tuple[Any, ...]:
        carried, scanned = [*values], [[] for _ in range(self.K)]  # type: ignore[var-annotated]
        number, goes_on = 0, condition is None or bool(condition)
        while goes_on and (trips is None or number < trips):
            given = [np.array(number, np.int64), np.array(True), *carried]
            inputs = {**(context or {}), **dict(zip(self.body.input_names, given, strict=True))}
            goes_on, *made = self._run_body(inputs, attributes=attributes, bindings=bindings)
            carried = made[: self.N]
            for outputs, output in zip(scanned, made[self.N :], strict=True):
                outputs.append(output)
            number += 1
        types = [info.tensor_type for info in self.body.output_types[1 + self.N :]]
        stacked = [
            np.stack(outputs) if outputs else _no_scans(kind) for outputs, kind in zip(scanned, types, strict=True)
        ]
        return (*carried, *stacked)


def _no_scans(kind: TypeProto.Tensor) -> Array:
    """Return the empty scan output of a Loop without iterations. Unknown sizes are 0, as in ONNX Runtime."""
    shape = (0, *(max(dim.dim_value, 0) for dim in kind.shape.dim))
    return np.empty(shape, helper.tensor_dtype_to_np_dtype(kind.elem_type))


def reference_ops() -> list[type[OpRun]]:
    """Return the max operators of ONNX and of the `maxops` domain for `onnx.reference.ReferenceEvaluator`.

    >>> import numpy as np, onnx
    >>> from onnx.reference import ReferenceEvaluator
    >>> text = '<ir_version: 8, opset_import: ["": 18]> f (float[n] x, float[n] y) => (float[n] z) '
    >>> model = onnx.parser.parse_model(text + "{ m = Max(x, y) z = Abs(m) }")
    >>> ReferenceEvaluator(model, new_ops=reference_ops()).run(None, {"x": np.float32([-3]), "y": np.float32([-5])})
    [array([3.], dtype=float32)]

    onnx's evaluator also uses these operators inside If, Loop and Scan, but not inside the functions of a model.
    `maxops.onnx.ReferenceEvaluator` also uses them inside functions. Arrays may have any shape, and any type that the
    version of the operator supports. A call that violates a clause of a specification raises the error for this
    clause. If this error is a TypeError, onnx raises its own TypeError, with the original error as its cause.
    """
    schemas.register()
    # onnx finds an operator by its domain and by the name of its class
    of_onnx = (Max, ReduceMax, ScatterElements, ScatterND)
    of_our_domain = [type(op.__name__, (op,), {"op_domain": schemas.DOMAIN}) for op in of_onnx]
    return [*of_onnx, *of_our_domain, SegmentMax]


class ReferenceEvaluator(reference.ReferenceEvaluator):
    """onnx's reference evaluator, which runs max operators on maxops, even inside the functions of a model.

    >>> import numpy as np, onnx
    >>> text = '''<ir_version: 9, opset_import: ["": 18, "own": 1]> f (float[n] x, float[n] y) => (float[n] z)
    ...     { z = own.larger(x, y) } <domain: "own", opset_import: ["": 18]> larger (a, b) => (c) { c = Max(a, b) }'''
    >>> evaluator = ReferenceEvaluator(onnx.parser.parse_model(text))
    >>> evaluator.run(None, {"x": np.float32([-3]), "y": np.float32([-5])})
    [array([-3.], dtype=float32)]
    """

    def __init__(self, proto: Any, *, new_ops: list[type[OpRun]] | None = None, **more: Any) -> None:
        # onnx creates an evaluator of the same class for each function, but does not pass new_ops to it
        super().__init__(proto, new_ops=[*(new_ops or []), *reference_ops(), Loop], **more)

    def run(self, *args: Any, **more: Any) -> Any:
        """Run the model as onnx's evaluator does. A call that violates a clause raises the error for this clause."""
        try:
            return super().run(*args, **more)
        except TypeError as error:
            cause: BaseException | None = error  # each node around the call replaces a TypeError with another one
            while cause is not None and not isinstance(cause, MaxopsError):
                cause = cause.__cause__
            if cause is None:
                raise
            raise cause from cause.__cause__


def _row(node: OpRun, since_version: int | None) -> Spec:
    if node.op_domain == schemas.DOMAIN:
        return schemas.row(node.op_type, since_version)
    opset = node.run_params["opsets"][""]  # onnx rejects a node whose domain the model does not import
    row = spec.in_opset(node.op_type, opset)
    if row is None:
        raise ModelError(f"maxops does not support {node.op_type} in operator set {opset}")
    return row
