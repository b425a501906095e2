"""Let threadpoolctl, which limits the threads of all libraries in a process, control the threads of maxops.

    with threadpoolctl.threadpool_limits(1): ...                       # scikit-learn and joblib do this
    with threadpoolctl.threadpool_limits(1, user_api="maxops"): ...    # only maxops
    threadpoolctl.threadpool_info()

This requires threadpoolctl 3.2, the first version that accepts controllers from other packages. maxops also works
without threadpoolctl.
"""

from __future__ import annotations

import warnings

from maxops import _native
from maxops.engines.native import MOST_THREADS, get_num_threads, set_num_threads
from maxops.version import version

try:
    from threadpoolctl import LibController, register
except Exception as _error:  # noqa: BLE001  (a broken package may raise any exception)
    if not isinstance(_error, ImportError) or _error.name != "threadpoolctl":  # which is neither missing nor older
        warnings.warn(
            "threadpoolctl does not control the threads of maxops, because its import failed: "
            f"{type(_error).__name__}: {_error}; reinstall it",
            RuntimeWarning,
            stacklevel=2,
        )
else:

    class _Controller(LibController):  # type: ignore[misc]
        """Controls the number of threads of the native core."""

        user_api = internal_api = "maxops"
        filename_prefixes = ("_native.",)
        check_symbols = ("RegisterCustomOps",)  # distinguishes this module from modules named _native in other packages

        def get_num_threads(self) -> int:
            """Return the number of threads that a call may use, including the calling thread."""
            return get_num_threads()

        def set_num_threads(self, num_threads: int) -> None:
            """Set the number of threads, limited to the maximum of maxops."""
            set_num_threads(min(int(num_threads), MOST_THREADS))

        def get_version(self) -> str:
            """Return the version of maxops."""
            return version

        def set_additional_attributes(self) -> None:
            """Report the instruction set as `architecture`, as threadpoolctl does for OpenBLAS."""
            self.architecture = _native.isa()

    register(_Controller)
