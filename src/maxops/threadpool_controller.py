"""How threadpoolctl, which limits the threads of all libraries of a process at once, sees and sets those of maxops.

    with threadpoolctl.threadpool_limits(1): ...                       # scikit-learn and joblib do this
    with threadpoolctl.threadpool_limits(1, user_api="maxops"): ...    # maxops alone
    threadpoolctl.threadpool_info()

It takes threadpoolctl 3.2, the first that knows controllers of others; maxops does without.
"""

from __future__ import annotations

from maxops import _native
from maxops.engines.native import MOST_THREADS, get_num_threads, set_num_threads
from maxops.version import version

try:
    from threadpoolctl import LibController, register
except ImportError:  # not installed, or older
    pass
else:

    class _Controller(LibController):  # type: ignore[misc]
        """The number of threads of the native core; one for the process."""

        user_api = internal_api = "maxops"
        filename_prefixes = ("_native.",)
        check_symbols = ("RegisterCustomOps",)  # which the _native of other packages lacks

        def get_num_threads(self) -> int:
            """How many threads a call may use, the calling one included."""
            return get_num_threads()

        def set_num_threads(self, num_threads: int) -> None:
            """Set how many; a limit above the largest number is that number."""
            set_num_threads(min(int(num_threads), MOST_THREADS))

        def get_version(self) -> str:
            """The version of maxops."""
            return version

        def set_additional_attributes(self) -> None:
            """The instruction set, under the name that OpenBLAS's has."""
            self.architecture = _native.isa()

    register(_Controller)
