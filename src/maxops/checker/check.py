"""Checks an ONNX model or an OpenVINO IR, and returns a report."""

from __future__ import annotations

from dataclasses import replace
from os import PathLike
from pathlib import Path

from onnx import ModelProto

from maxops.checker import ir_model, onnx_checker, onnx_model, standards
from maxops.checker.onnx_faults import take_small_integers_in
from maxops.checker.report import Report, judge
from maxops.onnx.load import read
from maxops.onnx.structure import canonical, with_open_sizes


def check(model: str | PathLike[str] | ModelProto, standard: str | None = None) -> Report:
    """Check every max node of a model against each clause of its operator in a standard, without running the model.

    >>> import onnx
    >>> text = '<ir_version: 8, opset_import: ["": 13]> g (float[2] a, float[3] b, float[n] c) => (y, z) '
    >>> report = check(onnx.parser.parse_model(text + "{ y = Max(a, b)  z = Max(a, c) }"))
    >>> report.broken
    True
    >>> for finding in report.findings:
    ...     if finding.clause.endswith("shape"):
    ...         print(finding.node, finding.verdict, finding.message, sep=": ")
    graph / node (Max) with output 'y': broken: axis -1 does not broadcast: 'a' (2,), 'b' (3,)
    graph / node (Max) with output 'z': unknown: axis -1 has an unknown size: 'a' (2,), 'c' (n,)

    `model` is a .onnx file, the .xml file of an OpenVINO IR, or a ModelProto; subgraphs and functions are checked too.
    `standard` is "onnx", "sonnx", "sonnx-draft" or "openvino"; None selects the model's own. Of external
    data and of an IR's .bin file, only small constants such as axes are read.

    Raises ModelError for a file that is not a model, and UnknownOperatorError for an unknown standard. A fault of a
    model is a finding; a fault that no clause of an operator covers has the clause "model".
    """
    chosen = standards.known(standard)
    if not isinstance(model, ModelProto) and Path(model).suffix.lower() == ".xml":
        nodes, faults = ir_model.read_nodes(Path(model), chosen)
        return Report(str(model), chosen, tuple(faults), tuple(map(judge, nodes)))
    source, folder, proto = "model", None, model
    if not isinstance(proto, ModelProto):
        source, folder, proto = str(model), Path(model).parent, read(Path(model))
    proto = with_open_sizes(canonical(proto))
    if folder is not None:
        take_small_integers_in(proto, folder)
    nodes, faults = onnx_model.read_nodes(proto, folder, chosen)
    report = Report(source, chosen, tuple(faults), tuple(map(judge, nodes)))
    # strict inference would only repeat known faults in other words
    full = not report.broken and not faults
    return replace(report, faults=(*faults, *onnx_checker.findings(proto, full=full)))
