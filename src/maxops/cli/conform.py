"""`maxops conform`: does a runtime compute the max operators as the standards say?"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:  # onnx takes longer to import than most commands to run
    pass

NOT_CONFORMING = 1
