"""The cases of the conformance kit, created once for all of its tests."""

from __future__ import annotations

from maxops.conformance.cases import cases

ALL = list(cases())
# Short names of clauses that no case can cover, with the reasons. They apply to every row with this clause.
UNCOVERED = {
    "GR2": "a model's tensors all have types",
    "GR3": "the cases of T include tensors of different types",
    "GR4": "Max has no attribute and no optional input",
    "GR1": "the kit's models only have dense tensors; `maxops check` checks models with other tensors",
    "static": "a runtime gets arrays with known shapes; `maxops check` checks declared shapes",
    "opset": "the kit's models name their operator set; `maxops check` checks other models",
}
