"""The CuPy engine: on CuPy if there is a GPU, otherwise on a fake with CPU tensors."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from functools import partial
from importlib import import_module
from typing import Any

import numpy as np
import pytest

import maxops as mo
from helpers.bits import assert_same_bits, mixed
from maxops import dtypes, errors, reference

torch = pytest.importorskip("torch")

ON_GPU = torch.cuda.is_available()
F32 = dtypes.FLOAT32


@pytest.fixture(autouse=True)
def cupy(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    if ON_GPU:
        yield pytest.importorskip("cupy")
        return
    fake = import_module("helpers.fake_cupy")
    monkeypatch.setitem(sys.modules, "cupy", fake)
    with import_module("maxops.engines.torch").only_torch_operators():
        yield fake


def check(got: Any, expected: Any) -> None:
    """Raise unless a CuPy array has these bits."""
    assert type(got) is sys.modules["cupy"].ndarray
    assert_same_bits(got.get() if ON_GPU else import_module("maxops.engines.torch.memory").view(got.tensor), expected)


@pytest.mark.parametrize("dtype", [F32, dtypes.FLOAT16, dtypes.UINT32, dtypes.BOOL], ids=str)
def test_three_operators(cupy: Any, dtype: dtypes.DType) -> None:
    a, b = mixed(dtype, (6, 5), 1), mixed(dtype, (5,), 2)
    x, y = cupy.asarray(a), cupy.asarray(b)
    check(mo.maximum(x, y), reference.maximum(a, b))
    values, places = mo.reduce_max(x, 1, return_indices=True)
    check(values, reference.reduce_max(a, (1,)))
    check(places, reference.first_in_axes(a, (1,), reference.reduce_max(a, (1,))))
    ids = np.array([0, 0, 2, 2, 2, 3])
    values, empty = mo.segment_max(x, cupy.asarray(ids), 5, fill_mode="ZERO", return_empty=True)
    check(values, reference.segment_max(a, ids, 5, "ZERO"))
    check(empty, np.array([False, True, False, False, True]))
    offsets = cupy.asarray(np.array([0, 2, 2, 5, 6]))
    check(mo.segment_max(x, offsets=offsets, fill_mode="ZERO"), reference.segment_max(a, ids, 4, "ZERO"))


def test_out_is_written_in_place(cupy: Any) -> None:
    a, b = mixed(F32, (8,), 1), mixed(F32, (8,), 2)
    x, y = cupy.asarray(a), cupy.asarray(b)
    assert mo.maximum(x, y, out=x) is x
    check(x, reference.maximum(a, b))
    top = cupy.asarray(np.zeros((), np.float32))
    assert mo.reduce_max(y, None, False, False, top) is top
    check(top, reference.reduce_max(b, (0,), keepdims=False))


def test_scalars(cupy: Any) -> None:
    a = mixed(F32, (8,), 1)
    check(mo.maximum(cupy.asarray(a), 2), reference.maximum(a, np.array(2, np.float32)))
    first = cupy.asarray(np.array(3, np.float32))
    check(mo.reduce_max(cupy.asarray(a), initial=first), reference.reduce_max(a, (0,), initial=np.array(3, np.float32)))
    count = cupy.asarray(np.array(2))
    ids = np.zeros(8, np.int32)
    check(
        mo.segment_max(cupy.asarray(a), cupy.asarray(ids), count, fill_mode="LOWEST"),
        reference.segment_max(a, ids, 2, "LOWEST"),
    )


@pytest.mark.parametrize("axis", [0, 1])
def test_strides_below_zero(cupy: Any, axis: int) -> None:
    a = mixed(F32, (6, 2), 1)
    backwards = cupy.flip(cupy.asarray(a), axis) if ON_GPU else cupy.ndarray(cupy.asarray(a).tensor, axis)
    check(mo.reduce_max(backwards, 0, return_indices=True)[0], reference.reduce_max(np.flip(a, axis), (0,)))
    check(mo.maximum(backwards, 0), reference.maximum(np.flip(a, axis), np.array(0, np.float32)))
    with pytest.raises(errors.OutputError, match="does not support negative strides") as raised:
        mo.maximum(backwards, 0, out=backwards)
    assert raised.value.clause == "maxops.maximum.out"


@pytest.mark.skipif(ON_GPU, reason="the stand-in counts copies")
def test_only_strides_below_zero_are_copied(cupy: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Test that transposed, strided and broadcast arrays, whose stride is 0, are not copied."""
    copied: list[Any] = []
    copy = cupy.ascontiguousarray

    def counting(array: Any) -> Any:
        copied.append(array)
        return copy(array)

    monkeypatch.setattr(cupy, "ascontiguousarray", counting)
    plain = torch.arange(6.0).reshape(2, 3)
    for tensor in (plain, plain.T, plain[:1].expand(4, 3), plain[:, ::2]):
        x, expected = cupy.ndarray(tensor), reference.maximum(tensor.numpy(), np.array(2, np.float32))
        check(mo.maximum(x, 2), expected)
        out = cupy.ndarray(torch.zeros(tensor.shape))
        assert mo.maximum(x, 2, out=out) is out
        check(out, expected)
    assert copied == []
    mo.maximum(cupy.ndarray(plain, backwards=0), 2)
    assert len(copied) == 1


@pytest.mark.skipif(ON_GPU, reason="the stand-in has any strides")
@pytest.mark.parametrize("strides", [(12, -4), (-12, 4), (-4,), (4, 8, -8)], ids=str)
def test_an_out_with_any_stride_below_zero_is_refused(
    cupy: Any, strides: tuple[int, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    x, out = cupy.asarray(np.zeros((2, 3), np.float32)), cupy.asarray(np.zeros((2, 3), np.float32))
    monkeypatch.setattr(out, "__class__", type("Other", (cupy.ndarray,), {"strides": strides}))
    with pytest.raises(errors.OutputError, match=r"out has strides \(.*does not support negative strides"):
        mo.maximum(x, x, out=out)


@pytest.mark.parametrize("out", [[0.0, 0.0, 0.0], np.zeros(6, np.float32)[::-2]], ids=["list", "NumPy, backwards"])
def test_an_out_of_another_kind_is_refused(cupy: Any, out: Any) -> None:
    x = cupy.asarray(np.zeros(3, np.float32))
    with pytest.raises(errors.OutputError, match=f"the same library as the inputs, got {type(out).__name__}") as raised:
        mo.maximum(x, x, out=out)
    assert raised.value.clause == "maxops.maximum.out"


@pytest.mark.parametrize("hook", ["__dlpack__", "__dlpack_device__"])
@pytest.mark.parametrize("raised", [BufferError, KeyError, ZeroDivisionError, TypeError])
def test_hooks_that_fail(cupy: Any, hook: str, raised: type[Exception], monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: Any, **__: Any) -> Any:
        raise raised("not today")

    x = cupy.asarray(np.zeros((2, 3), np.float32))
    if ON_GPU:
        other: Any = type("Other", (cupy.ndarray,), {hook: fail})
        x = x.view(other)
    else:
        monkeypatch.setattr(cupy.ndarray, hook, fail)
    with pytest.raises(errors.DTypeError, match=r"reduce_max data .*that DLPack cannot export: .*not today") as error:
        mo.reduce_max(x)
    assert error.value.clause == "maxops.reduce_max.types"


@pytest.mark.skipif(ON_GPU, reason="the stand-in's hooks can be of one array")
@pytest.mark.parametrize("name", ["data", "segment_ids", "num_segments", "out"])
def test_the_error_names_the_array(cupy: Any, name: str) -> None:
    def fail(*_: Any, **__: Any) -> Any:
        raise BufferError("not today")

    kept = type("Kept", (cupy.ndarray,), {"__dlpack__": fail})
    arrays: dict[str, Any] = {
        "data": torch.zeros(3), "segment_ids": torch.zeros(3, dtype=torch.int64), "num_segments": torch.tensor(2),
        "out": torch.zeros(3),
    }  # fmt: skip
    given = {each: (kept if each == name else cupy.ndarray)(tensor) for each, tensor in arrays.items()}
    out = given.pop("out")
    segments: Any = partial(mo.segment_max, **given, fill_mode="ZERO")
    call = partial(mo.maximum, given["data"], 0, out=out) if name == "out" else segments
    with pytest.raises(errors.DTypeError, match=rf" {name} is a .*not today"):
        call()


def test_errors_are_the_same_as_everywhere(cupy: Any) -> None:
    x = cupy.asarray(np.zeros((2, 3), np.float32))
    with pytest.raises(errors.AxesError, match="data of rank 2, got 2"):
        mo.reduce_max(x, 2)
    with pytest.raises(errors.DTypeError, match="input 1 is int32, but input 0 is float32"):
        mo.maximum(x, cupy.asarray(np.zeros(3, np.int32)))
    with pytest.raises(errors.SegmentIdsError, match="got 0 after 1 at position 1"):
        mo.segment_max(x, cupy.asarray(np.array([1, 0])), fill_mode="ZERO")
    with pytest.raises(errors.EngineError, match=r"input 0 is of type ndarray \(cupy\), .* no engine supports these"):
        mo.maximum(x, np.zeros(3, np.float32))


def forget(monkeypatch: pytest.MonkeyPatch, missing: str) -> None:
    """Make the next call import PyTorch's engine again, without this module."""
    for name in [name for name in sys.modules if name.startswith("maxops.engines.torch")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.delattr("maxops.engines.torch")
    monkeypatch.setitem(sys.modules, missing, None)


def test_without_torch_the_error_says_what_to_install(cupy: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    x = cupy.asarray(np.zeros(3, np.float32))
    forget(monkeypatch, "torch")
    with pytest.raises(errors.EngineError, match=r'torch is not installed: pip install "maxops\[gpu\]"'):
        mo.maximum(x, x)


def test_an_import_that_fails_within_is_not_told_as_torch_missing(cupy: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    x = cupy.asarray(np.zeros(3, np.float32))
    forget(monkeypatch, "torch.autograd")
    with pytest.raises(ImportError, match="autograd") as raised:
        mo.maximum(x, x)
    assert not isinstance(raised.value, errors.MaxopsError)
