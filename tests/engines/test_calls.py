"""Calls as data, the engines' rows, and the error for the first invalid id, without an engine."""

from __future__ import annotations

import dataclasses
import sys
from collections.abc import Callable
from itertools import product
from types import ModuleType
from typing import Any

import numpy as np
import pytest

from maxops import errors, spec
from maxops.calls import MaxCall, ReduceCall, ScatterCall, SegmentCall, check_attributes, of_node
from maxops.engines.base import Row, check_options, segments_along
from maxops.plan import faults

ONNX = spec.find("ONNX", "ReduceMax", 18, None)
OPENVINO = spec.find("OpenVINO", "SegmentMax", 16, None)


def _tagged(name: str, value: Any) -> tuple[str, Any]:
    return name, value


# -------------------------------------------------------------------------------------------------- calls


def test_a_call_of_max() -> None:
    call = MaxCall((1, 2.0, "x"), ties="first")
    assert call.kinds == (int, float, str)
    assert call.arrays == [("input 0", 1), ("input 1", 2.0), ("input 2", "x")]
    assert call.dim is None
    changed = call.map(_tagged, out=5)
    assert changed.inputs == (("input 0", 1), ("input 1", 2.0), ("input 2", "x"))
    assert changed == call._replace(inputs=changed.inputs, out=5)


def test_a_call_of_reduce_max() -> None:
    call = ReduceCall(1, (0,), initial=2)
    assert call.kinds == (int,)
    assert call.arrays == [("data", 1)]
    assert call.scalars == [("initial", 2)]
    assert ReduceCall(1).scalars == []
    assert call.map(_tagged) == call._replace(data=("data", 1))
    assert call.map(None, _tagged, keepdims=False) == call._replace(initial=("initial", 2), keepdims=False)
    assert call.map() == call


def test_a_call_of_segment_max() -> None:
    call = SegmentCall(1, 2.0, offsets="x", fill_value=3, initial=4)
    assert call.kinds == (int, float, str)
    assert call.arrays == [("data", 1), ("segment_ids", 2.0), ("offsets", "x")]
    assert SegmentCall(1, offsets=0).arrays == [("data", 1), ("offsets", 0)]
    assert call.scalars == [("fill_value", 3), ("initial", 4)]
    assert SegmentCall(1, initial=0).scalars == [("initial", 0)]
    assert SegmentCall(1).scalars == []
    assert (SegmentCall(1).ties, SegmentCall(1).axis, SegmentCall(1).sorted) == ("even", 0, True)
    mapped = call.map(_tagged, _tagged, axis=1)
    assert mapped.arrays == [(name, (name, value)) for name, value in call.arrays]
    assert mapped.scalars == [(name, (name, value)) for name, value in call.scalars]
    assert mapped.axis == 1


def test_a_call_of_a_scatter() -> None:
    assert ScatterCall(1, 2.0, "x").arrays == [("data", 1), ("indices", 2.0), ("updates", "x")]


def test_attributes_that_are_inputs() -> None:
    check_attributes(OPENVINO, OPENVINO.attributes)
    for name, expected in (
        ("data", "pass it as the first positional argument: operator(data)"),
        ("segment_ids", "pass it as the second positional argument: operator(data, segment_ids)"),
        ("num_segments", "pass it as the third positional argument: operator(data, segment_ids, num_segments)"),
    ):
        with pytest.raises(errors.AttributeValueError) as raised:
            check_attributes(OPENVINO, [name])
        assert expected in str(raised.value)
        assert raised.value.clause == OPENVINO.clause("inputs")
    with pytest.raises(errors.AttributeValueError, match="'nobody'; its attributes are: none"):
        check_attributes(spec.find("ONNX", "Max", 13, None), ["nobody"])
    with pytest.raises(errors.AttributeValueError, match="its attributes are: keepdims, noop_with_empty_axes"):
        check_attributes(ONNX, ["nobody"])


def test_calls_of_nodes() -> None:
    assert of_node(ONNX, [1, 2], {"keepdims": 0}, out=3) == ReduceCall(1, 2, keepdims=0, out=3, row=ONNX)
    assert of_node(OPENVINO, [1, 2, 3], {"fill_mode": "ZERO"}) == SegmentCall(1, 2, 3, "ZERO", row=OPENVINO)


@pytest.mark.parametrize("row", [row for row in spec.ALL if row.inputs], ids=repr)
def test_nodes_with_too_few_or_too_many_inputs(row: spec.Spec) -> None:
    most = len(row.inputs)
    least = sum(not is_optional for _, is_optional in row.inputs)
    for count in {*range(most + 2)} - {*range(least, most + 1)}:
        with pytest.raises(errors.InputCountError, match=rf"^{row.name} expects {least} .*, got {count}") as caught:
            of_node(row, [1] * count, {})
        assert caught.value.clause == row.clause("inputs")


# ------------------------------------------------------------------------------------------------ engines


def test_segments_go_to_their_axis() -> None:
    values, mask = np.zeros((4, 2, 3)), np.zeros(4, bool)
    for axis, shape in ((0, (4, 2, 3)), (1, (2, 4, 3)), (2, (2, 3, 4))):
        moved, same = segments_along(axis, np.moveaxis, (values, mask))
        assert moved.shape == shape
        assert same is mask
    assert segments_along(0, np.moveaxis, values)[0] is values


def test_rows_of_engines(monkeypatch: pytest.MonkeyPatch) -> None:
    package, module = ModuleType("made_up"), ModuleType("made_up.engine")
    package.engine = module  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "made_up", package)
    row = Row("own", ("collections:OrderedDict", int), "made_up.engine")
    assert row.load() is module
    assert Row("own", (int,), module).load() is module
    assert row.takes(bool)
    assert not row.takes(str)
    with pytest.raises(dataclasses.FrozenInstanceError):
        row.name = "other"  # type: ignore[misc]


def test_options_that_an_engine_lacks() -> None:
    row, both = Row("own", (int,), "x"), Row("own", (int,), "x", options=frozenset({"out", "dim"}))
    call = ReduceCall(1)
    check_options(row, call)
    check_options(both, call._replace(out=1, dim="x"))
    with pytest.raises(errors.OutputError, match="reduce_max out= is not supported by the own engine") as raised:
        check_options(row, call._replace(out=1))
    assert raised.value.clause == spec.REDUCE_MAX.clause("out")
    with pytest.raises(
        errors.AttributeValueError, match="reduce_max dim= requires xarray arrays, got dim='x'"
    ) as wrong:
        check_options(row, call._replace(dim="x"))
    assert wrong.value.clause == spec.REDUCE_MAX.clause("dim")
    for options in (row, both):
        with pytest.raises(errors.AttributeValueError, match="ties"):
            check_options(options, call._replace(ties="last"))


# ------------------------------------------------------------------------------------------- faults of ids


def test_the_first_fault_of_each_kind() -> None:
    ids = np.array([0, 4, 2, 7, -1, 9, -5])
    found = faults.first_id_faults(ids, sorted=True, out_of_range="error", num_segments=7)
    assert found == [("negative_id", 4, -1, -1), ("id_too_large", 3, 7, 7), ("ids_decrease", 2, 2, 4)]
    assert faults.first_id_faults(ids, sorted=True, out_of_range=None, num_segments=7) == [found[0], found[2]]
    assert faults.first_id_faults(ids, sorted=False, out_of_range="drop", num_segments=7) == []
    assert faults.first_id_faults(ids[:1], sorted=True, out_of_range="error", num_segments=1) == []
    assert faults.first_id_faults(ids, sorted=False, out_of_range="error", num_segments=None) == found[:1]
    huge = np.array([2**63 - 1, 2**63 - 2])
    assert faults.first_id_faults(huge, sorted=False, out_of_range="error", num_segments=2**70) == [
        ("id_too_large", 0, 2**63 - 1, 2**63 - 1)
    ]


FAULTY = {"negative_id": -1, "id_too_large": 9, "ids_decrease": 0}


@pytest.mark.parametrize("is_sorted", [False, True])
@pytest.mark.parametrize("out_of_range", ["error", "drop", None])
def test_the_first_fault_of_all(is_sorted: bool, out_of_range: Any) -> None:
    """Test the order of rules: the core checks all rules for CHECKED_TOGETHER ids, and then for the next ones."""
    rules: dict[str, Any] = {"sorted": is_sorted, "out_of_range": out_of_range, "num_segments": 5}

    def said(check: Callable[..., None], *arguments: Any, **options: Any) -> str:
        try:
            check(spec.SEGMENT_MAX, *arguments, **options)
        except errors.SegmentIdsError as error:
            return str(error)
        return ""

    places = [(-2, -1), (-1, 0), (-1, 1), (0, 1), (1, 2), (-40, 1)]
    for first, second, at in product(FAULTY, FAULTY, places):
        ids = np.ones(faults.CHECKED_TOGETHER + 5, np.int8)
        for name, place in zip((first, second), at, strict=True):
            ids[faults.CHECKED_TOGETHER + place] = FAULTY[name]
        found = faults.first_id_faults(ids, **rules)
        assert said(faults.check_segment_ids, ids, **rules) == said(faults.raise_first_id_fault, found, 5), (first, at)


def test_ids_that_no_longer_break_a_rule(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("maxops._native.check_indices", lambda *_: ("", 0, 0, 0))
    with pytest.raises(errors.SegmentIdsError, match=r"pass a copy, segment_ids\.copy\(\)") as raised:
        faults.check_segment_ids(spec.SEGMENT_MAX, np.array([0, 1]))
    assert raised.value.clause == spec.SEGMENT_MAX.clause("ids")
    with pytest.raises(errors.OffsetsError, match=r"pass a copy, offsets\.copy\(\)") as other:
        faults.check_offsets(spec.SEGMENT_MAX, np.array([0, 1]), 1)
    assert other.value.clause == spec.SEGMENT_MAX.clause("offsets")


def test_whether_these_are_offsets() -> None:
    assert faults.are_offsets(np.array([0, 1, 1, 4]), 4) is True
    for wrong in ([1, 4], [0, 5], [0, 3, 2, 4], [0]):
        assert faults.are_offsets(np.array(wrong), 4) is False
