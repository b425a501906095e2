"""JAX in separate processes: on several devices, and with a broken module of custom calls."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

import maxops as mo

pytest.importorskip("jax")
PACKAGE = Path(mo.__file__).parent


def run(package: Path, code: str, **environment: str) -> str:
    """Run a program that first imports JAX, NumPy and maxops, with warnings as errors. Return its output."""
    start = (
        f"import sys, warnings\nsys.path[:0] = {[str(package), *sys.path]!r}\nimport jax, numpy as np, maxops as mo\n"
    )
    command = [sys.executable, "-P", "-W", "error", "-c", start + code]
    done = subprocess.run(command, capture_output=True, text=True, check=False, env={**os.environ, **environment})
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_a_broken_module_of_the_custom_calls_is_an_error(tmp_path: Path) -> None:
    """Test that a broken module of custom calls is an error, without a silent fallback."""
    (tmp_path / "maxops").mkdir()
    for path in PACKAGE.iterdir():
        if not path.name.startswith("_xla."):
            (tmp_path / "maxops" / path.name).symlink_to(path)
    (tmp_path / "maxops" / "_xla.py").write_text("from maxops import nothing_of_this_name\n")
    code = "try:\n    mo.maximum(jax.numpy.ones(3), 2.0)\nexcept ImportError as error:\n    print(error)\n"
    assert "nothing_of_this_name" in run(tmp_path, code)


PROGRAM = r"""
import contextlib, functools, itertools, sys
from jax.sharding import AxisType, NamedSharding, PartitionSpec as P
from maxops.engines.jax import only_integer_keys

x = (np.arange(32, dtype=np.float32) % 7).reshape(8, 4)


def segments(x, ties, rows):
    return mo.segment_max(x[:rows], np.zeros(len(x[:rows]), np.int32), 2, fill_mode="ZERO", ties=ties)


def empty_row(x, ties):
    return mo.segment_max(x[:, :0], np.zeros(len(x), np.int32), 2, fill_mode="ZERO", ties=ties)


CALLS = {
    "maximum": lambda x, ties: mo.maximum(x, x[:1], 0.5, ties=ties),
    "reduce": lambda x, ties: mo.reduce_max(x, 1, ties=ties),
    "indices": lambda x, ties: mo.reduce_max(x, 1, initial=0.0, return_indices=True, ties=ties)[0],
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
def in_parts(count, ties):
    parts = [every(part, ties) for part in np.split(x, count)]
    return jax.tree.map(lambda *each: np.concatenate(each), *parts)


def shard_map(types, names, ties, **options):
    mesh, axis = jax.make_mesh((4, 2), ("a", "b"), axis_types=types), min(names)
    expected = in_parts(4 if axis == "a" else 2, ties)
    run = functools.partial(every, ties=ties)
    with jax.set_mesh(mesh):
        mapped = jax.shard_map(run, mesh=mesh, axis_names=names, in_specs=P(axis), out_specs=P(axis), **options)
        return jax.jit(mapped)(jax.device_put(x, NamedSharding(mesh, P(axis)))), expected


def pmap(ties):
    names = [name for name in CALLS if "empty" not in name]  # pmap does not return empty arrays
    results = jax.pmap(lambda x: {name: CALLS[name](x, ties) for name in names})(x.reshape(4, 2, 4))
    expected = {name: in_parts(4, ties)[0][name] for name in names}
    return jax.tree.map(lambda part: part.reshape(-1, *part.shape[2:]), results), expected


def partitioned(ties):
    mesh = jax.make_mesh((8,), ("a",), axis_types=(AxisType.Auto,))
    run = jax.jit(functools.partial(every, ties=ties))
    return run(jax.device_put(x, NamedSharding(mesh, P("a")))), every(x, ties)


failed = []
count = 0
for keys in (False, True):
    # Only custom calls use the mesh, so integer keys are tested with every other combination of types and axes.
    meshes = [*enumerate(itertools.product(TYPES, ({"b"}, {"a", "b"})))][keys :: 1 + keys]
    trials = [functools.partial(shard_map, *given, ("even", "first")[(turn + turn // 2) % 2]) for turn, given in meshes]
    trials.append(functools.partial(shard_map, TYPES[0], {"a"}, "even", check_vma=False))
    trials += [functools.partial(pmap, "even"), functools.partial(partitioned, "first")]
    for trial in trials:
        with only_integer_keys() if keys else contextlib.nullcontext():
            try:
                results, expected = trial()
            except Exception as error:
                failed.append(f"{trial} {keys}: {type(error).__name__}: {str(error)[:300]}")
                continue
        same = jax.tree.map(lambda a, b: np.asarray(a).tobytes() == np.asarray(b).tobytes(), results, expected)
        count += len(jax.tree.leaves(same))
        if not all(jax.tree.leaves(same)):
            failed.append(f"{trial} {keys}: {same}")
    in_parts.cache_clear()
print("\n".join(failed) or f"{count} results")
sys.exit(bool(failed))
"""


def test_calls_on_several_devices() -> None:
    """Test that the bits equal those of a separate call for each part: shard_map, and partitions by pmap and XLA."""
    flags = "--xla_force_host_platform_device_count=8"
    flags += (
        " --xla_backend_optimization_level=0 --xla_llvm_disable_expensive_passes=true"  # would take most of the time
    )
    environment = {"XLA_FLAGS": flags, "JAX_PLATFORMS": "cpu"}
    assert run(PACKAGE.parent, PROGRAM, **environment).strip() == f"{(8 + 4 + 2) * 16 + 2 * (4 + 16)} results"
