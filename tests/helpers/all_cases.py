"""The kit's cases, made once for all tests of the kit."""

from __future__ import annotations

from maxops.conformance.cases import cases

ALL = list(cases())
# Short names of clauses that no case can cover, and why: for every row that has a clause of the name.
UNCOVERED = {
    "GR2": "a model's tensors all have types",
    "GR3": "tensors of different types are refused under T",
    "GR4": "Max has no attribute and no optional input",
    "GR1": "the operators' models have dense tensors only; `maxops check` looks at models of others",
    "static": "a runtime gets arrays, whose shapes are known; `maxops check` looks at what a model declares",
    "opset": "every model of ours names its operator set; `maxops check` looks at models of others",
}
