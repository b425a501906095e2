"""OpenVINO IRs without OpenVINO: the examples of its specification, files that it writes, and every kind of error."""

from __future__ import annotations

import re
import warnings
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

import maxops as mo
from helpers.bits import Array, assert_same_bits, mixed
from helpers.ir_models import NOT_AN_IR, layer, net, reduce_net, saved, segment_net
from maxops import errors, reference
from maxops.cli.app import app
from maxops.dtypes import FLOAT32, INT16, INT32
from maxops.openvino import IRWarning, calls, load
from maxops.openvino.calls import DTYPES

IDS = np.array([0, 0, 2, 3, 3])


@pytest.mark.parametrize(("count", "out"), [(2, (2,)), (8, (8,))])
def test_the_documents_first_examples(tmp_path: Path, count: int, out: tuple[int, ...]) -> None:
    path = saved(tmp_path, segment_net('empty_segment_value="ZERO"', (5,), count=True, out=out))
    data = np.array([1, -2, -3, 4, 5], np.float32)
    with pytest.warns(IRWarning) as expected_message:
        model = load(path)
    assert [("empty_segment_value" in str(w.message), "<dim>0</dim>" in str(w.message)) for w in expected_message] == [
        (True, False),
        (False, True),
    ]
    got = model.run({"data": data, "ids": IDS, "count": np.array(count)})["y"]
    assert_same_bits(got, mo.segment_max(data, IDS, count, fill_mode="ZERO"))


def test_the_documents_third_example(tmp_path: Path) -> None:
    path = saved(tmp_path, segment_net('empty_segment_value="LOWEST"', (3, 4), count=False, out=(2, 4), kind="i32"))
    data = mixed(INT32, (3, 4), 1)
    with pytest.warns(IRWarning, match="empty_segment_value"):
        model = load(path)
    ids = np.array([0, 1, 1])
    assert_same_bits(model.run({"data": data, "ids": ids})["y"], mo.segment_max(data, ids, fill_mode="LOWEST"))


def test_the_attribute_as_openvino_writes_it(tmp_path: Path) -> None:
    path = saved(tmp_path, segment_net('fill_mode="lowest"', (5,), count=False, out=(-1,)))
    data = np.array([1, -2, -3, 4, 5], np.float32)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        got = load(path).run({"data": data, "ids": IDS})["y"]
    assert_same_bits(got, mo.segment_max(data, IDS, fill_mode="LOWEST"))


@pytest.mark.parametrize(
    ("data", "message"),
    [
        ("", "got neither"),
        ('fill_mode="zero" empty_segment_value="LOWEST"', "fill_mode=.* and empty_segment_value"),
        ('fill_mode="none"', "'NONE'"),
        ('fill_mode="zero" colour="red"', "unknown attribute 'colour'"),
    ],
)
def test_the_fill_mode_is_never_chosen_silently(tmp_path: Path, data: str, message: str) -> None:
    path = saved(tmp_path, segment_net(data, (5,), count=False, out=(4,)))
    text = rf"layer 'top' \(SegmentMax.*{message}.*SegmentMax-16.fill_mode"
    with pytest.raises(errors.AttributeValueError, match=text):
        load(path)


def test_segment_max_of_bool_is_refused(tmp_path: Path) -> None:
    """Test that SegmentMax, whose document lists only numeric types, rejects bool."""
    model = load(saved(tmp_path, segment_net('fill_mode="zero"', (3,), False, (2,), "boolean")))
    with pytest.raises(errors.DTypeError, match=r"SegmentMax-16 .*bool.* \[OpenVINO.SegmentMax-16.T\]"):
        model.run({"data": np.ones(3, np.bool_), "ids": np.array([0, 0, 1])})


@pytest.mark.parametrize(
    ("ids", "message"), [([0, 1, 0, 2, 3], "must be non-decreasing"), ([0, 0, 1, 2, -1], "must not be negative")]
)
def test_ids_are_checked_where_a_model_runs(ids: list[int], message: str, tmp_path: Path) -> None:
    path = saved(tmp_path, segment_net('fill_mode="zero"', (5,), count=False, out=(4,)))
    with pytest.raises(errors.SegmentIdsError, match=rf"layer 'top' .*{message}.*SegmentMax-16\.ids") as caught:
        load(path).run({"data": np.ones(5, np.float32), "ids": np.array(ids)})
    assert str(caught.value).startswith(f"{path}: ")


@pytest.mark.parametrize("count", [0, 1])
@pytest.mark.parametrize(("kind", "size"), [("f32", 4), ("boolean", 1), ("bf16", 2)])
def test_axes_are_integers_even_if_there_are_none(kind: str, size: int, count: int, tmp_path: Path) -> None:
    text = reduce_net(size * count, shape=str(count)).replace('element_type="i64"', f'element_type="{kind}"')
    model = load(saved(tmp_path, text, bytes(size * count)))
    with pytest.raises(
        errors.AxesError, match=rf"axes must be a scalar or a 1-D array of integers, got b?\w+ \({count},\)"
    ):
        model.run({"x": np.ones((2, 3), np.float32), "b": np.ones(3, np.float32)})


@pytest.mark.parametrize("reverse", [False, True])
def test_inputs_and_outputs_have_the_order_of_the_file(reverse: bool, tmp_path: Path) -> None:
    layers = [
        layer(0, "x", "Parameter", 'shape="2" element_type="f32"', outputs=[(0, (2,))]),
        layer(1, "b", "Parameter", 'shape="2" element_type="f32"', outputs=[(0, (2,))]),
        layer(2, "m", "Maximum", "", [(0, (2,)), (1, (2,))], [(2, (2,))]),
        layer(3, "y", "Result", inputs=[(0, (2,))]),
        layer(4, "z", "Result", inputs=[(0, (2,))]),
    ]
    edges = [(0, 0, 2, 0), (1, 0, 2, 1), (2, 2, 3, 0), (0, 0, 4, 0)]
    made = load(saved(tmp_path, net(layers[::-1] if reverse else layers, edges)))
    assert [value.name for value in made.inputs] == ["x", "b"][:: -1 if reverse else 1]
    assert [value.name for value in made.outputs] == ["y", "z"][:: -1 if reverse else 1]


@pytest.mark.parametrize("kind", ["Maximum", "Result"])
def test_a_constant_gives_its_type_to_what_reads_it(kind: str, tmp_path: Path) -> None:
    layers = [
        layer(0, "c", "Const", 'element_type="i16" offset="0" size="4" shape="2"', outputs=[(0, (2,))]),
        layer(1, "x", "Parameter", 'shape="2" element_type="i16"', outputs=[(0, (2,))]),
        layer(2, "m", "Maximum", "", [(0, (2,)), (1, (2,))], [(2, (2,))]),
        layer(3, "y", "Result", inputs=[(0, (2,))]),
    ]
    start = (2, 2) if kind == "Maximum" else (0, 0)
    made = load(
        saved(
            tmp_path, net(layers, [(0, 0, 2, 0), (1, 0, 2, 1), (*start, 3, 0)]), np.array([7, -7], np.int16).tobytes()
        )
    )
    assert made.outputs[0].dtype is INT16
    got = made.run({"x": np.zeros(2, np.int16)})["y"]
    assert_same_bits(got, np.array([7, 0 if kind == "Maximum" else -7], np.int16))


def constant_net(kind: str, shape: tuple[int, ...], size: int) -> str:
    """Return a model that returns a constant."""
    data = f'element_type="{kind}" offset="0" size="{size}" shape="{",".join(map(str, shape))}"'
    layers = [layer(0, "c", "Const", data, outputs=[(0, shape)]), layer(1, "y", "Result", inputs=[(0, shape)])]
    return net(layers, [(0, 0, 1, 0)])


@pytest.mark.parametrize("held", [b"", b"\0\1", b"\1\1\0"])
def test_constants_are_kept_as_they_are_read(held: bytes, tmp_path: Path) -> None:
    model = load(saved(tmp_path, constant_net("boolean", (len(held),), len(held)), held))
    (constant,) = model.constants.values()
    assert not constant.flags.writeable
    assert_same_bits(model.run({})["y"], np.frombuffer(held, np.bool_))


@pytest.mark.parametrize(
    ("kind", "shape", "held", "message"),
    [
        ("boolean", (3,), b"\0\1\2", "contains a byte other than 0 or 1"),
        ("boolean", (1,), b"\xff", "contains a byte other than 0 or 1"),
        ("i8", (1,) * 70, b"\1", "NumPy does not support the shape"),
    ],
)
def test_a_constant_that_no_array_holds(
    kind: str, shape: tuple[int, ...], held: bytes, message: str, tmp_path: Path
) -> None:
    path = saved(tmp_path, constant_net(kind, shape, len(held)), held)
    with pytest.raises(errors.ModelError, match=rf"{re.escape(str(path))}: layer 'c' .*{message}"):
        load(path)


def test_a_layer_of_a_version_without_it_is_not_run(tmp_path: Path) -> None:
    text = segment_net('fill_mode="zero"', (5,), count=False, out=(4,)).replace(
        '"SegmentMax"', '"SegmentMax" version="{}"'
    )
    assert load(saved(tmp_path, text.format("opset16"))).outputs[0].name == "y"
    with pytest.raises(errors.ModelError, match=r"the version of SegmentMax must be opset16, got 'opset15'$"):
        load(saved(tmp_path, text.format("opset15")))


def test_a_warning_is_of_the_line_that_loads(tmp_path: Path) -> None:
    path = saved(tmp_path, segment_net('empty_segment_value="ZERO"', (5,), count=True, out=(4,)))
    with pytest.warns(IRWarning) as caught:
        load(path)
    assert [each.filename for each in caught] == [__file__, __file__]


def test_maximum_reduce_max_and_weights(tmp_path: Path) -> None:
    path = saved(tmp_path, reduce_net(8, offset=8), np.array([7, -1]).tobytes())
    x, b = mixed(FLOAT32, (5, 3), 2), mixed(FLOAT32, (3,), 3)
    got = load(path).run({"x": x, "b": b})["y"]
    assert_same_bits(got, mo.reduce_max(mo.maximum(x, b), axes=(1,)))


def test_the_command(tmp_path: Path) -> None:
    path = saved(tmp_path, segment_net('empty_segment_value="ZERO"', (5,), count=False, out=(4,)))
    np.save(tmp_path / "data.npy", np.array([1, -2, -3, 4, 5], np.float32))
    np.save(tmp_path / "ids.npy", IDS)
    words = ["--input", f"data={tmp_path / 'data.npy'}", "--input", f"ids={tmp_path / 'ids.npy'}"]
    result = CliRunner().invoke(app, ["run", str(path), *words])
    assert result.exit_code == 0, result.output
    assert "1.0, 0.0, -3.0, 5.0" in result.stdout
    (line,) = result.stderr.splitlines()
    assert line.startswith(
        f"maxops: warning: {path}: layer 'top' (SegmentMax, id 3): the attribute empty_segment_value"
    )


# -------------------------------------------------------------------------------------------------- bad input

GOOD = reduce_net(8)
EDGE = '<edge from-layer="1" from-port="0" to-layer="3" to-port="1"/>'
BACK = '<edge from-layer="4" from-port="2" to-layer="3" to-port="1"/>'


def beside_good(kind: str, data: str = "", inputs: int = 0, outputs: int = 0) -> str:
    """Return a model with an additional layer z, which is not connected."""
    more = layer(9, "z", kind, data, [(n, ()) for n in range(inputs)], [(n + 5, ()) for n in range(outputs)])
    return GOOD.replace("<layers>", f"<layers>{more}")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        *NOT_AN_IR,
        ('<net version="11"/>', "the IR has no layers"),
        (GOOD.replace('id="1" name="b"', 'id="0" name="b"'), "'0' appears twice"),
        (GOOD.replace('type="Maximum"', 'type="Add"'), "types: Parameter, Const"),
        (GOOD.replace('type="Maximum"', ""), "must have an id and a type"),
        (GOOD.replace('name="b"', 'name="x"'), "distinct names"),
        (GOOD.replace('from-layer="1"', 'from-layer="77"'), "layer '77', which does not exist"),
        (GOOD.replace('to-port="1"', 'to-port="9"', 1), "not in the inputs of layer 'm'"),
        (GOOD.replace('to-layer="3" to-port="1"', 'to-layer="3" to-port="0"'), "that already has an edge"),
        (GOOD.replace('<edge from-layer="1" from-port="0" to-layer="3" to-port="1"/>', ""), "input port 1 has no edge"),
        (
            GOOD.replace('from-layer="1" from-port="0" to-layer="3"', 'from-layer="4" from-port="2" to-layer="3"'),
            "has a cycle",
        ),
        (GOOD.replace('type="Result"', 'type="Parameter"'), "expected 0 input ports, got 1"),
        (GOOD.replace('shape="3"', 'shape="-3"'), "got '-3'"),
        (GOOD.replace('shape="3"', 'shape="9999999999999999999,9999999999999999999"'), "too many elements"),
        (GOOD.replace('shape="3" element_type="f32"', 'shape="3"'), "the attribute 'element_type' is missing"),
        (GOOD.replace('element_type="f32"', 'element_type="u4"'), "unsupported type 'u4'"),
        (GOOD.replace('auto_broadcast="numpy"', 'auto_broadcast="pdpd"'), "auto_broadcast must be .*, got 'pdpd'"),
        (GOOD.replace('keep_dims="true"', 'keep_dims="perhaps"'), "keep_dims must be true or false, got 'perhaps'"),
        (reduce_net(4), "int64 \\(1,\\) requires 8 bytes, got 4"),
        (reduce_net(8, offset=1), "bytes 1 to 9"),
        (reduce_net(8, offset=2**62 - 8), r"extend past the end of .* \(8 bytes\)$"),
        (reduce_net(8).replace('size="8"', 'size="-8"'), "got '-8'"),
        (reduce_net(8, shape="?"), "must have a fixed shape"),
        (GOOD.replace('shape="3"', 'shape="3]"'), "got '3\\]'"),
        (
            GOOD.replace('<data auto_broadcast="numpy"/>', '<data auto_broadcast="numpy"/><data/>'),
            "more than one <data>",
        ),
        (
            GOOD.replace('<data shape="3" element_type="f32"/>', ""),
            "'element_type' is missing; attributes found: none$",
        ),
        (
            GOOD.replace('shape="3" element_type="f32"', 'shape="3" some="x"'),
            "'element_type' is missing; attributes found: shape, some$",
        ),
        (beside_good("Parameter", 'shape="" element_type="f32"'), "'z' .* expected 1 output port, got 0$"),
        (beside_good("Parameter", 'shape="" element_type="f32"', outputs=2), "'z' .* expected 1 output port, got 2$"),
        (beside_good("Result"), "'z' .* expected 1 input port, got 0$"),
        (beside_good("SegmentMax", inputs=1, outputs=1), "'z' .* expected 2 or 3 input ports, got 1$"),
        (
            GOOD.replace('type="Maximum"', 'type="Maximum" version="opset17"'),
            "Maximum must be opset1 to opset16, got 'opset17'$",
        ),
        (GOOD.replace('type="Result"', 'type="Result" version="maxops"'), "version of Result must be .*, got 'maxops'"),
    ],
)
def test_a_broken_file_is_one_error(tmp_path: Path, text: str, message: str) -> None:
    path = saved(tmp_path, text, np.array([-1]).tobytes())
    with pytest.raises(errors.ModelError, match=message) as caught:
        load(path)
    assert str(caught.value).startswith(str(path))
    assert "\n" not in str(caught.value)


def test_missing_files(tmp_path: Path) -> None:
    with pytest.raises(errors.ModelError, match="cannot be read: No such file"):
        load(tmp_path / "none.xml")
    with pytest.raises(errors.ModelError, match=r"the weights .*model\.bin cannot be read"):
        load(saved(tmp_path, GOOD))


def test_every_mutation_is_a_model_or_one_error(tmp_path: Path) -> None:
    """Test that random changes of bytes result in a model or an error of maxops."""
    random = np.random.default_rng(6)
    texts = [GOOD.encode(), segment_net('fill_mode="zero"', (5,), count=True, out=(4,)).encode()]
    seen = {"model": 0, "error": 0}
    for turn in range(3000):
        data = bytearray(texts[turn % 2])
        for _ in range(random.integers(1, 3)):
            at, kind = int(random.integers(len(data))), int(random.integers(3))
            if kind == 0:
                data[at] = int(random.integers(256))
            elif kind == 1:
                del data[at : at + int(random.integers(1, 60))]
            else:
                data[at:at] = data[at : at + int(random.integers(1, 60))]
        path = saved(tmp_path, bytes(data), np.array([-1]).tobytes())
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", IRWarning)
                load(path)
            seen["model"] += 1
        except errors.MaxopsError:
            seen["error"] += 1
    assert min(seen.values()) > 10, seen


# ---------------------------------------------------------------------------------------- OpenVINO's own files


def test_what_openvino_serialises(tmp_path: Path) -> None:
    openvino = pytest.importorskip("openvino")
    opset = openvino.opset16
    x, ids = opset.parameter([-1, 3], np.float32, name="x"), opset.parameter([-1], np.int64, name="ids")
    top = opset.segment_max(opset.maximum(x, opset.constant(np.array([0.5], np.float32))), ids, fill_mode="LOWEST")
    model = openvino.Model([opset.reduce_max(top, opset.constant(np.array([1])), keep_dims=False)], [x, ids], "m")
    openvino.serialize(model, str(tmp_path / "own.xml"))
    data: Array = np.array([[1, -2, 3], [0, 0, 0], [-7, 8, 9]], np.float32)
    loaded = load(tmp_path / "own.xml")
    (got,) = loaded.run({"x": data, "ids": np.array([0, 0, 2])}).values()
    assert_same_bits(got, np.array([3, np.finfo(np.float32).min, 9], np.float32))


# For each example: the rows, num_segments if given, the fill mode, and the ids.
EXAMPLES: tuple[tuple[tuple[int, ...], int | None, str, Array], ...] = (
    ((5,), 2, "ZERO", IDS),
    ((5,), 8, "ZERO", IDS),
    ((3, 4), None, "LOWEST", np.array([0, 1, 1])),
)


@pytest.mark.parametrize("writer", ["serialize", "save_model"])
@pytest.mark.parametrize("number", [1, 2, 3], ids="example-{}".format)
@pytest.mark.parametrize("kind", [kind for kind in DTYPES if kind != "boolean"])
def test_the_documents_examples_as_openvino_writes_them(tmp_path: Path, kind: str, number: int, writer: str) -> None:
    """Test every type that SegmentMax supports, with num_segments as an input and as a constant."""
    openvino = pytest.importorskip("openvino")
    opset, path = openvino.opset16, tmp_path / "own.xml"
    rows, count, mode, segment_ids = EXAMPLES[number - 1]
    x = opset.parameter(list(rows), getattr(openvino.Type, kind), name="x")
    ids = opset.parameter(list(rows[:1]), np.int32 if count else np.int64, name="ids")
    inputs = {"x": mixed(DTYPES[kind], rows, number), "ids": segment_ids.astype(np.int32 if count else np.int64)}
    parameters, tops = (
        [x, ids],
        [opset.segment_max(x, ids, *([opset.constant(count)] if count else []), fill_mode=mode)],
    )
    if count:
        parameters.append(opset.parameter([], np.int64, name="count"))
        inputs["count"] = np.array(count)
        tops.append(opset.segment_max(x, ids, parameters[-1], fill_mode=mode))
    getattr(openvino, writer)(openvino.Model(tops, parameters, "example"), str(path))
    expected = reference.segment_max(inputs["x"], segment_ids, count or 2, mode)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        got = load(path).run(inputs)
    assert len(got) == len(tops)
    for array in got.values():
        assert_same_bits(array, expected)


def test_names_of_types_are_openvinos() -> None:
    openvino = pytest.importorskip("openvino")
    for name in DTYPES:
        assert getattr(openvino.Type, name).get_type_name() == name
    assert {*calls.OTHER_TYPES} == {
        name
        for name, each in vars(openvino.Type).items()
        if isinstance(each, openvino.Type) and name not in (*DTYPES, *calls.OPEN_TYPES)
    }


def test_what_ports_call_types() -> None:
    """Test that the type names in OpenVINO's documents mean the same as its own names."""
    named = {
        "FP16": "f16", "FP32": "f32", "FP64": "f64", "BF16": "bf16", "BOOL": "boolean", "I64": "i64", "U8": "u8",
        "U1": "u1", "BIN": "u1", "bin": "u1", "NF4": "nf4", "STRING": "string", "": "dynamic",
        "UNSPECIFIED": "undefined",
    }  # fmt: skip
    for text, name in named.items():
        assert calls.PORT_TYPES[text] == calls.PORT_TYPES[name] == calls.ELEMENT_TYPES[name]
    assert {name for name, kind in calls.PORT_TYPES.items() if kind is None} == {
        "", "UNSPECIFIED", "dynamic", "undefined",
    }  # fmt: skip
    assert calls.ELEMENT_TYPES["u1"] == "u1"
