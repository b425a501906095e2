"""What an ONNX graph declares of its values: what it writes itself, and what the onnx package infers from that."""

from __future__ import annotations

from dataclasses import dataclass, replace

import onnx
from onnx import GraphProto, ModelProto, NodeProto, TensorProto, TypeProto, numpy_helper

from maxops.checker.facts import Known
from maxops.checker.sandbox import sandboxed
from maxops.errors import ModelError
from maxops.onnx import nodes, schemas
from maxops.onnx.tensors import DTYPES, dims_of, shape_of, to_array, type_name
from maxops.plan import Array
from maxops.sizes import Dims

# Inference reads shapes and axes, which are small; larger tensors go to it without their data.
LARGEST_READ = 16384  # bytes


@dataclass(frozen=True)
class Value:
    """A value's type, whether the model writes it, its tensor if it is a constant, and whether that is a sparse one."""

    type: TypeProto | None = None
    declared: bool = False
    tensor: TensorProto | None = None
    written_sparse: bool = False

    def known(self, name: str, *, with_constant: bool) -> Known:
        """The facts; a constant only where a rule reads one."""
        form = None if self.type is None else self.type.WhichOneof("value")
        if self.type is None or form is None:
            return Known(name, declared=self.declared)
        if form not in ("tensor_type", "sparse_tensor_type"):
            return Known(name, form.removesuffix("_type"), None, self.declared)
        tensor = getattr(self.type, form)
        number = tensor.elem_type
        dtype = None if number == TensorProto.UNDEFINED else DTYPES.get(number) or type_name(number)
        dims = _dims(tensor) if tensor.HasField("shape") else None
        constant = self._constant() if with_constant else None
        sparse = form == "sparse_tensor_type"
        return Known(name, dtype, dims, self.declared, sparse, sparse or self.written_sparse, constant)

    @property
    def fingerprint(self) -> tuple[bytes, bool, bytes, bool]:
        """What a function's body sees of it."""
        return (
            b"" if self.type is None else self.type.SerializeToString(deterministic=True),
            self.declared,
            b"" if self.tensor is None else self.tensor.SerializeToString(deterministic=True),
            self.written_sparse,
        )

    def without_large_tensor(self) -> Value:
        """The value as it is passed to a function, whose body may be inferred many times."""
        large = self.tensor is not None and self.tensor.ByteSize() > LARGEST_READ
        return replace(self, tensor=None) if large else self

    def _constant(self) -> Array | None:
        if self.tensor is None:
            return None
        try:
            return to_array(self.tensor, "")
        except ModelError:  # its own fault, or external data, which is not read
            return None


def infer(proto: ModelProto) -> ModelProto:
    """The model with all that the onnx package infers; the weights are left out. ModelError if it fails as a whole."""
    schemas.register()
    light = ModelProto()
    light.ir_version = proto.ir_version
    light.opset_import.extend(proto.opset_import)
    light.functions.extend(proto.functions)
    graph = light.graph
    for field in ("node", "input", "output", "value_info", "sparse_initializer"):
        getattr(graph, field).extend(getattr(proto.graph, field))
    for tensor in proto.graph.initializer:
        if tensor.ByteSize() <= LARGEST_READ:
            graph.initializer.add().CopyFrom(tensor)
        elif isinstance(tensor.name, str):  # what is no text cannot be written
            graph.initializer.add(name=tensor.name, data_type=tensor.data_type, dims=tensor.dims)
    result = ModelProto()
    try:
        result.ParseFromString(sandboxed(lambda: _infer(light)))
    except ModelError as error:
        text = " ".join(str(error).split())[:500]
        raise ModelError(f"onnx's shape inference {text}, so that only what is written is known") from error
    return result


def _infer(light: ModelProto) -> bytes:
    try:
        return bytes(onnx.shape_inference.infer_shapes(light, strict_mode=False, data_prop=True).SerializeToString())
    except Exception as error:  # onnx raises whatever it met
        raise ModelError(f"fails ({type(error).__name__}: {error})") from error


def values_of(graph: GraphProto, inferred: GraphProto) -> dict[str, Value]:
    """The values of a graph by name, as written where it is written, and as inferred elsewhere."""
    written, found = _infos(graph), _infos(inferred)
    types = found | {name: _merged(info, found.get(name)) for name, info in written.items()}
    values = {name: Value(info, _has_type(written.get(name))) for name, info in types.items()}
    defaults = {info.name for info in graph.input}
    for tensor in graph.initializer:
        # an initializer that is an input too is a default, which a caller may replace
        fixed = None if tensor.name in defaults else tensor
        values[tensor.name] = Value(values.get(tensor.name, Value()).type or _type_of(tensor), True, fixed)
    for sparse in graph.sparse_initializer:
        kind = TypeProto.SparseTensor(elem_type=sparse.values.data_type, shape=shape_of(sparse.dims))
        values[sparse.values.name] = Value(TypeProto(sparse_tensor_type=kind), True)
    for node in graph.node:
        for name in node.output:
            values.setdefault(name, Value())  # what is known by name alone
        if node.op_type == "Constant" and node.domain in nodes.DOMAINS and node.output:
            values[node.output[0]] = _constant_value(node, values.get(node.output[0], Value()))
    return values


def _infos(graph: GraphProto) -> dict[str, TypeProto]:
    return {info.name: info.type for info in (*graph.value_info, *graph.output, *graph.input) if info.HasField("type")}


def _has_type(info: TypeProto | None) -> bool:
    form = None if info is None else info.WhichOneof("value")
    return form is not None and (not form.endswith("tensor_type") or getattr(info, form).elem_type != 0)


def _merged(written: TypeProto, found: TypeProto | None) -> TypeProto:
    """What is written, completed by what was inferred."""
    if found is None or not written.HasField("tensor_type") or not found.HasField("tensor_type"):
        return found if found is not None and written.WhichOneof("value") is None else written
    result = TypeProto()
    result.CopyFrom(written)
    ours, theirs = result.tensor_type, found.tensor_type
    ours.elem_type = ours.elem_type or theirs.elem_type
    if not ours.HasField("shape"):
        ours.ClearField("shape")
        if theirs.HasField("shape"):
            ours.shape.CopyFrom(theirs.shape)
    elif len(ours.shape.dim) == len(theirs.shape.dim):
        for dim, other in zip(ours.shape.dim, theirs.shape.dim, strict=True):
            if not dim.HasField("dim_value") and (other.HasField("dim_value") or not dim.dim_param):
                dim.CopyFrom(other)
    return result


def _dims(tensor: TypeProto.Tensor) -> Dims:
    """The sizes; a negative one, which is a fault of its own, is as open as none."""
    return tuple(None if isinstance(size, int) and size < 0 else size for size in dims_of(tensor.shape))


def _type_of(tensor: TensorProto) -> TypeProto:
    return TypeProto(tensor_type=TypeProto.Tensor(elem_type=tensor.data_type, shape=shape_of(tensor.dims)))


def _constant_value(node: NodeProto, value: Value) -> Value:
    """What a Constant node makes, whose type its attribute gives."""
    for attribute in node.attribute:
        if attribute.name == "value" and attribute.HasField("t"):
            return Value(value.type or _type_of(attribute.t), True, attribute.t)
        if attribute.name in nodes.PLAIN_CONSTANTS and not attribute.ref_attr_name:
            tensor = numpy_helper.from_array(nodes.plain_constant(attribute))
            return Value(value.type or _type_of(tensor), True, tensor)
    sparse = any(attribute.name == "sparse_value" for attribute in node.attribute)
    return Value(value.type, value.type is not None, None, sparse)
