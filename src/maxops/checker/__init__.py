"""Checks models against the clauses of a standard without running them: `check` judges every max node."""

from maxops.extras import needed

with needed("maxops.checker", "onnx"):
    from maxops.checker.check import check
    from maxops.checker.report import Finding, JudgedNode, Report

__all__ = ["Finding", "JudgedNode", "Report", "check"]
