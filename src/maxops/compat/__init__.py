"""The functions of other libraries on maxops: change an import and keep the calls.

The documentation of each module lists the differences.
"""

from __future__ import annotations

from functools import update_wrapper
from typing import Any

from maxops import _native


def at_once(operator: str) -> Any:
    """Return an operator of the core, which returns None for a call that is not clearly valid.

    The modules call it before their own checks, which take longer than a small call. `torch.compile` reads it as a
    function that returns None.
    """
    return update_wrapper(_native.Entry(_none, operator), _none)


def _none(*args: Any, **options: Any) -> None:
    del args, options
