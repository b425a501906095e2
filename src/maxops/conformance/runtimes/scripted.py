"""The base class of runtimes that are defined by lines of Python code.

The script of a finding shows exactly the lines that run.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import Any

import ml_dtypes
import numpy as np

from maxops.conformance.case import Call, Feed
from maxops.conformance.runtimes.runtime import Prepared, Runtime

# Names that the script around the lines defines.
KNOWN: dict[str, Any] = {"np": np, "ml_dtypes": ml_dtypes, "Fraction": Fraction}


class Scripted(Runtime):
    """A runtime that runs lines from a subclass. The lines import packages, and read arrays by the inputs' names."""

    opening: tuple[str, ...] = ()  # lines that run once in each process, and at the start of each script

    def start(self) -> None:
        """Import the package and run the opening."""
        super().start()
        self._opened: dict[str, Any] = dict(KNOWN)
        exec(_compiled(self.opening, "opening"), self._opened)

    def setup(self, call: Call) -> list[str]:
        """Return lines that run once for each call. Raise NotApplicableError if the call is not supported."""
        raise NotImplementedError

    def answer(self, call: Call) -> list[str]:
        """Return lines that run for each feed and assign the result to `actual`."""
        raise NotImplementedError

    def prepare(self, call: Call) -> Prepared:
        """Run the setup's lines, and compile the other lines."""
        prepared = dict(self._opened)
        exec(_compiled(self.setup(call), "setup"), prepared)
        code = _compiled(self.answer(call), "answer")
        names = [each.name for each in call.fed]
        if taken := sorted(set(names) & set(prepared)):
            raise ValueError(
                f"{call.row.name} has inputs named {', '.join(taken)}, but the script's imports or the runtime's "
                "opening or setup lines already define these names"
            )

        def run(feed: Feed) -> object:
            here = prepared | dict(zip(names, feed, strict=True))
            exec(code, here)
            return here["actual"]

        return run

    def script(self, call: Call, feed: Feed) -> list[str]:
        """Return all lines."""
        del feed
        return [*self.opening, *self.setup(call), *self.answer(call)]

    def again(self, call: Call, feed: Feed) -> list[str]:
        """Return the lines of `answer`."""
        del feed
        return self.answer(call)


def _compiled(lines: Sequence[str], what: str) -> Any:
    return compile("\n".join(lines), f"<{what}>", "exec")


def fed_by_name(call: Call) -> str:
    """Return a Python expression for a dict that maps the names of the inputs to their arrays."""
    return f"{{{', '.join(f'{each.name!r}: {each.name}' for each in call.fed)}}}"
