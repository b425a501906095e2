"""JAX meshes: the operators and their gradients under shard_map with Auto, Explicit and Manual axes."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

pytest.importorskip("jax")

PROGRAM = r"""
import itertools, sys
import jax, jax.numpy as jnp, numpy as np
import maxops as mo
from jax.sharding import AxisType, NamedSharding, PartitionSpec as P

x = (np.arange(32, dtype=np.float32) % 7).reshape(8, 4)


def segments(x, ties, rows):
    return mo.segment_max(x[:rows], np.zeros(len(x[:rows]), np.int32), 2, fill_mode="ZERO", ties=ties)


def empty_row(x, ties):
    return mo.segment_max(x[:, :0], np.zeros(len(x), np.int32), 2, fill_mode="ZERO", ties=ties)


CALLS = {
    "maximum": lambda x, ties: mo.maximum(x, x[:1], 0.5, ties=ties),
    "reduce": lambda x, ties: mo.reduce_max(x, 1, ties=ties),
    "indices": lambda x, ties: mo.reduce_max(x, 1, return_indices=True, ties=ties)[0],
    "segments": lambda x, ties: segments(x, ties, None),
    "maximum-empty": lambda x, ties: mo.maximum(x[:0], 0.5, ties=ties),
    "reduce-empty": lambda x, ties: mo.reduce_max(x[:, :0], 1, ties=ties),
    "segments-empty": lambda x, ties: segments(x, ties, 0),
    "segments-empty-row": empty_row,
}
TYPES = [*itertools.product((AxisType.Auto, AxisType.Explicit), repeat=2)]
failed = []
count = 0
for types in TYPES:
    mesh = jax.make_mesh((4, 2), ("a", "b"), axis_types=types)
    for names, ties in itertools.product(({"a"}, {"b"}, {"a", "b"}), ("even", "first")):
        axis = "a" if "a" in names else "b"

        def every(x):
            results = {name: call(x, ties) for name, call in CALLS.items()}
            gradients = {name: jax.grad(lambda x: (call(x, ties) ** 2).sum())(x) for name, call in CALLS.items()}
            return results, gradients

        parts = [every(part) for part in np.split(x, 4 if axis == "a" else 2)]
        expected = jax.tree.map(lambda *each: np.concatenate(each), *parts)
        with jax.set_mesh(mesh):
            mapped = jax.shard_map(every, mesh=mesh, axis_names=names, in_specs=P(axis), out_specs=P(axis))
            try:
                results = jax.jit(mapped)(jax.device_put(x, NamedSharding(mesh, P(axis))))
            except Exception as error:
                failed.append(f"{types} {names} {ties}: {type(error).__name__}: {str(error)[:300]}")
                continue
        same = jax.tree.map(lambda a, b: np.asarray(a).tobytes() == np.asarray(b).tobytes(), results, expected)
        count += len(jax.tree.leaves(same))
        if not all(jax.tree.leaves(same)):
            failed.append(f"{types} {names} {ties}: {same}")
print("\n".join(failed) or f"{count} results")
sys.exit(bool(failed))
"""


@pytest.mark.parametrize("lowering", ["custom-calls", "integer-keys"])
def test_every_axis_type_under_shard_map(lowering: str) -> None:
    """On a 4 x 2 mesh, with one axis manual or both, the bits are those of each part alone."""
    program = PROGRAM
    if lowering == "integer-keys":
        program = "from maxops.engines.jax import only_integer_keys\nonly_integer_keys().__enter__()\n" + program
    environment = os.environ | {"XLA_FLAGS": "--xla_force_host_platform_device_count=8", "JAX_PLATFORMS": "cpu"}
    done = subprocess.run([sys.executable, "-c", program], env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.strip() == "384 results"
