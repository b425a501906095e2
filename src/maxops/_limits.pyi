from typing import Any

import numpy as np

_Array = np.ndarray[Any, np.dtype[Any]]

has_streaming: int

def sweep(source: _Array, target: _Array, streaming: bool, threads: int, /) -> int: ...
