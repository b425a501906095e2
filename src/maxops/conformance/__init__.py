"""The conformance kit: judges whether a runtime computes the max operators as the standards specify.

`maxops conform` is its command line. In Python, `select` returns the cases, and `conform` runs them on a runtime.
The result is a `Run`, which `saved` writes, `compare` compares, and `page`, `junit` and `matrix` show.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from maxops.conformance import repeat, timeout
from maxops.conformance.case import Case
from maxops.conformance.result import Run

__all__ = ["Case", "Run", "conform", "select"]


def select(only: Sequence[str] = (), *, quick: bool = False) -> list[Case]:
    """Return all cases, or the cases that match one of the patterns, in a stable order.

    A pattern is a substring of a case id, or a glob with `*` that matches the whole id. `quick` keeps only the cases of
    a quick run. Raises NoSuchCaseError, a LookupError, for a pattern that matches no case.

    >>> case, *more = select(["ONNX.ReduceMax-20.empty/float32"])
    >>> case.id
    'ONNX.ReduceMax-20.empty/float32/data-0-constant-axes-0-keepdims-0'
    >>> case.clause.statement
    'the maximum of an empty set is -Inf, the lowest value, or False'
    >>> trial = case.make()
    >>> trial.feeds[0], trial.expected[0]
    ((array([], dtype=float32),), array(-inf, dtype=float32))
    """
    from maxops.conformance import cases  # noqa: PLC0415  (not needed to read saved runs)

    return cases.select(cases.cases(), only, quick=quick)


def conform(
    runtime: str,
    only: Sequence[str] = (),
    *,
    quick: bool = False,
    seconds: float = timeout.DEFAULT,
    repeats: int = repeat.DEFAULT,
    progress: Callable[[int, int, str], None] | None = None,
) -> Run:
    """Run cases on a runtime in worker processes, and judge the outcomes.

    `runtime` is a name, as on the command line; `only` and `quick` have the same meaning as for `select`. `seconds` is
    the timeout of a case, and `repeats` the number of runs of each call. `progress` is called with the number of
    completed cases, the total, and the current case. Raises a MaxopsError if the runtime cannot be started, if no case
    applies to it, or if the timeout or the number of runs is out of range.

    >>> run = conform("numpy", ["ONNX.Max-13.T/int64/two-short-vectors"])
    >>> run["cases"]
    {'ONNX.Max-13.T/int64/two-short-vectors': 'conforms'}
    """
    from maxops.conformance import session  # noqa: PLC0415  (onnx is slow)

    kit = {"quick": quick, "only": list(only)}
    chosen = select(only, quick=quick)
    return session.conform(runtime, chosen, kit=kit, seconds=seconds, repeats=repeats, progress=progress)
