"""Every fault of a tensor at every place for tensors in a model: `check` names the fault and the place."""

from __future__ import annotations

import errno
import os
import re
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import onnx
import pytest
from onnx import AttributeProto, FunctionProto, ModelProto, NodeProto, SparseTensorProto, TensorProto, TypeProto, helper

from maxops.checker import Report, check
from maxops.errors import ModelError

pytestmark = pytest.mark.usefixtures("unsandboxed")

FLOAT, INT64 = TensorProto.FLOAT, TensorProto.INT64
IMPORTS = [helper.make_opsetid("", 18), helper.make_opsetid("own", 1)]


def tensor(*more: tuple[str, str], **entries: str) -> TensorProto:
    """Return a tensor of two floats, in the model or in the external file that these entries describe."""
    made = TensorProto(name="w", data_type=FLOAT, dims=[2])
    if not entries:
        made.raw_data = bytes(8)
    else:
        made.data_location = TensorProto.EXTERNAL
        for key, value in (*entries.items(), *more):
            made.external_data.add(key=key, value=value)
    return made


def of_sizes(*sizes: int) -> TensorProto:
    made = tensor()
    made.dims[:] = sizes
    return made


def segment() -> TensorProto:
    made = tensor()
    made.segment.SetInParent()
    return made


NUMBER = "must be a number of bytes with at most 19 decimal digits, got"
LENGTH = "of dtype float32 and dimensions (2,) must have 8 bytes of external data, got"
# Faulty tensors with their errors. The model's folder has w.bin of 8 bytes, a folder, and a link to the outside.
FAULTS: dict[str, tuple[TensorProto, str]] = {
    "negative size": (of_sizes(-1, 2), "has negative size -1"),
    "negative size behind": (of_sizes(2, -3), "has negative size -3"),
    "too many elements": (of_sizes(2**62, 4), "has too many elements"),
    "too little data": (of_sizes(3), "must have 12 bytes, got 8"),
    "a segment": (segment(), "is a segment of a tensor"),
    "unknown key": (tensor(location="w.bin", ofset="4"), "has unknown external data key 'ofset'; expected one of "),
    "key twice": (
        tensor(("offset", "4"), location="w.bin", offset="0"),
        "has external data key 'offset' more than once",
    ),
    "no location": (tensor(offset="0"), " has no location"),
    "outside": (tensor(location="../w.bin"), "is outside the model's folder"),
    "absolute": (tensor(location="/w.bin"), "is outside the model's folder"),
    "link that leads out": (tensor(location="out.bin"), "is a symlink that points outside the model's folder"),
    "a folder": (tensor(location="folder"), "is not a file"),
    "not there": (tensor(location="none.bin"), "the external data 'none.bin' is missing from the model's folder"),
    "no name": (tensor(location="w\0"), "cannot be read: embedded null byte"),
    "long name": (tensor(location="w" * 300), "cannot be read: File name too long"),
    "negative offset": (tensor(location="w.bin", offset="-1"), f"{NUMBER} '-1'"),
    "length in words": (tensor(location="w.bin", length="eight"), f"{NUMBER} 'eight'"),
    "other digits": (tensor(location="w.bin", offset="\u0663"), f"{NUMBER} '\u0663'"),
    "long number": (tensor(location="w.bin", length="0" * 20), f"{NUMBER} '0000"),
    "no end": (tensor(location="w.bin", offset="1"), "ends at byte 9, but the file has 8 bytes"),
    "length of 0": (tensor(location="w.bin", offset="8", length="0"), "ends at byte 16, but the file has 8 bytes"),
    "short length": (tensor(location="w.bin", length="7"), f"{LENGTH} 7"),
    "long length": (tensor(location="w.bin", length="9"), f"{LENGTH} 9"),
    "past the end": (tensor(location="w.bin", offset="1", length="8"), "ends at byte 9, but the file has 8 bytes"),
}
# Faults that only the files reveal.
OF_FILES = {
    "link that leads out",
    "a folder",
    "not there",
    "no name",
    "long name",
    "past the end",
    "no end",
    "length of 0",
}
# Valid tensors that are close to a fault.
RIGHT = {
    "here": tensor(),
    "whole file": tensor(location="w.bin", offset="0", length="8"),
    "long numbers": tensor(location="w.bin", offset="0" * 19, length="8".zfill(19)),
    "without numbers": tensor(location="w.bin"),
    "by another way": tensor(location="folder/../w.bin", length="8"),
}


def model(
    *nodes: NodeProto, initializers: Sequence[TensorProto] = (), functions: Sequence[FunctionProto] = ()
) -> ModelProto:
    x, y = helper.make_tensor_value_info("x", FLOAT, [2]), helper.make_tensor_value_info("y", FLOAT, [2])
    graph = helper.make_graph([*nodes, helper.make_node("Max", ["x"], ["y"])], "g", [x], [y], [*initializers])
    return helper.make_model(graph, opset_imports=IMPORTS, ir_version=10, functions=functions)


def in_branch(faulty: TensorProto) -> ModelProto:
    made = helper.make_tensor_value_info("w", FLOAT, None)
    branches = {
        name: helper.make_graph([], name, [], [made], [each])
        for name, each in (("then_branch", tensor()), ("else_branch", faulty))
    }
    condition = helper.make_node("Constant", [], ["c"], value=helper.make_tensor("c", TensorProto.BOOL, [], [True]))
    return model(condition, helper.make_node("If", ["c"], ["z"], **branches))


def in_function(faulty: TensorProto) -> ModelProto:
    body = [helper.make_node("Constant", [], ["w"], value=faulty), helper.make_node("Add", ["a", "w"], ["b"])]
    function = helper.make_function("own", "F", ["a"], ["b"], body, IMPORTS[:1])
    return model(helper.make_node("F", ["x"], ["z"], domain="own"), functions=(function,))


def sparse(faulty: TensorProto, part: str) -> SparseTensorProto:
    """Return a sparse tensor with this tensor as its values or its indices."""
    made = SparseTensorProto(dims=[2])
    made.values.CopyFrom(faulty if part == "values" else tensor())
    made.indices.CopyFrom(faulty)
    if part == "values":
        made.indices.CopyFrom(helper.make_tensor("", INT64, [2], [0, 1]))
    made.values.name = "w"
    return made


def in_sparse_initializer(faulty: TensorProto, part: str) -> ModelProto:
    made = model()
    made.graph.sparse_initializer.extend([sparse(tensor(), "values"), sparse(faulty, part)])
    made.graph.sparse_initializer[0].values.name = "v"
    return made


def in_sparse_attribute(faulty: TensorProto, part: str, *, listed: bool) -> ModelProto:
    node = helper.make_node("Own", ["x"], ["z"], domain="own")
    attribute = node.attribute.add(name="value")
    if listed:
        attribute.type = AttributeProto.SPARSE_TENSORS
        attribute.sparse_tensors.extend([sparse(tensor(), "values"), sparse(faulty, part)])
    else:
        attribute.type = AttributeProto.SPARSE_TENSOR
        attribute.sparse_tensor.CopyFrom(sparse(faulty, part))
    return model(node)


PLACES: dict[str, tuple[Callable[[TensorProto], ModelProto], str]] = {
    "initializer": (lambda faulty: model(initializers=(faulty,)), "initializer 'w'"),
    "second initializer": (
        lambda faulty: model(initializers=(TensorProto(name="v", data_type=FLOAT, raw_data=bytes(4)), faulty)),
        "initializer 'w'",
    ),
    "attribute": (
        lambda faulty: model(helper.make_node("Constant", [], ["z"], value=faulty)),
        "the tensor in attribute 'value'",
    ),
    "second attribute": (
        lambda faulty: model(helper.make_node("Own", ["x"], ["z"], domain="own", first=tensor(), second=faulty)),
        "the tensor in attribute 'second'",
    ),
    "list in an attribute": (
        lambda faulty: model(helper.make_node("Own", ["x"], ["z"], domain="own", values=[tensor(), faulty])),
        "the tensor in attribute 'values'",
    ),
    "branch": (in_branch, "initializer 'w'"),
    "function": (in_function, "the tensor in attribute 'value'"),
    **{
        f"sparse initializer, {part}": (
            partial(in_sparse_initializer, part=part),
            f"the {part} tensor of sparse initializer 'w'",
        )
        for part in ("values", "indices")
    },
    **{
        f"{'list in a sparse' if listed else 'sparse'} attribute, {part}": (
            partial(in_sparse_attribute, part=part, listed=listed),
            "the sparse tensor in attribute 'value'",
        )
        for part in ("values", "indices")
        for listed in (False, True)
    },
}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    place = tmp_path / "model"
    (place / "folder").mkdir(parents=True)
    for path in (place / "w.bin", tmp_path / "w.bin"):
        path.write_bytes(bytes(8))
    os.symlink(tmp_path / "w.bin", place / "out.bin")
    return place


def checked(made: ModelProto, folder: Path) -> Report:
    (folder / "m.onnx").write_bytes(made.SerializeToString())
    return check(folder / "m.onnx")


def broken(report: Report) -> list[str]:
    return [each.message for each in report.faults if each.verdict == "broken"]


# Each fault in two places, and each place with three or four faults, because one traversal reaches all places.
PAIRS = sorted(
    {(fault, [*PLACES][number * step % len(PLACES)]) for number, fault in enumerate(FAULTS) for step in (1, 5)}
)


@pytest.mark.parametrize(("fault", "place"), PAIRS)
def test_each_fault_and_each_place(fault: str, place: str, folder: Path) -> None:
    faulty, says = FAULTS[fault]
    make, where = PLACES[place]
    report = checked(make(faulty), folder)
    texts = [text for text in broken(report) if says in text]
    assert len(texts) == 1, [each.message for each in report.faults]
    assert fault == "not there" or where in texts[0]
    assert report.broken


@pytest.mark.parametrize("place", [place for place in PLACES if "indices" not in place])  # indices are integers
@pytest.mark.parametrize("name", RIGHT)
def test_what_is_right_next_to_a_fault(name: str, place: str, folder: Path) -> None:
    assert broken(checked(PLACES[place][0](RIGHT[name]), folder)) == []


@pytest.mark.parametrize("name", [*FAULTS, *RIGHT])
def test_without_a_folder_files_are_not_looked_at(name: str) -> None:
    faulty, says = FAULTS.get(name) or (RIGHT[name], "")
    texts = broken(check(model(initializers=(faulty,))))
    if name in FAULTS.keys() - OF_FILES:
        assert len([text for text in texts if says in text]) == 1
    else:
        assert not texts


def test_a_file_that_must_not_be_looked_at_is_an_error(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made, stat = model(initializers=(RIGHT["whole file"],)), Path.stat

    def refuses(path: Path, **options: bool) -> os.stat_result:
        if path.name == "w.bin":
            raise PermissionError(errno.EACCES, "Permission denied", str(path))
        return stat(path, **options)

    monkeypatch.setattr(Path, "stat", refuses)
    with pytest.raises(ModelError, match="^" + re.escape(f"{folder / 'w.bin'} cannot be accessed: Permission denied")):
        checked(made, folder)


def typed(form: str, sizes: Sequence[int | str]) -> TypeProto:
    """Return the type of a tensor with these sizes, or of a container of such tensors."""
    make = helper.make_sparse_tensor_type_proto if form == "sparse" else helper.make_tensor_type_proto
    made = make(FLOAT, sizes)
    if form == "map":
        return helper.make_map_type_proto(INT64, made)
    wraps = {"sequence": helper.make_sequence_type_proto, "optional": helper.make_optional_type_proto}
    return wraps[form](made) if form in wraps else made


@pytest.mark.parametrize("form", ["tensor", "sparse", "sequence", "optional", "map"])
@pytest.mark.parametrize("place", ["input", "output", "value_info"])
@pytest.mark.parametrize(
    ("sizes", "says"),
    [
        ((-1, 2), ""),
        ((-1, -2), "has negative size -2"),
        ((2, "n", -3), "has negative size -3"),
        ((2**62, 2), f"has too many elements: its sizes are ({2**62}, 2)"),
        ((2**62, "n", 2), f"has too many elements: its sizes are ({2**62}, 2)"),
        ((2**62 + 1,), f"has too many elements: its sizes are ({2**62 + 1},)"),
        ((2**62, 1, "n"), ""),
        ((2**62, 0, 2), ""),
        (("n", 0), ""),
    ],
    ids=str,
)
def test_sizes_in_each_type(sizes: Sequence[int | str], says: str, place: str, form: str) -> None:
    """Test values that no node reads and that are not first in their list."""
    made = model(helper.make_node("Own", ["x"], ["z"], domain="own"))
    name = "given" if place == "input" else "z"
    getattr(made.graph, place).append(helper.make_value_info(name, typed(form, sizes)))
    assert broken(check(made)) == [f"{name!r} {says}"] * bool(says)


@pytest.mark.parametrize(
    ("kind", "size", "data", "said"),
    [
        ("FLOAT8E5M2", 3, {"raw_data": b"ab"}, "must have 3 bytes, got 2"),
        ("INT4", 3, {"raw_data": b"ab"}, ""),
        ("INT4", 2, {"raw_data": b"ab"}, "must have 1 bytes, got 2"),
        ("UINT2", 5, {"int32_data": [255, 3]}, ""),
        ("UINT2", 5, {"int32_data": [3]}, "must have 2 values in int32_data, got 1"),
        ("UINT2", 5, {"int32_data": [256, 3]}, "values stored for uint2 must be between 0 and 255"),
        ("FLOAT6E2M3", 5, {"raw_data": bytes(4)}, ""),
        ("FLOAT6E2M3", 5, {"int32_data": [1, 2, 3, 4, 63]}, ""),
        ("FLOAT6E2M3", 5, {"int32_data": [1, 2, 3, 4]}, "must have 5 values in int32_data, got 4"),
        ("FLOAT6E2M3", 1, {"int32_data": [64]}, "values stored for float6e2m3 must be between 0 and 63"),
        ("COMPLEX64", 1, {"float_data": [1, 2]}, ""),
        ("COMPLEX64", 1, {"float_data": [1]}, "must have 2 values in float_data, got 1"),
        ("STRING", 2, {"string_data": [b"a", b""]}, ""),
        ("STRING", 2, {"string_data": [b"a"]}, "must have 2 values in string_data, got 1"),
        ("STRING", 1, {"raw_data": b"a"}, "must have 1 values in string_data, got 0"),
    ],
)
def test_data_of_types_that_no_max_takes(kind: str, size: int, data: dict[str, Any], said: str) -> None:
    made = TensorProto(name="w", data_type=TensorProto.DataType.Value(kind), dims=[size], **data)
    faults = [each.message for each in check(model(initializers=[made])).faults]
    assert faults == [] if not said else said in faults[0]


def test_external_data_of_types_that_no_max_takes(tmp_path: Path) -> None:
    (tmp_path / "w.bin").write_bytes(bytes(8))
    made = tensor(location="w.bin", length="2")
    for kind, size, expected in (
        (TensorProto.INT4, 3, ""),
        (
            TensorProto.FLOAT8E5M2,
            3,
            "of dtype float8e5m2 and dimensions (3,) must have 3 bytes of external data, got 2",
        ),
    ):
        made.data_type, made.dims[:] = kind, [size]
        onnx.save(model(initializers=[made]), tmp_path / "m.onnx")
        faults = [each.message for each in check(tmp_path / "m.onnx").faults]
        assert faults == [] if not expected else expected in faults[0]
