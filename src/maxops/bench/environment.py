"""Environment variables that prevent the threads of libraries from spinning."""

from __future__ import annotations

import os
import sys

MARK = "MAXOPS_BENCH_ENVIRONMENT"
_COUNTS = ("OMP", "MKL", "OPENBLAS", "NUMBA", "MAXOPS")  # each with a variable *_NUM_THREADS
_OTHERS = (
    "OMP_WAIT_POLICY=PASSIVE GOMP_SPINCOUNT=0 KMP_BLOCKTIME=0 JAX_PLATFORMS=cpu JAX_ENABLE_X64=1 ORT_LOGGING_LEVEL=4 "
    "OPENVINO_TELEMETRY_OPT_OUT=1 PYTHONWARNINGS=ignore"
)


def quiet(threads: int) -> dict[str, str]:
    """Return environment variables that set the number of threads and make idle threads sleep."""
    counts = dict.fromkeys((MARK, "POLARS_MAX_THREADS", *(f"{name}_NUM_THREADS" for name in _COUNTS)), str(threads))
    return counts | dict(each.split("=") for each in _OTHERS.split())


def is_quiet(threads: int) -> bool:
    """Return whether this process was started with the environment variables that `quiet` returns."""
    return os.environ.get(MARK) == str(threads)


def re_execute(threads: int) -> None:
    """Replace this process with the same command in a quiet environment, with one CPU for each thread.

    Some libraries read the variables only on import. XLA's pool has as many threads as the process has CPUs.
    """
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:threads])
    sys.stdout.flush()
    os.execve(sys.executable, [sys.executable, *sys.orig_argv[1:]], os.environ | quiet(threads))
