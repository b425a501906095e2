"""Layers of IRs with all types of ports and all versions: `check` rejects the same models as OpenVINO."""

from __future__ import annotations

from pathlib import Path

import pytest

from helpers.ir_models import net, saved
from maxops.checker import Report, check
from maxops.errors import ModelError
from maxops.openvino import layers, load

ov = pytest.importorskip("openvino")

PORT_NAMES = {"f32": "FP32", "f16": "FP16", "i32": "I32", "i64": "I64", "u8": "U8", "boolean": "BOOL"}
BYTES = {"f32": 4, "f16": 2, "i32": 4, "i64": 8, "u8": 1, "boolean": 1}
DATA, IDS = ("f32", (4, 2)), ("i64", (4,))
What = tuple[str, tuple[int, ...]]  # type and sizes


def _port(number: int, what: What) -> str:
    kind, sizes = what
    dims = "".join(f"<dim>{size}</dim>" for size in sizes)
    return f'<port id="{number}" precision="{PORT_NAMES[kind]}">{dims}</port>'


def _source(number: int, name: str, kind: str, own: What, said: What, version: str = "opset1") -> str:
    """Return a Parameter or a Const with the types of its own data and of its port."""
    element_type, sizes = own
    count = BYTES[element_type]
    for size in sizes:
        count *= size
    place = f' offset="0" size="{count}"' if kind == "Const" else ""
    text = f'<data element_type="{element_type}" shape="{",".join(map(str, sizes))}"{place}/>'
    head = f'<layer id="{number}" name="{name}" type="{kind}" version="{version}">'
    return f"{head}{text}<output>{_port(0, said)}</output></layer>"


def _segment(kind: str, data: tuple[What, What], ids: tuple[What, What], versions: dict[str, str] | None = None) -> str:
    """Return a SegmentMax of two sources, whose ports and results have the types of the sources' ports."""
    of = (versions or {}).get
    out = (data[1][0], (-1, *data[1][1][1:]))
    parts = [
        _source(0, "data", kind, *data, of(kind, "opset1")),
        _source(1, "ids", kind, *ids, of(kind, "opset1")),
        f'<layer id="2" name="top" type="SegmentMax" version="{of("SegmentMax", "opset16")}">'
        f'<data fill_mode="zero"/><input>{_port(0, data[1])}{_port(1, ids[1])}</input>'
        f"<output>{_port(2, out)}</output></layer>",
        f'<layer id="3" name="y" type="Result" version="{of("Result", "opset1")}">'
        f"<input>{_port(0, out)}</input></layer>",
    ]
    return net(parts, [(0, 0, 2, 0), (1, 0, 2, 1), (2, 2, 3, 0)]).replace("<net ", '<net name="n" ')


def _openvino_refuses(path: Path) -> bool:
    try:
        ov.Core().read_model(str(path))
    except RuntimeError:
        return True
    return False


def _checked(folder: Path, text: str) -> tuple[Report, bool]:
    path = saved(folder, text, bytes(4096))
    return check(path), _openvino_refuses(path)


def _says(report: Report, name: str) -> list[str]:
    return [each.message for each in report.faults if f"'{name}'" in each.node and "output port" in each.message]


@pytest.mark.parametrize("kind", ["Parameter", "Const"])
def test_what_is_right_holds(kind: str, tmp_path: Path) -> None:
    report, is_refused = _checked(tmp_path, _segment(kind, (DATA, DATA), (IDS, IDS)))
    assert not is_refused
    assert report.passed, report.findings
    assert not report.faults


@pytest.mark.parametrize("kind", ["Parameter", "Const"])
@pytest.mark.parametrize("layer", ["data", "ids"])
@pytest.mark.parametrize("wrong", ["data", "port"])
@pytest.mark.parametrize(
    ("element_type", "sizes"),
    [
        *(pytest.param(name, None, id=name) for name in PORT_NAMES),
        *(pytest.param(None, sizes, id=str(sizes)) for sizes in [(4,), (5,), (4, 2), (5, 2), (4, 3), (4, 2, 1), ()]),
    ],
)
def test_the_layers_data_counts(
    kind: str, layer: str, wrong: str, element_type: str | None, sizes: tuple[int, ...] | None, tmp_path: Path
) -> None:
    right = DATA if layer == "data" else IDS
    other = (element_type or right[0], right[1] if sizes is None else sizes)
    own, said = (other, right) if wrong == "data" else (right, other)
    given = {"data": (DATA, DATA), "ids": (IDS, IDS)} | {layer: (own, said)}
    report, is_refused = _checked(tmp_path, _segment(kind, given["data"], given["ids"]))
    if is_refused:
        assert report.broken
    contradicts = other != right and (sizes != () or wrong == "data")  # a port without sizes does not contradict them
    assert bool(_says(report, layer)) is contradicts
    assert report.broken or not contradicts
    # the data determines the verdict of a node, not the port
    if own == right and layer == "ids":
        assert not [each for each in report.findings if each.verdict == "broken" and "SegmentMax-16" in each.clause]


VERSIONS = [
    *(f"opset{number}" for number in (*range(-1, 20), 99)),
    "opset",
    "opset1.0",
    "opset01",
    "Opset1",
    "extension",
]


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("of", ["Parameter", "Const", "SegmentMax", "Result"])
def test_each_layers_version_is_one_that_openvino_has(of: str, version: str, tmp_path: Path) -> None:
    kind = of if of in ("Parameter", "Const") else "Parameter"
    text = _segment(kind, (DATA, DATA), (IDS, IDS), {of: version})
    report, is_refused = _checked(tmp_path, text)
    assert report.broken is is_refused
    named = [each for each in report.faults if repr(version) in each.message and "the version of" in each.message]
    assert bool(named) is is_refused
    if is_refused:
        with pytest.raises(ModelError, match="the version of"):
            load(tmp_path / "model.xml")


@pytest.mark.parametrize("of", ["Maximum", "ReduceMax", "Add", "Transpose", "SegmentMax"])
@pytest.mark.parametrize("place", ["net", "body"])
def test_a_version_in_bodies_and_of_every_type(of: str, place: str, tmp_path: Path) -> None:
    for version in ("opset99", "opset0", "opset1"):
        inner = f'<layers><layer id="0" name="odd" type="{of}" version="{version}"/></layers>'
        if place == "body":
            holder = f'<layer id="1" name="if" type="If" version="opset8"><then_body>{inner}</then_body></layer>'
            inner = f"<layers>{holder}</layers>"
        report = check(saved(tmp_path, f'<net name="n" version="11">{inner}</net>'))
        named = [
            each.node for each in report.faults if f"{version!r}" in each.message and "the version of" in each.message
        ]
        assert bool(named) is (version != "opset1" or of == "SegmentMax")
        assert all("'odd'" in each for each in named)


def test_our_own_operators_have_a_version_of_their_own(tmp_path: Path) -> None:
    report = check(saved(tmp_path, _segment("Parameter", (DATA, DATA), (IDS, IDS), {"SegmentMax": layers.OURS})))
    assert report.passed


def test_the_table_of_versions_is_openvinos(tmp_path: Path) -> None:
    """Test that the newest operator set of OpenVINO is the newest one in the table."""
    newest = max(layers.EVERY)
    for number, is_there in ((newest, True), (newest + 1, False)):
        text = _segment("Parameter", (DATA, DATA), (IDS, IDS), {"Parameter": f"opset{number}"})
        assert _openvino_refuses(saved(tmp_path, text, b"")) is not is_there


@pytest.mark.parametrize(
    ("kind", "attribute"), [("Convert", "destination_type"), ("ShapeOf", "output_type"), ("Range", "output_type")]
)
def test_layers_that_name_their_type(kind: str, attribute: str, tmp_path: Path) -> None:
    head = f'<layer id="1" name="ids" type="{kind}" version="opset1"><data {attribute}="i64"/>'
    for said in PORT_NAMES:
        parts = [
            _source(0, "data", "Parameter", DATA, DATA),
            f"{head}<output>{_port(0, (said, (4,)))}</output></layer>",
            '<layer id="2" name="top" type="SegmentMax" version="opset16"><data fill_mode="zero"/><input>'
            f"{_port(0, DATA)}{_port(1, (said, (4,)))}</input><output>{_port(2, DATA)}</output></layer>",
        ]
        report = check(saved(tmp_path, net(parts, [(0, 0, 2, 0), (1, 0, 2, 1)])))
        assert bool(_says(report, "ids")) is (said != "i64")
        (ruling,) = [each for each in report.findings if each.clause.endswith("T_IDX")]
        assert ruling.verdict == "holds"
