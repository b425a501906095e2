"""The tests' adapters for JAX with 64-bit types: with custom calls, and with integer keys."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from helpers.engine_adapter import Adapter
from maxops.plan import Array


def _to_jax(array: Array) -> Any:
    import jax  # noqa: PLC0415 - optional

    return jax.device_put(np.ascontiguousarray(array).reshape(array.shape))


def _from_jax(array: Any) -> Array:
    import jax  # noqa: PLC0415

    assert isinstance(array, jax.Array)
    return np.asarray(array)


@contextmanager
def _with_64_bits() -> Iterator[None]:
    import jax  # noqa: PLC0415

    with jax.enable_x64(True):
        yield


@contextmanager
def _with_integer_keys() -> Iterator[None]:
    from maxops.engines.jax import only_integer_keys  # noqa: PLC0415

    with _with_64_bits(), only_integer_keys():
        yield


ADAPTERS = (
    Adapter("jax", "jax", _to_jax, _from_jax, around=_with_64_bits, knows_no_types=True),
    Adapter("jax-integer-keys", "jax", _to_jax, _from_jax, around=_with_integer_keys, knows_no_types=True),
)
