"""Drop-in replacements for the maximum functions of other libraries: change the import and keep the calls.

The docstring of each module lists the differences from the original.
"""

from __future__ import annotations

from functools import update_wrapper
from typing import Any

from maxops import _native
from maxops.errors import SegmentIdsError


def at_once(operator: str) -> Any:
    """Return a native version of a maxops function. It returns None if a call needs more checks.

    The modules of this package call it before their own checks, which take longer than a small call. `torch.compile`
    treats it as a function that returns None.
    """
    return update_wrapper(_native.Entry(_none, operator), _none)


def index_error(error: SegmentIdsError, index: Any, count: int) -> SegmentIdsError:
    """Rephrase an error about segment ids for functions that call the ids `index`."""
    try:
        positions = ((index < 0) | (index >= count)).nonzero().tolist()
    except RuntimeError:  # PyTorch's vmap does not support nonzero()
        return error
    if not positions:
        return error
    first = positions[0]
    value, position = index[tuple(first)].item(), first[0] if len(first) == 1 else tuple(first)
    return SegmentIdsError(f"index must be between 0 and {count - 1}, got {value} at position {position}", error.clause)


def _none(*args: Any, **options: Any) -> None:
    del args, options
