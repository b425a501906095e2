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
    """Return a finding if onnx.checker refuses the model or cannot judge it. `full` includes type inference.

    Models for a newer onnx package are not judged.
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
    """Return the verdict of a refusal: broken, or unknown if the refusal does not prove a fault."""
    # inference fails inside operators that it expands, such as MeanVarianceNormalization without its attribute
    is_inside = refusal.count("Inference error(s)") > 1
    # a function's operator set should match the model's, but runtimes accept others, too
    is_of_function = refusal.startswith("Opset import for domain") and "in function op" in refusal
    # large external data of Constants and inner graphs is not read
    is_of_external = "external tensors" in refusal
    return "unknown" if is_inside or is_of_function or is_of_external else "broken"


def _refusal(light: ModelProto, shaped: ModelProto | None) -> str:
    """Return onnx.checker's refusal of the model, or "". Type inference needs the shapes of the weights."""
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
