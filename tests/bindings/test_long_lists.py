"""Lists longer than any supported number of axes, inputs or elements, for each function."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import product
from typing import Any

import numpy as np
import pytest

import maxops
from helpers.bits import Array, assert_same_bits, strided, swapped
from helpers.engine_adapter import Adapter
from helpers.engine_adapters import ADAPTERS
from maxops import _native
from maxops.errors import AxesError, MaxopsError

mo: Any = maxops
MOST = 64  # NumPy's maximum number of axes
LENGTHS = [MOST - 1, MOST, MOST + 1, 2 * MOST, 2 * MOST + 1, 1000, 20_000]


def listed(length: int) -> Iterator[Sequence[int]]:
    """Yield lists of axes: one axis repeated, all axes, negative axes, and a valid axis after many invalid ones."""
    yield [0] * length
    yield [-1] * length
    yield range(length)
    yield range(-length, 0)
    yield [*range(1, length), 0]


def spelled(axes: Sequence[int]) -> Iterator[Any]:
    """Yield the axes as each type of argument that can contain several axes."""
    array = np.array(axes, np.int64)
    yield from (list(axes), tuple(axes), axes, array, swapped(array), strided(array), array[::-1][::-1])
    yield [*map(np.int64, axes)]
    for kind in (np.int8, np.int32, np.uint64):
        if np.iinfo(kind).min <= min(axes) and max(axes) <= np.iinfo(kind).max:
            yield array.astype(kind)


def versions() -> Iterator[Callable[[Any, Any], Any]]:
    """Yield ReduceMax with both argument names of the plain function, and each standard's version."""
    yield mo.reduce_max
    yield lambda data, axes: mo.reduce_max(data, axis=axes, return_indices=True)
    yield lambda data, axes: mo.reduce_max(data, axes, keepdims=False, initial=1)
    yield by_the_core
    for row in (1, 11, 12, 13):
        yield lambda data, axes, row=row: mo.operator("ONNX", "ReduceMax", row)(data, axes=axes)  # type: ignore[misc]
    for row in (18, 20):
        yield lambda data, axes, row=row: mo.operator("ONNX", "ReduceMax", row)(data, axes)  # type: ignore[misc]


def by_the_core(data: Array, axes: Any) -> Any:
    """Call the core without the planner."""
    if (result := _native.reduce_max(data, axes)) is None:
        raise AxesError("the core leaves it to the planner", "maxops.reduce_max.axes")
    return result


@pytest.mark.parametrize("length", LENGTHS)
@pytest.mark.parametrize("rank", [0, 3, MOST])
def test_more_axes_than_there_are(rank: int, length: int) -> None:
    data = np.zeros((1,) * rank, np.float32)
    for axes, (number, call) in product(listed(length), enumerate(versions())):
        is_in_range = -rank <= min(axes) <= max(axes) < rank
        is_valid = is_in_range and len({axis % rank for axis in axes}) == length
        for way in spelled(axes) if length <= 2 * MOST + 1 else [list(axes), np.array(axes)]:
            if is_valid and (number < 4 or min(axes) >= 0) and (number < 4 or type(way) is not np.ndarray):
                result = call(data, way)
                assert (result[0] if isinstance(result, tuple) else result).ndim in (rank, rank - length)
            elif not is_valid:
                with pytest.raises(AxesError):
                    call(data, way)


@pytest.mark.parametrize("rank", [31, 32, 33, 63, MOST])
def test_arrays_of_many_axes(rank: int) -> None:
    """Test each axis alone, all axes but one, and all axes in another order, with each operator."""
    random = np.random.default_rng(rank)
    shape = [1] * rank
    for axis in random.permutation(rank)[:3]:
        shape[axis] = 2
    data = random.permutation(8).astype(np.float32).reshape(shape)
    assert_same_bits(mo.maximum(data, data.reshape(shape[next(k for k in range(rank) if shape[k] > 1) :])), data)
    for axis in range(rank):
        others = [other for other in random.permutation(rank).tolist() if other != axis]
        for axes in ((axis,), (axis - rank,), tuple(others), [*others, axis], np.array(others)):
            taken = tuple(int(each) % rank for each in axes)
            values, places = mo.reduce_max(data, axes, keepdims=False, return_indices=True)
            kept = [other for other in range(rank) if other not in taken]
            sizes = [shape[other] for other in kept]
            flat = data.transpose(kept + sorted(taken)).reshape(*sizes, -1) if len(sizes) < MOST else data[..., None]
            assert_same_bits(values, np.asarray(flat.max(-1)))
            assert_same_bits(places, np.asarray(flat.argmax(-1)))
    assert_same_bits(mo.segment_max(data, [0] * shape[0], fill_mode="ZERO"), data.max(0, keepdims=True))
    assert_same_bits(mo.segment_max(data, offsets=[0, shape[0]], fill_mode="ZERO"), data.max(0, keepdims=True))


INPUTS = [7, 8, 9, 16, 17, 63, 64, 65, 129, 1000]
FORMS: list[Callable[[int], Any]] = [
    lambda number: np.full(3, number, np.float32),
    np.float32,
    float,
    int,
    lambda number: np.array(number, np.float32),
    lambda number: np.full((2, 1), number, ">f4"),
]


@pytest.mark.parametrize("count", INPUTS)
def test_many_inputs(count: int) -> None:
    """Test many inputs of each kind and of mixed kinds, also with named versions. Each input has some maxima."""
    versions = [mo.maximum, mo.operator("ONNX", "Max", 13), mo.operator("SONNX", "Max"), mo.operator("ONNX", "Max", 8)]
    for winner in sorted({0, 1, 7, 8, 9, 63, 64, 65, count // 2, count - 2, count - 1} & {*range(count)}):
        for number in range(len(FORMS) + 1):
            inputs = [FORMS[number if number < len(FORMS) else k % len(FORMS)](-(k % 7)) for k in range(count)]
            inputs[winner] = FORMS[number if number < len(FORMS) else winner % len(FORMS)](5)
            inputs[1 if winner == 0 else 0] = np.full(3, -9, np.float32)
            shape = np.broadcast_shapes(*{np.shape(each) for each in inputs})
            for call in versions:
                if call is versions[2] and any(type(each) in (int, float) for each in inputs):
                    continue  # the version does not accept Python numbers
                assert_same_bits(call(*inputs), np.full(shape, 5, np.float32))


ENGINES = [adapter for adapter in ADAPTERS if adapter.name in ("numpy", "torch", "jax", "dask", "xarray")]


@pytest.mark.parametrize("adapter", ENGINES, ids=lambda adapter: adapter.name)
def test_many_axes_and_inputs_by_every_engine(adapter: Adapter) -> None:
    adapter.need()
    data = np.zeros((2, 3), np.float32)
    with adapter.around():
        for length in (MOST, MOST + 1, 200, 1000):
            for axes in ([0] * length, list(range(length)), (-1,) * length, np.zeros(length, np.int64)):
                with pytest.raises(MaxopsError):
                    mo.reduce_max(*adapter.given((data,)), axes)
        inputs: list[Array] = [np.full(3, -k, np.float32) for k in range(70)]
        inputs[66] = np.full(3, 2, np.float32)
        assert_same_bits(adapter.take(mo.maximum(*adapter.given(tuple(inputs)))), inputs[66])


def model_of(axes: Sequence[int], opset: int, rank: int) -> Any:
    """Return a model of ReduceMax with axes as an attribute or as a constant input."""
    parser = pytest.importorskip("onnx").parser
    of = ", ".join(f"d{axis}" for axis in range(rank))
    listed = ", ".join(map(str, axes))
    node = f"y = ReduceMax <axes = [{listed}]> (x)"
    if opset >= 18:
        node = f"k = Constant <value = int64[{len(axes)}] {{{listed}}}> () y = ReduceMax (x, k)"
    text = f'<ir_version: 10, opset_import: ["": {opset}]> g (float[{of}] x) => (float y) {{ {node} }}'
    return parser.parse_model(text)


@pytest.mark.parametrize("opset", [11, 13, 18, 20])
def test_many_axes_in_onnxruntime(opset: int) -> None:
    pytest.importorskip("onnxruntime")
    sessions = pytest.importorskip("maxops.onnxruntime")
    parser = pytest.importorskip("onnx").parser
    for length in (MOST, MOST + 1, 200, 1000, 20_000):
        for axes in ([0] * length, range(length), [-1] * length):
            with pytest.raises(Exception, match=r"axes"):
                sessions.session(model_of(axes, opset, 2)).run(None, {"x": np.zeros((1, 1), np.float32)})
            if opset >= 18:  # axes that are known only at run time
                text = f'<ir_version: 10, opset_import: ["": {opset}]> g (float[a, b] x, int64[k] axes) => (float y) '
                session = sessions.session(parser.parse_model(text + "{ y = ReduceMax (x, axes) }"))
                with pytest.raises(Exception, match=r"axes"):
                    session.run(None, {"x": np.zeros((1, 1), np.float32), "axes": np.array(axes, np.int64)})
