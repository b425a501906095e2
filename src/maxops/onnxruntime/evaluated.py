"""Runs models in ONNX Runtime, with max operators on maxops, for `maxops.onnx.load` with ``on="onnxruntime"``."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime
from onnx import ModelProto

from maxops.errors import MaxopsError, ModelError, ModelInputError
from maxops.model import Placement
from maxops.onnx.evaluated import in_words, placements
from maxops.onnx.inline import called, label
from maxops.onnxruntime import node
from maxops.onnxruntime.session import numpy_lacks, outputs_of, session_with
from maxops.plan import Array

_ELSEWHERE = 'use --on onnx (on="onnx" in Python) to run the model in onnx\'s reference evaluator'


@cache
def _operators() -> frozenset[tuple[str, str]]:
    """Return the domain and name of each operator that ONNX Runtime has. A few builds do not list them."""
    listed = getattr(onnxruntime.capi.onnxruntime_pybind11_state, "get_all_operator_schema", list)
    return frozenset((schema.domain, schema.name) for schema in listed())


class SessionEvaluator:
    """Runs a model in ONNX Runtime, in which the operators of maxops are registered."""

    def __init__(self, written: ModelProto, folder: Path | None, source: str, defaults: Mapping[str, Array]) -> None:
        self._source = source
        self._name = f"onnxruntime {onnxruntime.__version__}"
        self.placements: tuple[Placement, ...] = placements(written, self._name)
        for key in called(written):
            if key[:2] in _operators():
                raise ModelError(
                    f"{source}: {label(key).lstrip('.')} is both a function of the model and an operator of "
                    f"{self._name}, which may run the operator; rename the function; {_ELSEWHERE}"
                )
        options = onnxruntime.SessionOptions()
        options.log_severity_level = 4  # log only fatal errors, because all others raise exceptions
        with self._failures("cannot run the model"):
            self._session = session_with(options, written, folder, providers=["CPUExecutionProvider"])
        types = [each.type for each in (*self._session.get_inputs(), *self._session.get_outputs())]
        extended = [each for each in types if numpy_lacks(each)]
        if extended and any(not each.startswith("tensor(") for each in types):
            raise ModelError(
                f"{source}: {self._name} does not support inputs and outputs of the type {extended[0]} in models with "
                f"sequences or optionals; {_ELSEWHERE}"
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
            if _content(inputs[name]) != _content(array):
                raise ModelInputError(
                    f"{self._source}: input {name!r} has a default, which ONNX Runtime treats as a constant in models "
                    f"of IR version 3 or older; {_ELSEWHERE}"
                )
        # do not pass defaults, because onnxruntime has them
        given = {
            name: _in_order(value)
            for name, value in inputs.items()
            if name in self._taken and not (name in self._defaults and value is self._defaults[name])
        }
        with self._failures("failed"):
            return dict(zip(names, outputs_of(self._session, given, names), strict=True))

    @contextmanager
    def _failures(self, what: str) -> Iterator[None]:
        """Raise the errors of onnxruntime as ModelError, and the errors of max operators as errors of their classes."""
        with node.errors() as raised:
            try:
                yield
            except MaxopsError as error:
                raise error.at(self._source) from error
            except Exception as error:  # onnxruntime's exceptions have no common base class
                if raised:
                    label = re.search(r"running (\S+) node\. Name:'(.*?)' Status Message", str(error))
                    operator, name = label.groups() if label else ("max operator", "")
                    where = f"{self._source}: node {f'{name!r} ' if name else ''}({operator})"
                    raise raised[-1].at(f"{where} in {self._name}") from error
                raise ModelError(f"{self._source}: {self._name} {what}: {in_words(error)}; {_ELSEWHERE}") from error


def _content(array: Array) -> object:
    """Return the shape and the elements of an array, for comparison. The bytes of strings are pointers."""
    return array.shape, array.tolist() if array.dtype.kind in "OU" else array.tobytes()


def _in_order(value: Any) -> Any:
    """Convert an array, or each array of a list, to C order. Return None, which is an empty optional, unchanged."""
    if isinstance(value, list):
        return [_in_order(each) for each in value]
    return value if value is None else np.ascontiguousarray(value).reshape(value.shape)
