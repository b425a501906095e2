"""Small calls on torch tensors, which run natively with the bits of NumPy, except calls that torch must observe."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from itertools import combinations, product
from typing import Any

import numpy as np
import pytest

import maxops as mo
from helpers.bits import assert_same_bits, each_type, mixed
from maxops import _native
from maxops.dtypes import DType
from maxops.engines import table
from maxops.errors import EngineError, MaxopsError, OutputError

torch: Any = pytest.importorskip("torch")

from torch.fx.experimental.proxy_tensor import make_fx  # noqa: E402

from maxops.engines.torch import dispatch, memory, only_torch_operators  # noqa: E402 - with torch alone

Call = Callable[..., Any]
# The maximum number of elements of a small call in this build, and one more.
MOST = _native.parameters()["kThreadedBytes"][0]


@pytest.fixture(autouse=True)
def _engine_is_found() -> None:
    """Make the first call, which looks up the engine after each `register_engine`."""
    mo.maximum(torch.ones(1))


def layouts(dtype: DType) -> Iterator[tuple[Any, Any]]:
    """Yield arrays and tensors with equal elements, in small shapes and all layouts."""
    shapes = [(), (0,), (1,), (3,), (2, 3), (1, 2), (2, 0), (2, 1, 3), (2, 2, 2, 2)]
    for seed, shape in enumerate(shapes):
        array = mixed(dtype, shape, seed)
        whole = memory.tensor_of(array)
        yield array, whole
        if len(shape) > 1:
            yield array.T, whole.mT if len(shape) == 2 else whole.permute(*reversed(range(len(shape))))
        if shape and shape[0] > 1:
            yield array[::2], whole[::2]
            yield array[:, 1:] if len(shape) > 1 else array[1:], whole[:, 1:] if len(shape) > 1 else whole[1:]
            yield np.broadcast_to(array[:1], shape), whole[:1].expand(shape)


def assert_same(got: Any, expected: Any) -> None:
    """Check the bits, types and shapes against NumPy's results, in new plain tensors in C order."""
    got, expected = (each if isinstance(each, tuple) else (each,) for each in (got, expected))
    for tensor, array in zip(got, expected, strict=True):
        assert type(tensor) is torch.Tensor
        assert not tensor.requires_grad
        assert tensor.is_leaf
        assert tensor.is_contiguous()
        assert_same_bits(memory.view(tensor), np.ascontiguousarray(array).reshape(array.shape))


def is_small(*arrays: Any) -> bool:
    """Return whether a call on these arrays is small in every build."""
    return bool(sum(array.nbytes for array in arrays) * 2 + 64 < MOST)


@each_type
def test_maximum(dtype: DType) -> None:
    scalar = mixed(dtype, (), 9)[()]
    for (a, x), (b, y) in product(layouts(dtype), repeat=2):
        try:
            expected = mo.maximum(a, b, scalar)
        except MaxopsError as error:
            with pytest.raises(type(error)):
                mo.maximum(x, y, scalar)
            continue
        done = _native.maximum(x, y, scalar)
        assert done is not None or not is_small(a, b)
        if done is not None:
            assert_same(done.contiguous(), expected)
            assert done.stride() == memory.like((x, y), done.shape).stride()
        if a.ndim:
            beside = _native.maximum(a, y)  # an array and a tensor
            if beside is not None:
                assert_same(beside.contiguous(), mo.maximum(a, b))
                assert beside.stride() == memory.like((y,), beside.shape).stride()
    one = memory.tensor_of(mixed(dtype, (3,), 1))
    copied = mo.maximum(one)
    assert copied.data_ptr() != one.data_ptr()


def test_every_layout_is_kept() -> None:
    """Test that results have the layout of `torch.empty_like` for any order of axes, gaps and repetitions."""
    count = 0
    for sizes in ((2, 3), (1, 3), (2, 1), (2, 2, 3), (1, 2, 3), (2, 1, 2), (3, 1, 1), (2, 2, 2, 2), (1, 2, 1, 3)):
        for steps in product((0, 1, 2, 3, 4, 6, 7) if len(sizes) < 4 else (0, 1, 2, 4, 8), repeat=len(sizes)):
            x = torch.arange(200.0).as_strided(sizes, steps)
            done = _native.maximum(x, 5.0)
            assert done.stride() == memory.like((x,), x.shape).stride(), (sizes, steps)
            assert done.equal(torch.clamp_min(x, 5.0))
            count += 1
    assert count == 3 * 7**2 + 4 * 7**3 + 2 * 5**4


@each_type
def test_reduce_max(dtype: DType) -> None:
    for array, tensor in layouts(dtype):
        every = range(-array.ndim, array.ndim)
        for axes in [None, *every, *combinations(range(array.ndim), 2)]:
            for options in (  # type: dict[str, Any]
                {"keepdims": False},
                {"return_indices": True},
                {"initial": mixed(dtype, (), 3)[()], "return_indices": True, "keepdims": 0},
            ):
                try:
                    expected = mo.reduce_max(array, axes, **options)
                except MaxopsError as error:
                    with pytest.raises(type(error)):
                        mo.reduce_max(tensor, axes, **options)
                    continue
                done = _native.reduce_max(tensor, axes, **options)
                assert done is not None or not is_small(array)
                assert_same(mo.reduce_max(tensor, axes, **options), expected)


@pytest.mark.parametrize("index_type", [np.int32, np.int64, np.uint8], ids=lambda kind: kind.__name__)
@each_type
def test_segment_max(dtype: DType, index_type: Any) -> None:
    every: dict[str, Any] = {"return_indices": True, "return_empty": True}
    drop: dict[str, Any] = {"sorted": False, "out_of_range": "drop", "initial": mixed(dtype, (), 4)[()]}
    kinds: list[tuple[list[int], dict[str, Any]]] = [
        ([0, 0, 2], {"num_segments": 4, "fill_mode": "LOWEST"}),
        ([2, 0, 2], {"num_segments": 3, "fill_mode": "zero", "sorted": False, **every}),
        ([0, -1, 7], {"num_segments": 3, **drop, **every}),
    ]
    for array, tensor in layouts(dtype):
        for axis in range(-array.ndim, array.ndim):
            rows = array.shape[axis]
            for three, options in kinds if rows <= 3 else ():
                ids = np.array(three, np.int64)[:rows].astype(index_type)
                expected = mo.segment_max(array, ids, axis=axis, **options)
                done = _native.segment_max(tensor, torch.from_numpy(ids), axis=axis, **options)
                if axis == 0 and tensor.is_contiguous() and index_type is not np.uint8 and is_small(array, ids):
                    assert done is not None
                if done is not None:
                    assert_same(done, expected)
                for given in (ids, torch.from_numpy(ids)):
                    assert_same(mo.segment_max(tensor, given, axis=axis, **options), expected)
            offsets = np.array([0, rows // 2, rows, rows], index_type)
            got, expected = (
                mo.segment_max(data, offsets=each, axis=axis, fill_mode="ZERO", **every)
                for data, each in ((tensor, torch.from_numpy(offsets)), (array, offsets))
            )
            assert_same(got, expected)


@each_type
def test_outputs(dtype: DType) -> None:
    """Test that torch is informed about the write. test_layouts_of_outputs.py tests layouts."""
    array = mixed(dtype, (3, 2), 1)
    calls: list[Call] = [
        lambda x, ids, **out: mo.maximum(x, x, **out),
        lambda x, ids, **out: mo.reduce_max(x, -1, keepdims=False, **out),
        lambda x, ids, **out: mo.segment_max(x, ids, 3, fill_mode="ZERO", **out),
    ]
    for call in calls:
        expected = call(array, np.array([0, 0, 2]))
        for is_parameter in (False, True):
            out = memory.tensor_of(np.zeros_like(expected))
            out = torch.nn.Parameter(out, requires_grad=False) if is_parameter else out
            before = out._version
            assert call(memory.tensor_of(array), torch.tensor([0, 0, 2]), out=out) is out
            assert out._version > before
            assert_same_bits(memory.view(out), expected)


def test_outputs_that_torch_guards() -> None:
    x = torch.tensor([1.0, 3.0])
    with torch.inference_mode():
        guarded = torch.zeros(2)
        assert _native.maximum(x, x, out=guarded) is guarded
    assert guarded.tolist() == [1.0, 3.0]
    with pytest.raises(OutputError, match="inference_mode"):
        mo.maximum(x, x, out=guarded)
    assert _native.maximum(x, x, out=guarded) is None
    needs = torch.zeros(2, requires_grad=True)
    with pytest.raises(OutputError, match="requires a gradient"):
        mo.maximum(x, x, out=needs)
    with torch.no_grad():
        assert mo.maximum(x, x, out=needs) is needs
    kept = torch.ones(2, requires_grad=True)
    out = torch.ones(2)
    product = (kept * out).sum()
    mo.maximum(x, x, out=out)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        product.backward()
    for wrong in (x[:1], x.double(), x.numpy(), [0.0, 0.0], torch.zeros(1).expand(2)):
        with pytest.raises(OutputError):
            mo.maximum(x, x, out=wrong)
    with pytest.raises(OutputError):
        mo.maximum(x.numpy(), x.numpy(), out=x)


def test_outputs_that_overlap_inputs() -> None:
    for shift in range(-3, 4):
        memory_of = torch.arange(10.0)
        x = memory_of[3:7]
        out = memory_of[3 + shift : 7 + shift]
        expected = torch.maximum(x, 4 - x)
        assert mo.maximum(x, 4 - x, out=out) is out
        assert torch.equal(out, expected)
        rows = torch.arange(10.0)
        expected = rows[3:7].amax(0, keepdim=True)
        assert torch.equal(mo.reduce_max(rows[3:7], out=rows[3 + shift : 4 + shift]), expected)


@each_type
def test_scalars_in_tensors(dtype: DType) -> None:
    array, ids, value = mixed(dtype, (3, 2), 1), np.array([0, 0, 2]), mixed(dtype, (), 5)
    tensor, scalar = memory.tensor_of(array), memory.tensor_of(value.copy())
    assert_same(_native.reduce_max(tensor, 1, initial=scalar), mo.reduce_max(array, 1, initial=value))
    for name in ("initial", "fill_value"):
        got = _native.segment_max(tensor, torch.from_numpy(ids), 4, **{name: scalar})
        option: dict[str, Any] = {name: value}
        assert_same(got, mo.segment_max(array, ids, 4, **option))
    assert _native.reduce_max(tensor, 1, initial=scalar.reshape(1)) is None
    assert _native.reduce_max(array, 1, initial=scalar) is None


# --------------------------------------------------------------------------------- calls that torch must observe


class Subclass(torch.Tensor):  # type: ignore[misc]
    """A user-defined subclass."""


PLAIN = torch.tensor([1.0, 3.0])
NOT_PLAIN: dict[str, Callable[[], Any]] = {
    "gradient": lambda: torch.ones(2, requires_grad=True),
    "parameter": lambda: torch.nn.Parameter(torch.ones(2)),
    "of a function": lambda: torch.ones(2, requires_grad=True) * 2,
    "negated": lambda: torch.tensor([1 + 2j, 3 - 4j]).conj().imag,
    "negated, of rank 0": lambda: torch.tensor(1 + 2j).conj().imag,
    "negated, in C order": lambda: torch._neg_view(torch.ones(2)),
    "zero without memory": lambda: torch._efficientzerotensor(2),
    "subclass": lambda: torch.ones(2).as_subclass(Subclass),
    "meta": lambda: torch.ones(2, device="meta"),
    "sparse": lambda: torch.ones(2).to_sparse(),
    "nested": lambda: torch.nested.nested_tensor([torch.ones(2), torch.ones(3)]),
    "quantized": lambda: torch.quantize_per_tensor(torch.ones(2), 1.0, 0, torch.quint8),
    "complex": lambda: torch.ones(2, dtype=torch.complex64),
    "float8": lambda: torch.ones(2).to(torch.float8_e4m3fn),
    "functional": lambda: torch._to_functional_tensor(torch.ones(2)),
    "33 axes": lambda: torch.ones((1,) * 33),
}


@pytest.mark.parametrize("name", NOT_PLAIN)
@pytest.mark.filterwarnings("ignore")  # warnings of torch about nested and quantized tensors
def test_a_tensor_that_is_more_than_its_elements_goes_to_python(name: str) -> None:
    tensor = NOT_PLAIN[name]()
    assert _native.maximum(PLAIN, PLAIN) is not None
    for arrays in ((tensor, PLAIN), (PLAIN, tensor), (tensor,)):
        assert _native.maximum(*arrays) is None
    assert _native.reduce_max(tensor) is None
    ids = torch.tensor([0, 1])
    assert _native.segment_max(tensor, ids, 2, fill_mode="ZERO") is None
    assert _native.segment_max(PLAIN, tensor, 2, fill_mode="ZERO") is None
    assert _native.segment_max(PLAIN, ids, tensor, fill_mode="ZERO") is None
    assert _native.segment_max(PLAIN, ids, 2, initial=tensor) is None
    assert _native.reduce_max(PLAIN, out=tensor) is None


def within(make: Callable[[], AbstractContextManager[Any]]) -> Callable[[Call], None]:
    def run(call: Call) -> None:
        with make():
            call()

    return run


SITUATIONS: dict[str, Callable[[Call], Any]] = {
    "vmap": lambda call: torch.func.vmap(lambda _: (call(), PLAIN)[1])(torch.ones(3)),
    "grad": lambda call: torch.func.grad(lambda x: (call(), x.sum())[1])(torch.ones(3)),
    "jvp": lambda call: torch.func.jvp(lambda x: (call(), x)[1], (torch.ones(3),), (torch.ones(3),)),
    "jit.trace": lambda call: torch.jit.trace(lambda x: (call(), x)[1], (torch.ones(3),), check_trace=False),
    "pre-dispatch trace": lambda call: make_fx(lambda x: (call(), x)[1], pre_dispatch=True)(torch.ones(3)),
    "mode": within(torch.utils._python_dispatch.BaseTorchDispatchMode),
    "mode of functions": within(lambda: torch.device("cpu")),
    "forward gradients": within(torch.autograd.forward_ad.dual_level),
    "any device": within(only_torch_operators),
}


@pytest.mark.parametrize("name", SITUATIONS)
@pytest.mark.filterwarnings("ignore")  # warnings of torch.jit
def test_a_transform_or_mode_goes_to_python(name: str) -> None:
    found: list[Any] = []

    def call() -> None:
        found.extend((_native.maximum(PLAIN, PLAIN), _native.reduce_max(PLAIN)))
        found.append(_native.segment_max(PLAIN, torch.tensor([0, 1]), 2, fill_mode="ZERO"))

    call()
    assert len(found) == 3
    assert None not in found
    found.clear()
    SITUATIONS[name](call)
    assert found == [None] * 3


@pytest.mark.parametrize("pre_dispatch", [False, True])
@pytest.mark.parametrize("tracing_mode", ["real", "fake", "symbolic"])
def test_a_graph_of_make_fx_computes_anew(tracing_mode: Any, pre_dispatch: bool) -> None:
    ids = torch.tensor([0, 1, 1])

    def calls(x: Any, ids: Any) -> Any:
        return (
            mo.maximum(x, torch.zeros_like(x)),
            mo.reduce_max(x, keepdims=False),
            mo.segment_max(x, ids, 2, fill_mode="ZERO"),
        )

    graph = make_fx(calls, tracing_mode=tracing_mode, pre_dispatch=pre_dispatch)(torch.ones(3), ids)
    x = torch.tensor([5.0, -2.0, 7.0])
    for got, expected in zip(graph(x, ids), calls(x, ids), strict=True):
        assert torch.equal(got, expected)


def test_what_escapes_a_transform_goes_to_python() -> None:
    escaped: list[Any] = []

    def kept(tensor: Any) -> Any:
        escaped.append(tensor)
        return tensor

    torch.func.vmap(kept)(torch.ones(3, 2))
    torch.func.grad(lambda x: kept(x).sum())(torch.ones(2))
    assert len(escaped) == 2
    for tensor in escaped:
        assert _native.maximum(tensor, PLAIN) is None
        assert _native.reduce_max(tensor) is None


@pytest.mark.parametrize("sizes", [(2**61,), (2, 2**60), (2**31, 2**30), (2**59, 8), (0, 2**60, 8)], ids=str)
def test_an_expanded_tensor_of_more_bytes_than_there_are_addresses(sizes: tuple[int, ...]) -> None:
    many, ids = torch.ones((), dtype=torch.float64).expand(sizes), torch.zeros((), dtype=torch.int64).expand(sizes[0])
    calls: list[Call] = [
        lambda of: of.reduce_max(many),
        lambda of: of.reduce_max(many, 0, return_indices=True),
        lambda of: of.maximum(many, 2.0),
        lambda of: of.segment_max(many, ids, 1, fill_mode="ZERO"),
        lambda of: of.segment_max(torch.ones(1), ids, 1, fill_mode="ZERO", sorted=False),
    ]
    for call in calls[: 4 if 0 in sizes else None]:
        assert call(_native) is None
        with pytest.raises((ValueError, EngineError), match=r"array is too big|ids must have shape"):
            call(mo)


def test_what_lets_others_run_goes_to_python() -> None:
    """Test that calls that may run other code go to Python, because the core holds no reference to tensors."""
    itemsize = PLAIN.element_size()
    for elements in (MOST // itemsize // 3, MOST // itemsize):
        tensor = torch.ones(elements + 1)
        assert (_native.maximum(tensor, tensor) is None) == (3 * tensor.nbytes >= MOST)
        assert (_native.reduce_max(tensor) is None) == (tensor.nbytes >= MOST)
    few, ids = torch.ones(1), torch.tensor([0])
    assert _native.segment_max(few, ids, MOST, fill_mode="ZERO") is None  # a large result
    assert mo.segment_max(few, ids, MOST, fill_mode="ZERO").shape == (MOST,)


def test_an_engine_that_is_registered_for_tensors_takes_them(monkeypatch: pytest.MonkeyPatch) -> None:
    class Mine:
        def run(self, call: Any) -> str:
            return "mine"

    monkeypatch.setattr("maxops.engines.table._rows", rows := table._rows[:])
    try:
        mo.register_engine("unrelated", Subclass, Mine())
        mo.maximum(PLAIN, PLAIN)
        assert _native.maximum(PLAIN, PLAIN) is not None
        mo.register_engine("mine", torch.Tensor, Mine())
        assert mo.maximum(PLAIN, PLAIN) == mo.reduce_max(PLAIN) == "mine"
        assert mo.maximum(PLAIN, PLAIN) == "mine"
    finally:
        rows.clear()
        table._known.clear()
        table._found.clear()


def test_torchs_table_is_taken() -> None:
    assert dispatch.runs_natively is True


def test_standards_operators_take_arrays_alone() -> None:
    with pytest.raises(MaxopsError):
        mo.operator("ONNX", "Max", version=13)(PLAIN, PLAIN)


def test_results_come_from_torchs_allocator() -> None:
    with torch.profiler.profile(profile_memory=True) as profile:
        kept = mo.maximum(PLAIN, PLAIN)
    assert [(event.name, event.cpu_memory_usage) for event in profile.events()] == [("aten::empty", kept.nbytes)]


def test_in_inference_mode_results_are_of_it() -> None:
    with torch.inference_mode():
        assert mo.maximum(PLAIN, PLAIN).is_inference()
    assert not mo.maximum(PLAIN, PLAIN).is_inference()
