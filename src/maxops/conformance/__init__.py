"""The conformance kit: judges whether a runtime computes the max operators as the standards specify.

`maxops conform` is its command line. In Python, `select` returns the cases, and `conform` runs them on a runtime.
The result is a `Run`, which `saved` writes, `compare` compares, and `page`, `junit` and `matrix` show.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from maxops.conformance import limits
from maxops.conformance.case import Case
from maxops.conformance.result import Run

__all__ = ["Case", "Run", "conform", "select"]


def select(only: str | Sequence[str] = (), *, quick: bool = False) -> list[Case]:
    """Return all cases, or the cases that match the pattern or one of the patterns, in a stable order.

    A pattern is a substring of a case id or, with `*`, `?` or `[...]`, a glob for a whole id. Commas separate patterns.
    `quick` keeps only the cases of a quick run. Raises NoSuchCaseError, a LookupError, if a pattern matches no case.

    >>> case, *more = select(["ONNX.ReduceMax-20.empty/float32"])
    >>> case.id
    'ONNX.ReduceMax-20.empty/float32/data-0-constant-axes-0-keepdims-0'
    >>> case.clause.statement
    'the maximum of no elements is -Inf for floats, the lowest value for integers, and False for bool'
    >>> trial = case.make()
    >>> trial.feeds[0], trial.expected[0]
    ((array([], dtype=float32),), array(-inf, dtype=float32))
    """
    from maxops.conformance import cases  # noqa: PLC0415  (not needed to read saved runs)

    return cases.select(cases.cases(), _patterns(only), quick=quick)


def conform(
    runtime: str,
    only: str | Sequence[str] = (),
    *,
    quick: bool = False,
    seconds: float = limits.SECONDS,
    repeats: int = limits.REPEATS,
    progress: Callable[[int, int, str], None] | None = None,
) -> Run:
    """Run cases on a runtime in worker processes, and judge the outcomes.

    `runtime` is the name of one runtime. `only` and `quick` have the same meaning as for `select`. `repeats` is the
    number of runs of each call, and `seconds` is the timeout for two runs of a case. `progress` is called with the
    number of completed steps, the total of this phase, and the current step. Raises a MaxopsError if the runtime
    cannot be started or returns no arrays, if no case is applicable, or if a number is out of range.

    >>> run = conform("numpy", ["ONNX.Max-13.T/int64/two-short-vectors"])
    >>> run["cases"]
    {'ONNX.Max-13.T/int64/two-short-vectors': 'conforms'}
    """
    from maxops.conformance import session  # noqa: PLC0415  (onnx is slow)

    patterns = _patterns(only)
    kit = {"quick": quick, "only": patterns}
    chosen = select(patterns, quick=quick)
    return session.conform(runtime, chosen, kit=kit, seconds=seconds, repeats=repeats, progress=progress)


def _patterns(only: str | Sequence[str]) -> list[str]:
    patterns = [only] if isinstance(only, str) or not isinstance(only, Iterable) else list(only)
    if not all(isinstance(each, str) for each in patterns):
        raise TypeError(f"only must be a pattern or a list of patterns, got {only!r}")
    return patterns
