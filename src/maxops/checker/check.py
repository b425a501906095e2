"""From a model, of either format, to a report."""

from __future__ import annotations

from os import PathLike
from pathlib import Path

from onnx import ModelProto

from maxops.checker import ir_model, onnx_model, standards
from maxops.checker.report import Report, judge
from maxops.onnx.load import read


def check(model: str | PathLike[str] | ModelProto, standard: str | None = None) -> Report:
    """Judge every max node of a model by every clause of a standard, without running anything.

    >>> import onnx
    >>> text = '<ir_version: 8, opset_import: ["": 13]> g (float[2] a, float[3] b, float[n] c) => (y, z) '
    >>> report = check(onnx.parser.parse_model(text + "{ y = Max(a, b)  z = Max(a, c) }"))
    >>> report.broken
    True
    >>> for finding in report.findings:
    ...     if finding.clause.endswith("shape"):
    ...         print(finding.node, finding.verdict, finding.message, sep=": ")
    graph / node (Max) that makes 'y': broken: axis -1 does not broadcast: 'a' (2,), 'b' (3,)
    graph / node (Max) that makes 'z': unknown: axis -1 has an open size: 'a' (2,), 'c' (n,)

    `model` is a .onnx file, the .xml file of an OpenVINO IR, or a ModelProto; subgraphs and functions are checked too.
    `standard` is "onnx", "sonnx", "sonnx-draft" or "openvino"; None is the model's own. Weights are not read: no
    external data, and of an IR's .bin file only constants of a few numbers, such as axes.

    Raises ModelError for a file that is no model. What makes a model wrong is a finding, of clause "model" where no
    clause of an operator speaks of it.
    """
    chosen = standards.known(standard)
    if isinstance(model, ModelProto):
        source, (nodes, faults) = "model", onnx_model.read_nodes(model, None, chosen)
    elif Path(model).suffix.lower() == ".xml":
        source, (nodes, faults) = str(model), ir_model.read_nodes(Path(model), chosen)
    else:
        source, (nodes, faults) = str(model), onnx_model.read_nodes(read(Path(model)), Path(model).parent, chosen)
    return Report(source, chosen, tuple(faults), tuple(map(judge, nodes)))
