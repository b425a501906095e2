"""torch.func.functionalize: alone, with each other transform, and in traces, for each operator."""

from __future__ import annotations

from collections.abc import Callable
from itertools import product
from typing import Any

import pytest

import maxops as mo
from maxops.errors import EngineError

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.filterwarnings("ignore:.torch.jit.script. is deprecated:DeprecationWarning")
func: Any = torch.func

X = torch.tensor([[1.0, -0.0, torch.nan], [0.0, -1.0, 5.0], [2.0, 0.0, -torch.inf]])
Y = torch.tensor([0.0, 0.0, 2.0])
IDS = torch.tensor([0, 0, 1])
Tensors = Callable[[Any], Any]


# The name of a call starts with its first operator.
CALLS: dict[str, Tensors] = {
    "maximum": lambda x: mo.maximum(x, Y),
    "maximum scalar": lambda x: mo.maximum(x, 1.5),
    "maximum three": lambda x: mo.maximum(x, Y, x + 1),
    "maximum out": lambda x: mo.maximum(x, Y, out=torch.empty_like(x)),
    "reduce_max": lambda x: mo.reduce_max(x, axes=-1, keepdims=False),
    "reduce_max indices": lambda x: mo.reduce_max(x, axes=-1, return_indices=True)[1],
    "reduce_max initial": lambda x: mo.reduce_max(x, initial=0.5),
    "reduce_max no axes": lambda x: mo.reduce_max(x, axes=[], noop_with_empty_axes=True),
    "segment_max": lambda x: mo.segment_max(x, IDS, fill_mode="ZERO"),
    "segment_max num_segments": lambda x: mo.segment_max(x, IDS, 3, fill_value=torch.tensor(-0.0)),
    "segment_max unsorted": lambda x: mo.segment_max(x, IDS, 2, fill_mode="LOWEST", sorted=False),
    "segment_max empty": lambda x: mo.segment_max(x, IDS, 3, fill_mode="ZERO", return_indices=True, return_empty=True)[
        2
    ],
    "segment_max offsets": lambda x: mo.segment_max(x, offsets=torch.tensor([0, 1, 3]), fill_mode="ZERO"),
    "maximum of a result": lambda x: mo.reduce_max(mo.maximum(x + 1, Y), axes=0),
}


def traced(function: Tensors) -> Tensors:
    from torch.fx.experimental.proxy_tensor import make_fx  # noqa: PLC0415 - slow to import

    return lambda x: make_fx(function)(x)(x)


TRANSFORMS: dict[str, Callable[[Tensors], Tensors]] = {
    "vmap": func.vmap,
    "make_fx": traced,
    "grad": lambda function: func.grad(lambda x: function(x).nan_to_num().sum()),
    "vjp": lambda function: lambda x: func.vjp(function, x)[0],
    "jvp": lambda function: lambda x: func.jvp(function, (x,), (x,))[0],
}
GRADIENTS = {"grad", "vjp", "jvp"}
AROUND = [names for length in range(3) for names in product(TRANSFORMS, repeat=length) if "vmap" not in names[1:]]


def nested(function: Tensors, names: tuple[str, ...], place: int | None) -> Tensors:
    """Apply transforms to a function, the first one innermost, with functionalize at a position among them."""
    every = {**TRANSFORMS, "functionalize": func.functionalize}
    for name in names if place is None else (*names[:place], "functionalize", *names[place:]):
        function = every[name](function)
    return function


def words_of(call: str) -> str:
    """Return the text of the error for gradients, which names the operator."""
    operator = call.partition(" ")[0]
    return rf"^{operator} does not support torch\.func\.functionalize combined with torch\.func gradients"


def same_bits(one: Any, other: Any) -> bool:
    bits = [each.contiguous().view(torch.uint8) for each in (one, other)]
    return bool(one.dtype == other.dtype and torch.equal(*bits))


# For two transforms, every fourth call in turn. vmap does not write in place.
CASES = [
    (call, names)
    for turn, names in enumerate(AROUND)
    for place, call in enumerate(CALLS)
    if (len(names) < 2 or (place + turn) % 4 == 0) and (call != "maximum out" or "vmap" not in names)
]


@pytest.mark.parametrize(("call", "names"), CASES)
def test_among_transforms(call: str, names: tuple[str, ...]) -> None:
    """Test that functionalize changes no bit or, with gradients, that the error names functionalize."""
    rows = torch.stack([X, X + 1]) if "vmap" in names else X
    for place in range(len(names) + 1):
        run = nested(CALLS[call], names, place)
        if GRADIENTS & set(names):
            words = words_of(call) if call != "maximum out" else "functionalize|^maximum out (is given|cannot)"
            with pytest.raises((EngineError, mo.errors.OutputError), match=words):
                run(rows)
        else:
            assert same_bits(run(rows), nested(CALLS[call], names, None)(rows))


@pytest.mark.parametrize(
    "call", [name for name in CALLS if name not in ("maximum out", "reduce_max indices", "segment_max empty")]
)
def test_gradients_backwards(call: str) -> None:
    grads = []
    for function in (CALLS[call], func.functionalize(CALLS[call])):
        leaf = X.clone().requires_grad_()
        function(leaf).nan_to_num().sum().backward()
        grads.append(leaf.grad)
    assert same_bits(*grads)


@pytest.mark.parametrize("call", CALLS)
def test_forward_gradients_are_refused(call: str) -> None:
    from torch.autograd import forward_ad  # noqa: PLC0415

    with forward_ad.dual_level(), pytest.raises(EngineError, match=words_of(call)):
        func.functionalize(CALLS[call])(forward_ad.make_dual(X, X))


OUTS: dict[str, Callable[[Any, Any], Any]] = {
    "maximum": lambda x, out: mo.maximum(x, Y, out=out),
    "reduce_max": lambda x, out: mo.reduce_max(x, noop_with_empty_axes=True, axes=[], out=out),
    "segment_max": lambda x, out: mo.segment_max(x, IDS, 3, fill_mode="ZERO", out=out),
}


@pytest.mark.parametrize("call", OUTS)
def test_an_out_that_has_no_batch_is_refused_under_vmap(call: str) -> None:
    out = torch.full_like(X, 7)
    with pytest.raises(mo.errors.OutputError, match=f"^{call} out cannot be written under a transform") as raised:
        func.vmap(lambda x: OUTS[call](x, out))(torch.stack([X, X]))
    assert raised.value.clause == f"maxops.{call}.out"
    assert (out == 7).all()
    outs = torch.stack([out, out])
    func.vmap(OUTS[call])(torch.stack([X, X]), outs)
    assert same_bits(outs[1], OUTS[call](X, None))
