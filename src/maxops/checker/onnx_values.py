"""Determines the types of the values in an ONNX graph from tensors, from type inference, and from declarations."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Container, Iterable, Iterator
from copy import deepcopy
from dataclasses import dataclass, replace
from functools import partial
from itertools import count

import onnx
from onnx import FunctionProto, GraphProto, ModelProto, NodeProto, TensorProto, TypeProto, ValueInfoProto, numpy_helper

from maxops.checker import sandbox
from maxops.checker.facts import Known
from maxops.errors import ModelError
from maxops.onnx import nodes, schemas
from maxops.onnx.external import with_external_inputs
from maxops.onnx.structure import all_dims, call_key, function_key, graphs_of, with_inner
from maxops.onnx.tensors import DTYPES, dims_of, shape_of, to_array, type_name, type_of
from maxops.plan import Array
from maxops.sizes import Dims, text

# Type inference reads the data of shapes and axes, which are small. It receives larger tensors without their data.
LARGEST_READ = 16384  # bytes


@dataclass(frozen=True)
class Value:
    """The known facts about a value of an ONNX graph.

    ``declared`` is True if the model declares a type. ``written`` is this type, which may contradict ``type``.
    ``tensor`` contains the data of a constant. ``written_sparse`` is True if the constant is stored as a sparse tensor.
    """

    type: TypeProto | None = None
    declared: bool = False
    tensor: TensorProto | None = None
    written_sparse: bool = False
    written: TypeProto | None = None

    def known(self, name: str, *, with_constant: bool) -> Known:
        """Convert the facts to a `Known`. `with_constant` includes the array of a constant, which few rules read."""
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
        return Known(name, dtype, dims, self.declared, sparse, self.written_sparse, constant)

    def as_written(self) -> Value:
        """Return the value with its declared type, which the rules compare with the inputs of the node."""
        return self if self.written is None else replace(self, type=completed(self.written, self.type))

    @property
    def fingerprint(self) -> tuple[bytes, ...]:
        """The facts that affect type inference in the body of a called function, as bytes."""
        messages = (self.type, self.tensor, self.written)
        return (
            *(b"" if each is None else each.SerializeToString() for each in messages),
            bytes([self.declared, self.written_sparse]),
        )

    def without_large_tensor(self) -> Value:
        """Return the value without a large tensor, which type inference would copy for each function call."""
        large = self.tensor is not None and self.tensor.ByteSize() > LARGEST_READ
        return replace(self, tensor=None) if large else self

    def _constant(self) -> Array | None:
        if self.tensor is None:
            return None
        try:
            return to_array(self.tensor, "")
        except ModelError:  # the error is reported separately, or the data is external and not read
            return None


def infer(makers: Iterable[tuple[Callable[[], ModelProto], str]]) -> list[GraphProto | ModelError]:
    """Create models in a sandbox, and return the graph of each with inferred types, or the error of the inference.

    Each of the `makers` is a function that returns a model, and a prefix for the dimension names that inference
    generates. Declared types are used only if tensors and inference leave a type unknown. Large weights are omitted.
    """
    schemas.register()
    works = [partial(_inferred, make, prefix) for make, prefix in makers]
    found: list[bytes | ModelError]
    try:
        found = sandbox.sandboxed(works)
    except ModelError as error:
        found = [error] * len(works)
    return [
        ModelError(f"onnx's shape inference {' '.join(str(each).split())[:500]}, so only declared types are known")
        if isinstance(each, ModelError)
        else GraphProto.FromString(each)
        for each in found
    ]


def without_weights(proto: ModelProto, *, with_shapes: bool = True) -> ModelProto:
    """Return a copy of the model without training graphs, and without the data of large initializers.

    With `with_shapes`, large initializers keep their shapes. Without it, they are empty.
    """
    light = ModelProto()
    light.ir_version = proto.ir_version
    light.opset_import.extend(proto.opset_import)
    light.functions.extend(proto.functions)
    for function in light.functions:
        _declare_references(function)
    light.metadata_props.extend(proto.metadata_props)
    graph = light.graph
    graph.name = proto.graph.name if isinstance(proto.graph.name, str) else "graph"
    for field in ("node", "input", "output", "value_info", "sparse_initializer"):
        getattr(graph, field).extend(getattr(proto.graph, field))
    for tensor in proto.graph.initializer:
        if tensor.ByteSize() <= LARGEST_READ:
            graph.initializer.add().CopyFrom(tensor)
        elif isinstance(tensor.name, str):  # a name that is not UTF-8 cannot be written
            dims = tensor.dims if with_shapes else [0]
            graph.initializer.add(name=tensor.name, data_type=tensor.data_type, dims=dims)
    return light


def _declare_references(function: FunctionProto) -> None:
    """Declare all attributes that a function's nodes refer to, because type inference ignores undeclared attributes."""
    declared = {*function.attribute, *(attribute.name for attribute in function.attribute_proto), ""}
    for node in with_inner(function.node):
        for attribute in node.attribute:
            if attribute.ref_attr_name not in declared and isinstance(attribute.ref_attr_name, str):
                declared.add(attribute.ref_attr_name)
                function.attribute.append(attribute.ref_attr_name)


def _inferred(make: Callable[[], ModelProto], prefix: str) -> bytes:
    light = with_external_inputs(without_weights(make()))
    bare = deepcopy(light)
    functions = {function_key(function) for function in light.functions}
    opsets = {entry.domain: entry.version for entry in light.opset_import}
    _strip(bare.graph, functions, opsets, is_body=False)
    for function in bare.functions:
        del function.value_info[:]
    names = (f"{prefix}{number}" for number in count())
    found = _infer(bare, names)
    if _fill_gaps(bare.graph, light.graph, found.graph):
        found = _infer(bare, names)
    return bytes(found.graph.SerializeToString())


def _infer(model: ModelProto, names: Iterator[str]) -> ModelProto:
    """Infer types. Rename the dimensions that onnx names, because onnx may use the same names in other graphs."""
    try:
        found = onnx.shape_inference.infer_shapes(model, data_prop=True)
    except Exception as error:  # onnx may raise any exception
        raise ModelError(f"failed ({type(error).__name__}: {error})") from error
    written = {"", *(dim.dim_param for dim in all_dims(model))}
    fresh: defaultdict[str, str] = defaultdict(names.__next__)
    for dim in all_dims(found):
        if dim.dim_param not in written:
            dim.dim_param = fresh[dim.dim_param]
    return found


def _strip(graph: GraphProto, functions: Container[object], opsets: dict[str, int], *, is_body: bool) -> None:
    """Remove the declared types that onnx can infer. Keep those of the outputs of unknown operators.

    `is_body` marks a subgraph of a node that onnx supports. The inputs of this subgraph get their types from the node.
    """
    tensors = {tensor.name: type_of(tensor) for tensor in graph.initializer}
    for info in graph.input:
        if is_body:
            info.ClearField("type")
        if info.name in tensors and (is_body or conflicts(tensors[info.name], info.type)):
            info.type.CopyFrom(tensors[info.name])
    opaque: set[str] = set()
    for node in graph.node:
        known = call_key(node) in functions or _has_schema(node, opsets)
        if not known:
            opaque.update(node.output)
        for _, inner in graphs_of(node):
            _strip(inner, functions, opsets, is_body=known)
    kept = [info for info in graph.value_info if info.name in opaque]
    del graph.value_info[:]
    graph.value_info.extend(kept)
    for info in graph.output:
        if info.name not in opaque:
            info.ClearField("type")


def _has_schema(node: NodeProto, opsets: dict[str, int]) -> bool:
    version = opsets.get(node.domain, 0 if node.domain else 1)  # before IR version 3, models have no imports
    return schemas.since(node.op_type, version, node.domain) > 0


def _fill_gaps(bare: GraphProto, written: GraphProto, found: GraphProto) -> bool:
    """Add the declared types of values whose types inference left unknown. Return whether there were such values."""
    known = {info.name: info.type for info in _infos(found)}
    outputs = {info.name: info for info in bare.output}
    inputs = {info.name: info for info in bare.input if not info.HasField("type")}
    any_gap = False
    for info in _infos(written):
        fact = known.get(info.name)
        if not isinstance(info.name, str) or not has_type(info.type) or (fact and conflicts(fact, info.type)):
            continue
        whole = completed(info.type, fact) if fact is None else completed(fact, info.type)
        if fact is None or whole != fact:
            any_gap = True
            target = outputs.get(info.name) or inputs.get(info.name) or bare.value_info.add(name=info.name)
            target.type.CopyFrom(whole)
            known[info.name] = whole
    for node, other, partner in zip(bare.node, written.node, found.node, strict=False):
        inferred = dict(graphs_of(partner))
        for (name, inner), (_, inner_written) in zip(graphs_of(node), graphs_of(other), strict=True):
            any_gap |= _fill_gaps(inner, inner_written, inferred.get(name, inner))
    return any_gap


def values_of(graph: GraphProto, inferred: GraphProto) -> dict[str, Value]:
    """Return the known facts about the values of a graph, by name."""
    written: dict[str, TypeProto] = {}
    for info in _infos(graph):
        if has_type(info.type):
            written[info.name] = completed(written[info.name], info.type) if info.name in written else info.type
    types = written | {info.name: info.type for info in _infos(inferred) if has_type(info.type)}
    values = {name: Value(info, name in written, written=written.get(name)) for name, info in types.items()}
    defaults = {info.name for info in graph.input}
    for tensor in graph.initializer:
        # an initializer that is also an input is a default, which a caller may replace
        if tensor.name not in defaults:
            values[tensor.name] = Value(type_of(tensor), True, tensor)
        elif tensor.name not in values or conflicts(type_of(tensor), types[tensor.name]):
            values[tensor.name] = Value(type_of(tensor), True)
    for sparse in graph.sparse_initializer:
        kind = TypeProto.SparseTensor(elem_type=sparse.values.data_type, shape=shape_of(sparse.dims))
        values[sparse.values.name] = Value(TypeProto(sparse_tensor_type=kind), True)
    for info in graph.input:
        values.setdefault(info.name, Value())  # an input without a type also hides an outer value with its name
    for node in graph.node:
        for name in node.output:
            values.setdefault(name, Value())
        if node.op_type == "Constant" and not node.domain and node.output:
            values[node.output[0]] = _constant_value(node, values.get(node.output[0], Value()))
    return values


def contradictions(graph: GraphProto, values: dict[str, Value]) -> Iterator[tuple[str, str]]:
    """Yield the name of each value whose declared type or shape is wrong, with a description."""
    makers = {name: f"{nodes.label(node)} produces" for node in graph.node for name in node.output}
    makers |= dict.fromkeys((tensor.name for tensor in graph.initializer), "its initializer is")
    makers |= {sparse.values.name: "its initializer is" for sparse in graph.sparse_initializer}
    for place in ("value_info", "output", "input"):
        for info in getattr(graph, place):
            fact = values.get(info.name, Value()).type
            if fact is not None and conflicts(fact, info.type):
                maker = makers.get(info.name, "as an input it is" if place == "value_info" else "it is")
                yield (
                    info.name,
                    f"{place} declares {info.name!r} as {in_words(info.type)}, but {maker} {in_words(fact)}",
                )


def _infos(graph: GraphProto) -> list[ValueInfoProto]:
    return [info for info in (*graph.value_info, *graph.output, *graph.input) if info.HasField("type")]


def has_type(info: TypeProto | None) -> bool:
    """Return whether a type is specified. The type of a tensor must include the type of its elements."""
    form = None if info is None else info.WhichOneof("value")
    return form is not None and (not form.endswith("tensor_type") or getattr(info, form).elem_type != 0)


def conflicts(fact: TypeProto, other: TypeProto) -> bool:
    """Return whether two types are incompatible. Symbolic and unknown sizes are compatible with every size."""
    form, other_form = fact.WhichOneof("value"), other.WhichOneof("value")
    if form is None or other_form is None:
        return False
    if form != other_form:
        return True
    ours, theirs = getattr(fact, form), getattr(other, form)
    if form in ("sequence_type", "optional_type"):
        return conflicts(ours.elem_type, theirs.elem_type)
    if form == "map_type":
        return ours.key_type != theirs.key_type or conflicts(ours.value_type, theirs.value_type)
    if not form.endswith("tensor_type"):
        return False
    if ours.elem_type != theirs.elem_type and ours.elem_type and theirs.elem_type:
        return True
    if not ours.HasField("shape") or not theirs.HasField("shape"):
        return False
    dims = list(zip(ours.shape.dim, theirs.shape.dim, strict=False))
    return len(ours.shape.dim) != len(theirs.shape.dim) or any(
        dim.HasField("dim_value") and other_dim.HasField("dim_value") and dim.dim_value != other_dim.dim_value
        for dim, other_dim in dims
    )


def completed(first: TypeProto, second: TypeProto | None) -> TypeProto:
    """Return a type with its unknown parts filled in from a second type."""
    if second is None or conflicts(first, second):
        return first
    form = second.WhichOneof("value")
    if first.WhichOneof("value") is None:
        return second
    if form is None or not form.endswith("tensor_type"):
        return first
    result = deepcopy(first)
    ours, theirs = getattr(result, form), getattr(second, form)
    ours.elem_type = ours.elem_type or theirs.elem_type
    if not theirs.HasField("shape"):
        return result
    if not ours.HasField("shape"):
        ours.shape.CopyFrom(theirs.shape)
    for dim, other in zip(ours.shape.dim, theirs.shape.dim, strict=True):
        if not dim.HasField("dim_value") and (other.HasField("dim_value") or not dim.dim_param):
            dim.CopyFrom(other)
    return result


def in_words(info: TypeProto) -> str:
    """Return a type as text, such as "float32 (2, n)"."""
    form = info.WhichOneof("value") or "no type"
    if not form.endswith("tensor_type"):
        return f"a {form.removesuffix('_type')}"
    tensor = getattr(info, form)
    dtype = DTYPES.get(tensor.elem_type) or type_name(tensor.elem_type)
    kind = "sparse " if form.startswith("sparse") else ""
    return f"{kind}{dtype} {text(_dims(tensor)) if tensor.HasField('shape') else 'of unknown rank'}"


def _dims(tensor: TypeProto.Tensor) -> Dims:
    """Return the sizes of a tensor type, with None for each negative size."""
    return tuple(None if isinstance(size, int) and size < 0 else size for size in dims_of(tensor.shape))


def _constant_value(node: NodeProto, value: Value) -> Value:
    """Add the facts from the attribute of a Constant node to its output's value."""
    for attribute in node.attribute:
        tensor = None
        if attribute.name == "value" and attribute.HasField("t"):
            tensor = attribute.t
        elif attribute.name in nodes.PLAIN_CONSTANTS and not attribute.ref_attr_name:
            tensor = numpy_helper.from_array(nodes.plain_constant(attribute))
        if tensor is not None:
            return replace(value, type=type_of(tensor), declared=True, tensor=tensor)
    sparse = any(attribute.name == "sparse_value" for attribute in node.attribute)
    return replace(value, declared=value.type is not None, written_sparse=sparse)
