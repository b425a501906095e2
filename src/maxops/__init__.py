"""Max, ReduceMax and SegmentMax exactly as ONNX, SONNX and OpenVINO specify them."""

from maxops import errors, program

try:
    from maxops.engines.native import get_num_threads, memory_info, set_num_threads
except errors.ConfigurationError as _error:  # the environment says what maxops does not understand
    program.end_command(_error)
    raise
from maxops.engines.table import register_engine
from maxops.ops import Operator, maximum, operator, operators, reduce_max, run, segment_max

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
