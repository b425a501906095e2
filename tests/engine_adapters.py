"""How the tests reach each engine: arrays into its own kind, and results back, which must be of that kind."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest

from bits import STORED
from maxops.dtypes import DType
from maxops.plan import Array


@dataclass(frozen=True)
class Adapter:
    """An engine to the tests: the package that it needs, and both ways between NumPy's arrays and its own.

    `take` raises for an array of another kind. `types` are those that the framework has.
    """

    name: str
    package: str | None
    give: Callable[[Array], Any]
    take: Callable[[Any], Array]
    types: tuple[DType, ...] = STORED

    def need(self) -> None:
        """Skip the test if the package is not there; in CI that is a failure."""
        if self.package is not None:
            pytest.importorskip(self.package)


ADAPTERS = (Adapter("numpy", None, lambda array: array, lambda array: array),)
