"""The peers, one file each: what others would use for the same work, in the best way that they could."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module

from maxops.bench.peers.peer import Peer

# By name; the class is in the file of that name, which imports the package only when the peer is made.
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


def load(name: str, threads: int) -> Peer:
    """Import a peer and set it up; raises ImportError, or whatever else its import raises."""
    make: Callable[[int], Peer] = import_module(f"maxops.bench.peers.{name}").PEER
    return make(threads)
