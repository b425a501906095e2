"""JAX in processes of their own: without the custom calls' module, and over several devices."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

import maxops as mo

pytest.importorskip("jax")
PACKAGE = Path(mo.__file__).parent
NOT_BUILT = "maxops was built without its custom calls"


@pytest.fixture(params=["custom-calls", "without-the-module"])
def package(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    """Where to import maxops from: as it is here, and as it is built unless MAXOPS_JAX asks for more."""
    if request.param == "custom-calls":
        pytest.importorskip("maxops._xla")
        return PACKAGE.parent
    return without_custom_calls(tmp_path)


def without_custom_calls(folder: Path) -> Path:
    """A folder with maxops as it is here, but for the module of the custom calls."""
    (folder / "maxops").mkdir()
    for path in PACKAGE.iterdir():
        if not path.name.startswith("_xla."):
            (folder / "maxops" / path.name).symlink_to(path)
    return folder


def run(package: Path, code: str, **environment: str) -> str:
    """What a program prints that begins with JAX, NumPy and maxops; every warning but one is an error in it."""
    start = (
        f"import sys, warnings\nsys.path[:0] = {[str(package), *sys.path]!r}\nimport jax, numpy as np, maxops as mo\n"
    )
    command = [sys.executable, "-P", "-W", "error", "-W", f"ignore:{NOT_BUILT}:UserWarning", "-c", start + code]
    done = subprocess.run(command, capture_output=True, text=True, check=False, env={**os.environ, **environment})
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_one_warning_if_the_custom_calls_were_not_built(tmp_path: Path) -> None:
    out = run(
        without_custom_calls(tmp_path),
        "from maxops.errors import NotBuiltWarning\n"
        "x, ids = jax.numpy.array([1.0, 2.0]), np.array([0, 0])\n"
        "with warnings.catch_warnings(record=True) as caught:\n"
        "    warnings.simplefilter('always')\n"
        "    print(mo.maximum(x, 1.5), mo.reduce_max(x), jax.jit(lambda x: mo.segment_max(x, ids, initial=0))(x))\n"
        "print([(w.category is NotBuiltWarning, 'MAXOPS_JAX=1' in str(w.message), w.filename) for w in caught])\n",
    )
    assert out.splitlines() == ["[1.5 2. ] [2.] [2.]", "[(True, True, '<string>')]"]


def test_a_broken_module_of_the_custom_calls_is_an_error(tmp_path: Path) -> None:
    """It is there, and not what it should be: nothing goes another way silently."""
    folder = without_custom_calls(tmp_path)
    (folder / "maxops" / "_xla.py").write_text("from maxops import nothing_of_this_name\n")
    out = run(
        folder,
        "try:\n    mo.maximum(jax.numpy.ones(3), 2.0)\nexcept ImportError as error:\n    print(error)\n",
    )
    assert "nothing_of_this_name" in out


def test_arrays_over_several_devices(package: Path) -> None:
    """As XLA spreads them, and split by shard_map and pmap; with gradients."""
    out = run(
        package,
        """
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
