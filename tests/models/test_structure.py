"""The structure of models: both names of the default domain, and all graphs, nodes, functions and names."""

from __future__ import annotations

import os
from pathlib import Path

import onnx
import pytest
from onnx import FunctionProto, GraphProto, ModelProto, NodeProto, TensorProto, helper

from maxops.onnx import external, structure
from maxops.onnx.load import parse
from maxops.onnx.structure import ALIAS

FLOAT = TensorProto.FLOAT


def _graph(name: str, inner: list[NodeProto] | None = None) -> GraphProto:
    """Return a graph whose values have distinct names."""
    made = helper.make_graph(
        [helper.make_node("Max", [f"{name}_in"], [f"{name}_made"]), *(inner or [])],
        name,
        [helper.make_tensor_value_info(f"{name}_in", FLOAT, [2])],
        [helper.make_tensor_value_info(f"{name}_out", FLOAT, [2])],
        [helper.make_tensor(f"{name}_weight", FLOAT, [1], [1.0])],
        value_info=[helper.make_tensor_value_info(f"{name}_written", FLOAT, [2])],
        sparse_initializer=[
            helper.make_sparse_tensor(
                helper.make_tensor(f"{name}_sparse", FLOAT, [1], [1.0]),
                helper.make_tensor(f"{name}_at", TensorProto.INT64, [1], [1]),
                [4],
            )
        ],
    )
    made.quantization_annotation.add(tensor_name=f"{name}_quantized")
    return made


def _if(name: str) -> NodeProto:
    return helper.make_node("If", [f"{name}_condition"], [f"{name}_chosen"], then_branch=_graph(f"{name}_then"))


def everything() -> ModelProto:
    """Return a model with a graph in every place where the format permits one."""
    held = helper.make_node("Held", [], ["held_made"], domain="own")
    held.attribute.append(helper.make_attribute("several", [_graph("first"), _graph("second")]))
    function = helper.make_function(
        "own",
        "Held",
        ["function_in"],
        ["function_out"],
        [helper.make_node("Max", ["function_in"], ["function_out"]), _if("in_function")],
        [helper.make_opsetid("", 13)],
        value_info=[helper.make_tensor_value_info("function_written", FLOAT, [2])],
    )
    function.attribute_proto.append(helper.make_attribute("given", _graph("default")))
    made = helper.make_model(
        _graph("main", [_if("main"), held]), functions=[function], opset_imports=[helper.make_opsetid("", 13)]
    )
    for number in range(2):
        info = made.training_info.add()
        info.initialization.CopyFrom(_graph(f"initialization{number}"))
        info.algorithm.CopyFrom(_graph(f"algorithm{number}", [_if(f"algorithm{number}")]))
    return made


GRAPHS = {
    *("main", "main_then", "first", "second", "in_function_then", "default"),
    *("initialization0", "algorithm0", "algorithm0_then", "initialization1", "algorithm1", "algorithm1_then"),
}


def test_every_graph_and_node_is_seen() -> None:
    made = everything()
    assert sorted(graph.name for graph in structure.all_graphs(made)) == sorted(GRAPHS)
    read = sorted(name for node in structure.all_nodes(made) if node.op_type == "Max" for name in node.input)
    assert read == sorted([*(f"{name}_in" for name in GRAPHS), "function_in"])


def test_every_name_is_known() -> None:
    kinds = ("in", "out", "made", "weight", "written", "sparse", "quantized")
    expected = {f"{name}_{kind}" for name in GRAPHS for kind in kinds}
    expected |= {f"{name}_{kind}" for name in ("main", "in_function", "algorithm0") for kind in ("condition", "chosen")}
    expected |= {"held_made", "function_in", "function_out", "function_written"}
    assert expected <= structure.all_names(everything())


def _domains(model: ModelProto) -> list[str]:
    return [
        *(entry.domain for holder in (model, *model.functions) for entry in holder.opset_import),
        *(function.domain for function in model.functions),
        *(node.domain for node in structure.all_nodes(model)),
    ]


def test_the_other_name_of_the_domain_is_gone_everywhere() -> None:
    made = everything()
    holders: list[NodeProto | FunctionProto] = [*structure.all_nodes(made), *made.functions]
    for holder in holders:
        if holder.domain == "":
            holder.domain = ALIAS
    for importer in (made, *made.functions):
        importer.opset_import[0].domain = ALIAS
    assert _domains(made).count(ALIAS) > len(GRAPHS)
    before = made.SerializeToString()
    for read in (structure.canonical(made), parse(before, "model")):
        assert read == everything()
    assert made.SerializeToString() == before


@pytest.mark.parametrize("place", range(len(_domains(everything()))))
def test_each_place_of_the_other_name_is_read(place: int) -> None:
    made = everything()
    holders = [
        *(entry for holder in (made, *made.functions) for entry in holder.opset_import),
        *made.functions,
        *structure.all_nodes(made),
    ]
    holders[place].domain = ALIAS
    assert ALIAS in _domains(made)
    assert ALIAS not in _domains(structure.canonical(made))


def test_a_model_that_needs_no_change_is_not_copied() -> None:
    made = everything()
    assert structure.canonical(made) is made
    assert structure.with_open_sizes(made) is made


@pytest.mark.parametrize("form", ["tensor", "sparse_tensor", "sequence", "optional", "map"])
def test_sizes_of_minus_one_are_open_everywhere(form: str) -> None:
    """Test types of the model, of nested graphs, functions and training, and in attributes."""

    def with_sizes(dim: int | None) -> ModelProto:
        kind = helper.make_tensor_type_proto(FLOAT, [2, dim, "n", -2])
        if form == "sparse_tensor":
            kind = helper.make_sparse_tensor_type_proto(FLOAT, [2, dim, "n", -2])
        elif form == "map":
            kind = helper.make_map_type_proto(TensorProto.INT64, kind)
        elif form != "tensor":
            kind = getattr(helper, f"make_{form}_type_proto")(kind)
        made = everything()
        made.graph.node.append(helper.make_node("Optional", [], ["none"], type=kind))
        made.graph.node[-1].attribute.append(helper.make_attribute("several", [kind, kind]))
        infos = [*made.functions[0].value_info]
        for graph in structure.all_graphs(made):
            infos += [*graph.input, *graph.output, *graph.value_info]
        for info in infos:
            info.type.CopyFrom(kind)
        return made

    given = with_sizes(-1)
    assert structure.with_open_sizes(given) == with_sizes(None)
    assert given == with_sizes(-1)


@pytest.mark.parametrize(
    ("imports", "expected"),
    [
        ([(ALIAS, 13)], [("", 13)]),
        ([("", 13), (ALIAS, 13)], [("", 13)]),
        ([(ALIAS, 13), ("", 13)], [("", 13)]),
        ([(ALIAS, 13), (ALIAS, 13)], [("", 13)]),
        ([("", 13), (ALIAS, 12)], [("", 13), ("", 12)]),
        ([("own", 1), (ALIAS, 12)], [("own", 1), ("", 12)]),
    ],
)
def test_imports_under_both_names(imports: list[tuple[str, int]], expected: list[tuple[str, int]]) -> None:
    made = onnx.parser.parse_model(
        '<ir_version: 8, opset_import: ["": 13]> f (float[2] x) => (float[2] y) { y = Max(x) }'
    )
    del made.opset_import[:]
    made.opset_import.extend(helper.make_opsetid(*each) for each in imports)
    read = structure.canonical(made)
    assert [(entry.domain, entry.version) for entry in read.opset_import] == expected


def test_functions_are_told_apart_by_overload() -> None:
    functions = [FunctionProto(domain="own", name="f", overload=overload) for overload in ("", "other")]
    keys = list(map(structure.function_key, functions))
    calls = [NodeProto(domain="own", op_type="f", overload=overload) for overload in ("", "other")]
    assert len({*keys}) == 2
    assert list(map(structure.call_key, calls)) == keys


def test_external_data_is_seen_everywhere(tmp_path: Path) -> None:
    made = everything()
    placed: dict[str, TensorProto] = {}
    for number, graph in enumerate(structure.all_graphs(made)):
        placed[f"initializer{number}"] = graph.initializer.add()
        placed[f"sparse{number}"] = graph.sparse_initializer.add().values
    attributes = [attribute for node in structure.all_nodes(made) for attribute in node.attribute]
    attributes += [attribute for function in made.functions for attribute in function.attribute_proto]
    for number, attribute in enumerate(attributes):
        placed[f"attribute{number}"] = attribute.t
        placed[f"list{number}"] = attribute.tensors.add()
        placed[f"indices{number}"] = attribute.sparse_tensor.indices
    for name, tensor in placed.items():
        tensor.name, tensor.data_location = name, TensorProto.EXTERNAL
        tensor.external_data.add(key="location", value=f"{name}.bin")
        (tmp_path / f"{name}.bin").touch()
    assert len(placed) > 2 * len(GRAPHS) + 6
    files = external.files(made, tmp_path / "model.onnx", "model")
    assert set(files) == {f"{name}.bin" for name in placed}
    left = external.without_external(made)
    assert not any(external.external_tensors(left))
    assert any(external.external_tensors(made))


@pytest.mark.parametrize("elsewhere", [(), ("w",), ("values",), ("indices",), ("values", "indices")], ids="-".join)
def test_tensors_without_their_external_data_are_empty(elsewhere: tuple[str, ...]) -> None:
    """Test that tensors keep their names and types, and that a sparse tensor loses both parts."""
    made = onnx.parser.parse_model(
        '<ir_version: 8, opset_import: ["": 13]> g (float[2] x) => (float[2] y) {y = Max(x)}'
    )
    sparse = made.graph.sparse_initializer.add(dims=[3])
    placed = {"w": made.graph.initializer.add(), "values": sparse.values, "indices": sparse.indices}
    for name, tensor in placed.items():
        kind = TensorProto.INT64 if name == "indices" else TensorProto.FLOAT
        tensor.CopyFrom(TensorProto(name=name, data_type=kind, dims=[1], raw_data=bytes(8 if name == "indices" else 4)))
        if name in elsewhere:
            tensor.data_location = TensorProto.EXTERNAL
    before = made.SerializeToString()
    left = external.without_external(made)
    assert made.SerializeToString() == before
    assert (left is made) == (not elsewhere)
    (inner,) = left.graph.sparse_initializer
    for tensor in (left.graph.initializer[0], inner.values, inner.indices):
        is_empty = tensor.name in elsewhere or (tensor.name != "w" and {"values", "indices"} & {*elsewhere})
        assert tensor.data_type == placed[tensor.name].data_type
        assert ([*tensor.dims], tensor.raw_data != b"") == (([0], False) if is_empty else ([1], True))


@pytest.mark.parametrize(
    ("links", "is_followed"),
    [
        pytest.param((), False, id="none"),
        pytest.param(("model",), False, id="the model alone"),
        pytest.param(("a", "b"), False, id="the data alone"),
        pytest.param(("model", "a"), False, id="not all of the data"),
        pytest.param(("model", "b"), False, id="not the first of the data"),
        pytest.param(("model", "a", "b"), True, id="all"),
    ],
)
def test_links_are_followed_where_all_data_is_linked(links: tuple[str, ...], is_followed: bool, tmp_path: Path) -> None:
    """Test that tensors get the file names there, and that nothing else changes."""
    here, there = tmp_path / "here", tmp_path / "there"
    for name, other in (("model", "m"), ("a", "blobs/1"), ("b", "blobs/2")):
        place, blob = here / name, there / other
        place.parent.mkdir(exist_ok=True)
        blob.parent.mkdir(parents=True, exist_ok=True)
        blob.touch()
        if name in links:
            place.symlink_to(blob)
        else:
            place.touch()
    made = ModelProto()
    for name in ("a", "b"):
        tensor = made.graph.initializer.add(name=name, data_location=TensorProto.EXTERNAL)
        for key, value in (("offset", "0"), ("location", name), ("length", "4")):
            tensor.external_data.add(key=key, value=value)
    assert external.follow_links(made, here / "model") == (there if is_followed else here)
    locations = ["blobs/1", "blobs/2"] if is_followed else ["a", "b"]
    for tensor, location in zip(made.graph.initializer, locations, strict=True):
        assert [(entry.key, entry.value) for entry in tensor.external_data] == [
            ("offset", "0"), ("location", location), ("length", "4"),
        ]  # fmt: skip


@pytest.mark.parametrize("location", ["../here/a", "{here}/a", "", "a\0", "loop", "other"])
def test_locations_that_are_errors_are_not_followed(location: str, tmp_path: Path) -> None:
    """Test a linked model whose data is outside its folder, by name or through a link, or whose link is broken."""
    here, there = tmp_path / "here", tmp_path / "there"
    here.mkdir()
    there.mkdir()
    for name, blob in (("model", "m"), ("a", "1"), ("other", os.fsdecode(b"\xff"))):
        (there / blob).touch()
        (here / name).symlink_to(there / blob)
    (here / "loop").symlink_to(here / "loop")
    made = ModelProto()
    for name in (location.format(here=here), "a"):
        made.graph.initializer.add(data_location=TensorProto.EXTERNAL).external_data.add(key="location", value=name)
    before = made.SerializeToString()
    assert external.follow_links(made, here / "model") == here
    assert made.SerializeToString() == before
