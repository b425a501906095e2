"""The tests' interface to an engine: conversions between NumPy arrays and the engine's arrays."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from importlib.util import find_spec
from typing import Any

import pytest

from helpers.bits import STORED
from maxops.dtypes import DType
from maxops.plan import Array


@dataclass(frozen=True)
class Adapter:
    """An engine in the tests: its package, and conversions between NumPy arrays and its own arrays.

    `take` raises an error for arrays of other kinds. `types` are the dtypes of the framework. `give_all` replaces
    `give` if the arrays of a call depend on each other. `words` contains the texts of errors whose wording differs,
    keyed by the case's name. A case runs in the context `around`, which can change settings of the framework. An engine
    that `knows_no_types` has the same code for all dtypes, and delegates dtype-specific work to other engines.
    """

    name: str
    package: str | None
    give: Callable[[Array], Any]
    take: Callable[[Any], Array]
    types: tuple[DType, ...] = STORED
    give_all: Callable[[dict[str, Array] | tuple[Array, ...], Any], Any] | None = None
    words: Mapping[str, str] = field(default_factory=dict)
    around: Callable[[], AbstractContextManager[object]] = nullcontext
    knows_no_types: bool = False

    def given(self, arrays: dict[str, Array] | tuple[Array, ...], axis: Any = 0) -> Any:
        """Return the arrays of a call as arrays of the engine. `axis` is the axis of the segments."""
        if self.give_all is not None:
            return self.give_all(arrays, axis)
        if isinstance(arrays, tuple):
            return tuple(map(self.give, arrays))
        return {name: self.give(array) for name, array in arrays.items()}

    @property
    def is_here(self) -> bool:
        """Return whether the package is installed."""
        try:
            return self.package is None or find_spec(self.package) is not None
        except ModuleNotFoundError:  # if the parent package is missing
            return False

    def need(self) -> None:
        """Skip the test if the package is not installed. In CI, a skip is a failure."""
        if self.package is not None:
            pytest.importorskip(self.package)
