"""jax: jnp.maximum, jnp.max and jax.ops.segment_max, on the CPU with 64-bit types."""

from __future__ import annotations

from functools import reduce
from types import MappingProxyType

from maxops.conformance.case import Call
from maxops.conformance.runtimes.library import Library


class Jax(Library):
    """XLA on the CPU, which compiles each of these functions."""

    name = "jax"
    opening = ("import jax, jax.numpy as jnp", 'jax.config.update("jax_enable_x64", True)')
    environment = MappingProxyType({"JAX_PLATFORMS": "cpu"})

    def maximum(self, call: Call, names: list[str]) -> list[str]:
        """jnp.maximum, from the first to the last."""
        arrays = [f"jnp.asarray({name})" for name in names]
        return [f"actual = np.asarray({reduce(lambda made, array: f'jnp.maximum({made}, {array})', arrays)})"]

    def reduce_max(self, call: Call, data: str, axis: str, keepdims: bool) -> list[str]:
        """jnp.max."""
        return [f"actual = np.asarray(jnp.max(jnp.asarray({data}), axis={axis}, keepdims={keepdims}))"]

    def segment_max(self, call: Call, data: str, ids: str, count: str, fill: str) -> list[str]:
        """jax.ops.segment_max, then what has no ids is filled."""
        return [
            f"data, ids = jnp.asarray({data}), jnp.asarray({ids})",
            f"highest = jax.ops.segment_max(data, ids, num_segments={count}, indices_are_sorted=True)",
            f"empty = np.bincount({ids}, minlength={count}) == 0",
            f"actual = np.asarray(highest.at[empty].set({fill}))",
        ]
