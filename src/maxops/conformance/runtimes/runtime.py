"""The base class of runtimes: a class prepares a call, runs it on arrays, and shows the run in a script."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from types import MappingProxyType
from typing import Any, ClassVar

from maxops.conformance.case import Call, Feed
from maxops.conformance.outcome import Kind
from maxops.errors import MaxopsError

Prepared = Callable[[Feed], object]


class NoResultError(Exception):
    """Raised if a call has an outcome other than a result. The message describes it."""

    kind: Kind


class NotApplicableError(NoResultError):
    """Raised if the runtime cannot express the call. The message states what is missing."""

    kind: Kind = "not applicable"


class UnknownRuntimeError(MaxopsError, LookupError):
    """Raised if no runtime has the given name."""


class BrokenRuntimeError(MaxopsError, ImportError):
    """Raised if a runtime is not installed, cannot be imported, or has no backend."""


class GarbageError(NoResultError):
    """Raised if the returned value is not an array or the number of outputs is wrong. The message describes it."""

    kind: Kind = "garbage"


class ProcessEndedError(NoResultError):
    """Raised if a process of the runtime was ended by a signal."""

    kind: Kind = "crashed"


class Runtime:
    """A set of max operators under test, run in a worker process.

    The constructor imports nothing, so the name, environment, claims and scripts are available in every process.
    `start` imports the runtime. Every exception except SystemExit is a refusal. `claims` names the standards that the
    runtime claims to implement: it must refuse the calls that these standards forbid. A library of functions claims no
    standard, but its results are judged. `versioned` indicates whether the caller can choose an operator's version. If
    not, only the newest version is tested. `takes_arrays` indicates whether the runtime accepts arrays in memory, in
    any layout, or reads files, which contain contiguous arrays.
    """

    name: str
    package: ClassVar[str] = ""  # the name for imports, if it differs
    distribution: ClassVar[str] = ""  # the name on PyPI, if it differs from the package
    claims: ClassVar[frozenset[str]] = frozenset()
    versioned: ClassVar[bool] = False
    takes_arrays: ClassVar[bool] = True
    environment: Mapping[str, str] = MappingProxyType({})  # environment variables of the runtime's process

    def start(self) -> None:
        """Import the packages that the runtime needs. Its process calls this once, before prepare, run and version."""
        self.module: Any = import_module(self.package or self.name)

    @property
    def version(self) -> str:
        """Return the runtime's version."""
        return str(getattr(self.module, "__version__", ""))

    def prepare(self, call: Call) -> Prepared:
        """Prepare a call, or raise NotApplicableError or the runtime's own error."""
        raise NotImplementedError

    def run(self, call: Call, feeds: Sequence[Feed]) -> list[Any]:
        """Run a call on each feed. The worker checks the returned values."""
        prepared = self.prepare(call)
        return [prepared(feed) for feed in feeds]

    def script(self, call: Call, feed: Feed) -> list[str]:
        """Return lines of Python that assign the runtime's result to `actual`, an array, without maxops.

        The script around the lines imports NumPy as np, and ml_dtypes if bfloat16 requires it. It assigns the arrays of
        the feed to variables with the names of the call's inputs.
        """
        raise NotImplementedError

    def again(self, call: Call, feed: Feed) -> list[str]:
        """Return lines that run the call again after the lines of `script`."""
        return self.script(call, feed)


def require_no_constructs(call: Call) -> None:
    """Raise NotApplicableError for a call within a model construct, for runtimes that have only functions."""
    if call.within:
        raise NotApplicableError(f"a library call cannot be inside an ONNX {call.within[0]}")
