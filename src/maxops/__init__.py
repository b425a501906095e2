"""Max, ReduceMax and SegmentMax exactly as ONNX, SONNX and OpenVINO specify them."""

import sys as _sys

from maxops import errors

try:
    from maxops.engines.native import get_num_threads, memory_info, set_num_threads
except errors.ConfigurationError as _error:
    # `python -m maxops` imports this before any line of the command is run, and calls the program "-m" meanwhile
    if _sys.argv[:1] != ["-m"] or not _sys.orig_argv[-len(_sys.argv)].endswith(__name__):
        raise
    print(f"maxops: error: {_error}", file=_sys.stderr)
    _sys.exit(2)
from maxops.ops import Operator, maximum, operator, operators, reduce_max, register_engine, run, segment_max

__all__ = [
    "Operator",
    "errors",
    "get_num_threads",
    "maximum",
    "memory_info",
    "operator",
    "operators",
    "reduce_max",
    "register_engine",
    "run",
    "segment_max",
    "set_num_threads",
]
