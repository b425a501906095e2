"""Features of tensors: the common table through torch's dispatcher, shared memory, and rejected kinds of tensors."""

from __future__ import annotations

import runpy
from collections.abc import Callable
from itertools import product
from typing import Any

import numpy as np
import pytest

import maxops as mo
from helpers.bits import STORED, assert_same_bits, mixed
from helpers.engine_cases import ROWS, hold_to_the_table, in_turn
from helpers.engine_torch import TENSORS
from maxops import errors
from maxops.dtypes import DType
from maxops.typing import Ties

torch = pytest.importorskip("torch")

from maxops.engines.torch import dispatch, eager, functions, memory  # noqa: E402 - after the skip

TYPES = pytest.mark.parametrize("dtype", STORED, ids=str)


@pytest.mark.parametrize("name", ROWS)
def test_the_table_through_the_dispatcher(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Test the table through the dispatcher, which plain tensors otherwise bypass."""
    for module in (eager, functions):
        monkeypatch.setattr(module, "needs_dispatch", lambda *_, **__: True)
    monkeypatch.setattr(eager, "modes_are_active", lambda: True)
    hold_to_the_table(TENSORS, in_turn(name))


def test_torch_still_says_whether_it_watches() -> None:
    """Test that torch still has the functions that report tracing. Without them, every call would be slow."""
    x = torch.ones(2)
    assert not dispatch.needs_dispatch(x)
    assert torch.vmap(lambda row: torch.tensor(dispatch.modes_are_active()).expand(row.shape))(torch.ones(1, 2)).all()
    with torch.autograd.forward_ad.dual_level():
        assert dispatch.needs_dispatch(x)
    assert dispatch.needs_dispatch(x.clone().requires_grad_())
    with torch.no_grad():
        assert not dispatch.needs_dispatch(x.clone().requires_grad_())
    assert not dispatch.modes_are_active()
    assert dispatch.is_tracing is torch._C._is_tracing  # the function in torch.jit is slower


def test_a_call_needs_dispatch_where_its_tensors_are_not_what_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    """Test which tensors need the dispatcher: the core accepts plain CPU tensors, and other kernels any with data."""

    class OnAccelerator(torch.Tensor):  # type: ignore[misc, name-defined]
        is_cpu = False

    monkeypatch.setattr(dispatch, "PLAIN", (*dispatch.PLAIN, OnAccelerator))
    here, meta, away = torch.ones(2), torch.ones(2, device="meta"), torch.ones(2).as_subclass(OnAccelerator)
    parameter = torch.nn.Parameter(here, requires_grad=False)
    subclass = here.as_subclass(type("Subclass", (torch.Tensor,), {}))
    negated = torch.complex(here, here).conj().imag
    for tensor, on_core, elsewhere in (
        (here, False, False),
        (parameter, False, False),
        (away, True, False),
        (meta, True, True),
        (subclass, True, True),
        (negated, True, True),
        (torch._efficientzerotensor((2,)), True, True),
        (torch._to_functional_tensor(here), True, True),
        (here.clone().requires_grad_(), True, True),
    ):
        assert dispatch.needs_dispatch(tensor) == dispatch.needs_dispatch(1, here, None, tensor) == on_core
        assert dispatch.needs_dispatch(tensor, on_core=False) == elsewhere
        with dispatch.only_torch_operators():
            assert dispatch.needs_dispatch(tensor)
            assert dispatch.needs_dispatch(tensor, on_core=False) == elsewhere
    assert not dispatch.needs_dispatch(1, None, np.ones(2))


def test_a_torch_that_does_not_say_whether_it_watches_sees_every_call(monkeypatch: pytest.MonkeyPatch) -> None:
    private = ("_len_torch_dispatch_stack", "_are_functorch_transforms_active", "_functorch", "_is_tracing")
    for missing in ([*private[:1]], [*private[1:2]], [*private]):
        with monkeypatch.context() as patch:
            for name in missing:
                patch.delattr(torch._C, name)
            assert runpy.run_path(str(dispatch.__file__))["needs_dispatch"](torch.ones(2))
    with monkeypatch.context() as patch:
        for name in private:
            patch.delattr(torch._C, name)
        patch.setattr(torch.jit, "is_tracing", None)
        old = runpy.run_path(str(dispatch.__file__))
        assert (old["transforming"](), old["transforms"](), old["is_tracing"]) == (True, set(), None)
    with monkeypatch.context() as patch:
        patch.delattr(torch.autograd.forward_ad, "_current_level")
        assert dispatch.has_forward_gradients()
        assert dispatch.needs_dispatch(torch.ones(2))


# ---------------------------------------------------------------------------------------------- memory


@TYPES
def test_memory_is_shared_both_ways(dtype: DType) -> None:
    values = mixed(dtype, (3, 4))
    tensor = memory.tensor_of(values)
    assert tensor.data_ptr() == values.ctypes.data
    seen = memory.view(tensor.T[1:])
    assert (seen.ctypes.data, seen.strides) == (values.T[1:].ctypes.data, values.T[1:].strides)
    assert_same_bits(seen.copy(), values.T[1:].copy())


# Calls on a 1-D tensor, each with the memory of another argument.
ON_MEMORY: dict[str, Callable[[Any], Any]] = {
    "maximum": lambda x: mo.maximum(x, x),
    "beside numpy": lambda x: mo.maximum(np.zeros(3, np.float32), x),
    "reduce_max": lambda x: mo.reduce_max(x, initial=0.5),
    "segment_max": lambda x: mo.segment_max(x, torch.tensor([0, 0, 1]), fill_mode="ZERO"),
    "initial": lambda x: mo.reduce_max(torch.zeros(3), initial=x[1]),
    "ids": lambda x: mo.segment_max(torch.ones(3), x.long(), 5, fill_mode="ZERO"),
}


@pytest.mark.parametrize("gradient", [False, True])
@pytest.mark.parametrize("call", ON_MEMORY)
def test_a_functional_tensor_outside_its_transform(call: str, gradient: bool) -> None:
    """Test a tensor that only torch can read: it is of the plain class, but has no memory of its own."""
    values = torch.tensor([1.0, 2.0, 3.0])
    functional = torch._to_functional_tensor(values.clone().requires_grad_(gradient))
    expected, result = ON_MEMORY[call](values), ON_MEMORY[call](functional)
    if torch._is_functional_tensor(result):
        torch._sync(result)
        result = torch._from_functional_tensor(result)
    assert torch.equal(expected, result)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_a_storage_that_was_freed(dtype: Any) -> None:
    """Test that the elements of a freed storage are not read: `Tensor.numpy` would return arbitrary elements."""
    freed, scalar, other = torch.ones(3, dtype=dtype), torch.ones((), dtype=dtype), torch.ones(3, dtype=dtype)
    parameter = torch.ones(3, dtype=dtype, requires_grad=True)
    result = mo.maximum(parameter, 2.0)
    table = torch.ones(2, 3, dtype=dtype, requires_grad=True)
    for tensor in (freed, scalar, parameter, table):
        tensor.untyped_storage().resize_(0)
    calls: list[tuple[str, Callable[[], Any]]] = [
        ("input 1", lambda: mo.maximum(other, freed)),
        ("data", lambda: mo.reduce_max(freed, axis=0)),
        ("data", lambda: mo.segment_max(freed, torch.tensor([0, 0, 1]), fill_mode="ZERO")),
        ("data", lambda: mo.segment_max(table, torch.tensor([0, 0, 1]), axis=1, fill_mode="ZERO")),
        ("data", lambda: mo.segment_max(table, [0, 0, 1], axis=-1, fill_mode="ZERO")),
        ("initial", lambda: mo.reduce_max(other, initial=scalar)),
        ("out", lambda: mo.maximum(other, other, out=freed)),
        ("input 0", lambda: mo.maximum(parameter, 2.0)),
        ("input 0", lambda: result.sum().backward()),
    ]
    for name, call in calls:
        with pytest.raises(errors.EngineError, match=f"{name} of shape .* has no memory, because its storage was "):
            call()


@pytest.mark.filterwarnings("ignore:Sparse CSR tensor support is in beta")
def test_a_tensor_that_torch_cannot_permute_is_refused() -> None:
    data = torch.eye(3).to_sparse_csr().requires_grad_()
    with pytest.raises(errors.EngineError, match=r"data must be a strided tensor, got a torch\.sparse_csr tensor"):
        mo.segment_max(data, torch.tensor([0, 0, 1]), axis=1, fill_mode="ZERO")


def test_lazy_tensors_have_their_values() -> None:
    """Test tensors with the negative bit, and a tensor of zeros without memory."""
    negated = torch.tensor([1 + 2j, 3 - 4j]).conj().imag
    assert memory.view(negated).tolist() == [-2.0, 4.0]
    assert mo.maximum(negated, torch._efficientzerotensor(2)).tolist() == [0.0, 4.0]
    assert mo.reduce_max(negated).tolist() == mo.reduce_max(torch.tensor([-2.0, 4.0])).tolist() == [4.0]
    three = torch._neg_view(torch.tensor(-3))
    assert mo.segment_max(torch.ones(2), torch.tensor([0, 1]), three, fill_mode="ZERO").tolist() == [1.0, 1.0, 0.0]


# Layouts of tensors with four axes, and other arguments that may accompany such a tensor.
DENSE: dict[str, Callable[[Any], Any]] = {
    "contiguous": lambda t: t,
    "channels_last": lambda t: t.contiguous(memory_format=torch.channels_last),
    "transposed": lambda t: t.transpose(0, 3).contiguous().transpose(0, 3),
    "permuted": lambda t: t.permute(1, 3, 0, 2).contiguous().permute(2, 0, 3, 1),
    "strided": lambda t: torch.stack([t, t], -1)[..., 0],
    "every-second-channel": lambda t: torch.cat([t, t], 1).contiguous(memory_format=torch.channels_last)[:, ::2],
    "expanded": lambda t: t[:1].expand(t.shape),
}
BESIDE: dict[str, Callable[[Any], Any]] = {
    "itself": lambda t: t,
    "contiguous": lambda t: t.contiguous(),
    "scalar": lambda t: torch.tensor(0.5),
    "row": lambda t: t[0, 0, 0].clone(),
    "member": lambda t: t[:1],
}


def _elsewhere(tensor: Any) -> Any:
    return torch.empty_strided(tensor.shape, tensor.stride(), device="meta")


WAYS: dict[str, Callable[[Any, Any], Any]] = {
    "eager": mo.maximum,
    "gradients": lambda a, b: mo.maximum(a.detach().requires_grad_(), b).detach(),
    "operator": lambda a, b: torch.ops.maxops.maximum([a, b], "even"),
    "meta": lambda a, b: mo.maximum(_elsewhere(a), _elsewhere(b)),
}


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("beside", BESIDE)
@pytest.mark.parametrize("layout", DENSE)
def test_an_element_wise_result_has_the_layout_that_torch_gives_it(layout: str, beside: str, way: str) -> None:
    x = DENSE[layout](torch.randn(2, 3, 4, 5))
    other = BESIDE[beside](x)
    for pair in ((x, other), (other, x)):
        expected, got = torch.maximum(*pair), WAYS[way](*pair)
        assert got.stride() == expected.stride()
        assert got.is_meta or torch.equal(got, expected)


@pytest.mark.parametrize("layout", DENSE)
def test_an_array_of_numpy_leaves_the_layout_to_the_tensors(layout: str) -> None:
    x = torch.randn(2, 3, 4, 5)
    array = TENSORS.take(DENSE[layout](x))
    for tensor in (x, DENSE["channels_last"](x)):
        assert mo.maximum(tensor, array).stride() == mo.maximum(array, tensor).stride() == tensor.stride()
    beside_a_number: Any = mo.maximum(array, torch.tensor(0.5))
    assert beside_a_number.is_contiguous()


def test_layouts_of_what_is_reduced() -> None:
    """Test that results are contiguous, like those of torch.amax, unless the result is the data itself."""
    x = DENSE["channels_last"](torch.randn(2, 3, 4, 5))
    for axes in ((0,), (1,), (2, 3), None, np.array([1])):
        for noop in (False, True):
            reduced: Any = mo.reduce_max(x, axes, noop_with_empty_axes=noop and axes is not None)
            assert reduced.is_contiguous()
    single = DENSE["channels_last"](torch.randn(2, 3, 1, 5))
    for tensor in (single, single.clone(memory_format=torch.preserve_format).requires_grad_(), _elsewhere(single)):
        for indices in (False, True):
            same: Any = mo.reduce_max(tensor, 2, noop_with_empty_axes=True, return_indices=indices)
            assert all(part.stride()[0] == 15 for part in (same if indices else (same,)))
    assert mo.segment_max(x, torch.tensor([0, 0]), fill_mode="ZERO").is_contiguous()
    for tensor in (x, x.clone(memory_format=torch.preserve_format).requires_grad_(), _elsewhere(x)):
        none: list[Any] = [None, [], np.array([], np.int64)]
        for indices, no_axes in product((False, True), none):
            same = mo.reduce_max(tensor, no_axes, noop_with_empty_axes=True, return_indices=indices)
            assert (same[0] if indices else same).stride() == x.stride()


@pytest.mark.filterwarnings("ignore:.torch.jit.script. is deprecated:DeprecationWarning")
@pytest.mark.parametrize("way", ["plain", "gradient", "negative", "vmap", "jvp", "only_torch_operators"])
def test_results_along_any_axis_are_contiguous(way: str) -> None:
    x = torch.randn(3, 4, 5, requires_grad=way == "gradient")
    if way == "negative":
        x = torch.complex(x, x).conj().imag
    ids = [torch.tensor(ids) for ids in ([0, 0, 1], [0, 0, 1, 1], [0, 0, 1, 1, 1])]
    for axis in (0, 1, 2, -1):

        def call(x: Any, axis: int = axis) -> Any:
            return mo.segment_max(x, ids[axis], 2, fill_mode="ZERO", axis=axis, return_indices=True)

        if way == "vmap":
            results = torch.vmap(call)(x[None])
        elif way == "jvp":
            results = torch.func.jvp(lambda x, call=call: call(x)[0], (x,), (x,))
        elif way == "only_torch_operators":
            with dispatch.only_torch_operators():
                results = call(x)
        else:
            results = call(x)
        assert all(part.is_contiguous() for part in results)


# Calls on a tensor of ones of shape (3, 4), with the shapes of their results.
ON_FAKE: list[tuple[Callable[..., Any], tuple[int, ...]]] = [
    (lambda x, **o: mo.maximum(x, x[:1], 2.0, np.ones((3, 4), np.float32), **o), (3, 4)),
    (lambda x, **o: mo.maximum(np.ones((3, 4), np.float32), x, **o), (3, 4)),
    (lambda x, **o: mo.reduce_max(x, 1, **o), (3, 1)),
    (lambda x, **o: mo.reduce_max(x, 1, initial=2.0, **o), (3, 1)),
    (lambda x, **o: mo.reduce_max(x, 1, initial=np.float32(2), **o), (3, 1)),
    (lambda x, **o: mo.segment_max(x, [0, 1, 1], 2, fill_mode="ZERO", **o), (2, 4)),
    (lambda x, **o: mo.segment_max(x, [0, 2, 1], 2, sorted=False, out_of_range="drop", initial=0, **o), (2, 4)),
    (lambda x, **o: mo.segment_max(x, np.array([0, 1, 1], np.uint64), 2, initial=1, **o), (2, 4)),
    (lambda x, **o: mo.segment_max(x, offsets=[0, 1, 3], fill_value=1.5, **o), (2, 4)),
]


@pytest.mark.parametrize("ties", ["even", "first", None])
def test_fake_tensors_outside_their_mode(ties: Ties | None) -> None:
    """Test results and, with ties, also gradients with a graph."""
    fake = torch._subclasses.FakeTensorMode().from_tensor(torch.ones(3, 4, requires_grad=ties is not None))
    for call, shape in ON_FAKE:
        result = call(fake, **({} if ties is None else {"ties": ties}))
        assert (type(result), result.shape, result.requires_grad) == (type(fake), shape, ties is not None)
        if ties is not None:
            (gradient,) = torch.autograd.grad(result.sum(), fake, create_graph=True)
            assert (type(gradient), gradient.shape) == (type(fake), (3, 4))


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16], ids=str)
@pytest.mark.parametrize("gradient", [False, True], ids=["plain", "gradient"])
def test_shapes_beyond_the_limits_of_numpy(dtype: Any, gradient: bool) -> None:
    deep = torch.ones([1] * 65, dtype=dtype, requires_grad=gradient)
    long = torch.ones(1, dtype=dtype, requires_grad=gradient).expand(2**62)
    x, ids = torch.ones(1, dtype=dtype), torch.tensor([0])
    for shaped in (deep, long, long.expand(0, 2**62)):
        calls: list[tuple[Any, str]] = [
            (lambda t: mo.maximum(x, t), "input 1"),
            (mo.reduce_max, "data"),
            (lambda t: mo.segment_max(t, ids, fill_mode="ZERO"), "data"),
            (lambda t: mo.segment_max(x, ids.expand(t.shape), fill_mode="ZERO"), "segment_ids"),
        ]
        for call, name in calls:
            with pytest.raises(errors.EngineError, match=f"{name} of shape .* exceeds the limits of NumPy"):
                call(shaped)


def test_numpy_arrays_and_scalars_beside_tensors() -> None:
    tensor = torch.tensor([1, 5, 2])
    locked = np.array([3, 3, 3])
    locked.flags.writeable = False
    for beside in (np.array([3, 3, 3]), locked, np.int64(3), 3):
        assert mo.maximum(beside, tensor).tolist() == [3, 5, 3]
        result = mo.maximum(tensor.double().requires_grad_(), np.asarray(beside, np.float64))
        assert result.tolist() == [3, 5, 3]
        assert result.requires_grad
    assert mo.segment_max(tensor, np.array([0, 0, 1]), fill_mode="ZERO").tolist() == [5, 2]
    assert mo.reduce_max(tensor, initial=torch.tensor(7)).tolist() == [7]
    assert mo.segment_max(tensor, torch.tensor([0, 0, 1]), torch.tensor(1), fill_mode="ZERO").tolist() == [5]
    with pytest.raises(errors.DTypeError, match="input 1 is int8, but input 0 is int64"):
        mo.maximum(tensor, np.array([1, 2, 3], np.int8))
    backwards = np.array([3.0, 2.0, 1.0])[::-1]
    assert mo.maximum(torch.zeros(3, dtype=torch.float64), backwards).tolist() == [1, 2, 3]
    assert mo.maximum(torch.zeros(3, dtype=torch.float64, requires_grad=True), backwards).tolist() == [1, 2, 3]


def test_the_threads_are_those_of_maxops() -> None:
    before, threads = torch.get_num_threads(), mo.get_num_threads()
    try:
        mo.set_num_threads(3)
        torch.set_num_threads(1)
        assert (mo.get_num_threads(), torch.get_num_threads()) == (3, 1)
        x = torch.rand(1 << 16)
        assert mo.reduce_max(x) == x.amax()
    finally:
        mo.set_num_threads(threads)
        torch.set_num_threads(before)


# ------------------------------------------------------------------------------------------------- out


@pytest.mark.parametrize("shape", [(5, 0), (0, 5), (0,), (2, 0, 3)], ids=str)
def test_out_without_elements_has_no_overlap(shape: tuple[int, ...]) -> None:
    """Test arrays without elements, to which NumPy gives strides of 0."""
    x, out = torch.zeros(shape), torch.from_numpy(np.empty(shape, np.float32))
    assert mo.maximum(x, x, out=out) is out
    assert mo.reduce_max(x, (), noop_with_empty_axes=True, out=out) is out
    ids = torch.arange(shape[0])
    assert mo.segment_max(x, ids, shape[0], fill_mode="ZERO", out=out) is out


def test_out_that_is_negated_when_it_is_read() -> None:
    conjugate = torch.zeros(2, 3, dtype=torch.complex64).conj()
    assert mo.maximum(torch.ones(2, 3), torch.tensor(2.0), out=conjugate.imag).tolist() == [[2.0] * 3] * 2
    assert (conjugate == torch.tensor(2j)).all()


# ------------------------------------------------------------------------------------------- refused kinds


REFUSED: dict[str, tuple[Callable[[], Any], str]] = {
    "quantized": (
        lambda: torch.ops.aten.quantize_per_tensor(torch.zeros(3), 1.0, 0, torch.qint8),
        "data must be a strided tensor, got a quantized tensor",
    ),
    "complex": (lambda: torch.zeros(3, dtype=torch.complex64), r"data has unsupported dtype torch\.complex64"),
    "float8": (lambda: torch.zeros(3).to(torch.float8_e4m3fn), r"data has unsupported dtype torch\.float8_e4m3fn"),
}


@pytest.mark.parametrize("kind", REFUSED)
def test_refused_kinds(kind: str) -> None:
    make, words = REFUSED[kind]
    tensor, error = make(), errors.DTypeError if "dtype" in words else errors.EngineError
    with pytest.raises(error, match=words):
        mo.reduce_max(tensor)
    with pytest.raises(error, match=words.replace("data", "input 0")) as raised:
        mo.maximum(tensor, tensor)
    assert raised.value.clause == ("maxops.maximum.types" if error is errors.DTypeError else "")


def test_meta_tensors_have_only_shapes() -> None:
    meta = torch.ones(3, device="meta")
    with pytest.raises(errors.EngineError, match="input 1 is on meta, but input 0 is on cpu; move all tensors to one "):
        mo.maximum(torch.ones(3), meta)
    with pytest.raises(errors.EngineError, match="input 1 is a NumPy array, but the tensors are on meta"):
        mo.maximum(meta, np.ones(3, np.float32))
    result = mo.maximum(meta, torch.ones(2, 1, device="meta"), 2)
    assert (result.shape, result.device.type) == ((2, 3), "meta")
    with pytest.raises(errors.ShapeError, match="input 1 has shape"):
        mo.maximum(meta, torch.ones(2, device="meta"))
    ids = torch.zeros(3, dtype=torch.int64, device="meta")
    assert mo.segment_max(meta, ids, 4, fill_mode="ZERO").shape == (4,)
    assert mo.segment_max(meta, offsets=ids, fill_mode="ZERO").shape == (2,)
    with pytest.raises(errors.EngineError, match="requires num_segments for meta tensors"):
        mo.segment_max(meta, ids, fill_mode="ZERO")
    with pytest.raises(errors.NumSegmentsError, match="num_segments must be a Python integer"):
        mo.segment_max(meta, ids, torch.tensor(4, device="meta"), fill_mode="ZERO")
