"""Ids of any integer dtype keep their values, and the standard's own operator accepts only int32 and int64."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import maxops as mo
from helpers.bits import Array, assert_same_bits, mixed
from maxops import dtypes, reference, spec
from maxops.dtypes import DType
from maxops.errors import DTypeError, OutputTooLargeError, SegmentIdsError
from maxops.typing import Ties

ANY_INTEGER = pytest.mark.parametrize("index", spec.SEGMENT_MAX.index_dtypes, ids=str)
DATA = mixed(dtypes.FLOAT32, (60, 2), 4, nans=0.1)
SORTED = np.arange(60) * 2  # up to 118, which int8 can represent
FORMS: dict[str, Callable[[Array], Array]] = {
    "contiguous": lambda ids: ids,
    "swapped": lambda ids: ids.astype(ids.dtype.newbyteorder()),
    "strided": lambda ids: np.repeat(ids, 2)[::2],
    "unaligned": lambda ids: np.frombuffer(b"?" + ids.tobytes(), np.uint8)[1:].view(ids.dtype),
}
CALLS: dict[str, dict[str, Any]] = {
    "plain": {},
    "unchecked": {"check_ids": False},
    "fewer-segments": {"num_segments": 9},
    "results-beside": {"return_indices": True, "return_empty": True},
    "initial": {"fill_mode": None, "initial": 3},
    "dropped": {"num_segments": 9, "out_of_range": "drop"},
}


@ANY_INTEGER
@pytest.mark.parametrize("form", FORMS)
def test_ids_mean_what_those_of_int64_mean(index: DType, form: str) -> None:
    ids = FORMS[form](SORTED.astype(index.numpy))
    for name, options in CALLS.items():
        for given, is_sorted in ((ids, True), (ids[::-1], False)):
            if name == "fewer-segments" and not is_sorted:
                continue
            whole: dict[str, Any] = {"fill_mode": "ZERO", "sorted": is_sorted} | options
            got = mo.segment_max(DATA, given, **whole)
            expected = mo.segment_max(DATA, given.astype(np.int64), **whole)
            for one, other in zip(got, expected, strict=True) if isinstance(got, tuple) else ((got, expected),):
                assert_same_bits(one, other)


@pytest.mark.parametrize("index", ["uint8", "int16", "uint32", "uint64"])
def test_the_callers_output_may_be_the_ids_own_memory(index: str) -> None:
    ids = SORTED.astype(index)
    data = mixed(dtypes.of(ids.dtype), (60,), 5)  # type: ignore[arg-type]
    expected = reference.segment_max(data, ids.copy(), 60, "ZERO")
    assert_same_bits(mo.segment_max(data, ids, 60, fill_mode="ZERO", out=ids), expected)


@ANY_INTEGER
def test_a_wrong_id_is_told_as_it_was_given(index: DType) -> None:
    highest = np.iinfo(index.numpy).max
    for place in (1, 30, 58):
        ids = SORTED.astype(index.numpy)
        ids[place] = highest
        after = rf"got {ids[place + 1]} after {highest} at position {place + 1};"
        with pytest.raises(SegmentIdsError, match=after):
            mo.segment_max(DATA, ids, 200, fill_mode="ZERO")
        with pytest.raises(SegmentIdsError, match=rf"\(119\), got {highest} at position {place};"):
            mo.segment_max(DATA, ids, 119, fill_mode="ZERO", sorted=False)
        if index.kind == "int":
            ids[place] = -2
            with pytest.raises(SegmentIdsError, match=f"must not be negative, got -2 at position {place};"):
                mo.segment_max(DATA, ids, fill_mode="ZERO", sorted=False)


def test_ids_past_int64_are_past_every_number_of_segments() -> None:
    far = np.concatenate([SORTED[:58], [0, 0]]).astype(np.uint64)
    far[58:] = 2**63 + 1, 2**64 - 1
    for options in ({}, {"check_ids": False}, {"out_of_range": "drop"}, {"sorted": False, "out_of_range": "drop"}):
        got = mo.segment_max(DATA, far, 116, fill_mode="ZERO", **options)
        assert_same_bits(got, reference.segment_max(DATA[:58], SORTED[:58], 116, "ZERO"))
    with pytest.raises(OutputTooLargeError, match="output of shape"):
        mo.segment_max(DATA, far, fill_mode="ZERO")
    with pytest.raises(SegmentIdsError, match=f"got {2**63 + 1} after {2**64 - 1} at position 59;"):
        mo.segment_max(DATA, np.concatenate([far[:58], far[:57:-1]]), 116, fill_mode="ZERO")


@pytest.mark.parametrize("given", [np.zeros(60), np.zeros(60, np.bool), np.zeros(60, "m8[s]"), np.zeros(60, object)])
def test_what_is_no_integer_is_no_id(given: Array) -> None:
    with pytest.raises(DTypeError, match=r"segment_ids must have dtype int8, int16, int32, int64, uint8.* or uint64"):
        mo.segment_max(DATA, given, fill_mode="ZERO")


@ANY_INTEGER
def test_the_named_standard_takes_int32_and_int64(index: DType) -> None:
    named = mo.operator("OpenVINO", "SegmentMax", 16)
    ids, number = SORTED.astype(index.numpy), index.numpy.type(119)
    if index in named.spec.index_dtypes:
        assert named(DATA, ids, number, fill_mode="ZERO").shape == (119, 2)
        return
    for inputs in ((DATA, ids), (DATA, SORTED, number)):
        with pytest.raises(
            DTypeError,
            match=rf"must have dtype int32 or int64, got {index}; convert .* \[OpenVINO.SegmentMax-16.T_IDX\]",
        ):
            named(*inputs, fill_mode="ZERO")


@ANY_INTEGER
@pytest.mark.parametrize("ties", ["first", "even"])
def test_gradients_of_tensors_go_to_the_same_rows(index: DType, ties: Ties) -> None:
    torch = pytest.importorskip("torch")
    gradients = []
    for names in (SORTED // 4, (SORTED // 4).astype(index.numpy)):
        x = torch.arange(60.0).reshape(30, 2).repeat(2, 1).requires_grad_()
        mo.segment_max(x, torch.from_numpy(names), fill_mode="ZERO", ties=ties).sum().backward()
        bounds = torch.from_numpy(np.array([0, 20, 60], names.dtype))
        mo.segment_max(x, offsets=bounds, fill_mode="ZERO", ties=ties).sum().backward()
        gradients.append(x.grad)
    assert torch.equal(*gradients)


@ANY_INTEGER
@pytest.mark.parametrize("wide", [True, False], ids=["int64-there", "int64-absent"])
@pytest.mark.parametrize("own", [True, False], ids=["jax-ids", "numpy-ids"])
def test_jax_takes_them_compiled_or_not(index: DType, wide: bool, own: bool) -> None:
    jax = pytest.importorskip("jax")
    ids = SORTED.astype(index.numpy)
    ids[59] = np.iinfo(index.numpy).max  # past the last segment, and above the maximum of int32
    with jax.enable_x64(wide):
        given = jax.numpy.asarray(ids) if own else ids
        if given.dtype != ids.dtype:  # JAX does not have this type here
            return
        expected = reference.segment_max(DATA, ids, 100, "ZERO")
        for compiled in (False, True):
            call = lambda data, names: mo.segment_max(data, names, 100, fill_mode="ZERO")  # noqa: E731
            got = (jax.jit(call) if compiled and own else call)(jax.numpy.asarray(DATA), given)
            assert_same_bits(np.asarray(got), expected)
