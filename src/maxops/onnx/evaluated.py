"""Models with more than max operators: theirs on our kernels, all else on onnx's reference evaluator."""

from __future__ import annotations

import warnings
from collections import Counter
from collections.abc import Iterable, Mapping
from itertools import chain
from typing import Any

import numpy as np
from onnx import ModelProto

from maxops.errors import MaxopsError, ModelError
from maxops.model import Placement
from maxops.onnx.inline import by_key, called
from maxops.onnx.reference import ReferenceEvaluator, reference_ops
from maxops.onnx.structure import call_key, with_inner
from maxops.plan import Array

OURS, REFERENCE = "maxops", "onnx's reference evaluator"


class GraphEvaluator:
    """A whole model without functions, ready to run; placements are those of the model as it was written."""

    def __init__(self, proto: ModelProto, written: ModelProto, source: str) -> None:
        self._source = source
        ours = {(operator.op_domain, operator.__name__) for operator in reference_ops()}
        functions = by_key(written)
        run = chain(written.graph.node, *(functions[key].node for key in called(written)))
        counted = Counter((node.domain, node.op_type) for node in with_inner(run) if call_key(node) not in functions)
        self.placements: tuple[Placement, ...] = tuple(
            Placement(".".join(filter(None, key)), count, OURS if key in ours else REFERENCE)
            for key, count in sorted(counted.items(), key=lambda item: (item[0] not in ours, item[0]))
            if key[1] != "Constant"
        )
        try:
            self._evaluator = ReferenceEvaluator(proto)
        except Exception as error:  # onnx raises whatever it met
            raise ModelError(f"{source}: onnx's reference evaluator cannot run it: {_in_words(error)}") from error

    def __call__(self, inputs: Mapping[str, Array], outputs: Iterable[str]) -> dict[str, Any]:
        """Run on one array per input, and return the outputs that are asked for."""
        names = list(outputs)
        try:
            with warnings.catch_warnings(), np.errstate(all="ignore"):  # what NumPy says of 1/0 is ONNX's result
                warnings.simplefilter("ignore", RuntimeWarning)
                results = self._evaluator.run(names, dict(inputs))
        except MaxopsError as error:
            raise error.at(self._source) from error
        except Exception as error:  # as above
            raise ModelError(f"{self._source}: onnx's reference evaluator: {_in_words(error)}") from error
        return dict(zip(names, results, strict=True))


def _in_words(error: Exception) -> str:
    return " ".join(f"{type(error).__name__}: {error}".split())
