"""Compares a model's outputs or max nodes with another runtime: `maxops run --against`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import numpy as np

from maxops.cli.compare import difference, different
from maxops.cli.progress import progress
from maxops.counted import counted
from maxops.errors import ModelInputError
from maxops.plan import Array
from maxops.program import print_line
from maxops.spec import Spec

if TYPE_CHECKING:  # onnx takes longer to import than most commands to run
    from maxops.onnx import Model
    from maxops.onnx.exposed import Exposed

OURS = "maxops"  # the name of this package in comparisons

Compare = Callable[[Mapping[str, Array], Mapping[str, Array]], "Compared"]


@dataclass(frozen=True)
class Compared:
    """The comparison with another runtime or with expected outputs: the first difference in each output or max node.

    The difference is "" if the output or node agrees. `other` is the name of the other runtime, or "" for the expected
    outputs.
    """

    other: str
    differences: Mapping[str, str]
    of: Literal["outputs", "nodes"] = "outputs"
    tolerance: float = 0.0

    @property
    def agree(self) -> int:
        """The number of outputs or nodes that agree."""
        return sum(not text for text in self.differences.values())


def compare_with(
    name: str, model: Path | bytes, loaded: Model, seconds: float | None, tolerance: float, *, whole: bool
) -> Compare:
    """Return a function that runs another runtime on the inputs, and compares its results with those of maxops.

    With `whole`, the function compares the outputs. Without it, the function compares each max node on the inputs that
    the node gets in the runtime.
    """
    from maxops.conformance import limits, whole_model  # noqa: PLC0415  (see above)

    for value in (*loaded.inputs, *loaded.outputs):
        if value.container:
            raise ModelInputError(f"{loaded.source}: --against supports only tensors, but the model has {value}")
    timeout = limits.check_seconds(whole_model.SECONDS if seconds is None else seconds)
    whole_model.check(name, model)
    exposed = None if whole else _expose(model, loaded.source)

    def compare(inputs: Mapping[str, Array], outputs: Mapping[str, Array]) -> Compared:
        of: Literal["outputs", "nodes"] = "nodes" if exposed else "outputs"
        labels = _labels(exposed) if exposed else list(outputs)
        sent, count = (exposed.model, len(exposed.outputs)) if exposed else (model, len(outputs))
        try:
            with progress(f"{loaded.source} on {name}"):
                found = whole_model.run(name, sent, inputs, count, timeout)
        except whole_model.RuntimeDiedError as error:
            return Compared(name, dict.fromkeys(labels, str(error)), of, tolerance)
        sides = (f"{found.runtime} gives", f"{OURS} gives")
        if exposed:
            values = {**exposed.constants, **inputs, **dict(zip(exposed.outputs, found.outputs, strict=True))}
            texts = _node_differences(exposed, values, sides)
        else:
            pairs = zip(outputs.values(), found.outputs, strict=True)
            texts = [difference(ours, theirs, sides, tolerance) for ours, theirs in pairs]
        return Compared(found.runtime, dict(zip(labels, texts, strict=True)), of, tolerance)

    return compare


def _expose(model: Path | bytes, source: str) -> Exposed:
    """Return the model with the inputs and outputs of its max nodes as outputs. Warn about nodes in subgraphs."""
    from maxops.onnx.exposed import expose  # noqa: PLC0415  (see above)

    exposed = expose(model, source)
    if exposed.inside:
        print_line(
            f"maxops: warning: {source}: skipped {counted(exposed.inside, 'max node')} in subgraphs, because "
            "runtimes do not expose values in subgraphs"
        )
    return exposed


def _labels(exposed: Exposed) -> list[str]:
    """Return a different label for each max node."""
    labels: list[str] = []
    for _, step in exposed.nodes:
        labels.append(step.label if step.label not in labels else f"{step.label} with output {step.output!r}")
    return labels


def _node_differences(exposed: Exposed, values: Mapping[str, Array], sides: tuple[str, str]) -> list[str]:
    """Return the first difference in each max node, with its clause, or "". `values` are those of the other runtime."""
    texts = []
    for row, step in exposed.nodes:
        ours, theirs = step.compute([values[each] if each else None for each in step.inputs]), values[step.output]
        text = difference(ours, theirs, sides)
        texts.append(f"{text} [{_rule(row, ours, theirs)}]" if text else "")
    return texts


_SHAPE = "shape", "C2", "C1", "keepdims"  # clauses about the shape of a result; an operator has at least one


def _rule(row: Spec, ours: Array, theirs: Array) -> str:
    """Return the id of the clause about the first difference between two results of a node."""
    short = "value"
    if ours.dtype != theirs.dtype:
        short = "T"
    elif ours.shape != theirs.shape:
        short = next((each for each in _SHAPE if each in dict(row.rules)), "value")
    else:
        first = different(ours, theirs)[0]
        pair = np.array([array.reshape(-1)[first] for array in (ours, theirs)])
        if np.isnan(pair).any() or not pair.any():  # zeros of both signs
            short = "nan"
    rule = row.rule(short)
    return f"{rule.id}, decided by {OURS}" if rule.level == "undecided" else rule.id
