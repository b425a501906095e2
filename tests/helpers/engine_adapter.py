"""What an engine is to the tests: both ways between NumPy's arrays and its own."""

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
    """An engine to the tests: the package that it needs, and both ways between NumPy's arrays and its own.

    `take` raises for an array of another kind. `types` are those that the framework has. `give_all` is in place of
    `give` where the arrays of a call depend on each other. `words` has the text of errors
    that it words otherwise, by the case's name. A case runs within `around`: settings of the framework's own. An engine
    that `knows_no_types` has the same code for each, and asks others for what is of one.
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
        """The arrays of a call in the engine's own kind; `axis` is that of its segments."""
        if self.give_all is not None:
            return self.give_all(arrays, axis)
        if isinstance(arrays, tuple):
            return tuple(map(self.give, arrays))
        return {name: self.give(array) for name, array in arrays.items()}

    @property
    def is_here(self) -> bool:
        """Whether the package is installed."""
        try:
            return self.package is None or find_spec(self.package) is not None
        except ModuleNotFoundError:  # of what the package is a part of
            return False

    def need(self) -> None:
        """Skip the test if the package is not there; in CI that is a failure."""
        if self.package is not None:
            pytest.importorskip(self.package)
