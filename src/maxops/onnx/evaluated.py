"""Runs models that contain operators that maxops does not implement.

maxops runs the max operators. All other operators run on onnx's reference evaluator or on ONNX Runtime, which is faster
but supports fewer models.
"""

from __future__ import annotations

import warnings
from collections import Counter
from collections.abc import Iterable, Mapping
from importlib import import_module
from itertools import chain
from pathlib import Path
from traceback import walk_tb
from typing import Any

import numpy as np
from onnx import ModelProto, NodeProto
from onnx.reference.op_run import OpRun

from maxops.errors import MaxopsError, ModelError
from maxops.model import Evaluator, Other, Placement
from maxops.onnx.inline import by_key, called, with_given_reductions
from maxops.onnx.nodes import is_max, label
from maxops.onnx.reference import ReferenceEvaluator
from maxops.onnx.schemas import DOMAIN
from maxops.onnx.structure import call_key, with_inner
from maxops.plan import Array

OURS, REFERENCE = "maxops", "onnx's reference evaluator"


def evaluator(
    on: Other,
    proto: ModelProto,
    written: ModelProto,
    source: str,
    folder: Path | None,
    defaults: Mapping[str, Array],
) -> Evaluator:
    """Return an evaluator for a model.

    onnx's reference evaluator runs `proto`, in which functions are inlined. ONNX Runtime runs the original model
    `written`, whose external data is in `folder`. `defaults` contains the default values of inputs.
    """
    if on == "onnx":
        return GraphEvaluator(proto, written, source)
    # imported only here, because that module imports this one, and requires an optional package
    module = import_module("maxops.onnxruntime.evaluated")
    made: Evaluator = module.SessionEvaluator(written, folder, source, defaults)
    return made


def placements(written: ModelProto, other: str) -> tuple[Placement, ...]:
    """Return the runtime of each operator in a model, except Constant. `other` runs all but the max operators."""
    written = with_given_reductions(written)
    functions = by_key(written)
    run = chain(written.graph.node, *(functions[key].node for key in called(written)))
    counted = Counter(
        (not (is_max(node) or node.domain == DOMAIN), node.domain, node.op_type)
        for node in with_inner(run)
        if call_key(node) not in functions and node.op_type != "Constant"
    )
    return tuple(
        Placement(".".join(filter(None, key)), count, other if is_others else OURS)
        for (is_others, *key), count in sorted(counted.items())
    )


class GraphEvaluator:
    """Runs a model with inlined functions on onnx's reference evaluator and the operators of maxops.

    ``placements`` lists the runtime of each operator in the model before its functions were inlined.
    """

    def __init__(self, proto: ModelProto, written: ModelProto, source: str) -> None:
        self._source = source
        self.placements: tuple[Placement, ...] = placements(written, REFERENCE)
        self._optional = {
            info.name: info.type.optional_type.elem_type.HasField("sequence_type")
            for info in proto.graph.output
            if info.type.HasField("optional_type")
        }
        try:
            self._evaluator = ReferenceEvaluator(proto)
        except Exception as error:  # onnx may raise any exception
            raise ModelError(f"{source}: {REFERENCE} cannot run the model: {in_words(error)}") from error

    def __call__(self, inputs: Mapping[str, Any], outputs: Iterable[str]) -> dict[str, Any]:
        """Run the model on one value for each input, and return the requested outputs by name."""
        names = list(outputs)
        try:
            with warnings.catch_warnings(), np.errstate(all="ignore"):  # ONNX allows, for example, division by zero
                warnings.simplefilter("ignore", RuntimeWarning)
                results = self._evaluator.run(names, dict(inputs))
        except Exception as error:  # operators of onnx may raise any exception
            failed = label(node) if (node := _failed(error)) else "the model"
            if isinstance(error, MaxopsError):
                raise error.at(f"{self._source}: {failed}") from error
            if isinstance(error, MemoryError):
                error.add_note(f"{self._source}: {failed} on {REFERENCE}")
                raise
            raise ModelError(f"{self._source}: {failed} failed on {REFERENCE}: {in_words(error)}") from error
        found = dict(zip(names, results, strict=True))
        for name, holds_list in self._optional.items():  # onnx's Optional returns its value in a list
            held = found.get(name)
            if isinstance(held, list) and len(held) == 1 and (not holds_list or not isinstance(held[0], np.ndarray)):
                found[name] = held[0]
        return found


def _failed(error: BaseException) -> NodeProto | None:
    """Return the innermost node that was running when an error was raised, or None."""
    node = None
    for frame, _ in walk_tb(error.__traceback__):
        if isinstance(operator := frame.f_locals.get("self"), OpRun):
            node = operator.onnx_node
    return node


def in_words(error: Exception) -> str:
    """Return the type and message of an error from another package as one line."""
    return " ".join(f"{type(error).__name__}: {error}".split())
