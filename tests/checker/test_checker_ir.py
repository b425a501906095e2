"""Static checks of OpenVINO IRs: layers of every type, bodies, types from ports, and skipped weights."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from helpers.ir_models import NOT_AN_IR, layer, net, reduce_net, saved, segment_net
from maxops import errors
from maxops.checker import Finding, Report, check
from maxops.openvino import layers

GOOD = segment_net('fill_mode="zero"', (5,), count=True, out=(4,))


def finding(report: Report, short: str, where: str = "") -> Finding:
    (found,) = [each for each in report.findings if each.clause.split(".", 2)[-1] == short and where in each.node]
    return found


def faults(report: Report) -> list[str]:
    return [f"{each.node}: {each.message}" for each in report.faults]


# -------------------------------------------------------------------------------------------------- known facts


def test_segment_max(tmp_path: Path) -> None:
    report = check(saved(tmp_path, GOOD))
    assert report.passed
    assert not report.faults
    (judged,) = report.nodes
    assert judged.where == "net / layer 'top' (SegmentMax, id 3)"
    verdicts = {each.clause.partition("16.")[2]: each.verdict for each in judged.findings}
    unknown = {name for name, verdict in verdicts.items() if verdict == "unknown"}
    assert unknown == {"ids", "num_segments", "num_segments.smaller", "num_segments.larger", "shape", "value", "nan"}


@pytest.mark.parametrize(
    ("text", "short"),
    [
        (GOOD.replace('fill_mode="zero"', ""), "fill_mode"),
        (GOOD.replace('fill_mode="zero"', 'fill_mode="none"'), "fill_mode"),
        (GOOD.replace('fill_mode="zero"', 'fill_mode="zero" empty_segment_value="LOWEST"'), "fill_mode"),
        (GOOD.replace('fill_mode="zero"', 'fill_mode="zero" colour="red"'), "fill_mode"),
        (GOOD.replace('element_type="f32"', 'element_type="boolean"'), "T"),
        (GOOD.replace('element_type="f32"', 'element_type="u4"'), "T"),
        (GOOD.replace('shape="5" element_type="i64"', 'shape="5" element_type="u64"'), "T_IDX"),
        (GOOD.replace('name="ids" type="Parameter"', 'name="ids" type="Shape"'), "T_IDX"),
        (GOOD.replace('shape="5" element_type="f32"', 'shape="" element_type="f32"'), "data"),
        (segment_net('fill_mode="zero"', (4, 3), count=False, out=(7, 2)), "shape"),
        (segment_net('fill_mode="zero"', (0, 3), count=False, out=(1, 3)), "num_segments.no_ids"),
    ],
)
def test_a_broken_clause(text: str, short: str, tmp_path: Path) -> None:
    found = finding(check(saved(tmp_path, text)), short)
    assert found.verdict == ("unknown" if 'type="Shape"' in text else "broken")
    assert "[" not in found.message


def test_the_documents_spelling_is_understood(tmp_path: Path) -> None:
    text = segment_net('empty_segment_value="LOWEST"', (5,), count=True, out=(4,))
    text = text.replace('<port id="0"></port>', '<port id="0"><dim>0</dim></port>')
    report = check(saved(tmp_path, text))
    assert finding(report, "fill_mode").verdict == "holds"
    assert finding(report, "num_segments").verdict == "unknown"


def test_small_constants_are_read_and_large_ones_are_not(tmp_path: Path) -> None:
    for rows, verdict in ((5, "broken"), (512, "broken"), (513, "unknown")):  # constants of up to 4096 bytes are read
        const = f'element_type="i64" offset="0" size="{rows * 8}" shape="{rows}"'
        layers = [
            layer(0, "data", "Parameter", f'shape="{rows}" element_type="f32"', outputs=[(0, (rows,))]),
            layer(1, "ids", "Const", const, outputs=[(0, (rows,))]),
            layer(2, "top", "SegmentMax", 'fill_mode="zero"', [(0, (rows,)), (1, (rows,))], [(2, (-1,))]),
        ]
        path = saved(tmp_path, net(layers, [(0, 0, 2, 0), (1, 0, 2, 1)]), np.arange(rows)[::-1].astype("<i8").tobytes())
        assert finding(check(path), "ids").verdict == verdict


def test_absent_weights_are_one_finding(tmp_path: Path) -> None:
    text = reduce_net(8)
    const = text[text.index('<layer id="2"') : text.index('<layer id="3"')]
    more = "".join(const.replace('id="2"', f'id="{number}"') for number in range(10, 15))
    report = check(saved(tmp_path, text.replace(const, const + more)), "onnx")
    assert [fault.message for fault in report.faults] == [
        "the weights file 'model.bin' is missing from the model's folder"
    ]
    assert finding(report, "axes.range").verdict == "unknown"


@pytest.mark.parametrize("operator", ["Maximum", "ReduceMax", "SegmentMax"])
def test_only_constants_that_a_rule_reads_are_read(
    operator: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    read: list[str] = []
    constant = layers.constant

    def recorded(layer: layers.Layer, *more: Any) -> Any:
        read.append(layer.name)
        return constant(layer, *more)

    monkeypatch.setattr(layers, "constant", recorded)
    count = 3 if operator == "SegmentMax" else 2
    parts = [
        layer(number, str(number), "Const", 'element_type="i64" offset="0" size="8" shape="1"', outputs=[(0, (1,))])
        for number in range(count)
    ]
    parts.append(layer(9, "m", operator, "", [(number, (1,)) for number in range(count)], [(9, (1,))]))
    check(saved(tmp_path, net(parts, [(number, 0, 9, number) for number in range(count)]), bytes(8)))
    assert read == {"Maximum": [], "ReduceMax": ["1"], "SegmentMax": ["1", "2"]}[operator]


@pytest.mark.parametrize("sizes", ["-5", "9" * 19, "x"])
def test_a_port_whose_sizes_are_wrong(sizes: str, tmp_path: Path) -> None:
    """Test that the layer's type is still known, and that the sizes in its <data>, if any, are used."""
    wrong = '<output><port id="0"><dim>3</dim>'
    text = reduce_net(8)
    assert text.count(wrong) == 1
    report = check(saved(tmp_path, text.replace(wrong, f'<output><port id="0"><dim>{sizes}</dim>'), bytes(8)), "onnx")
    assert report.broken
    assert finding(report, "T", "'m'").message == "float32"
    assert finding(report, "shape", "'m'").message == "the inputs broadcast to (?, 3)"


@pytest.mark.parametrize(
    ("sizes", "is_broken"), [((2**62, 2), True), ((2**62, -1, 2), True), ((2**62, 0, 2), True), ((2**62, 1, -1), False)]
)
def test_sizes_of_more_elements_than_can_be_counted(sizes: tuple[int, ...], is_broken: bool, tmp_path: Path) -> None:
    path = saved(tmp_path, net([layer(0, "o", "Own", outputs=[(0, sizes)])], []))
    assert bool([each for each in faults(check(path)) if "too many elements" in each]) == is_broken


@pytest.mark.parametrize("standard", [None, "onnx"])
@pytest.mark.parametrize("operator", ["Maximum", "ReduceMax", "SegmentMax"])
def test_what_an_operator_makes_has_the_type_of_its_first_input(
    operator: str, standard: str | None, tmp_path: Path
) -> None:
    """Test a port with a wrong type: a clause of the operator is broken or, without a row, the model has a fault."""
    counts = {"Maximum": 1, "ReduceMax": 2, "SegmentMax": 2}
    parts = [
        layer(0, "data", "Parameter", 'shape="1" element_type="f32"', outputs=[(0, (1,))]),
        layer(1, "ids", "Parameter", 'shape="1" element_type="i64"', outputs=[(0, (1,))]),
        layer(2, "made", operator, "", [(0, (1,)), (1, (1,))][: counts[operator]], [(9, (1,))]),
        layer(3, "next", "Maximum", "", [(0, (1,))], [(9, (1,))]),
    ]
    edges = [(0, 0, 2, 0), (1, 0, 2, 1), (2, 9, 3, 0)]
    text = net([each for each in parts if each], [edge for edge in edges if edge[3] < counts[operator]])
    report = check(saved(tmp_path, text), "onnx")
    assert finding(report, "T", "'next'").message == "float32"
    for precision in ("FP32", "FP16"):
        head = '<port id="9"'
        said = check(saved(tmp_path, text.replace(head, f'{head} precision="{precision}"', 1)), standard)
        expected_message = [each for each in said.findings if each.verdict == "broken" and "float16" in each.message]
        has_row = (standard is None) == (operator == "SegmentMax")
        expected = [] if precision == "FP32" else [("'made'", False)] if has_row else [("'made'", True)]
        assert [(f"'{each.node.split(chr(39))[-2]}'", each.clause == "model") for each in expected_message] == expected


@pytest.mark.parametrize("outputs", [0, 1, 2])
def test_an_operator_has_one_output(outputs: int, tmp_path: Path) -> None:
    parts = [
        layer(0, "x", "Parameter", 'shape="1" element_type="f32"', outputs=[(0, (1,))]),
        layer(1, "m", "Maximum", "", [(0, (1,)), (1, (1,))], [(5 + number, (1,)) for number in range(outputs)]),
    ]
    found = faults(check(saved(tmp_path, net(parts, [(0, 0, 1, 0), (0, 0, 1, 1)]))))
    where = "net / layer 'm' (Maximum, id 1)"
    assert found == ([] if outputs == 1 else [f"{where}: expected 1 output port, got {outputs}"])


@pytest.mark.parametrize("standard", [None, "onnx"])
@pytest.mark.parametrize("wrong", [0, 1])
def test_one_of_two_outputs_has_wrong_sizes(wrong: int, standard: str | None, tmp_path: Path) -> None:
    outputs = [(5 + number, ("x" if number == wrong else 1,)) for number in range(2)]
    path = saved(tmp_path, net([layer(0, "m", "Maximum", "", [(0, (1,))], outputs)], []))
    assert len([each for each in faults(check(path, standard)) if "a size must be a number" in each]) == 1


@pytest.mark.parametrize(("size", "is_valid"), [(0, False), (4, False), (8, True), (12, True), (16, True)])
def test_a_constant_has_at_least_the_bytes_of_its_shape(size: int, is_valid: bool, tmp_path: Path) -> None:
    data = f'element_type="f32" offset="0" size="{size}" shape="2"'
    path = saved(tmp_path, net([layer(0, "w", "Const", data, outputs=[(0, (2,))])], []), bytes(16))
    assert check(path).passed == is_valid


@pytest.mark.parametrize(("sizes", "verdict"), [((2, 3), "holds"), ((1, 1), "broken")])
def test_no_axes_reduce_nothing(sizes: tuple[int, ...], verdict: str, tmp_path: Path) -> None:
    """Test that empty axes reduce nothing, as in OpenVINO, even if ONNX's clauses are checked."""
    parts = [
        layer(0, "x", "Parameter", 'shape="2,3" element_type="f32"', outputs=[(0, (2, 3))]),
        layer(1, "axes", "Const", 'element_type="i64" offset="0" size="0" shape="0"', outputs=[(0, (0,))]),
        layer(2, "r", "ReduceMax", 'keep_dims="true"', [(0, (2, 3)), (1, (0,))], [(2, sizes)]),
    ]
    report = check(saved(tmp_path, net(parts, [(0, 0, 2, 0), (1, 0, 2, 1)]), b""), "onnx")
    assert finding(report, "noop_with_empty_axes").verdict == verdict
    assert finding(report, "axes.default").message == "noop_with_empty_axes is 1"


def test_a_parameter_of_any_rank_whose_port_has_sizes(tmp_path: Path) -> None:
    text = reduce_net(8).replace('shape="?,3"', 'shape="..."')
    assert finding(check(saved(tmp_path, text), "onnx"), "shape", "'m'").verdict == "unknown"
    assert finding(check(saved(tmp_path, reduce_net(8)), "onnx"), "shape", "'m'").verdict == "holds"


def test_axes_against_onnx(tmp_path: Path) -> None:
    report = check(saved(tmp_path, reduce_net(8), np.array([7]).tobytes()), "onnx")
    assert finding(report, "axes.range").message == "axes must be between -2 and 1, got 7"
    wrong = check(saved(tmp_path, reduce_net(8, more='keep_dims="perhaps"'), np.array([1]).tobytes()), "onnx")
    assert finding(wrong, "keepdims").message == "keep_dims must be true or false, got 'perhaps'"


def test_ports_tell_types(tmp_path: Path) -> None:
    """Test types from ports, even after layers that maxops does not support."""
    text = reduce_net(8).replace('id="1" name="b" type="Parameter"', 'id="1" name="b" type="MatMul"')
    unknown = check(saved(tmp_path, text), "onnx")
    assert finding(unknown, "T", "'m'").verdict == "unknown"
    for precision, verdict in (("FP32", "holds"), ("FP64", "broken"), ("U4", "broken"), ("UNSPECIFIED", "unknown")):
        message = text.replace(
            '<output><port id="0"><dim>3</dim>', f'<output><port id="0" precision="{precision}"><dim>3</dim>'
        )
        assert finding(check(saved(tmp_path, message), "onnx"), "T", "'m'").verdict == verdict


def test_a_parameter_of_any_rank(tmp_path: Path) -> None:
    text = reduce_net(8).replace('shape="?,3"', 'shape="..."').replace("<dim>-1</dim><dim>3</dim>", "")
    report = check(saved(tmp_path, text), "onnx")
    assert finding(report, "shape", "'m'").verdict == "unknown"


@pytest.mark.parametrize("of", ["Parameter", "Const", "MatMul", "Maximum"])
@pytest.mark.parametrize("any_rank", ["", "...", " ... ", "[...]"])
def test_a_port_without_sizes_is_a_scalars_unless_ranks_are_open(any_rank: str, of: str, tmp_path: Path) -> None:
    """Test that a port without sizes means a scalar, unless a Parameter of any rank makes ranks unknown."""
    data = 'shape="" element_type="f32"' + (' offset="0" size="4"' if of == "Const" else "")
    made = layer(0, "x", of, data if of in ("Parameter", "Const") else "", outputs=[(0, ())])
    layers = [
        layer(1, "any", "Parameter", f'shape="{any_rank or "2"}" element_type="f32"', outputs=[(0, ())]),
        made,
        layer(2, "axes", "Const", 'element_type="i64" offset="0" size="8" shape="1"', outputs=[(0, (1,))]),
        layer(3, "r", "ReduceMax", "", [(0, ()), (1, (1,))], [(2, ())]),
        layer(4, "s", "ReduceMax", "", [(0, ()), (1, (1,))], [(2, ())]),
    ]
    path = saved(tmp_path, net(layers, [(0, 0, 3, 0), (2, 0, 3, 1), (1, 0, 4, 0), (2, 0, 4, 1)]), bytes(8))
    report = check(path, "onnx")
    is_open = bool(any_rank)
    message = finding(report, "axes.range", "'r'")
    assert message.verdict == ("unknown" if is_open and of in ("MatMul", "Maximum") else "broken"), message
    assert finding(report, "axes.range", "'s'").verdict == ("unknown" if is_open else "holds")


@pytest.mark.parametrize("of", ["Parameter", "MatMul"])
@pytest.mark.parametrize("sizes", [(), (0,), (1,), (2,), (0, 0), (-1,)])
@pytest.mark.parametrize("port", [1, 2])
def test_a_scalar_that_documents_write_as_one_size_of_0(
    port: int, sizes: tuple[int, ...], of: str, tmp_path: Path
) -> None:
    """Test that only num_segments of size 0 is read as a scalar. Ids of size 0 are empty."""
    name, own = ("ids", 'shape="5"') if port == 1 else ("count", 'shape=""')
    old = f'name="{name}" type="Parameter"><data {own} element_type="i64"/><output><port id="0">'
    assert GOOD.count(old) == 1
    _, _, rest = GOOD.partition(old)
    dims = "".join(f"<dim>{size}</dim>" for size in sizes)
    data = f'<data {own} element_type="i64"/>' if of == "Parameter" else ""
    made = GOOD.replace(
        old + rest.partition("</port>")[0], f'name="{name}" type="{of}">{data}<output><port id="0">{dims}'
    )
    report = check(saved(tmp_path, made))
    says = [each for each in report.faults if "output port 0 has shape" in each.message]
    if of == "Parameter":  # the data determines the type, and a port must not contradict it
        right = [(), (0,)] if port == 2 else [(), (-1,)]
        assert bool(says) is (sizes not in right)
        assert finding(report, "num_segments").verdict == "unknown"
        assert finding(report, "ids.shape").verdict == "holds"
        return
    assert not says
    if port == 2:
        assert finding(report, "num_segments").verdict == ("unknown" if sizes in ((), (0,)) else "broken")
    else:
        expected = {(): "broken", (0, 0): "broken", (-1,): "unknown"}.get(sizes, "broken")
        assert finding(report, "ids.shape").verdict == expected
        assert finding(report, "ids").verdict == ("holds" if sizes == (0,) else "unknown")


def test_sonnx(tmp_path: Path) -> None:
    report = check(saved(tmp_path, reduce_net(8)), "sonnx")
    assert [judged.note for judged in report.outside] == ["SONNX has no ReduceMax"]
    assert finding(report, "static").verdict == "broken"
    assert finding(report, "opset").verdict == "broken"
    versioned = reduce_net(8).replace('type="Maximum"', 'type="Maximum" version="opset1"')
    assert finding(check(saved(tmp_path, versioned), "sonnx"), "opset").verdict == "unknown"


def test_operators_without_a_document(tmp_path: Path) -> None:
    path = saved(tmp_path, reduce_net(8), bytes(8))
    assert check(path).passed
    assert [judged.note for judged in check(path).nodes] == [
        "maxops has no clauses for OpenVINO's Max",
        "maxops has no clauses for OpenVINO's ReduceMax",
    ]
    assert not check(path, "openvino").passed


BODY = (
    net(
        [
            layer(0, "p", "Parameter", 'shape="2" element_type="f32"', outputs=[(0, (2,))]),
            layer(1, "q", "Parameter", 'shape="3" element_type="f32"', outputs=[(0, (3,))]),
            layer(2, "deep", "Maximum", "", [(0, (2,)), (1, (3,))], [(2, (2,))]),
        ],
        [(0, 0, 2, 0), (1, 0, 2, 1)],
    )
    .partition('<net version="11">')[2]
    .removesuffix("</net>")
)


@pytest.mark.parametrize("tag", ["body", "then_body", "else_body"])
def test_bodies(tag: str, tmp_path: Path) -> None:
    inner = f'<layer id="0" name="loop" type="Loop"><{tag}>{BODY}</{tag}></layer>'
    outer = f'<layer id="7" name="if" type="If"><body><layers>{inner}</layers></body></layer>'
    text = f'<net version="11"><layers>{outer}</layers></net>'
    report = check(saved(tmp_path, text), "onnx")
    (judged,) = report.nodes
    assert (
        judged.where
        == f"net / layer 'if' (If, id 7) body / layer 'loop' (Loop, id 0) {tag} / layer 'deep' (Maximum, id 2)"
    )
    assert finding(report, "shape").message == "axis -1 does not broadcast: 'p' (2,), 'q' (3,)"
    assert not report.faults


@pytest.mark.parametrize("depth", [1000, 100_000])
def test_bodies_in_bodies_without_end(depth: int, tmp_path: Path) -> None:
    start = '<layers><layer id="0" name="m" type="Maximum"/><layer id="1" name="i" type="If"><body>'
    text = f'<net version="11">{start * depth}{"</body></layer></layers>" * depth}</net>'
    report = check(saved(tmp_path, text))
    assert any("bodies nested deeper than 100" in fault for fault in faults(report))
    assert len(report.nodes) == 101


# ---------------------------------------------------------------------------------------------------- bad input


@pytest.mark.parametrize(("text", "message"), NOT_AN_IR)
def test_what_is_no_ir_is_one_error(text: str, message: str, tmp_path: Path) -> None:
    path = saved(tmp_path, text)
    with pytest.raises(errors.ModelError, match=message) as caught:
        check(path)
    assert str(caught.value).startswith(str(path))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('<net version="11"/>', "net: no layers found"),
        (GOOD.replace('id="1" name="ids"', 'id="0" name="ids"'), "the id '0' appears twice"),
        (GOOD.replace('type="SegmentMax"', ""), "must have an id and a type"),
        (GOOD.replace('from-layer="1"', 'from-layer="77"'), "refers to the layer '77', which does not exist"),
        (GOOD.replace('to-port="1"', 'to-port="9"'), "not in the inputs of layer 'top'"),
        (GOOD.replace('to-layer="3" to-port="1"', 'to-layer="3" to-port="0"'), "that already has an edge"),
        (GOOD.replace('from-layer="1" from-port="0"', 'from-layer="3" from-port="3"'), "the graph has a cycle"),
        (GOOD.replace("<dim>5</dim>", "<dim>-5</dim>"), "got '-5'"),
        (GOOD.replace("<dim>5</dim>", "<dim>9999999999999999999</dim>" * 2), "too many elements"),
        (reduce_net(8, offset=1), "the data: bytes 1 to 9"),
        (reduce_net(8, offset=2**62 - 8), "(8 bytes)"),
        (reduce_net(8).replace('size="8"', 'size="-8"'), "size must be a number of bytes, got '-8'"),
        (reduce_net(8).replace('auto_broadcast="numpy"', 'auto_broadcast="odd"'), "got 'odd'"),
    ],
)
def test_a_fault_is_a_finding(text: str, message: str, tmp_path: Path) -> None:
    report = check(saved(tmp_path, text, np.array([-1]).tobytes()))
    assert report.broken
    assert message in " ".join(faults(report))
    assert {each.clause for each in report.faults} == {"model"}


@pytest.mark.parametrize("kind", ["Maximum", "Concat"])
@pytest.mark.parametrize("edge", range(5))
def test_every_input_port_is_fed(edge: int, kind: str, tmp_path: Path) -> None:
    """Test max operators, Results and other layers: OpenVINO rejects an IR with an unconnected input port."""
    whole = reduce_net(8).replace('type="Maximum"', f'type="{kind}"')
    text = re.findall("<edge [^>]*>", whole)[edge]
    layer_id, port = re.findall('to-[a-z]*="([0-9])"', text)
    weights = np.array([-1]).tobytes()
    assert not faults(check(saved(tmp_path, whole, weights)))
    (found,) = faults(check(saved(tmp_path, whole.replace(text, ""), weights)))
    assert re.fullmatch(rf"net / layer '.*' \(.*, id {layer_id}\): input port {port} has no edge", found)


@pytest.mark.parametrize("standard", [None, "onnx"])
@pytest.mark.parametrize(
    ("number", "kind"), [(0, "Parameter"), (2, "Const"), (3, "Maximum"), (4, "ReduceMax"), (5, "Result")]
)
@pytest.mark.parametrize("count", range(4))
def test_a_layer_has_so_many_input_ports(
    count: int, number: int, kind: str, standard: str | None, tmp_path: Path
) -> None:
    """Test that a wrong number of input ports is reported once. OpenVINO rejects such an IR."""
    takes = {"Parameter": [0], "Const": [0], "Result": [1]}.get(kind, [2])
    if standard == "onnx" and kind in ("Maximum", "ReduceMax"):
        takes = [1, 2, 3] if kind == "Maximum" else [1, 2]
    text = reduce_net(8)
    ((head, data, rest),) = re.findall(rf'^(.*<layer id="{number}"[^>]*>)(<data [^>]*>)?(.*)$', text)
    rest = re.sub("^<input>.*?</input>", "", rest)
    ports = "".join(f'<port id="{port}"/>' for port in range(10, 10 + count))
    edges = "".join(
        f'<edge from-layer="1" from-port="0" to-layer="{number}" to-port="{port}"/>' for port in range(10, 10 + count)
    )
    rest = re.sub(f'<edge [^>]* to-layer="{number}"[^>]*>', "", rest).replace("<edges>", "<edges>" + edges)
    report = check(saved(tmp_path, f"{head}{data}<input>{ports}</input>{rest}", np.array([-1]).tobytes()), standard)
    said = [
        each
        for each in report.findings
        if each.verdict == "broken" and re.search(f"input.*, got {count}$", each.message)
    ]
    assert len(said) == (count not in takes), report.findings


def test_what_openvino_writes(tmp_path: Path) -> None:
    openvino = pytest.importorskip("openvino")
    opset = openvino.opset16
    x, ids = opset.parameter([4, 3], np.float32, name="x"), opset.parameter([4], np.int64, name="ids")
    top = opset.segment_max(
        opset.maximum(x, opset.constant(np.zeros(1, np.float32))), ids, np.int64(6), fill_mode="LOWEST"
    )
    given, other = opset.parameter([6, 3], np.float32), opset.parameter([6, 3], np.float32)
    then = openvino.Model([opset.result(opset.maximum(given, opset.constant(np.float32(1))))], [given], "then")
    orelse = openvino.Model([opset.result(opset.relu(other))], [other], "else")
    condition = opset.parameter([], bool, name="c")
    chosen = opset.if_op(condition)
    chosen.set_then_body(then)
    chosen.set_else_body(orelse)
    chosen.set_input(top.output(0), given, other)
    out = chosen.set_output(then.results[0], orelse.results[0])
    model = openvino.Model(
        [opset.reduce_max(out, opset.constant(np.array([1])), keep_dims=True)], [x, ids, condition], "m"
    )
    openvino.serialize(model, str(tmp_path / "own.xml"))
    assert check(tmp_path / "own.xml").passed
    strict = check(tmp_path / "own.xml", "sonnx")
    assert not strict.broken
    assert [judged.operator for judged in strict.nodes] == ["Max", "SegmentMax", "ReduceMax", "Max"]
    against = check(tmp_path / "own.xml", "onnx")
    assert {each.verdict for each in against.findings if not each.at_run_time} == {"holds"}
