"""An array of another library, which shares its memory through DLPack."""

from __future__ import annotations

from typing import Any

from maxops.plan import Array


class Lent:
    """An array with only the two methods of DLPack, on a device of any type. Type 1 is the CPU."""

    def __init__(self, values: Array, device: int = 1) -> None:
        self.values, self.device = values, device

    def __dlpack__(self, **options: Any) -> Any:
        return self.values.__dlpack__(**options)

    def __dlpack_device__(self) -> tuple[int, int]:
        return (self.device, 0)
