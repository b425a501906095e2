"""Replaces the max operators of an OpenVINO model with custom operators of maxops.

OpenVINO's CPU plugin converts most types, except those of marked nodes. Therefore, `rewrite` marks maxops operators,
the constants and model inputs that they read, and the model outputs that they produce. It inserts a Convert between
marked nodes and other operators.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from importlib import import_module
from typing import Any

from maxops.errors import MaxopsError, ModelError
from maxops.openvino.extension import VERSION, Convert, Maximum, ReduceMax, SegmentMax, ov

replace_node: Any = import_module("openvino.utils").replace_node
passes: Any = import_module("openvino.passes")

# The types in which the plugin computes, and which it does not convert. On processors that support f16, if
# INFERENCE_PRECISION_HINT is f16, the plugin uses f16 instead of f32, and inserts its own Convert next to marked nodes.
UNCONVERTED = frozenset({"f32", "i32", "i8", "u8"})
MARKED = """<net name="marked" version="11"><layers>
<layer id="0" name="x" type="Parameter" version="opset1"><data shape="" element_type="i64"/><rt_info>
<attribute name="DisablePrecisionConversion" version="0" value="dynamic:dynamic"/></rt_info>
<output><port id="0" precision="I64"/></output></layer>
<layer id="1" name="y" type="Result" version="opset1"><input><port id="0" precision="I64"/></input></layer></layers>
<edges><edge from-layer="0" from-port="0" to-layer="1" to-port="0"/></edges></net>"""
# The operators that contain bodies, which are separate models, and the number of their bodies.
BODIES = {"If": 2, "Loop": 1, "TensorIterator": 1}
MOVED: dict[tuple[str, str], type[Maximum | ReduceMax | SegmentMax]] = {
    ("Maximum", "opset1"): Maximum,
    ("ReduceMax", "opset1"): ReduceMax,
    ("SegmentMax", "opset16"): SegmentMax,
}
OURS = {(operator.__name__, VERSION): operator for operator in (Maximum, ReduceMax, SegmentMax)}


def rewrite(model: Any) -> Any:
    """Return a copy of a model in which operators of maxops replace Maximum, ReduceMax and SegmentMax."""
    if not isinstance(model, ov.Model):
        raise ModelError(
            f"the model must be an openvino.Model, got {type(model).__name__}; read files with "
            "openvino.Core().read_model, and rewrite a model before it is compiled"
        )
    model = model.clone()
    for node in model.get_ordered_ops():
        _refuse_bodies(node)
        _replace(node, MOVED)
    for node in _with_known_inputs(model):
        _replace(node, OURS)
    inputs = model.get_parameters()
    for node in model.get_ordered_ops():
        if _is_one_of_three(node):
            _mark(node)
            for port in node.inputs():
                _guard_input(port, inputs)
    for node in inputs:
        if (identities := _only_to_outputs(node)) is not None:
            for each in (node, *identities):
                _mark(each)
    for node in model.get_ordered_ops():
        if _is_one_of_three(node) or (node.get_type_name() == "Parameter" and _is_marked(node)):
            _guard_output(node.output(0))
    for result in model.get_results():
        # otherwise, OpenVINO may insert a conversion to f16 between the result and its source
        if _is_marked(result.input(0).get_source_output().get_node()):
            _mark(result)
    model.validate_nodes_and_infer_types()
    return model


def _replace(node: Any, operators: Mapping[tuple[str, str], Any]) -> None:
    """Replace a node if `operators` has a maxops operator for it. The operator checks the known types and shapes."""
    info, name = node.get_type_info(), node.get_friendly_name()
    operator = operators.get((info.name, info.version_id))
    if operator is None:
        return
    try:
        ours = operator(node.input_values(), **(node.attributes if operators is OURS else node.get_attributes()))
    except MaxopsError as error:
        raise error.at(f"{name} ({info.name})") from error
    replace_node(node, ours)
    ours.set_friendly_name(name)


def _with_known_inputs(model: Any) -> list[Any]:
    """Compute the inputs of maxops operators that do not depend on the model's inputs, and replace them with constants.

    Return the operators that read these constants. Without this step, OpenVINO would compute the constants when it
    compiles the model, and would then convert their types.
    """
    nodes = [node for node in model.get_ordered_ops() if _is_one_of_three(node)]
    ports = [(node, port) for node in nodes for port in node.inputs() if _is_computed(port)]
    if not ports:
        return []
    sources = [port.get_source_output() for _, port in ports]
    part = ov.Model(sources, model.get_parameters(), "part").clone()  # because the rest of the model must not change
    manager = passes.Manager()
    manager.register_pass(passes.ConstantFolding())
    manager.run_passes(part)
    changed: list[Any] = []
    for (node, port), result in zip(ports, part.get_results(), strict=True):
        found = result.input(0).get_source_output().get_node()
        if found.get_type_name() == "Constant":
            port.replace_source_output(found.output(0))
            if not changed or changed[-1] is not node:  # on nodes, == would create an Equal operator
                changed.append(node)
    return changed


def _is_computed(port: Any) -> bool:
    """Return whether one of OpenVINO's own operators computes an input of a maxops operator."""
    node = port.get_source_output().get_node()
    return not _is_ours(node) and node.get_type_name() not in ("Parameter", "Constant")


def _refuse_bodies(node: Any) -> None:
    """Raise an error for max operators in a body, whose types depend on tensors of the outer model."""
    for number in range(BODIES.get(node.get_type_name(), 0)):
        for inner in node.get_function(*([number] if node.get_type_name() == "If" else [])).get_ops():
            info = inner.get_type_info()
            if (info.name, info.version_id) in MOVED:
                raise ModelError(
                    f"{inner.get_friendly_name()} ({info.name}) is in the body of {node.get_friendly_name()} "
                    f"({node.get_type_name()}); maxops.openvino.rewrite does not support bodies"
                )
            _refuse_bodies(inner)


def _guard_input(port: Any, inputs: list[Any]) -> None:
    """Mark or convert an input of a maxops operator so that it keeps its type and values."""
    source = port.get_source_output()
    node, kind = source.get_node(), port.get_element_type()
    if node.get_type_name() == "Constant":  # mark all types, because save_model would write f32 as f16
        if not all(map(_is_ours, _readers(source))):
            own = ov.op.Constant(ov.Tensor(node.data, node.get_output_shape(0), kind), shared_memory=False)
            own.set_friendly_name(f"{node.get_friendly_name()}/maxops")
            port.replace_source_output(own.output(0))
            node = own
        _mark(node)
    elif _is_ours(node):
        return
    elif node.get_type_name() == "Parameter":  # mark f32 too, because INFERENCE_PRECISION_HINT may convert it to f16
        _mark(node)
    elif kind.get_type_name() not in UNCONVERTED:
        like = ov.op.Constant(kind, ov.Shape([]), [0])
        convert = Convert([source, like.output(0), *(each.output(0) for each in inputs[:1])])
        _mark(like)
        _mark(convert)
        port.replace_source_output(convert.output(0))


def _only_to_outputs(node: Any) -> list[Any] | None:
    """Return the Identities between a node and the model's outputs, or None if other operators read the node's value.

    OpenVINO's ONNX frontend replaces a ReduceMax that returns its input with an Identity.
    """
    found: list[Any] = []
    for reader in _readers(node.output(0)):
        if reader.get_type_name() == "Result":
            continue
        further = _only_to_outputs(reader) if reader.get_type_name() == "Identity" else None
        if further is None:
            return None
        found += [reader, *further]
    return found


def _guard_output(source: Any) -> None:
    """Insert a Convert between a marked node and the unmarked operators that read its output."""
    kind = source.get_element_type()
    others = [port for port in source.get_target_inputs() if not _takes_any(port.get_node())]
    if others and kind.get_type_name() not in UNCONVERTED:
        convert = Convert([source, ov.op.Constant(kind, ov.Shape([]), [0]).output(0)])
        for port in others:
            port.replace_source_output(convert.output(0))


def _is_ours(node: Any) -> bool:
    return bool(node.get_type_info().version_id == VERSION)


def _is_one_of_three(node: Any) -> bool:
    return _is_ours(node) and node.get_type_name() != Convert.__name__


def _takes_any(node: Any) -> bool:
    return _is_ours(node) or node.get_type_name() == "Result" or _is_marked(node)


def _readers(source: Any) -> list[Any]:
    return [port.get_node() for port in source.get_target_inputs()]


@cache
def _mark_of_openvino() -> tuple[str, Any]:
    """Return the key and value that mark a node. The value can only be copied from a model that OpenVINO has read."""
    (parameter,) = ov.Core().read_model(MARKED.encode(), b"").get_parameters()
    for key in parameter.get_rt_info():
        return key, parameter.get_rt_info()[key]
    raise ModelError(
        f"OpenVINO {ov.__version__} does not read DisablePrecisionConversion, which prevents type conversions"
    )


def _mark(node: Any) -> None:
    key, value = _mark_of_openvino()
    node.set_rt_info(value, key)


def _is_marked(node: Any) -> bool:
    return _mark_of_openvino()[0] in node.get_rt_info()
