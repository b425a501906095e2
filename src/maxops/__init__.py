"""Max, ReduceMax and SegmentMax exactly as ONNX, SONNX and OpenVINO specify them."""

from maxops import program
from maxops.version import version as __version__

try:
    from maxops import errors
    from maxops import threadpool_controller as _threadpool_controller  # noqa: F401  (for threadpoolctl)
    from maxops.engines.native import get_num_threads, memory_info, set_num_threads
except Exception as _error:  # such as invalid environment variables, or a broken NumPy
    if program.is_command():
        program.end_command(_error)
    raise
from maxops.engines.table import register_engine
from maxops.ops import Operator, maximum, operator, operators, reduce_max, run, segment_max
from maxops.threads import num_threads

__all__ = [
    "Operator",
    "__version__",
    "errors",
    "get_num_threads",
    "maximum",
    "memory_info",
    "num_threads",
    "operator",
    "operators",
    "reduce_max",
    "register_engine",
    "run",
    "segment_max",
    "set_num_threads",
]


def __dir__() -> list[str]:
    return sorted(__all__)
