"""Checks the max operators of models against the clauses of a standard, without running the models."""

from maxops.extras import needed

with needed("maxops.checker", "onnx"):
    from maxops.checker.check import check
    from maxops.checker.report import Finding, JudgedNode, Report

__all__ = ["Finding", "JudgedNode", "Report", "check"]
