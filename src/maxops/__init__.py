"""Max, ReduceMax and SegmentMax exactly as ONNX, SONNX and OpenVINO specify them."""

from typing import TYPE_CHECKING

from maxops import errors, program
from maxops.version import version as _version

try:
    from maxops.engines.native import get_num_threads, memory_info, set_num_threads
except errors.ConfigurationError as _error:  # the environment says what maxops does not understand
    program.end_command(_error)
    raise
from maxops import threadpool_controller as _threadpool_controller  # noqa: F401  (for who has threadpoolctl)
from maxops.engines.table import register_engine
from maxops.ops import Operator, maximum, operator, operators, reduce_max, run, segment_max
from maxops.threads import num_threads

__all__ = [
    "Operator",
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


if TYPE_CHECKING:  # who checks types is to be told of other names that are not there
    __version__: str
else:

    def __getattr__(name: str) -> str:
        """`maxops.__version__`, which takes a look at the disk."""
        if name == "__version__":
            return _version()
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
