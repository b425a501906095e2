"""`torch.library.opcheck`, and the public functions inside `torch.compile(fullgraph=True)` and `torch.export`."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from fractions import Fraction
from functools import partial
from typing import Any

import numpy as np
import pytest

import maxops as mo
from helpers import programs
from helpers.engine_cases import CASES as TABLE
from helpers.engine_torch import TENSORS, traced
from maxops import errors
from maxops.calls import ReduceCall, SegmentCall
from maxops.compat import array_api
from maxops.engines.base import as_tuple
from maxops.typing import Ties

torch = pytest.importorskip("torch")

from helpers.torch_calls import ALL, CALLS, arguments  # noqa: E402 - after the skip
from maxops.engines.torch import schemas  # noqa: E402

pytestmark = [
    pytest.mark.filterwarnings("ignore:.torch.jit.script(_method)?. is deprecated:DeprecationWarning"),
    # Inductor's files and its compiler processes.
    pytest.mark.filterwarnings("ignore:This process .* is multi-threaded, use of fork:DeprecationWarning"),
]

X, Y = torch.randn(3, 4), torch.randn(3, 4)
IDS, OFFSETS = torch.tensor([0, 0, 2]), torch.tensor([0, 2, 2, 3])
NO: Any = "no"  # typed as Any, because type checkers reject it


@pytest.fixture(autouse=True)
def _fresh() -> Iterator[None]:
    yield
    torch._dynamo.reset()


def _compiled(function: Callable[..., Any], backend: str = "aot_eager", **options: Any) -> Any:
    return torch.compile(function, fullgraph=True, backend=backend, **options)


def _out(a: Any, b: Any) -> Any:
    out = torch.empty(3, 4)
    mo.maximum(a, b, out=out)
    return out + 1


HERE: dict[str, Callable[..., Any]] = CALLS | {
    "maximum-out": _out,
    "segments-lists": lambda a: mo.segment_max(a, [0, 0, 2], fill_mode="ZERO"),
}
DYNAMIC = (
    "maximum-scalars",
    "maximum-channels-last",
    "maximum-bfloat16",
    "reduce-all-options",
    "segments-of-a-shape",
    "segments-offsets",
)


@pytest.mark.parametrize(
    ("call", "dynamic"), [*((call, False) for call in HERE), *((call, True) for call in DYNAMIC)], ids=str
)
def test_compiled(call: str, dynamic: bool) -> None:
    function, given = HERE[call], arguments(HERE[call])
    results = as_tuple(_compiled(function, dynamic=dynamic)(*given))
    for got, expected in zip(results, as_tuple(function(*given)), strict=True):
        assert (got.dtype, got.stride()) == (expected.dtype, expected.stride())
        assert torch.equal(got, expected)


def test_the_functions_themselves_are_compiled() -> None:
    assert torch.equal(_compiled(mo.maximum)(X, Y), torch.maximum(X, Y))
    assert torch.equal(_compiled(mo.reduce_max)(X), mo.reduce_max(X))


def test_a_number_from_a_tensor_breaks_the_graph() -> None:
    def function(a: Any, ids: Any, count: Any) -> Any:
        return mo.segment_max(a.T, ids, count, axis=-1, fill_mode="ZERO", return_empty=True)

    given = arguments(function)
    for got, expected in zip(torch.compile(function, backend="eager")(*given), function(*given), strict=True):
        assert torch.equal(got, expected)


@pytest.mark.parametrize(
    "call", [mo.maximum, lambda a, b: mo.reduce_max(a), lambda a, b: array_api.maximum(a, b.double())]
)
def test_the_modules_of_the_process_are_not_guarded(call: Any) -> None:
    guards = torch._dynamo.explain(call)(torch.nn.Parameter(X), Y).out_guards
    assert guards
    assert not [guard.name for guard in guards if ".sys" in guard.name]


SIZES_OF_DATA = partial(torch._dynamo.config.patch, capture_dynamic_output_shape_ops=True, capture_scalar_outputs=True)
# Calls with sizes that depend on data: the numbers of kept rows, of ids, of offsets and of segments.
OF_DATA: dict[str, Callable[[Any, Any, Any], Any]] = {
    "maximum": lambda a, i, keep: mo.maximum(a[keep], a[keep] * 2, 0.5),
    "maximum-row": lambda a, i, keep: mo.maximum(a[0], a[keep]),
    "maximum-of-one-row": lambda a, i, keep: mo.maximum(a[:1], a[keep], 0.5),
    "maximum-transposed": lambda a, i, keep: mo.maximum(a.T[:, :1], a[keep].T),
    "reduce": lambda a, i, keep: mo.reduce_max(a[keep], 0),
    "reduce-last": lambda a, i, keep: mo.reduce_max(a[keep], 1, keepdims=False, return_indices=True),
    "reduce-noop": lambda a, i, keep: mo.reduce_max(a[keep], noop_with_empty_axes=True),
    "segments": lambda a, i, keep: mo.segment_max(a[keep], i[keep], fill_mode="ZERO", **ALL),
    "segments-number": lambda a, i, keep: mo.segment_max(a[keep], i[keep], 5, fill_mode="ZERO", **ALL),
    "segments-rows-alone": lambda a, i, keep: mo.segment_max(a[keep], i[:3], fill_mode="LOWEST"),
    "segments-ids-alone": lambda a, i, keep: mo.segment_max(a[:3], i[keep], fill_mode="LOWEST"),
    "segments-offsets": lambda a, i, keep: mo.segment_max(a, offsets=i[keep], fill_mode="ZERO", **ALL),
    "segments-as-many-as-a-tensor-says": lambda a, i, keep: mo.segment_max(a, i, keep.sum() + 3, initial=1, **ALL),
}


@pytest.mark.parametrize("call", OF_DATA)
def test_compiled_for_sizes_that_only_data_tells(call: str) -> None:
    function, rows = _compiled(OF_DATA[call]), torch.randn(5, 4)
    for ids, keep in (([0, 0, 1, 3, 5], [1, 0, 1, 0, 1]), ([0, 0, 0, 4, 5], [0, 1, 1, 0, 1])):
        arguments = rows, torch.tensor(ids), torch.tensor(keep, dtype=torch.bool)
        with SIZES_OF_DATA():
            results = as_tuple(function(*arguments))
        for got, expected in zip(results, as_tuple(OF_DATA[call](*arguments)), strict=True):
            assert (got.dtype, got.stride()) == (expected.dtype, expected.stride())
            assert torch.equal(got, expected)


@pytest.mark.parametrize(
    ("ids", "words"),
    [
        (torch.zeros(3, 1).long(), "segment_ids must have shape"),
        (torch.zeros(3), "segment_ids must have dtype"),
        (torch.tensor([0, 2, 1]), "got 1 after 2 at position 2"),
        (torch.zeros(2).long(), "segment_ids must have shape"),
    ],
    ids=["rank", "type", "order", "length"],
)
def test_what_is_wrong_beside_sizes_that_only_data_tells_is_refused(ids: Any, words: str) -> None:
    rows, keep = torch.randn(5, 4), torch.tensor([True, False, True, False, True])
    function = _compiled(lambda a, k, i: mo.segment_max(a[k], i, fill_mode="ZERO"))
    with SIZES_OF_DATA(), pytest.raises(Exception, match=words):
        function(rows, keep, ids)


@pytest.mark.parametrize(
    ("ties", "backend", "dynamic"),
    [("first", "aot_eager", True), ("even", "aot_eager", True), ("even", "inductor", None)],
)
def test_compiled_gradients(ties: Ties, backend: str, dynamic: bool | None) -> None:
    """Test gradients with a number of segments that depends on data, also between Inductor's kernels."""

    def function(a: Any, b: Any, ids: Any) -> Any:
        rows = mo.segment_max(mo.maximum(a * 2, b + 1, 0.0, ties=ties), ids, fill_mode="ZERO", ties=ties)
        return mo.reduce_max(rows, 1, ties=ties) - 1

    results = []
    for run in (function, _compiled(function, backend, dynamic=dynamic)):
        a, b = X.clone().requires_grad_(), Y.clone().requires_grad_()
        result = run(a, b, IDS)
        result.sum().backward()
        results.append((result, a.grad, b.grad))
    for got, expected in zip(*results, strict=True):
        assert torch.equal(got, expected)


def test_a_call_that_is_compiled_first_of_all() -> None:
    """Test that the engine can be imported during tracing, and that functions still are native entries afterwards."""
    code = (
        "import torch, maxops as mo\n"
        "f = torch.compile(lambda a: mo.maximum(a, 2), fullgraph=True, backend='eager')\n"
        "print(f(torch.tensor([1, 5])).tolist(), type(mo.maximum).__name__)"
    )
    assert programs.run(code, warnings="ignore").split("\n")[0] == "[2, 5] Entry"


# --------------------------------------------------------------------------------------------- errors


def _said(error: BaseException) -> str:
    """Return the text of an error without quotes, because torch's compiler quotes errors."""
    return str(error).replace("\\'", "'")


TABLE_REFUSES = {case.name: case for case in TABLE if case.is_error}
# With symbolic sizes, the cases of interest are errors about sizes, and one option of each type.
OF_SIZES = ("shapes", "axes-range", "keepdims", "initial", "initial-shape", "-length", "-rank")


@pytest.mark.parametrize(
    ("name", "dynamic"),
    [(name, dynamic) for name in TABLE_REFUSES for dynamic in (None, True) if not dynamic or name.endswith(OF_SIZES)],
)
def test_what_the_table_refuses_is_refused_when_compiled(name: str, dynamic: bool | None) -> None:
    case = TABLE_REFUSES[name]
    arrays = TENSORS.given(case.arrays)
    by_name = dict(enumerate(arrays)) if isinstance(arrays, tuple) else arrays

    def call(*values: Any, **options: Any) -> Any:
        named = dict(zip(by_name, values, strict=True))
        function = getattr(mo, case.function)
        return function(*values, **options) if isinstance(arrays, tuple) else function(**named, **options)

    with pytest.raises(Exception) as error:  # noqa: PT011 - torch's own class, around the text
        _compiled(call, "eager", dynamic=dynamic)(*by_name.values(), **case.options)
    words = [str(case.expected[1])]
    if name.endswith(("axis-length", "axis-rank")):  # in a graph, the rows are the first axis, so axis and shape differ
        before, _, after = words[0].partition(" for axis ")
        words = [before, after[after.index(", got ") :]]
    assert all(each in _said(error.value) for each in words)


def _call_with(option: str, value: Any) -> Callable[[Any, Any], Any]:
    """Return a call on X and IDS with an option."""
    if option in SEGMENTS_ONLY:
        return lambda x, ids: mo.segment_max(x, ids, **({"fill_mode": "ZERO"} | {option: value}))
    return lambda x, ids: mo.reduce_max(x, **{option: value})


THIRD = Fraction(1, 3)
SEGMENTS_ONLY = ("check_ids", "sorted", "return_empty", "num_segments", "fill_mode", "out_of_range")
FLAGS = ("keepdims", "noop_with_empty_axes", "return_indices", "check_ids", "sorted", "return_empty")
OPTIONS: dict[str, tuple[Any, ...]] = dict.fromkeys(FLAGS, ("no",)) | {
    "num_segments": (True, 2.5, "3", torch.tensor(3.0), torch.tensor([3])),
    "fill_mode": (3,),
    "out_of_range": (3,),
    "ties": (3,),
    "axes": (True, (0, "a"), torch.tensor([0]), "01", b"1", bytearray(b"1")),
    "initial": (THIRD, [1.0], torch.ones(2)),
}
REFUSED = {
    f"{option}-{value!r}": _call_with(option, value) for option, values in OPTIONS.items() for value in values
} | {
    "maximum-none": lambda x, ids: mo.maximum(x, None),
    "maximum-fraction": lambda x, ids: mo.maximum(x, THIRD),
    "maximum-list": lambda x, ids: mo.maximum(x, [1.0]),
    "maximum-complex": lambda x, ids: mo.maximum(x.to(torch.complex64), x),
    "maximum-another-device": lambda x, ids: mo.maximum(x, torch.ones(4, device="meta")),
    "maximum-nothing": lambda x, ids: mo.maximum(),
    "segment_max-ids-list": lambda x, ids: mo.segment_max(x, [0, 0.0, 2], fill_mode="ZERO"),
    "segment_max-ids-complex": lambda x, ids: mo.segment_max(x, ids.to(torch.complex64), fill_mode="ZERO"),
    "out-of-another-shape": lambda x, ids: mo.maximum(x, x, out=torch.empty(3)),
    "out-of-another-type": lambda x, ids: mo.maximum(x, x, out=torch.empty(3, 4).double()),
    "out-expanded": lambda x, ids: mo.maximum(x, x, out=torch.empty(4).expand(3, 4)),
    "out-on-another-device": lambda x, ids: mo.maximum(x, x, out=torch.empty(3, 4, device="meta")),
    "out-of-numpy": lambda x, ids: mo.maximum(x, x, out=np.zeros((3, 4), np.float32)),
}


@pytest.mark.parametrize("call", REFUSED)
def test_whatever_a_call_refuses_it_refuses_when_compiled(call: str) -> None:
    with pytest.raises(errors.MaxopsError) as plain:
        REFUSED[call](X, IDS)
    with traced(), pytest.raises(type(plain.value), match=re.escape(str(plain.value))):
        REFUSED[call](X, IDS)
    with pytest.raises(Exception) as compiled:  # noqa: PT011 - torch's own class, around the text
        _compiled(REFUSED[call], "eager")(X, IDS)
    assert str(plain.value).split(" [")[0] in _said(compiled.value)


def test_an_option_that_is_refused_is_our_error_where_the_graph_may_break() -> None:
    function = torch.compile(lambda x: mo.reduce_max(x, keepdims=NO), backend="eager")
    with pytest.raises(errors.AttributeValueError, match="keepdims must be True, False, 1 or 0, got 'no'") as error:
        function(X)
    assert error.value.clause == "maxops.reduce_max.keepdims"


def test_a_compiled_function_may_catch_our_errors() -> None:
    def function(x: Any) -> Any:
        try:
            return mo.reduce_max(x, keepdims=NO)
        except errors.AttributeValueError:
            return x + 1

    assert torch.equal(_compiled(function)(X), X + 1)


def test_an_array_of_axes_is_an_error_in_a_graph() -> None:
    with pytest.raises(RuntimeError, match=r"reduce_max axes must be integers under torch\.compile"):
        _compiled(lambda x: mo.reduce_max(x, np.array([1])), "eager")(X)


@pytest.mark.parametrize(
    ("call", "value"),
    [("reduce_max", 2**70), ("maximum", -(2**70)), ("reduce_max", -(2**64)), ("maximum", 2**64)],
)
def test_integers_that_a_graph_does_not_hold(call: str, value: int) -> None:
    """Test integers that a graph cannot represent: an equal float replaces them, or maxops raises an error."""

    def run(data: Any) -> Any:
        return mo.maximum(data, value) if call == "maximum" else mo.reduce_max(data, initial=value)

    data = torch.ones(3)
    assert torch.equal(_compiled(run)(data), run(data))
    with pytest.raises(errors.DTypeError, match=f"int {value}, which cannot be represented exactly in int64") as caught:
        run(data.long())
    with pytest.raises(Exception, match=re.escape(caught.value.message)):
        _compiled(run)(data.long())


def test_errors_of_values_come_when_the_graph_is_run() -> None:
    function = _compiled(lambda a, i: mo.segment_max(a, i, 4, fill_mode="ZERO"))
    with pytest.raises(errors.SegmentIdsError, match="got 0 after 2 at position 1"):
        function(X, IDS.flip(0))


def _everything(a: Any, b: Any, ids: Any) -> Any:
    return (
        mo.maximum(a, b, 0.5),
        *mo.reduce_max(a, (0,), initial=0.5, return_indices=True),
        mo.segment_max(a, ids, fill_mode="ZERO"),
        mo.segment_max(a, ids, a.shape[0] + 1, fill_mode="LOWEST"),
    )


EXAMPLE = (X, Y, IDS)
OTHERS = (torch.randn(5, 4), torch.randn(5, 4), torch.tensor([0, 1, 1, 3, 3]))


@pytest.mark.parametrize("strict", [False, True], ids=["as-python-runs", "as-dynamo-reads"])
def test_export_for_any_number_of_rows(strict: bool) -> None:
    class Model(torch.nn.Module):  # type: ignore[misc, name-defined]
        def forward(self, *arguments: Any) -> Any:
            return _everything(*arguments)

    sizes = ({0: torch.export.Dim("rows")},) * len(EXAMPLE)
    program = torch.export.export(Model(), EXAMPLE, dynamic_shapes=(sizes,), strict=strict)
    for got, expected in zip(program.module()(*OTHERS), _everything(*OTHERS), strict=True):
        assert torch.equal(got, expected)


def test_make_fx_for_any_number_of_rows() -> None:
    def function(a: Any, b: Any, ids: Any) -> Any:
        gradient = torch.func.grad(lambda a: (mo.maximum(a, b) ** 2).sum())(a)
        return (*_everything(a, b, ids), gradient, torch.vmap(mo.reduce_max)(a))

    graph = torch.fx.experimental.proxy_tensor.make_fx(function, tracing_mode="symbolic")(*EXAMPLE)
    for got, expected in zip(graph(*OTHERS), function(*OTHERS), strict=True):
        assert torch.equal(got, expected)


# ---------------------------------------------------------------------------------------------- opcheck


def _operators() -> dict[str, tuple[str, tuple[Any, ...]]]:
    x = X.clone().requires_grad_()
    b, initial = X.bfloat16(), torch.tensor(0.0)
    maxima = {
        "maximum": ([x, Y[:1], x], "even"),
        "maximum-bfloat16": ([b, b[0]], "first"),
        "maximum-channels-last": ([arguments(CALLS["maximum-channels-last"])[0]], "first"),
    }
    calls: dict[str, ReduceCall | SegmentCall] = {
        "reduce": ReduceCall(x, [1], ties="first"),
        "reduce-initial": ReduceCall(x, keepdims=False, initial=initial, return_indices=True),
        "reduce-noop": ReduceCall(x, keepdims=False, noop_with_empty_axes=True, return_indices=True, ties="first"),
        "segments": SegmentCall(x, IDS, 5, "ZERO", ties="first", **ALL),
        "segments-rows": SegmentCall(x, IDS, None, "LOWEST", sorted=False, out_of_range="drop", ties="first", **ALL),
        "segments-offsets": SegmentCall(x, offsets=OFFSETS, check_ids=False, initial=initial, ties="first", **ALL),
    }
    return {name: ("maximum", inputs) for name, inputs in maxima.items()} | {
        name: (call.row.name, schemas.arguments(call)) for name, call in calls.items()
    }


@pytest.mark.parametrize("call", _operators())
def test_opcheck(call: str) -> None:
    name, arguments = _operators()[call]
    torch.library.opcheck(getattr(torch.ops.maxops, name).default, arguments)


def test_opcheck_of_scalars() -> None:
    torch.library.opcheck(torch.ops.maxops.scalar.default, (X, 0.5, "maximum", "input 1", "input 0"))
