"""JAX as it is set up: without 64-bit types, without the custom calls, over several devices."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import numpy as np
import pytest

import maxops as mo
from bits import assert_same_bits, mixed
from maxops import dtypes, errors, reference

jax = pytest.importorskip("jax")


@pytest.fixture(autouse=True)
def _quiet_without_custom_calls() -> None:
    pytest.importorskip("maxops._xla")


def test_indices_are_int32_without_64_bits() -> None:
    with jax.enable_x64(False):
        values, indices = mo.reduce_max(jax.numpy.ones((2, 3)), 1, return_indices=True)
        assert (values.dtype, indices.dtype) == (np.float32, np.int32)


def test_64_bits_are_refused_where_jax_has_none() -> None:
    with jax.enable_x64(True):
        wide = jax.numpy.ones(3, np.float64)
    with jax.enable_x64(False):
        narrow = jax.numpy.ones(3, np.float32)
        with pytest.raises(errors.DTypeError, match="input 1 is float64, but input 0 is float32"):
            mo.maximum(narrow, np.ones(3))
        with pytest.raises(
            errors.DTypeError, match="input 0 is float64, which JAX has only where jax_enable_x64 is on"
        ):
            mo.maximum(wide, wide)
        with pytest.raises(errors.DTypeError, match="data is int64, which JAX has only where"):
            mo.segment_max(np.arange(3), jax.numpy.arange(3), fill_mode="ZERO")


@pytest.mark.parametrize("options", [{}, {"sorted": False}, {"out_of_range": "drop"}], ids=str)
def test_ids_of_numpy_keep_their_meaning_without_64_bits(options: dict[str, Any]) -> None:
    """They become int32 for JAX, and none may wrap round to another segment."""
    data = mixed(dtypes.FLOAT32, (5, 2), 1)
    ids = np.array([0, 1, 1, (1 << 32), (1 << 32) + 1])
    with jax.enable_x64(False):
        given = jax.device_put(data)
        if options == {"sorted": False}:
            with pytest.raises(errors.SegmentIdsError, match="position 3 holds 4294967296"):
                mo.segment_max(given, ids, 2, fill_mode="ZERO", **options)
            return
        got = mo.segment_max(given, ids, 2, fill_mode="ZERO", **options)
        assert_same_bits(np.asarray(got), reference.segment_max(data, ids, 2, "ZERO"))
        got = mo.segment_max(given, offsets=np.array([0, 2, 5]), fill_mode="ZERO")
        assert_same_bits(np.asarray(got), reference.segment_max(data, np.array([0, 0, 1, 1, 1]), 2, "ZERO"))


def run(code: str, **environment: str) -> str:
    """What a program prints that begins with JAX, NumPy and maxops; every warning is an error in it."""
    start = "import os, sys, warnings\nos.environ.update(" + repr(environment) + ")\n"
    start += f"sys.path[:0] = {sys.path!r}\nimport jax, numpy as np, maxops as mo\n"
    command = [sys.executable, "-W", "error", "-c", start + code]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_one_warning_if_the_custom_calls_were_not_built() -> None:
    out = run(
        "sys.modules['maxops._xla'] = None\n"
        "from maxops.errors import NotBuiltWarning\n"
        "x = jax.numpy.array([1.0, 2.0])\n"
        "with warnings.catch_warnings(record=True) as caught:\n"
        "    warnings.simplefilter('always')\n"
        "    print(mo.maximum(x, 1.5), mo.reduce_max(x))\n"
        "print([(w.category is NotBuiltWarning, 'MAXOPS_JAX=1' in str(w.message), w.filename) for w in caught])\n"
    )
    assert out.splitlines() == ["[1.5 2. ] [2.]", "[(True, True, '<string>')]"]


def test_arrays_over_several_devices() -> None:
    out = run(
        "from jax.sharding import Mesh, NamedSharding, PartitionSpec as P\n"
        "mesh = Mesh(np.array(jax.devices()), ('rows',))\n"
        "x = np.random.default_rng(0).standard_normal((8, 6)).astype('f4')\n"
        "given = jax.device_put(x, NamedSharding(mesh, P('rows')))\n"
        "ids = np.array([0, 0, 1, 1, 1, 3, 3, 3])\n"
        "for got, want in (\n"
        "    (mo.maximum(given, -given), mo.maximum(x, -x)),\n"
        "    (mo.reduce_max(given, 1), mo.reduce_max(x, 1)),\n"
        "    (mo.reduce_max(given, 0), mo.reduce_max(x, 0)),\n"
        "    (mo.segment_max(given, ids, fill_mode='ZERO'), mo.segment_max(x, ids, fill_mode='ZERO')),\n"
        "):\n"
        "    print(np.asarray(got).tobytes() == want.tobytes())\n"
        "split = jax.shard_map(lambda x: mo.reduce_max(x, 1), mesh=mesh, in_specs=P('rows'), out_specs=P('rows'))\n"
        "print(np.asarray(jax.jit(split)(given)).tobytes() == mo.reduce_max(x, 1).tobytes())\n",
        XLA_FLAGS="--xla_force_host_platform_device_count=2",
    )
    assert out.split() == ["True"] * 5
