"""Inlines the functions of a model: replaces calls with the bodies of the functions.

`onnx.inliner` performs the replacement. It ignores the default values of attributes, and never terminates for a
recursive function. It inlines a function incorrectly if one of its outputs is also one of its inputs. Therefore, this
module removes or rejects these constructs before it passes a model to `onnx.inliner`.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Container, Iterable, Iterator, Mapping
from copy import deepcopy
from graphlib import CycleError, TopologicalSorter

import onnx
from google.protobuf.message import EncodeError  # type: ignore[import-untyped]
from onnx import AttributeProto, FunctionProto, GraphProto, ModelProto, NodeProto, OperatorSetIdProto, helper, inliner

from maxops.errors import ModelError
from maxops.onnx import nodes
from maxops.onnx.schemas import REFUSALS, since
from maxops.onnx.structure import (
    FunctionKey,
    all_graphs,
    all_names,
    call_key,
    function_key,
    graphs_of,
    initial_names,
    with_inner,
)
from maxops.spec import SCATTERS

# Nested functions can expand a few lines to a model of any size.
MAX_NODES = 1_000_000

Functions = Mapping[FunctionKey, FunctionProto]


def label(key: FunctionKey) -> str:
    """Return the name of a function for messages.

    >>> label(("own", "peaks", "")), label(("own", "peaks", "wide"))
    ('own.peaks', 'own.peaks:wide')
    """
    domain, name, overload = key
    return f"{domain}.{name}" + (f":{overload}" if overload else "")


def ambiguous(key: FunctionKey) -> str:
    """Return the description of a function that has the name of an operator."""
    return (
        f"{label(key).lstrip('.')} is both a function of the model and an operator; ONNX does not define which of the "
        "two runs, and runtimes differ; rename the function"
    )


def by_key(model: ModelProto) -> dict[FunctionKey, FunctionProto]:
    """Return the model's functions, keyed by domain, name and overload. Raise ModelError for a repeated key."""
    found: dict[FunctionKey, FunctionProto] = {}
    for function in model.functions:
        key = function_key(function)
        if key in found:
            raise ModelError(f"the model defines the function {label(key)} twice; rename one or change its overload")
        found[key] = function
    return found


def calls(found: Iterable[NodeProto], functions: Collection[FunctionKey]) -> Iterator[NodeProto]:
    """Return an iterator over the nodes that call one of these functions, including nodes in subgraphs."""
    return (node for node in with_inner(found) if call_key(node) in functions)


def called(model: ModelProto) -> list[FunctionKey]:
    """Return the functions that the main graph calls, directly or indirectly, with callers before callees.

    Raises ModelError for functions that call themselves, and for calls with too many inputs or outputs.
    """
    functions = by_key(model)
    _check_calls(model, functions)
    reached: dict[FunctionKey, set[FunctionKey]] = {}
    waiting = {call_key(node) for node in calls(model.graph.node, functions)}
    while waiting:
        key = waiting.pop()
        reached[key] = {call_key(node) for node in calls(functions[key].node, functions)}
        waiting |= {callee for callee in reached[key] if callee not in reached}
    try:
        return [*TopologicalSorter(reached).static_order()][::-1]
    except CycleError as error:
        circle = " -> ".join(map(label, error.args[1]))
        raise ModelError(f"the function {label(error.args[1][0])} calls itself: {circle}") from error


def with_given_reductions(model: ModelProto) -> ModelProto:
    """Inline the functions whose calls set the reduction of ScatterElements or ScatterND, because it may be "max"."""
    functions = by_key(model)
    chosen = {key for key, function in functions.items() if any(map(_has_given_reduction, with_inner(function.node)))}
    if not chosen:
        return model
    while callers := {key for key in functions.keys() - chosen if any(calls(functions[key].node, chosen))}:
        chosen |= callers
    return inlined(model, chosen)


def _has_given_reduction(node: NodeProto) -> bool:
    return (
        not node.domain
        and node.op_type in SCATTERS
        and any(attribute.name == "reduction" and attribute.ref_attr_name for attribute in node.attribute)
    )


def inlined(model: ModelProto, chosen: Collection[FunctionKey]) -> ModelProto:
    """Return a copy of a model in which the bodies of the chosen functions replace the calls to them.

    If a function is chosen, its callers must also be chosen. Other functions are kept. If the operator sets of a
    function and of the model contain different versions of an operator, `onnx.version_converter` converts the nodes of
    the function. Raises ModelError for functions that call themselves, invalid calls, failed conversions, and results
    that are too large.
    """
    functions = by_key(model)
    order = [key for key in called(model) if key in chosen]
    _check_size(model, functions, order)
    result = deepcopy(model)
    kept = [function for function in model.functions if function_key(function) not in chosen]
    versions = {entry.domain: entry.version for entry in model.opset_import}
    written = all_names(model)
    for keys in _rounds(order, functions, versions):
        del result.functions[:]
        for key in keys:
            result.functions.append(functions[key])
            _prepare(result.functions[-1], result)
        for node in calls(result.graph.node, keys):
            given = {attribute.name for attribute in node.attribute}
            defaults = functions[call_key(node)].attribute_proto
            node.attribute.extend(default for default in defaults if default.name not in given)
        typed = any(_is_converted(functions[key], versions) for key in keys)
        result = _inline(result, keys, model.functions if typed else ())
        if typed:
            _rename_repeats(result.graph, written, {*written}, {})
    del result.functions[:]
    result.functions.extend(kept)
    return result


def _rounds(order: list[FunctionKey], functions: Functions, versions: Mapping[str, int]) -> Iterator[list[FunctionKey]]:
    """Yield the groups of functions to inline together: all functions, or the functions with the same distance.

    Functions are grouped by their largest distance from the graph if one of them has default attributes or must be
    converted to another operator set. When such a function is inlined, all calls to it are already in the graph.
    Defaults can be added only to calls in the graph, and only the graph has the types that a conversion requires.
    """
    distance = dict.fromkeys(order, 0)
    if any(functions[key].attribute_proto or _is_converted(functions[key], versions) for key in order):
        for key in order:
            for callee in map(call_key, calls(functions[key].node, distance)):
                distance[callee] = max(distance[callee], distance[key] + 1)
    groups: defaultdict[int, list[FunctionKey]] = defaultdict(list)
    for key in order:
        groups[distance[key]].append(key)
    for _, keys in sorted(groups.items()):
        yield keys


def _is_converted(function: FunctionProto, versions: Mapping[str, int]) -> bool:
    return not all(
        means_the_same(function, entry.domain, versions.get(entry.domain, entry.version))
        for entry in function.opset_import
    )


def _inline(model: ModelProto, keys: list[FunctionKey], more: Iterable[FunctionProto]) -> ModelProto:
    """Inline all functions of the model. If `more` contains functions, first infer the types of their calls."""
    names = ", ".join(map(label, keys))
    given = model
    functions = [*more]
    try:
        if functions:
            given = _with_types(model, functions)
        result = inliner.inline_local_functions(given, convert_version=True)
    except REFUSALS as error:
        raise ModelError(f"cannot inline the functions {names}: {' '.join(str(error).split())}") from error
    except (ValueError, EncodeError) as error:
        raise ModelError(f"cannot inline the functions {names}, because the model is too large: {error}") from error
    if left := {label(call_key(node)) for node in calls(result.graph.node, keys)}:
        raise ModelError(
            f"cannot inline the functions {', '.join(sorted(left))}: onnx.inliner does not replace the calls to them"
        )
    if functions:
        _forget_types(result, _typed(given) - _typed(model))
        del result.graph.output[:]
        result.graph.output.extend(model.graph.output)
    return result


def _with_types(model: ModelProto, functions: Iterable[FunctionProto]) -> ModelProto:
    """Return the model with the inferred types of its values, because the inliner does not infer the types of calls."""
    whole = deepcopy(model)
    del whole.functions[:]
    whole.functions.extend(functions)
    result = onnx.shape_inference.infer_shapes(whole)
    del result.functions[:]
    result.functions.extend(model.functions)
    # the inliner ignores types in subgraphs, so declare them in the main graph, for each name that has only one type
    infos = [info for graph in all_graphs(result) for info in (*graph.input, *graph.value_info, *graph.output)]
    types = {info.name: info.type for info in infos}
    clashing = {info.name for info in infos if info.type != types[info.name]}
    main = initial_names(result.graph).union(info.name for info in (*result.graph.value_info, *result.graph.output))
    for name in types.keys() - clashing - main:
        result.graph.value_info.add(name=name, type=types[name])
    return result


def _rename_repeats(graph: GraphProto, kept: Container[str], taken: set[str], outer: Mapping[str, str]) -> None:
    """Give distinct names to values that share a name after a conversion.

    An input of a node refers to the last preceding value with its name. Names in `kept` are unchanged.
    """
    own = initial_names(graph)
    names = {name: fresh for name, fresh in outer.items() if name not in own}
    for node in graph.node:
        node.input[:] = [names.get(name, name) for name in node.input]
        for _, inner in graphs_of(node):
            _rename_repeats(inner, kept, taken, names)
        for name in node.output:
            if name not in kept:
                names[name] = fresh_name(name, taken)
        node.output[:] = [names.get(name, name) for name in node.output]
    for value in graph.output:
        value.name = names.get(value.name, value.name)


def _typed(model: ModelProto) -> set[str]:
    return {info.name for graph in all_graphs(model) for info in graph.value_info}


def _forget_types(model: ModelProto, names: set[str]) -> None:
    for graph in all_graphs(model):
        kept = [info for info in graph.value_info if info.name not in names]
        del graph.value_info[:]
        graph.value_info.extend(kept)


def _prepare(function: FunctionProto, model: ModelProto) -> None:
    """Change a function so that the inliner handles it correctly, with few conversions. Its results do not change."""
    versions = {entry.domain: entry.version for entry in model.opset_import}
    for entry in function.opset_import:
        if entry.domain not in versions:  # a conversion infers the types of the whole model, which requires all imports
            model.opset_import.append(entry)
        version = versions.setdefault(entry.domain, entry.version)
        if means_the_same(function, entry.domain, version):
            entry.version = version
    seen = {*function.input}
    names = {name for node in with_inner(function.node) for name in (*node.input, *node.output)} | seen
    for number, name in enumerate(function.output):
        if name in seen:
            fresh = fresh_name(f"{name}_out", names)
            function.node.append(helper.make_node("Identity", [name], [fresh]))
            function.output[number] = fresh
        seen.add(name)


def means_the_same(function: FunctionProto, domain: str, version: int, more: Iterable[str] = ()) -> bool:
    """Return whether a function's operators in a domain, and those in `more`, are identical in another operator set."""
    own = next((entry.version for entry in function.opset_import if entry.domain == domain), version)
    operators = {node.op_type for node in with_inner(function.node) if node.domain == domain}.union(more)
    return own == version or all(
        since(operator, own, domain) == since(operator, version, domain) != 0 for operator in operators
    )


def fresh_name(name: str, taken: set[str]) -> str:
    """Return a name that is not in `taken`, and add it to `taken`. If necessary, the name is extended with "_"."""
    while name in taken:
        name += "_"
    taken.add(name)
    return name


def _check_calls(model: ModelProto, functions: Functions) -> None:
    """Reject ambiguous calls, and calls with too many inputs or outputs or with attributes of a wrong type.

    The inliner does not check these.
    """
    kinds = {key: _attribute_kinds(function) for key, function in functions.items()}
    for key, function in functions.items():
        _check_kinds(function.attribute_proto, kinds[key], key, "the default of the attribute")
    holders: list[tuple[GraphProto | FunctionProto, Iterable[OperatorSetIdProto]]] = [(model.graph, model.opset_import)]
    holders += [(function, function.opset_import) for function in functions.values()]
    for holder, imports in holders:
        versions = {entry.domain: entry.version for entry in imports}
        for node in calls(holder.node, functions):
            if since(node.op_type, versions.get(node.domain, 0), node.domain):
                raise ModelError(f"{nodes.label(node)}: {ambiguous(call_key(node))}")
            function = functions[call_key(node)]
            for kind, given, declared in (
                ("inputs", node.input, function.input),
                ("outputs", node.output, function.output),
            ):
                if len(given) > len(declared):
                    raise ModelError(
                        f"{nodes.label(node)}: the call has {len(given)} {kind}, but the function "
                        f"{label(call_key(node))} has {len(declared)}"
                    )
            _check_kinds(node.attribute, kinds[call_key(node)], call_key(node), f"{nodes.label(node)}: the attribute")


def _attribute_kinds(function: FunctionProto) -> dict[str, set[int]]:
    """Return the types that the nodes of a function require for each attribute of the function."""
    kinds: dict[str, set[int]] = {}
    for node in with_inner(function.node):
        for attribute in node.attribute:
            if attribute.ref_attr_name:
                kinds.setdefault(attribute.ref_attr_name, set()).add(attribute.type)
    return kinds


def _check_kinds(given: Iterable[AttributeProto], kinds: Mapping[str, set[int]], key: FunctionKey, where: str) -> None:
    for attribute in given:
        if others := kinds.get(attribute.name, set()) - {attribute.type}:
            actual, *expected = map(AttributeProto.AttributeType.Name, (attribute.type, *sorted(others)))
            raise ModelError(
                f"{where} {attribute.name!r} of the function {label(key)} must have type "
                f"{' and '.join(expected)}, got {actual}"
            )


def _check_size(model: ModelProto, functions: Functions, order: list[FunctionKey]) -> None:
    sizes: dict[FunctionKey, int] = {}

    def size(found: Iterable[NodeProto]) -> int:
        return sum(sizes.get(call_key(node), 1) for node in with_inner(found))

    for key in reversed(order):
        sizes[key] = size(functions[key].node)
    if (total := size(model.graph.node)) > MAX_NODES:
        raise ModelError(f"the model has {total} nodes after its functions are inlined; the limit is {MAX_NODES}")
