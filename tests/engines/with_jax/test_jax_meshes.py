"""JAX meshes: the operators and their gradients under shard_map with Auto, Explicit and Manual axes."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

pytest.importorskip("jax")

PROGRAM = r"""
import functools, itertools, sys
import jax, jax.numpy as jnp, numpy as np
import maxops as mo
from jax.sharding import AxisType, NamedSharding, PartitionSpec as P

x = (np.arange(32, dtype=np.float32) % 7).reshape(8, 4)
TIES = ("even", "first")


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


def every(x, ties):
    results = {name: call(x, ties) for name, call in CALLS.items()}
    gradients = {name: jax.grad(lambda x: (call(x, ties) ** 2).sum())(x) for name, call in CALLS.items()}
    return results, gradients


@functools.cache
def in_parts(axis, ties):
    parts = [every(part, ties) for part in np.split(x, 4 if axis == "a" else 2)]
    return jax.tree.map(lambda *each: np.concatenate(each), *parts)


failed = []
count = 0
for turn, (types, names) in [*enumerate(itertools.product(TYPES, ({"a"}, {"b"}, {"a", "b"})))][::STEP]:
    mesh, axis, ties = jax.make_mesh((4, 2), ("a", "b"), axis_types=types), min(names), TIES[turn // 2 % 2]
    expected = in_parts(axis, ties)
    with jax.set_mesh(mesh):
        run = functools.partial(every, ties=ties)
        mapped = jax.shard_map(run, mesh=mesh, axis_names=names, in_specs=P(axis), out_specs=P(axis))
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
    """Test that on a 4 x 2 mesh with one or two manual axes, the bits are those of each part alone.

    Only custom calls use the mesh, so integer keys are tested with every other combination of types and axes.
    """
    first = "STEP = 1\n"
    if lowering == "integer-keys":
        first = "STEP = 2\nfrom maxops.engines.jax import only_integer_keys\nonly_integer_keys().__enter__()\n"
    environment = os.environ | {"XLA_FLAGS": "--xla_force_host_platform_device_count=8", "JAX_PLATFORMS": "cpu"}
    command = [sys.executable, "-c", first + PROGRAM]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.strip() == f"{192 if lowering == 'custom-calls' else 96} results"
