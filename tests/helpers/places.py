"""Places in a model: the same nodes in the main graph, branches, loops, functions and training graphs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from onnx import FunctionProto, GraphProto, ModelProto, NodeProto, TensorProto, ValueInfoProto, helper

FLOAT, INT64, BOOL = TensorProto.FLOAT, TensorProto.INT64, TensorProto.BOOL
OPSET = 18


def node(operator: str, inputs: Sequence[str], output: str, domain: str = "") -> NodeProto:
    return helper.make_node(operator, inputs, [output], output, domain=domain)


def info(name: str, elem_type: int = FLOAT, sizes: Sequence[int | str | None] | None = (2,)) -> ValueInfoProto:
    return helper.make_tensor_value_info(name, elem_type, sizes)


INPUTS = [info("x"), info("c", BOOL, ()), info("n", INT64, ())]
IMPORTS = [helper.make_opsetid("", OPSET), helper.make_opsetid("own", 1)]


@dataclass
class Part:
    """Nodes that read x and c, for insertion at a place. The place adds a node that computes `late`."""

    nodes: list[NodeProto] = field(default_factory=lambda: [node("Max", ["x", "x"], "y")])
    initializers: list[TensorProto] = field(default_factory=list)
    output: ValueInfoProto = field(default_factory=lambda: info("y"))
    value_info: list[ValueInfoProto] = field(default_factory=list)

    def graph(self, *more: NodeProto) -> GraphProto:
        """Return a graph of the nodes, followed by other nodes."""
        return helper.make_graph(
            [*self.nodes, *more], "part", [], [self.output], self.initializers, value_info=self.value_info
        )

    def declared(self, name: str, *before: str) -> ValueInfoProto:
        """Return a value with the type of the output and, before its sizes, other ones."""
        kind = self.output.type.tensor_type
        sizes = [*before, *(dim.dim_value for dim in kind.shape.dim)]
        return info(name, kind.elem_type, sizes)

    def cast(self, name: str) -> GraphProto:
        """Return a graph of a node that converts x to the type of the output."""
        elem_type = self.output.type.tensor_type.elem_type
        made = helper.make_node("Cast", ["x"], [name], name, to=elem_type)
        return helper.make_graph([made], name, [], [info(name, elem_type)])


def whole(nodes: list[NodeProto], output: ValueInfoProto, functions: Sequence[FunctionProto] = ()) -> ModelProto:
    graph = helper.make_graph(nodes, "main", INPUTS, [output])
    return helper.make_model(graph, opset_imports=IMPORTS, functions=functions, ir_version=10)


def late() -> NodeProto:
    return node("Neg", ["x"], "late")


def function(name: str, nodes: list[NodeProto], output: str) -> FunctionProto:
    return helper.make_function("own", name, ["x", "c", "n"], [output], nodes, IMPORTS)


def call(name: str) -> NodeProto:
    return helper.make_node(name, ["x", "c", "n"], ["called"], name, domain="own")


def in_main(part: Part) -> ModelProto:
    made = whole([], part.output)
    made.graph.MergeFrom(GraphProto(node=part.graph(late()).node, initializer=part.initializers))
    made.graph.value_info.extend(part.value_info)
    return made


def _if(part: Part) -> NodeProto:
    return helper.make_node("If", ["c"], ["chosen"], "if", then_branch=part.graph(), else_branch=part.cast("other"))


def _in_branch_in_branch(part: Part) -> ModelProto:
    then = helper.make_graph([_if(part)], "then", [], [part.declared("chosen")])
    outer = helper.make_node("If", ["c"], ["outermost"], "outer", then_branch=then, else_branch=part.cast("another"))
    return whole([outer, late()], part.declared("outermost"))


def _in_loop(part: Part) -> ModelProto:
    body = part.graph(node("Identity", ["go"], "on"))
    body.input.extend([info("i", INT64, ()), info("go", BOOL, ())])
    body.output.insert(0, info("on", BOOL, ()))
    loop = helper.make_node("Loop", ["n", ""], ["chosen"], "loop", body=body)
    return whole([loop, late()], part.declared("chosen", "trips"))


def in_function(part: Part) -> ModelProto:
    constants = [helper.make_node("Constant", [], [each.name], value=each) for each in part.initializers]
    made = function("f", [*constants, *part.nodes, late()], part.output.name)
    made.value_info.extend(part.value_info)
    return whole([call("f")], part.declared("called"), [made])


def _in_nested_function(part: Part) -> ModelProto:
    made = in_function(part)
    made.functions.append(function("g", [call("f")], "called"))
    made.graph.node[0].CopyFrom(call("g"))
    return made


def _in_uncalled_function(part: Part) -> ModelProto:
    made = in_function(part)
    made.graph.node[0].CopyFrom(part.cast("called").node[0])
    return made


def _in_branch_in_function(part: Part) -> ModelProto:
    return whole([call("f")], part.declared("called"), [function("f", [_if(part), late()], "chosen")])


def in_training(part: Part, graph: str) -> ModelProto:
    result = whole([node("Neg", ["x"], "z")], info("z"))
    made = getattr(result.training_info.add(), graph)
    made.CopyFrom(part.graph(late()))
    if graph == "initialization":  # this graph cannot read the values of the model
        made.initializer.extend([helper.make_tensor("x", FLOAT, [2], [1, 1]), helper.make_tensor("c", BOOL, [], [1])])
    return result


PLACES: dict[str, Callable[[Part], ModelProto]] = {
    "main": in_main,
    "branch": lambda part: whole([_if(part), late()], part.declared("chosen")),
    "branch in branch": _in_branch_in_branch,
    "loop": _in_loop,
    "function": in_function,
    "nested function": _in_nested_function,
    "function that nothing calls": _in_uncalled_function,
    "branch in function": _in_branch_in_function,
    "training step": lambda part: in_training(part, "algorithm"),
    "training initialization": lambda part: in_training(part, "initialization"),
}
