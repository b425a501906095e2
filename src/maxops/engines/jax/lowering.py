"""Lowers each call to a custom call on the CPU, and to operations on integer keys on other devices.

The results of both lowerings are bit-identical.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
from jax.extend.core import Primitive
from jax.interpreters import ad, batching, mlir

from maxops.engines.jax import custom_calls, integer_keys

_Function = Callable[..., jax.Array]
# The MLIR operations whose regions may contain a custom call: functions and control flow.
_REGIONS_OF_CUSTOM_CALLS = ("func.func", "stablehlo.case", "stablehlo.if", "stablehlo.while", "sdy.manual_computation")

_only_keys = False


@contextmanager
def only_integer_keys() -> Iterator[None]:
    """Use integer keys even on the CPU, for calls that are traced in the block."""
    global _only_keys  # noqa: PLW0603 - a process-wide setting, like those of JAX
    before, _only_keys = _only_keys, True
    try:
        yield
    finally:
        _only_keys = before


def are_native() -> bool:
    """Return whether a call on the CPU uses the native core. If so, register the custom calls with XLA."""
    if _only_keys:
        return False
    custom_calls.register()
    return True


def _takes_custom_calls(context: mlir.LoweringRuleContext) -> bool:
    """Return whether a call may be lowered to a custom call, which only the CPU supports.

    Exported programs must not contain custom calls. XLA aborts the process if a function that is passed to
    `jax.lax.reduce`, `reduce_window`, `scatter_apply` or similar functions contains a custom call. Calls on scalars
    are never lowered to custom calls, which are not faster for scalars.
    """
    module = context.module_context
    if tuple(context.platforms or module.platforms) != ("cpu",) or module.lowering_parameters.for_export:
        return False
    avals: Any = context.avals_in  # all are arrays
    if all(aval.ndim == 0 for aval in avals):
        return False
    around = mlir.ir.InsertionPoint.current.block.owner.operation
    while around.name in _REGIONS_OF_CUSTOM_CALLS:
        if around.name == "func.func":
            return True
        around = around.parent.operation
    return False


def primitive(name: str, vmap: _Function, jvp: Callable[..., Any] | None = None) -> _Function:
    """Create a JAX primitive, and return a function that calls it with arrays and hashable parameters.

    The functions of this name in `custom_calls` and `integer_keys` implement it. They receive neither
    `native`, which allows custom calls, nor `ties`, which affects only gradients. `jvp` follows JAX's convention for
    primitives. `vmap` receives the size of the mapped axis, a flag for each array that has this axis, the arrays with
    this axis first, and all parameters. It returns a result with this axis first.
    """
    ours, keys = getattr(custom_calls, name), getattr(integer_keys, name)
    made = Primitive(f"maxops_{name}")

    def call(*arrays: jax.Array, **parameters: Any) -> jax.Array:
        result: jax.Array = made.bind(*arrays, **parameters)
        return result

    # JAX's own primitives have this attribute. If debug_nans is on, JAX reports the NaN in their results, instead of
    # calling the compiled function operation by operation, because that would run this primitive again.
    call._apply_primitive = True  # type: ignore[attr-defined]
    call.__qualname__ = made.name
    # compiled once for each combination of shapes and parameters
    compiled = jax.jit(call, static_argnames=("axes", "how", "native", "nan", "ties"))

    def run_alone(*arrays: jax.Array, **parameters: Any) -> jax.Array:
        with jax.disable_jit(False):  # JAX calls this function if disable_jit is on
            result: jax.Array = compiled(*arrays, **parameters)
        return result

    def abstract_eval(*arrays: Any, native: bool, ties: str = "", **parameters: Any) -> Any:
        (result,) = jax.make_jaxpr(partial(keys, **parameters))(*arrays).out_avals
        return result

    def lower(context: Any, *operands: Any, native: bool, ties: str = "", **parameters: Any) -> Any:
        function = ours if native and _takes_custom_calls(context) else keys
        return mlir.lower_fun(partial(function, **parameters), multiple_results=False)(context, *operands)

    def batch(arrays: Any, axes: Any, /, **parameters: Any) -> tuple[jax.Array, int]:
        pairs = list(zip(arrays, axes, strict=True))
        size = next(array.shape[axis] for array, axis in pairs if axis is not None)
        in_front = [array if axis is None else jnp.moveaxis(array, axis, 0) for array, axis in pairs]
        return vmap(size, [axis is not None for axis in axes], *in_front, **parameters), 0

    made.def_impl(run_alone)
    made.def_abstract_eval(abstract_eval)
    mlir.register_lowering(made, lower, cacheable=False)  # a lowering depends on the code around it
    batching.primitive_batchers[made] = batch
    if jvp is not None:
        ad.primitive_jvps[made] = jvp
    return call
