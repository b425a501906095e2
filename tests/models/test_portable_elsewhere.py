"""The portable SegmentMax on onnxruntime's own operators, as documented in docs/integrations/onnx.md."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import maxops as mo
from conftest import IN_CI
from helpers.bits import Array, assert_same_bits, mixed, of_words
from maxops import dtypes, spec
from maxops import onnx as mx
from maxops.dtypes import DType
from maxops.typing import FillMode

ort = pytest.importorskip("onnxruntime")
pytest.importorskip("maxops.onnxruntime")
from test_onnxruntime import bound, segment_model  # noqa: E402  (needs both)

REFUSED = {
    dtypes.FLOAT16: "ScatterND",
    dtypes.BFLOAT16: r"Expand\(13\)",
    dtypes.INT16: r"Where\(16\)",
    dtypes.UINT16: r"Where\(16\)",
    dtypes.UINT64: r"Where\(16\)",
}
IDS = np.array([0, 0, 2, 2, 2, 5])

# CI also tests another version, for which the page must describe the results.
pytestmark = pytest.mark.skipif(
    ort.__version__ != "1.32.0" and not IN_CI, reason="the list was made with onnxruntime 1.32.0"
)


def portably(dtype: DType, mode: FillMode, data: Array) -> Any:
    options = ort.SessionOptions()
    options.log_severity_level = 4
    model = mx.portable(segment_model(dtype, mode, dtypes.INT64, None, data.ndim))
    return bound(ort.InferenceSession(model.SerializeToString(), options), {"x": data, "ids": IDS})[0]


@pytest.mark.parametrize("dtype", spec.SEGMENT_MAX_16.dtypes, ids=str)
@pytest.mark.parametrize("mode", ["ZERO", "LOWEST"])
@pytest.mark.parametrize("shape", [(6,), (6, 3)], ids=["1-D", "2-D"])
def test_each_type(dtype: DType, mode: FillMode, shape: tuple[int, ...]) -> None:
    data = mixed(dtype, shape, 1)
    if dtype in REFUSED:
        with pytest.raises(Exception, match=REFUSED[dtype]):
            portably(dtype, mode, data)
    else:
        assert_same_bits(portably(dtype, mode, data), mo.segment_max(data, IDS, fill_mode=mode))


@pytest.mark.parametrize("opset", range(18, 27))
def test_each_operator_set(opset: int) -> None:
    data = np.array([1, 3, 2, -1, 0, 5], np.float32)
    model = segment_model(dtypes.FLOAT32, "ZERO", dtypes.INT64, None, 1)
    model.opset_import[0].version = opset
    session = ort.InferenceSession(mx.portable(model).SerializeToString())
    assert_same_bits(session.run(None, {"x": data, "ids": IDS})[0], mo.segment_max(data, IDS, fill_mode="ZERO"))


def test_only_minus_zeros() -> None:
    data = of_words(dtypes.FLOAT32, [1 << 31] * 6)
    assert np.signbit(mo.segment_max(data, IDS, fill_mode="ZERO")[0])
    assert not np.signbit(portably(dtypes.FLOAT32, "ZERO", data)[0])
