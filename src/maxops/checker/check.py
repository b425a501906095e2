"""Checks an ONNX model or an OpenVINO IR, and returns a report."""

from __future__ import annotations

from dataclasses import replace
from os import PathLike
from pathlib import Path

from onnx import ModelProto

from maxops.checker import ir_model, onnx_checker, onnx_model, standards
from maxops.checker.onnx_faults import take_small_integers_in
from maxops.checker.report import Report, judge
from maxops.onnx.external import follow_links
from maxops.onnx.load import read
from maxops.onnx.structure import canonical, with_open_sizes


def check(model: str | PathLike[str] | ModelProto, standard: str | None = None) -> Report:
    """Check the max operators of a model against every clause of a standard, without running the model.

    >>> import onnx
    >>> text = '<ir_version: 8, opset_import: ["": 13]> g (float[2] a, float[3] b, float[n] c) => (y, z) '
    >>> report = check(onnx.parser.parse_model(text + "{ y = Max(a, b)  z = Max(a, c) }"))
    >>> report.broken
    True
    >>> for finding in report.findings:
    ...     if finding.clause.endswith("shape"):
    ...         print(finding.node, finding.verdict, finding.message, sep=": ")
    graph / node (Max) with output 'y': broken: axis -1 does not broadcast: 'a' (2,), 'b' (3,)
    graph / node (Max) with output 'z': unknown: it is unknown whether axis -1 broadcasts: 'a' (2,), 'c' (n,)

    `model` is the path of a .onnx file, the path of an OpenVINO IR's .xml file, or a ModelProto. Subgraphs and
    functions are also checked. `standard` is "onnx", "sonnx", "sonnx-draft" or "openvino". None selects the standard
    that defines each operator. Only small constants, such as axes, are read from external data files and from an IR's
    .bin file.

    Raises ModelError for a file that is not a model, and UnknownOperatorError for an unknown standard. Faults of a
    model are not raised, but reported as findings. A fault that no clause covers has the clause "model".
    """
    chosen = standards.known(standard)
    if not isinstance(model, ModelProto) and Path(model).suffix.lower() == ".xml":
        nodes, faults = ir_model.read_nodes(Path(model), chosen)
        return Report(str(model), chosen, tuple(faults), tuple(map(judge, nodes)))
    source, folder, proto = "model", None, model
    if not isinstance(proto, ModelProto):
        source, proto = str(model), read(Path(model))
        folder = follow_links(proto, Path(model))
    proto = with_open_sizes(canonical(proto))
    if folder is not None:
        take_small_integers_in(proto, folder)
    nodes, faults = onnx_model.read_nodes(proto, folder, chosen)
    report = Report(source, chosen, tuple(faults), tuple(map(judge, nodes)))
    # strict type inference would only report known faults again, in other words
    full = not report.broken and not faults
    return replace(report, faults=(*faults, *onnx_checker.findings(proto, full=full)))
