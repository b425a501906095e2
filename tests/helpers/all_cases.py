"""The kit's cases, created once for all tests of the kit."""

from __future__ import annotations

from maxops.conformance.cases import cases

ALL = list(cases())
# Short names of clauses that no case can cover, with reasons; they apply to every row with such a clause.
UNCOVERED = {
    "GR2": "a model's tensors all have types",
    "GR3": "tensors of different types are refused under T",
    "GR4": "Max has no attribute and no optional input",
    "GR1": "the kit's models only have dense tensors; `maxops check` judges models with other tensors",
    "static": "a runtime gets arrays with known shapes; `maxops check` judges declared shapes",
    "opset": "the kit's models name their operator set; `maxops check` judges other models",
}
