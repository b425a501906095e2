"""Torch tensors with every combination of options, on each code path: the results of NumPy arrays."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import nullcontext
from itertools import product
from typing import Any

import numpy as np
import pytest

import maxops as mo
from helpers.bits import assert_same_bits, mixed
from helpers.engine_torch import TENSORS, traced
from maxops import dtypes, errors
from maxops.engines.base import as_tuple

torch = pytest.importorskip("torch")

import maxops.engines.torch  # noqa: E402 - after the skip

pytestmark = pytest.mark.filterwarnings("ignore:.torch.jit.script. is deprecated:DeprecationWarning")

DATA = mixed(dtypes.FLOAT32, (4, 3), 1, nans=0.1)
IDS = {"sorted": [0, 0, 2, 3], "any": [3, 0, 2, 0], "outside": [3, -1, 2, 7]}
BOOLS = (False, True)
Call = tuple[str, dict[str, Any], dict[str, Any]]


def _calls() -> Iterator[Call]:
    """Yield the function, the arrays and the other options of each call, without unchecked invalid ids."""
    for axes, keepdims, noop, initial, indices in product(
        [None, (), 0, (-1,), (1, 0)], BOOLS, BOOLS, [{}, {"initial": np.float32(0.5)}], BOOLS
    ):
        options: dict[str, Any] = {
            "axes": axes,
            "keepdims": keepdims,
            "noop_with_empty_axes": noop,
            "return_indices": indices,
        }
        yield "reduce_max", {"data": DATA, **initial}, options
    for axes, indices in product([0, 1], BOOLS):
        yield "reduce_max", {"data": DATA[:0]}, {"axes": axes, "return_indices": indices}
    scalars: list[dict[str, Any]] = [{}, {"fill_value": np.float32(-1)}, {"initial": np.float32(0.5)}]
    for scalar, count, indices, empty in product(scalars, [None, 5], BOOLS, BOOLS):
        options = {"num_segments": count, "return_indices": indices, "return_empty": empty}
        options |= {} if scalar else {"fill_mode": "LOWEST"}
        for check in BOOLS:
            arrays = {"data": DATA, "offsets": np.array([0, 1, 1, 4]), **scalar}
            yield "segment_max", arrays, options | {"check_ids": check}
        for ids, is_sorted, check, outside in product(IDS, BOOLS, BOOLS, [None, "drop", "error"]):
            right = (not is_sorted or ids == "sorted") and (ids != "outside" or outside == "drop")
            if check or right:
                more = {"sorted": is_sorted, "check_ids": check, "out_of_range": outside}
                yield "segment_max", {"data": DATA, "segment_ids": np.array(IDS[ids]), **scalar}, options | more


CALLS = [*_calls()]


@pytest.fixture(params=[nullcontext, traced], ids=["now", "traced"])
def _way(request: pytest.FixtureRequest) -> Iterator[None]:
    with request.param():
        yield


TRACED_TOO = pytest.mark.usefixtures("_way")


def outcome(function: str, arrays: dict[str, Any], options: dict[str, Any]) -> Any:
    """Return the results, or the error."""
    try:
        result = getattr(mo, function)(**arrays, **options)
    except errors.MaxopsError as error:
        return type(error), str(error)
    return as_tuple(result)


def _plain(arrays: dict[str, Any]) -> dict[str, Any]:
    return {name: TENSORS.give(np.asarray(array)) for name, array in arrays.items()}


def _with_gradients(arrays: dict[str, Any]) -> dict[str, Any]:
    return {name: each.requires_grad_() if name == "data" else each for name, each in _plain(arrays).items()}


def _with_scalars_of_numpy(arrays: dict[str, Any]) -> dict[str, Any]:
    return _plain(arrays) | {name: array for name, array in arrays.items() if isinstance(array, np.generic)}


def _only_data_is_a_tensor(arrays: dict[str, Any]) -> dict[str, Any]:
    return arrays | _with_gradients({"data": arrays["data"]})


GIVEN: dict[str, Callable[[dict[str, Any]], dict[str, Any]]] = {
    "plain": _plain,
    "gradients": _with_gradients,
    "scalars-of-numpy": _with_scalars_of_numpy,
    "all-but-data-of-numpy": _only_data_is_a_tensor,
}


@TRACED_TOO
@pytest.mark.parametrize("given", GIVEN)
def test_every_combination_of_options(given: str) -> None:
    for function, arrays, options in CALLS:
        correct = outcome(function, arrays, options)
        got = outcome(function, GIVEN[given](arrays), options)
        if isinstance(correct[0], type):
            assert got == correct, (function, list(arrays), options)
            continue
        assert got[0].requires_grad == (given in ("gradients", "all-but-data-of-numpy"))
        for part, expected in zip(got, correct, strict=True):
            assert_same_bits(TENSORS.take(part.detach().contiguous()), np.asarray(expected))


@TRACED_TOO
@pytest.mark.parametrize("kind", [int, np.bool_, np.int64], ids=["int", "numpy-bool", "numpy-int"])
def test_flags_of_each_kind(kind: Callable[[bool], Any], torch_way: str) -> None:
    """Test each kind of flag with torch's operators, whose schema requires Python's bool."""
    assert torch_way
    for function, arrays, options in CALLS[::7]:
        other = {name: kind(value) if isinstance(value, bool) else value for name, value in options.items()}
        correct = outcome(function, _with_gradients(arrays), options)
        got = outcome(function, _with_gradients(arrays), other)
        assert len(got) == len(correct)
        for part, expected in zip(got, correct, strict=True):
            if isinstance(part, torch.Tensor):
                assert_same_bits(TENSORS.take(part.detach()), TENSORS.take(expected.detach()))
            else:
                assert part == expected


@pytest.mark.parametrize("ties", ["even", "first"])
def test_results_lie_where_the_tensors_do(ties: Any, torch_way: str) -> None:
    """Test that results are on the tensors' device, not on torch's default device, also for gradients."""
    assert torch_way
    calls = [call for number, call in enumerate(CALLS) if call[0] == "reduce_max" or number % 11 == 0]
    for function, arrays, options in calls:
        given = _with_gradients(arrays)
        correct = outcome(function, arrays, options)
        if isinstance(correct[0], type):
            continue
        others = {name: each for name, each in given.items() if name != "data"} | options | {"ties": ties}

        def call(data: Any, function: str = function, others: dict[str, Any] = others) -> Any:
            return as_tuple(getattr(mo, function)(data, **others))[0]

        with torch.device("meta"):
            results = as_tuple(getattr(mo, function)(given["data"], **others))
            results[0].nan_to_num().sum().backward()
            x = given["data"].detach()
            tangent = torch.func.jvp(call, (x,), (x,))[1]
        for part, expected in zip(results, correct, strict=True):
            assert_same_bits(TENSORS.take(part.detach().contiguous()), np.asarray(expected))
        assert given["data"].grad.is_cpu
        assert tangent.is_cpu


@TRACED_TOO
def test_every_combination_of_options_with_an_output() -> None:
    """Test that every valid call returns the output itself and increases its version by one."""
    for function, arrays, options in CALLS:
        correct = outcome(function, arrays, options)
        if isinstance(correct[0], type):
            continue
        out = TENSORS.give(np.zeros(correct[0].shape, correct[0].dtype))
        version = out._version
        got = outcome(function, _plain(arrays), options | {"out": out})
        assert got[0] is out
        assert out._version == version + 1
        for part, expected in zip(got, correct, strict=True):
            assert_same_bits(TENSORS.take(part), np.asarray(expected))


@TRACED_TOO
@pytest.mark.parametrize("count", [1, 2, 3])
def test_maximum_of_tensors_and_scalars(count: int) -> None:
    """Test each argument as a tensor, a tensor with a gradient, a NumPy array or scalar, and a Python scalar."""
    numbers: list[Any] = [mixed(dtypes.FLOAT32, (2, 3), 5), mixed(dtypes.FLOAT32, (3,), 6), np.float32(0.5)]
    kinds: list[Callable[[Any], Any]] = [
        lambda array: TENSORS.give(np.asarray(array)),
        lambda array: TENSORS.give(np.asarray(array)).requires_grad_(),
        lambda array: array,
        lambda array: float(array) if np.ndim(array) == 0 else TENSORS.give(array),
    ]
    for makes, with_out in product(product(kinds, repeat=count), BOOLS):
        given = [make(array) for make, array in zip(makes, numbers[-count:], strict=True)]
        tensors = [each for each in given if isinstance(each, torch.Tensor)]
        if not tensors:
            continue
        expected = mo.maximum(*numbers[-count:])
        out = TENSORS.give(np.zeros_like(expected)) if with_out else None
        graded = any(tensor.requires_grad for tensor in tensors)
        if graded and with_out:
            with pytest.raises(errors.OutputError, match="an argument requires a gradient"):
                mo.maximum(*given, out=out)
            with torch.no_grad():
                assert mo.maximum(*given, out=out) is out
            continue
        got = mo.maximum(*given, out=out)
        assert got.requires_grad == graded
        assert out is None or got is out
        assert_same_bits(TENSORS.take(got.detach()), np.asarray(expected))


# The calls by name, and their tensors, including `out`.
TAKEN: dict[str, tuple[Callable[..., Any], dict[str, Any]]] = {
    "maximum": (
        lambda a, b, c, out: mo.maximum(a, b, c, out=out),
        {"a": torch.ones(3), "b": torch.ones(3), "c": torch.ones(()), "out": torch.zeros(3)},
    ),
    "reduce_max": (
        lambda data, initial, out: mo.reduce_max(data, initial=initial, out=out),
        {"data": torch.ones(3), "initial": torch.ones(()), "out": torch.zeros(1)},
    ),
    "segment_max": (
        lambda data, ids, fill, out: mo.segment_max(data, ids, 2, fill_value=fill, out=out),
        {"data": torch.ones(3), "ids": torch.zeros(3).long(), "fill": torch.ones(()), "out": torch.zeros(2)},
    ),
    "segment_max-offsets": (
        lambda data, offsets, initial, out: mo.segment_max(data, offsets=offsets, initial=initial, out=out),
        {"data": torch.ones(3), "offsets": torch.tensor([0, 3]), "initial": torch.ones(()), "out": torch.zeros(1)},
    ),
}
EACH = [(call, name) for call, (_, taken) in TAKEN.items() for name in taken]


@TRACED_TOO
@pytest.mark.parametrize(("call", "name"), EACH)
def test_each_tensor_lies_where_the_others_do(call: str, name: str) -> None:
    """Test tensors on different devices, with and without gradients."""
    function, taken = TAKEN[call]
    elsewhere = {name: taken[name].to("meta")}
    with pytest.raises(errors.MaxopsError, match=r"is on (meta|cpu)"):
        function(**taken | elsewhere)
    if name != "out":
        given = {key: each.clone().requires_grad_() if key in ("a", "data") else each for key, each in taken.items()}
        with pytest.raises(errors.MaxopsError, match=r"on (meta|cpu)"):
            function(**given | {"out": None} | elsewhere)


UNSTRIDED: dict[str, Callable[[Any], Any]] = {
    "sparse": lambda tensor: tensor.reshape(-1).to_sparse(),
    "nested": lambda _: torch.nested.nested_tensor([torch.ones(2), torch.ones(3)]),
    "masked": lambda tensor: torch.masked.masked_tensor(tensor.reshape(-1), torch.ones(tensor.numel()).bool()),
}


@TRACED_TOO
@pytest.mark.parametrize(("call", "name"), EACH)
@pytest.mark.filterwarnings("ignore:The PyTorch API of (nested tensors|MaskedTensors):UserWarning")
def test_each_tensor_is_strided(call: str, name: str) -> None:
    function, taken = TAKEN[call]
    for kind, make in UNSTRIDED.items():
        with pytest.raises(errors.MaxopsError, match=f"must be a strided tensor, got a .*{kind}"):
            function(**taken | {name: make(taken[name])})


@TRACED_TOO
@pytest.mark.parametrize(("call", "name"), EACH)
def test_only_elements_have_gradients(call: str, name: str) -> None:
    """Test that `initial` and fill values have no gradients, and that no gradient flows into an output."""
    function, taken = TAKEN[call]
    if not taken[name].dtype.is_floating_point:
        return
    given = taken | {name: taken[name].clone().requires_grad_()}
    is_element = name in ("a", "b", "c", "data")
    if is_element or name == "out":
        with pytest.raises(errors.OutputError, match="requires a gradient"):
            function(**given)
    if name != "out":
        assert function(**given | {"out": None}).requires_grad == is_element
    with torch.no_grad():
        assert not function(**given | {"out": None}).requires_grad
        assert function(**given) is given["out"]


def watching(see: Callable[[str], None] = lambda _: None) -> Any:
    """Return a mode of torch's dispatcher that receives every call. `see` gets the names of operators."""
    from torch.utils._python_dispatch import TorchDispatchMode  # noqa: PLC0415

    class Watching(TorchDispatchMode):
        def __torch_dispatch__(self, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            see(str(function))
            return function(*args, **(kwargs or {}))

    made: Any = Watching
    return made()


@TRACED_TOO
@pytest.mark.parametrize("call", TAKEN)
def test_a_mode_of_dispatch_sees_each_call(call: str) -> None:
    seen: list[str] = []
    function, taken = TAKEN[call]
    with watching(seen.append):
        function(**taken | {"out": None})
    assert f"maxops.{call.partition('-')[0]}.default" in seen


# ------------------------------------------------------------------------------------------------- outputs


@TRACED_TOO
@pytest.mark.parametrize("dispatched", BOOLS, ids=["plain", "dispatched"])
@pytest.mark.parametrize("call", TAKEN)
def test_a_refused_output_is_as_it_was(call: str, dispatched: bool) -> None:
    """Test that values and version are unchanged. An axis of size 1 may have a stride of 0."""
    function, taken = TAKEN[call]
    with watching() if dispatched else torch.no_grad():
        for out, words in (
            (torch.zeros_like(taken["out"]).double(), "out is float64"),
            (torch.zeros(2, 2), r"out has shape \(2, 2\)"),
            (torch.zeros(1).expand(7), "internal overlap"),
            (torch.zeros(2, 1).expand(2, 7), "internal overlap"),
            (np.zeros(7, np.float32), "out must be from the same library as the inputs, got ndarray"),
            (torch.ops.aten.quantize_per_tensor(taken["out"], 1.0, 0, torch.qint8), "out must be a strided"),
        ):
            version = getattr(out, "_version", 0)
            with pytest.raises(errors.OutputError, match=words) as raised:
                function(**taken | {"out": out})
            assert raised.value.clause in ("", f"maxops.{call.partition('-')[0]}.out")
            assert getattr(out, "_version", 0) == version
            assert getattr(out, "is_quantized", False) or not out.any()
        size = len(taken["out"])
        column = torch.zeros(size).as_strided((size, 1), (1, 0))
    if call == "maximum":
        given = {name: each.reshape(-1, 1) for name, each in taken.items()} | {"out": column}
        assert function(**given) is column
        assert column.tolist() == [[1.0]] * size


@TRACED_TOO
@pytest.mark.parametrize("call", TAKEN)
def test_where_torch_does_not_write_to_an_output_its_own_error_says_so(call: str) -> None:
    def refuse(name: str) -> None:
        if "copy_" in name:
            raise RuntimeError("this mode writes nothing")

    function, taken = TAKEN[call]
    with watching(refuse), pytest.raises(RuntimeError, match=r"^this mode writes nothing$"):
        function(**taken)


def test_an_output_is_written_to_if_a_call_is_interrupted(monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(*_: Any) -> Any:
        raise KeyboardInterrupt

    monkeypatch.setattr("maxops.engines.numpy.run", interrupted)
    for function, few in TAKEN.values():  # with many elements, because small calls hold the GIL
        taken = {name: value.repeat(200_000) if value.shape == (3,) else value.clone() for name, value in few.items()}
        if "offsets" in taken:
            taken["offsets"] *= 200_000
        version = taken["out"]._version
        with pytest.raises(KeyboardInterrupt):
            function(**taken)
        assert taken["out"]._version == version + 1


# ------------------------------------------------------------------------------------------------- gradients

INTEGERS = [torch.int8, torch.int16, torch.int32, torch.int64, torch.uint8, torch.uint16, torch.uint32, torch.uint64]


@pytest.mark.parametrize("ties", ["even", "first"])
@pytest.mark.parametrize("kind", INTEGERS, ids=str)
def test_gradients_by_ids_of_every_type(kind: Any, ties: Any) -> None:
    """Test that an id past the segments has no gradient, even above the maximum of int64."""
    past = np.iinfo(str(kind).removeprefix("torch.")).max
    ids = torch.from_numpy(np.array([0, 0, 2, past], str(kind).removeprefix("torch.")))
    offsets = torch.tensor([0, 2, 2, 4]).to(kind)
    for names, expected in (
        ({"segment_ids": ids, "num_segments": 3}, [0.0, 1.0, 1.0, 0.0]),
        ({"offsets": offsets}, [0.0, 1.0, 0.0, 1.0]),
    ):
        data = torch.tensor([1.0, 2.0, 3.0, 4.0], requires_grad=True)
        mo.segment_max(data, **names, fill_mode="ZERO", ties=ties).sum().backward()
        assert data.grad is not None
        assert data.grad.tolist() == expected
        tangent = torch.func.jvp(
            lambda x, names=names: mo.segment_max(x, **names, fill_mode="ZERO", ties=ties),
            (data.detach(),),
            (torch.tensor([1.0, 2.0, 4.0, 8.0]),),
        )[1]
        assert tangent.tolist() == ([2.0, 0.0, 4.0] if "segment_ids" in names else [2.0, 0.0, 8.0])
