"""Every opset version of a model or a function, through every entry point: a result, or a maxops error."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from contextlib import suppress
from itertools import product
from pathlib import Path

import numpy as np
import pytest
from onnx import ModelProto, parser

import maxops.onnx as mx
from maxops.checker import check
from maxops.errors import MaxopsError
from maxops.onnx.backend import Backend
from maxops.plan import Array

pytestmark = pytest.mark.usefixtures("unsandboxed")

VERSIONS = [-(2**63), -1, 0, 1, 13, 2**31 - 1, 2**31, 2**32 + 13, 2**63 - 1]
DOMAINS = ["", "ai.onnx", "maxops", "own", "other"]
# A function call, the same function in an If, and operators alone.
TEXTS = {
    "plain": """<ir_version: 10, opset_import: ["": 18, "maxops": 1]>
        m (float[2] x, float[2] y, int64[2] ids) => (float[2] z, float[2] s) {
            a = Max(x, y) z = maxops.Max(a, y) s = maxops.SegmentMax <fill_mode = "ZERO">(z, ids) }""",
    "function": """<ir_version: 10, opset_import: ["": 18, "own": 1, "maxops": 1]>
        m (float[2] x, float[2] y) => (float[2] z) { a = own.Larger(x, y) z = Max(a, y) }
        <domain: "own", opset_import: ["": 18, "maxops": 1]>
        Larger (a, b) => (c) { d = Max(a, b) e = Abs(d) f = maxops.Max(e, b) c = ReduceMax <keepdims = 0>(f) }""",
    "in an If": """<ir_version: 10, opset_import: ["": 18, "own": 1]>
        m (float[2] x, float[2] y, bool b) => (float[2] z) {
            z = If (b) <then_branch = g () => (float[2] t) { t = own.Larger(x, y) },
                        else_branch = h () => (float[2] e) { e = own.Larger(y, y) }> }
        <domain: "own", opset_import: ["": 18]>
        Larger (a, b) => (c) { c = Max(a, b) }""",
}
FEEDS = {
    "x": np.array([1, np.nan], np.float32),
    "y": np.array([-0.0, 2], np.float32),
    "ids": np.array([0, 1]),
    "b": np.array(True),
}


def feeds(model: ModelProto) -> dict[str, Array]:
    return {each.name: FEEDS[each.name] for each in model.graph.input}


def _written(model: ModelProto, place: Path) -> Path:
    path = place / "model.onnx"
    path.write_bytes(model.SerializeToString())
    return path


ENTRIES: dict[str, Callable[[ModelProto, Path], object]] = {
    "run": lambda model, place: mx.load(_written(model, place)).run(feeds(model)),
    "rewrite": lambda model, _: mx.rewrite(model),
    "check": lambda model, place: check(_written(model, place)),
    "backend": lambda model, _: Backend.run_model(model, list(feeds(model).values())),
}


@pytest.mark.parametrize("entry", ENTRIES)
@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("text", TEXTS)
def test_versions(text: str, version: int, entry: str, tmp_path: Path) -> None:
    """Test the version instead of each import, and as an additional import."""
    written = parser.parse_model(TEXTS[text])
    holders = range(1 + len(written.functions))
    for number, domain, adds in product(holders, DOMAINS, (False, True)):
        model = ModelProto.FromString(written.SerializeToString())
        imports = [model, *model.functions][number].opset_import
        named = [entry for entry in imports if entry.domain == domain]
        if adds:
            imports.add(domain=domain, version=version)
        elif named:
            named[0].version = version
        else:
            continue
        with warnings.catch_warnings(), suppress(MaxopsError):
            warnings.simplefilter("ignore")
            ENTRIES[entry](model, tmp_path)
