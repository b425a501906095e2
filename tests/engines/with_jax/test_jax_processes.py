"""JAX in separate processes: with a broken module of custom calls, and on several devices."""

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
    """Run a program that first imports JAX, NumPy and maxops, with warnings as errors; return its output."""
    start = (
        f"import sys, warnings\nsys.path[:0] = {[str(package), *sys.path]!r}\nimport jax, numpy as np, maxops as mo\n"
    )
    command = [sys.executable, "-P", "-W", "error", "-c", start + code]
    done = subprocess.run(command, capture_output=True, text=True, check=False, env={**os.environ, **environment})
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_a_broken_module_of_the_custom_calls_is_an_error(tmp_path: Path) -> None:
    """Test that a broken module of custom calls is an error, without a silent fallback."""
    (tmp_path / "maxops").mkdir()
    for path in PACKAGE.iterdir():
        if not path.name.startswith("_xla."):
            (tmp_path / "maxops" / path.name).symlink_to(path)
    (tmp_path / "maxops" / "_xla.py").write_text("from maxops import nothing_of_this_name\n")
    out = run(
        tmp_path,
        "try:\n    mo.maximum(jax.numpy.ones(3), 2.0)\nexcept ImportError as error:\n    print(error)\n",
    )
    assert "nothing_of_this_name" in out


@pytest.mark.parametrize("lowering", ["custom-calls", "integer-keys"])
def test_arrays_over_several_devices(lowering: str) -> None:
    """Test arrays that XLA, shard_map or pmap distributes over devices, with gradients."""
    only_keys = "from maxops.engines import jax as engine\nengine.only_integer_keys().__enter__()\n"
    out = run(
        PACKAGE.parent,
        (only_keys if lowering == "integer-keys" else "")
        + """
from jax.sharding import Mesh, NamedSharding, PartitionSpec as P
mesh = Mesh(np.array(jax.devices()), ("rows",))
x = np.random.default_rng(0).standard_normal((8, 6)).astype("f4")
given = jax.device_put(x, NamedSharding(mesh, P("rows")))
ids, half = np.array([0, 0, 1, 1, 1, 3, 3, 3]), np.array([0, 0, 1, 3])

def print_same(got, expected):
    for a, b in zip(got, expected, strict=True):
        print(np.asarray(a).tobytes() == np.asarray(b).tobytes())

def whole(x):
    yield mo.maximum(x, -x)
    yield mo.reduce_max(x, 1)
    yield mo.reduce_max(x, 0)
    yield mo.segment_max(x, ids, fill_mode="ZERO")

def parts(x):
    yield mo.maximum(x, x[0], -1.0)
    yield mo.reduce_max(x, 1, initial=0.0, return_indices=True)[0]
    yield mo.segment_max(x, half, 4, fill_mode="ZERO", return_indices=True)[0]

def with_gradient(function):
    total = lambda x: sum((2.0**k * part.sum() for k, part in enumerate(function(x))), 0.0)
    return jax.jit(lambda x: [*function(x), jax.grad(total)(x)])

print_same(jax.jit(lambda x: [*whole(x)])(given), whole(x))
results = zip(*map(with_gradient(lambda x: [*parts(x)]), (x[:4], x[4:])))
expected = [np.concatenate(pair) for pair in results]
for check_vma in (True, False):
    split = jax.shard_map(
        lambda x: [*parts(x)], mesh=mesh, in_specs=P("rows"), out_specs=P("rows"), check_vma=check_vma
    )
    print_same(with_gradient(split)(given), expected)
print_same(jax.pmap(lambda x: [*parts(x)])(x.reshape(2, 4, 6)), expected[:-1])
""",
        XLA_FLAGS="--xla_force_host_platform_device_count=2",
    )
    assert out.split() == ["True"] * (4 + 4 + 4 + 3)
