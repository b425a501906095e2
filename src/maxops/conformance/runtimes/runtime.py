"""The base class of the runtimes: a class that prepares a call, runs it on arrays, and shows how in a script."""

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
    """There is no result to judge, but an outcome of this kind; the text says more."""

    kind: Kind


class NotApplicableError(NoResultError):
    """The runtime has nothing that means this call; the text says what is missing."""

    kind: Kind = "not applicable"


class UnknownRuntimeError(MaxopsError, LookupError):
    """A name that no runtime has."""


class BrokenRuntimeError(MaxopsError, ImportError):
    """A runtime that is not installed, cannot be imported, or holds nothing that runs models."""


class GarbageError(NoResultError):
    """The returned value is not an array, or the number of outputs is wrong; the text describes it."""

    kind: Kind = "garbage"


class ProcessEndedError(NoResultError):
    """A process that the runtime works in ended by a signal, or did not end in time."""

    kind: Kind = "crashed"


class ProcessHungError(ProcessEndedError):
    """It did not end in time."""

    kind: Kind = "hung"


class Runtime:
    """Max operators under test, run in a worker process.

    The constructor imports nothing, so the name, environment, claims and scripts are available in every process;
    `start` imports the runtime. Every exception of a runtime is a refusal. `claims` names the standards that the
    runtime claims to implement: it must refuse only the calls that these standards forbid. A library of functions
    claims no standard, and its results are judged nevertheless. `versioned` says whether the caller can choose an
    operator's version; otherwise only the newest version is tested. `takes_arrays` says whether the runtime accepts
    arrays in memory, in any layout, or reads files, which hold contiguous arrays.
    """

    name: str
    package: ClassVar[str] = ""  # to import, if it is not the name
    distribution: ClassVar[str] = ""  # on PyPI, if it is not the package
    claims: ClassVar[frozenset[str]] = frozenset()
    versioned: ClassVar[bool] = False
    takes_arrays: ClassVar[bool] = True
    environment: Mapping[str, str] = MappingProxyType({})  # of its process

    def start(self) -> None:
        """Import what it runs on; once, in the process that runs it, and before prepare, run and version."""
        self.module: Any = import_module(self.package or self.name)

    @property
    def version(self) -> str:
        """The runtime's version."""
        return str(getattr(self.module, "__version__", ""))

    def prepare(self, call: Call) -> Prepared:
        """Make ready to run a call; raises NotApplicableError, or the runtime's own error."""
        raise NotImplementedError

    def run(self, call: Call, feeds: Sequence[Feed]) -> list[Any]:
        """Run a call on each feed. What comes back is looked at by the worker."""
        prepared = self.prepare(call)
        return [prepared(feed) for feed in feeds]

    def script(self, call: Call, feed: Feed) -> list[str]:
        """Lines of Python that leave the runtime's answer in `actual`, an array, without maxops.

        The script around them has imported NumPy as np (and ml_dtypes where bfloat16 needs it), and has the arrays of
        the feed under the names of the call's inputs.
        """
        raise NotImplementedError

    def again(self, call: Call, feed: Feed) -> list[str]:
        """Lines that run the call again, after those of `script`."""
        return self.script(call, feed)


def require_no_constructs(call: Call) -> None:
    """Raise NotApplicableError for a call within a construct of models, of a runtime that has functions alone."""
    if call.within:
        raise NotApplicableError(f"functions have no models: none has a {call.within[0]}")
