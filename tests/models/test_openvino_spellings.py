"""Spellings of an IR: maxops accepts exactly the spellings that OpenVINO accepts, with the same meaning."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from contextlib import suppress
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from helpers.ir_models import net, saved
from maxops.checker import check
from maxops.errors import MaxopsError
from maxops.model import Model
from maxops.openvino import IRWarning, load
from maxops.openvino.calls import DTYPES, NAMES, OTHER_TYPES, PORT_NAMES
from maxops.plan import Array
from maxops.sizes import Dims

ov = pytest.importorskip("openvino")
CORE = ov.Core()


def _port(number: int | str, dims: Sequence[object], precision: str = "FP32") -> str:
    return f'<port id="{number}" precision="{precision}">{"".join(f"<dim>{size}</dim>" for size in dims)}</port>'


def _layer(number: object, name: str, kind: str, data: str, inputs: Sequence[str], outputs: Sequence[str]) -> str:
    version = "opset16" if kind.casefold() == "segmentmax" else "opset1"
    sides = "".join(
        f"<{side}>{''.join(ports)}</{side}>" for side, ports in (("input", inputs), ("output", outputs)) if ports
    )
    return f'<layer id="{number}" name="{name}" type="{kind}" version="{version}">{data}{sides}</layer>'


def _parameter(number: int, name: str, dims: Sequence[int], kind: str = "f32", precision: str = "FP32") -> str:
    data = f'<data shape="{",".join(map(str, dims))}" element_type="{kind}"/>'
    return _layer(number, name, "Parameter", data, [], [_port(0, dims, precision)])


def _result(number: int, dims: Sequence[int]) -> str:
    return _layer(number, "y", "Result", "", [_port(0, dims)], [])


def _named(text: str) -> str:
    return text.replace("<net ", '<net name="n" ')


def _one(data: str, dims: Sequence[object] = (), precision: str = "UNSPECIFIED", kind: str = "Parameter") -> str:
    """Return a model that returns its input, with given attributes and port."""
    parameter = _layer(0, "a", kind, data, [], [_port(0, dims, precision)])
    return _named(net([parameter, _result(1, ())], [(0, 0, 1, 0)]))


def _maximum(data: str, second: Sequence[int], kind: str = "Maximum") -> str:
    maximum = _layer(2, "m", kind, data, [_port(0, (2, 3)), _port(1, second)], [_port(2, (2, 3))])
    made = [_parameter(0, "a", (2, 3)), _parameter(1, "b", second), maximum, _result(3, (2, 3))]
    return _named(net(made, [(0, 0, 2, 0), (1, 0, 2, 1), (2, 2, 3, 0)]))


CONST = {"element_type": "i64", "offset": "0", "size": "8", "shape": "1"}


def _reduce(
    data: str,
    const: dict[str, str] = CONST,
    dims: Sequence[int] = (1,),
    precision: str = "I64",
    kind: str = "ReduceMax",
    out: Sequence[int] = (-1, -1),
) -> str:
    written = " ".join(f'{name}="{value}"' for name, value in const.items())
    made = [
        _parameter(0, "a", (2, 3)),
        _layer(1, "axes", "Const", f"<data {written}/>", [], [_port(0, dims, precision)]),
        _layer(2, "m", kind, data, [_port(0, (2, 3)), _port(1, dims, precision)], [_port(2, out)]),
        _result(3, out),
    ]
    return _named(net(made, [(0, 0, 2, 0), (1, 0, 2, 1), (2, 2, 3, 0)]))


def _segment(data: str, kind: str = "SegmentMax") -> str:
    ports = [_port(0, (4, 2)), _port(1, (4,), "I64"), _port(2, (), "I64")]
    made = [
        _parameter(0, "a", (4, 2)),
        _parameter(1, "ids", (4,), "i64", "I64"),
        _parameter(2, "count", (), "i64", "I64"),
        _layer(3, "m", kind, data, ports, [_port(3, (-1, 2))]),
        _result(4, (-1, 2)),
    ]
    return _named(net(made, [(0, 0, 3, 0), (1, 0, 3, 1), (2, 0, 3, 2), (3, 3, 4, 0)]))


def _data(name: str, value: str | None) -> str:
    return "" if value is None else f'<data {name}="{value}"/>'


class _Readings:
    """The results of OpenVINO, load() and check() for a file: a model or None, and the findings."""

    def __init__(self, folder: Path, text: str, weights: bytes = b"") -> None:
        path = saved(folder, text, weights)
        self.theirs: Any = None
        self.ours: Model | None = None
        self.error = ""
        with suppress(RuntimeError):  # OpenVINO rejects the file
            self.theirs = CORE.read_model(str(path))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", IRWarning)
            try:
                self.ours = load(path)
            except MaxopsError as error:
                self.error = str(error)
            self.report = check(path)
        self.broken = [each.message for each in self.report.findings if each.verdict == "broken"]

    def operator(self, name: str) -> Any:
        return next(node for node in self.theirs.get_ops() if node.get_friendly_name() == name)

    def run(self, **inputs: Array) -> Array | str:
        assert self.ours is not None, self.error
        try:
            result: Array = next(iter(self.ours.run(inputs).values()))
        except MaxopsError as error:
            return str(error)
        return result


A23 = np.arange(6, dtype=np.float32).reshape(2, 3)


# ---------------------------------------------------------------------------------------------------- attributes


def _letters(*names: str) -> list[str]:
    """Return each name in lower, upper and mixed case."""
    return list(dict.fromkeys(way for name in names for way in (name, name.upper(), name.title(), name.swapcase())))


@pytest.mark.parametrize(
    "value",
    [
        None,
        *_letters("numpy", "none", "explicit", "pdpd", "bidirectional"),
        "",
        " numpy",
        "numpy ",
        "1",
        "nump",
        "nonee",
    ],
)
def test_auto_broadcast(value: str | None, tmp_path: Path) -> None:
    """Test equal shapes and shapes that broadcast."""
    known = _Readings(tmp_path, _maximum(_data("auto_broadcast", value), (2, 3)))
    for found, second in (
        (known, A23[::-1]),
        (_Readings(tmp_path, _maximum(_data("auto_broadcast", value), (3,))), A23[1]),
    ):
        if known.theirs is None:
            assert found.ours is None
            assert found.broken
            continue
        assert not found.broken
        if known.operator("m").get_attributes()["auto_broadcast"] == "pdpd":
            assert "'pdpd'" in found.error
            continue
        made = found.run(a=A23, b=second)
        if found.theirs is None:
            assert "equal shapes with auto_broadcast 'none'" in str(made)
        else:
            assert isinstance(made, np.ndarray)
            assert made.shape == (2, 3)


# OpenVINO silently reads any other text as false; maxops raises an error.
NO_FLAGS = ["yes", "no", "on", "t", "F", "Y", "2", "-1", "01", "1.0", "", " true", "true ", "truetrue"]


@pytest.mark.parametrize("value", [None, *_letters("true", "false"), "tRUE", "1", "0", *NO_FLAGS])
def test_keep_dims(value: str | None, tmp_path: Path) -> None:
    out = (2, 1) if value is not None and value.lower() in ("true", "1") else (2,)
    found = _Readings(tmp_path, _reduce(_data("keep_dims", value), out=out), np.array([1], np.int64).tobytes())
    keeps = found.operator("m").get_attributes()["keep_dims"]
    if value in NO_FLAGS:
        assert not keeps
        assert f"keep_dims must be true or false, got {value.lower()!r}" in found.error
        return
    made = found.run(a=A23)
    assert isinstance(made, np.ndarray)
    assert made.shape == tuple(found.operator("m").get_output_shape(0)) == ((2, 1) if keeps else (2,))
    assert not found.broken


@pytest.mark.parametrize("name", ["fill_mode", "empty_segment_value"])
@pytest.mark.parametrize(
    "value", [None, *_letters("zero", "lowest"), "", " zero", "zero ", "min", "0", "none", "zer", "zerolowest"]
)
def test_fill_mode(name: str, value: str | None, tmp_path: Path) -> None:
    """Test both names of the attribute: OpenVINO ignores one and silently uses ZERO, but maxops raises an error."""
    theirs = _Readings(tmp_path, _segment(_data("fill_mode", value)))
    found = theirs if name == "fill_mode" else _Readings(tmp_path, _segment(_data(name, value)))
    if value is None or theirs.theirs is None:
        assert found.ours is None
        assert found.broken
        return
    mode = theirs.operator("m").get_attributes()["fill_mode"]
    made = found.run(a=-np.ones((4, 2), np.float32), ids=np.array([0, 0, 2, 2]), count=np.array(3, np.int64))
    assert isinstance(made, np.ndarray)
    assert made[1, 0] == (0 if mode == "zero" else np.finfo(np.float32).min)
    assert not found.broken


@pytest.mark.parametrize("second", ["zero", "ZERO", "lowest"])
@pytest.mark.parametrize("first", ["zero", "lowest", "Lowest"])
def test_fill_mode_under_both_names(first: str, second: str, tmp_path: Path) -> None:
    found = _Readings(tmp_path, _segment(f'<data fill_mode="{first}" empty_segment_value="{second}"/>'))
    assert (found.ours is None) is (first.lower() != second.lower())
    assert bool(found.broken) is (first.lower() != second.lower())


# ---------------------------------------------------------------------------------------------------- types

STRANGERS = ["bool", "float", "double", "half", "int32", "fp32", "f80", "i2", "u5", "UNSPECIFIED", "", " f32", "f32 "]
TYPES = list(dict.fromkeys([*_letters(*NAMES.values(), *OTHER_TYPES, "dynamic", "undefined"), *STRANGERS]))


@pytest.mark.parametrize("name", TYPES)
def test_element_types(name: str, tmp_path: Path) -> None:
    found = _Readings(tmp_path, _one(f'<data shape="2" element_type="{name}"/>', (2,)))
    assert bool(found.broken) is (found.theirs is None)
    theirs = None if found.theirs is None else found.operator("a").get_output_element_type(0).get_type_name()
    if theirs not in DTYPES:
        assert found.ours is None
    else:
        assert found.ours is not None
        assert found.ours.inputs[0].dtype is DTYPES[theirs]


@pytest.mark.parametrize("name", TYPES)
def test_types_of_constants_and_of_other_layers(name: str, tmp_path: Path) -> None:
    """Test a Const's type, a Parameter's type, and type attributes of other layers."""
    found = _Readings(
        tmp_path, _reduce('<data keep_dims="true"/>', CONST | {"element_type": name}, (1,), "UNSPECIFIED"), bytes(8)
    )
    wide = [name for name, dtype in DTYPES.items() if dtype.kind in ("int", "uint")]
    if found.theirs is not None and name.lower() not in OTHER_TYPES:
        assert name.lower() in wide
        assert found.ours is not None, found.error
        assert not found.broken
    if name.lower() not in (*DTYPES, *OTHER_TYPES, "dynamic", "undefined"):
        assert found.theirs is None
        assert found.broken
        assert found.ours is None
    convert = _layer(
        1, "c", "Convert", f'<data destination_type="{name}"/>', [_port(0, (2,))], [_port(1, (2,), "UNSPECIFIED")]
    )
    made = [_parameter(0, "a", (2,)), convert, _result(2, (2,))]
    other = _Readings(tmp_path, _named(net(made, [(0, 0, 1, 0), (1, 1, 2, 0)])))
    assert bool(other.broken) is (other.theirs is None)


PRECISIONS = list(
    dict.fromkeys([*PORT_NAMES.values(), *TYPES, *map(str.upper, OTHER_TYPES), "BIN", "Q78", "MIXED", "bin"])
)


@pytest.mark.parametrize("name", [name for name in PRECISIONS if name])
def test_types_of_ports(name: str, tmp_path: Path) -> None:
    """Test that port types are case-sensitive, and must be supported and agree with the data."""
    own = next((own for own in DTYPES if name in (own, PORT_NAMES[DTYPES[own]])), "f32")
    found = _Readings(tmp_path, _one(f'<data shape="2" element_type="{own}"/>', (2,), name))
    assert (found.ours is None) is (found.theirs is None)
    says_nothing = name in ("UNSPECIFIED", "dynamic", "undefined")
    is_own = name in (own, PORT_NAMES[DTYPES[own]])
    assert bool(found.broken) is not (is_own or says_nothing)
    opaque = _layer(0, "a", "Parameter", '<data shape="2" element_type="dynamic"/>', [], [_port(0, (2,), name)])
    open_type = _Readings(tmp_path, _named(net([opaque, _result(1, ())], [(0, 0, 1, 0)])))
    assert bool(open_type.broken) is (open_type.theirs is None)


# ---------------------------------------------------------------------------------------------------- shapes

# OpenVINO changes these silently: a negative size becomes 0, and a negative end becomes an unknown size.
ACCIDENTS = ["-2", "-5", "-0", "-1..3", "-1..-1", "3..-1", "1..-2", "9223372036854775807", "9223372036854775808"]
SHAPES = [
    *("", " ", "2", "2,3", " 2 , 3 ", "2 3", "2,", ",2", "2,,3", "02", "+2", "2.0", "1e1", "0", "0,3", "a", "2;3"),
    *("?", "-1", "?,3", "-1,3", "- 1", "??", "1..4", "..4", "1..", "..", "1...3", "?..", "..?", "4..1", "2..2", "0..0"),
    *("..0", "1 .. 3", " 1..3 ", "1..+3", "[2]", "[2,3]", "[ 2 , 3 ]", " [2] ", "[]", "[?]", "[1..4]", "[2", "2]"),
    *("[[2]]", "{2}", "(2)", "...", " ... ", "[...]", "....", "2,...", "99999999999"),
]


def _dims(node: Any) -> Dims | None:
    shape = node.get_output_partial_shape(0)
    if shape.rank.is_dynamic:
        return None
    return tuple(each.get_length() if each.is_static else None for each in shape)


@pytest.mark.parametrize("text", [None, *SHAPES, *ACCIDENTS])
def test_shapes(text: str | None, tmp_path: Path) -> None:
    written = "" if text is None else f'shape="{text}" '
    found = _Readings(tmp_path, _one(f'<data {written}element_type="f32"/>'))
    theirs = None if found.theirs is None else _dims(found.operator("a"))
    if text in ACCIDENTS:
        assert found.ours is None
        assert found.broken
    elif theirs is None:
        assert found.ours is None
        assert bool(found.broken) is (found.theirs is None)  # maxops cannot run valid models of any rank
        assert ("the rank is unknown" in found.error) is (found.theirs is not None)
    else:
        assert found.ours is not None, found.error
        assert found.ours.inputs[0].dims == theirs
        assert not found.broken or theirs == ()


NUMBERS = [
    *("0", "8", "08", " 8", "\t8", "8 ", "+8", "+ 8", "++8", "-8", "-0"),
    *("8.0", "0x8", "8a", "7", "9", "16", "", "1" * 20),
]
# Texts of which OpenVINO reads only the first number.
READ_IN_PART = [("shape", "1..2"), ("shape", "0x8")]


@pytest.mark.parametrize("name", CONST)
@pytest.mark.parametrize("text", [None, *NUMBERS, "1", "2", "1,1", ",", "?", "-1", "[1]", "1..1", "1..2", "..."])
def test_constants(name: str, text: str | None, tmp_path: Path) -> None:
    const = {key: value for key, value in (CONST | {name: text}).items() if value is not None}
    shapes: dict[str | None, tuple[int, ...]] = {"": (), "2": (2,), "1,1": (1, 1), "0": (0,), "8": (8,)}
    dims = shapes.get(text, (1,)) if name == "shape" else (1,)
    found = _Readings(
        tmp_path, _reduce('<data keep_dims="true"/>', const, dims), np.array([1, 0, 1], np.int64).tobytes()
    )
    if found.theirs is None:
        assert found.ours is None or isinstance(found.run(a=A23), str)
        assert found.broken or (name, text) in (("offset", "9"), ("shape", "1,1"))  # these are errors only at run time
        return
    if (name, text) in READ_IN_PART or text == "-0":
        assert found.broken
        return
    made = found.run(a=A23)
    assert isinstance(made, np.ndarray)
    assert made.shape == tuple(found.operator("m").get_output_shape(0))
    assert not found.broken


# One text for every type, and the others for one type.
OF_EACH_TYPE = [("1", [1]), ("1", [-1]), ("1", [127])]
OF_INTEGERS = [("", [1]), ("2", [0, 1]), ("2", [1, 0]), ("2", [0, -1]), ("1", [2]), ("1", [-3]), ("1,1", [1])]


@pytest.mark.parametrize(
    ("kind", "shape", "values"),
    [(kind, *axes) for kind in DTYPES for axes in (*OF_EACH_TYPE, *(OF_INTEGERS if kind == "i64" else ()))],
    ids=str,
)
def test_axes_of_each_type(kind: str, shape: str, values: list[int], tmp_path: Path) -> None:
    dtype = DTYPES[kind]
    if min(values) < 0 and dtype.kind == "uint":
        values = [value % (1 << dtype.bits) for value in values]
    if dtype.kind == "bool":
        values = [abs(value) % 2 for value in values]
    array = np.array(values, np.uint64 if max(values) >= 1 << 63 else None).astype(dtype.numpy)
    dims = [int(size) for size in shape.split(",") if size]
    const = {"element_type": kind, "offset": "0", "size": str(array.nbytes), "shape": shape}
    text = _reduce('<data keep_dims="true"/>', const, dims, PORT_NAMES[dtype])
    found = _Readings(tmp_path, text, array.tobytes())
    made = found.run(a=A23)
    if max(values) >= 1 << 63:  # OpenVINO reads it as a negative number
        assert str(max(values)) in str(made)
        return
    assert isinstance(made, np.ndarray) is (found.theirs is not None), made
    if isinstance(made, np.ndarray):
        assert made.shape == tuple(found.operator("m").get_output_shape(0))


# ---------------------------------------------------------------------------------------------------- names and ids


@pytest.mark.parametrize(
    ("kind", "make"),
    [
        ("Parameter", lambda name: _one('<data shape="2" element_type="f32"/>', (2,), "FP32", name)),
        ("Maximum", lambda name: _maximum("", (3,), name)),
        ("ReduceMax", lambda name: _reduce("", kind=name)),
        ("SegmentMax", lambda name: _segment('<data fill_mode="zero"/>', name)),
        ("Result", lambda name: _maximum("", (3,)).replace('"Result"', f'"{name}"')),
        ("Const", lambda name: _reduce("").replace('"Const"', f'"{name}"')),
    ],
    ids=["Parameter", "Maximum", "ReduceMax", "SegmentMax", "Result", "Const"],
)
def test_types_of_layers_in_any_letters(kind: str, make: Any, tmp_path: Path) -> None:
    others = () if kind == "Result" else (f"{kind}s", "Constant" if kind == "Const" else f"{kind}1")
    for name in (kind, *_letters(kind), *others):
        found = _Readings(tmp_path, make(name), bytes(8))
        assert (found.ours is None) is (found.theirs is None), (name, found.error)
        if found.theirs is not None:
            assert [node.operator for node in found.report.nodes] == [
                {"Maximum": "Max"}.get(each, each)
                for each in ("Maximum", "ReduceMax", "SegmentMax")
                if f'"{each.lower()}"' in make(name).lower()
            ]


IDS = ["0", "00", " 0", "\t0", "+0", "0 ", "-0", "-1", "a", "", "0x0", "0.0", "7", "1" * 20]
PLACES = [
    'layer id="{}" name="a"',
    '<output><port id="{}"',
    'from-layer="{}"',
    'from-port="{}"',
    'to-port="{}"',
    '<input><port id="{}"',
]


@pytest.mark.parametrize(
    ("written", "place"), [*((written, PLACES[0]) for written in IDS), *product(["0", "+0", "a", "7"], PLACES[1:])]
)
def test_ids_are_numbers(written: str, place: str, tmp_path: Path) -> None:
    text = _one('<data shape="2" element_type="f32"/>', (2,), "FP32")
    assert text.count(place.format(0)) == 1
    found = _Readings(tmp_path, text.replace(place.format(0), place.format(written)))
    if found.theirs is None or written in ("0 ", "-0", "7"):
        assert found.ours is None
        assert found.broken
    else:
        assert found.ours is not None, found.error
        assert not found.broken


@pytest.mark.parametrize("number", [10, 11])
@pytest.mark.parametrize("form", ["{}", "0{}", " {}", "+{}"])
def test_versions_of_the_format(form: str, number: int, tmp_path: Path) -> None:
    text = _maximum("", (3,)).replace('version="11"', f'version="{form.format(number)}"')
    found = _Readings(tmp_path, text)
    assert found.theirs is not None
    assert found.ours is not None
    assert not found.broken
