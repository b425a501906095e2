"""Calls on torch tensors for the tests of torch's compilers, with arguments of 3 or 5 rows."""

from __future__ import annotations

import inspect
from collections import deque
from collections.abc import Callable
from typing import Any

import numpy as np
import torch

import maxops as mo

ALL: dict[str, Any] = {"return_indices": True, "return_empty": True}
# Functions whose parameters are named after the arguments below.
CALLS: dict[str, Callable[..., Any]] = {
    "maximum": lambda a, b: mo.maximum(a, b, ties="first"),
    "maximum-scalars": lambda a, b: mo.maximum(0.5, a, b[:1], -1),
    "maximum-bfloat16": lambda half: mo.maximum(half, half[0] * 2, ties="even"),
    "maximum-numpy": lambda a: mo.maximum(a, np.ones(4, np.float32)),
    "maximum-transposed": lambda a: mo.maximum(a.T, a[0, 0]),
    "maximum-channels-last": lambda images: mo.maximum(images, images[:1] * 2),
    "reduce-noop-channels-last": lambda images: mo.reduce_max(images, noop_with_empty_axes=True),
    "reduce-all-options": lambda a: mo.reduce_max(a, (-1,), keepdims=False, initial=0.5, return_indices=True),
    "reduce-axes-of-a-deque": lambda a: mo.reduce_max(a, deque([0, -1])),
    "reduce-tensor-initial": lambda a, initial: mo.reduce_max(a, 1, initial=initial),
    "reduce-noop": lambda a: mo.reduce_max(a, noop_with_empty_axes=True),
    "segments": lambda a, ids: mo.segment_max(a, ids, 6, fill_mode="LOWEST", **ALL),
    "segments-of-a-shape": lambda a, ids: mo.segment_max(a, ids, a.shape[0] + 1, fill_mode="ZERO"),
    "segments-offsets": lambda a, offsets: mo.segment_max(a, offsets=offsets, initial=1),
    "segments-unsorted": lambda a, ids: mo.segment_max(a, ids.flip(0), 6, sorted=False, fill_mode="ZERO"),
    "segments-as-many-as-there-are": lambda a, ids: mo.segment_max(a, ids, fill_mode="ZERO", **ALL),
    "segments-along-the-last-axis": lambda a, ids: mo.segment_max(a.T, ids, axis=-1, fill_mode="ZERO", **ALL),
    "segments-empty": lambda a, ids: mo.segment_max(a.T, ids, 6, axis=1, fill_mode="LOWEST", return_empty=True),
}


def arguments(function: Callable[..., Any], rows: int = 3) -> list[Any]:
    """Return the arguments that a function names, with 3 or 5 rows."""
    every = {
        "a": torch.randn(rows, 4),
        "b": torch.randn(rows, 4),
        "leaf": torch.randn(rows, 4, requires_grad=True),
        "half": torch.randn(rows, 4).bfloat16(),
        "images": torch.randn(rows, 3, 4, 5).contiguous(memory_format=torch.channels_last),
        "initial": torch.tensor(0.2),
        "ids": torch.tensor({3: [0, 0, 2], 5: [0, 1, 1, 3, 3]}[rows]),
        "offsets": torch.tensor({3: [0, 2, 2, 3], 5: [0, 2, 2, 5]}[rows]),
        "count": torch.tensor(rows + 1),
    }
    return [every[name] for name in inspect.signature(function).parameters]
