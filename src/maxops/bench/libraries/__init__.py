"""The libraries, one file each: what others would use for the same work, as fast as it can be done."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module

from maxops.bench.libraries.library import Library

# By name; the class is in the file of that name, which imports the package only when the library is made.
NAMES = (
    "numpy",
    "torch",
    "onnxruntime",
    "openvino",
    "jax",
    "pyarrow",
    "polars",
    "numbagg",
    "numpy_groupies",
    "bottleneck",
    "scipy",
)


def load(name: str, threads: int) -> Library:
    """Import a library and set it up; raises ImportError, or whatever else its import raises."""
    make: Callable[[int], Library] = import_module(f"maxops.bench.libraries.{name}").LIBRARY
    return make(threads)
