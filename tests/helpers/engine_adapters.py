"""The adapters of all engines. Each engine has its own file."""

from __future__ import annotations

from helpers import engine_dask, engine_jax, engine_torch, engine_xarray
from helpers.engine_adapter import Adapter

NUMPY = Adapter("numpy", None, lambda array: array, lambda array: array)

ADAPTERS = (NUMPY, *engine_dask.ADAPTERS, *engine_jax.ADAPTERS, *engine_torch.ADAPTERS, *engine_xarray.ADAPTERS)
