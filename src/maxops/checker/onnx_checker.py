"""Runs onnx.checker on a model in a sandbox, without the model's weights."""

from __future__ import annotations

import onnx
from onnx import ModelProto
from onnx.checker import ValidationError
from onnx.shape_inference import InferenceError

from maxops.checker import sandbox
from maxops.checker.onnx_values import without_weights
from maxops.checker.report import MODEL, Finding
from maxops.checker.ruling import Verdict
from maxops.errors import ModelError
from maxops.onnx import schemas
from maxops.onnx.external import with_external_inputs, without_external
from maxops.onnx.structure import FIRST_IR_WITH_OPSETS

WHERE = "model"
MAX_WORDS = 500  # characters


def findings(proto: ModelProto, *, full: bool) -> list[Finding]:
    """Return a finding if onnx.checker rejects the model or fails. `full` adds type inference to the check.

    Models that require a newer onnx package are not checked.
    """
    newest = onnx.defs.onnx_opset_version()
    imports = [entry for holder in (proto, *proto.functions) for entry in holder.opset_import]
    if proto.ir_version > onnx.IR_VERSION or any(not entry.domain and entry.version > newest for entry in imports):
        return []
    schemas.register()
    light = without_external(without_weights(proto, with_shapes=False))
    shaped = with_external_inputs(without_weights(proto))
    # type inference requires operator sets
    full = full and proto.ir_version >= FIRST_IR_WITH_OPSETS
    found: bytes | ModelError
    try:
        (found,) = sandbox.sandboxed([lambda: _refusal(light, shaped if full else None).encode(errors="replace")])
    except ModelError as error:
        found = error
    if isinstance(found, ModelError):
        return [Finding(WHERE, MODEL, "unknown", f"onnx.checker {_short(str(found))}")]
    refusal = found.decode()
    return (
        [Finding(WHERE, MODEL, _verdict(refusal), f"onnx.checker rejects the model: {_short(refusal)}")]
        if refusal
        else []
    )


def _verdict(refusal: str) -> Verdict:
    """Return the verdict for an error of onnx.checker: "broken", or "unknown" if the error does not prove a fault."""
    # inference may fail in the expansion of a valid operator, such as MeanVarianceNormalization without its attribute
    is_inside = refusal.count("Inference error(s)") > 1
    # a function should import the same operator sets as the model, but runtimes also accept other versions
    is_of_function = refusal.startswith("Opset import for domain") and "in function op" in refusal
    # large external data of Constant nodes and of subgraphs is not read
    is_of_external = "external tensors" in refusal
    return "unknown" if is_inside or is_of_function or is_of_external else "broken"


def _refusal(light: ModelProto, shaped: ModelProto | None) -> str:
    """Return the error message of onnx.checker, or "" if it accepts the model.

    `light` has empty weights. `shaped` has the shapes of the weights, for type inference. None omits type inference.
    """
    try:
        onnx.checker.check_model(light)
        if shaped is not None:
            onnx.shape_inference.infer_shapes(shaped, check_type=True, strict_mode=True)
    except (ValidationError, InferenceError) as error:
        return str(error) or type(error).__name__
    except Exception as error:  # onnx may raise any exception
        raise ModelError(f"failed ({type(error).__name__}: {error})") from error
    return ""


def _short(text: str) -> str:
    return " ".join(text.split())[:MAX_WORDS]
