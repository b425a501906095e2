"""Runs models in ONNX Runtime, with max operators on maxops, for `maxops.onnx.load` with ``on="onnxruntime"``."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime
from onnx import ModelProto

from maxops.errors import MaxopsError, ModelError, ModelInputError
from maxops.model import Placement
from maxops.onnx.evaluated import in_words, placements
from maxops.onnxruntime.session import outputs_of, session_with
from maxops.plan import Array

_ELSEWHERE = 'use --on onnx (on="onnx" in Python) to run the model in onnx\'s reference evaluator'


class SessionEvaluator:
    """Runs a model in ONNX Runtime, in which the operators of maxops are registered."""

    def __init__(
        self, model: Path | ModelProto, written: ModelProto, source: str, defaults: Mapping[str, Array]
    ) -> None:
        self._source = source
        self._name = f"onnxruntime {onnxruntime.__version__}"
        self.placements: tuple[Placement, ...] = placements(written, self._name)
        options = onnxruntime.SessionOptions()
        options.log_severity_level = 4  # log only fatal errors, because all others raise exceptions
        try:
            self._session = session_with(options, model, providers=["CPUExecutionProvider"])
        except MaxopsError as error:
            raise error.at(source) from error
        except Exception as error:  # onnxruntime's exceptions have no common base class
            raise self._failure("cannot run the model", error) from error

        types = [each.type for each in (*self._session.get_inputs(), *self._session.get_outputs())]
        if "tensor(bfloat16)" in types and any(not each.startswith("tensor(") for each in types):
            raise ModelError(
                f"{source}: {self._name} does not support bfloat16 inputs and outputs in models with sequences or "
                f"optionals; {_ELSEWHERE}"
            )
        ways = (self._session.get_inputs(), self._session.get_overridable_initializers())
        self._taken = {each.name for values in ways for each in values}
        self._defaults = defaults
        # in models of IR version 3 or older, ONNX Runtime treats the defaults of inputs as constants
        self._fixed = {name: array for name, array in defaults.items() if name not in self._taken}

    def __call__(self, inputs: Mapping[str, Any], outputs: Iterable[str]) -> dict[str, Any]:
        """Run the model on one value for each input, and return the requested outputs by name."""
        names = list(outputs)
        for name, array in self._fixed.items():
            if inputs[name].tobytes() != array.tobytes():
                raise ModelInputError(
                    f"{self._source}: input {name!r} has a default, which ONNX Runtime treats as a constant in models "
                    f"of IR version 3 or older; {_ELSEWHERE}"
                )
        # do not pass defaults, because onnxruntime has them, and rejects arrays of some types, such as int4
        given = {
            name: _in_order(value)
            for name, value in inputs.items()
            if name in self._taken and not (name in self._defaults and value is self._defaults[name])
        }
        try:
            return dict(zip(names, outputs_of(self._session, given, names), strict=True))
        except Exception as error:  # onnxruntime's exceptions have no common base class
            raise self._failure("failed", error) from error

    def _failure(self, what: str, error: Exception) -> ModelError:
        return ModelError(f"{self._source}: {self._name} {what}: {in_words(error)}; {_ELSEWHERE}")


def _in_order(value: Any) -> Any:
    """Convert an array, or each array of a list, to C order. Return None, which is an empty optional, unchanged."""
    if isinstance(value, list):
        return [_in_order(each) for each in value]
    return value if value is None else np.ascontiguousarray(value).reshape(value.shape)
