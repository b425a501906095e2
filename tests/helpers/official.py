"""The ONNX package's own test cases of every operator."""

from __future__ import annotations

import warnings
from functools import cache
from typing import Any

import numpy as np
import pytest
from onnx.backend.test.loader import load_model_tests
from onnx.reference.ops import op_pool_common

from maxops.plan import Array


def _zeros(padded: Array, x_shape: Any, kernel: Any, strides: Any, out_shape: Any, *_: Any, **__: Any) -> Array:
    return np.zeros([*x_shape[:2], *out_shape], padded.dtype)


@cache
def official_cases() -> tuple[Any, ...]:
    """Return the cases with their models and data. The data of pooling cases is zero, because it takes 6 s to compute.

    The onnx package creates the cases once in a process, on first use.
    """
    with warnings.catch_warnings(), pytest.MonkeyPatch.context() as patch:
        warnings.simplefilter("ignore")  # some cases cast values that overflow
        patch.setattr(op_pool_common, "pool", _zeros)
        return tuple(load_model_tests(kind="node"))
