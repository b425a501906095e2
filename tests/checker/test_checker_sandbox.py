"""The checker's sandbox: tasks that may end the process, and the number of processes for a check."""

from __future__ import annotations

import os
import resource
import signal
from collections.abc import Callable
from itertools import product
from types import SimpleNamespace
from typing import NoReturn

import pytest
from onnx import ModelProto, parser

from maxops.checker import check, sandbox
from maxops.errors import ModelError


def _killed(number: int) -> Callable[[], bytes]:
    def work() -> bytes:
        os.kill(os.getpid(), number)
        return b"never"

    return work


def _refused() -> NoReturn:
    raise ModelError("it is \ud800 wrong")


WORKS: dict[str, Callable[[], bytes]] = {
    "nothing": lambda: b"",
    "bytes": lambda: bytes(range(256)) * 300,  # more than the capacity of a pipe
    "fault": _refused,
    "killed": _killed(signal.SIGKILL),
    "late": _killed(signal.SIGXCPU),
    "waiting": _killed(signal.SIGALRM),
    "another error": lambda: bytes(1 // 0),
    "exit": lambda: bytes(os._exit(3)),
}
TEXTS = {
    "fault": "it is ? wrong",
    "killed": "exited with status -9",
    "late": "took more than 20 seconds",
    "waiting": "took more than 20 seconds",
    "another error": "exited with status 1",
    "exit": "exited with status 3",
}


def _counted(monkeypatch: pytest.MonkeyPatch) -> list[None]:
    """Return a list that gets one item for each process that starts."""
    forks: list[None] = []
    fork = os.fork

    def counted() -> int:
        forks.append(None)
        return fork()

    monkeypatch.setattr(os, "fork", counted)
    return forks


# Each task alone, and each pair of tasks in one list.
PAIRS = [name for i, one in enumerate(WORKS) for other in [*WORKS][i:] for name in dict.fromkeys((one, other))]


@pytest.mark.parametrize(
    "names", [[], *map(list, product(WORKS)), [*PAIRS, PAIRS[0]]], ids=lambda names: str(len(names))
)
def test_each_work_after_each_other(names: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    forks = _counted(monkeypatch)
    results = sandbox.sandboxed([WORKS[name] for name in names])
    message = [str(each) if isinstance(each, ModelError) else each for each in results]
    assert message == [TEXTS.get(name) or WORKS[name]() for name in names]
    ends = [name not in ("nothing", "bytes", "fault") for name in names]
    assert len(forks) == (sum(ends[:-1]) + 1 if names else 0)


def test_half_a_reply_is_none() -> None:
    for missing in range(1, 10):
        replies = b"".join(b"+" + len(each).to_bytes(8, "little") + each for each in (b"one", b"two"))
        assert [*sandbox._parsed(replies)] == [b"one", b"two"]
        assert [*sandbox._parsed(replies[:-missing])] == [b"one"]


def test_each_work_has_the_limits_for_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    hard = resource.getrlimit(resource.RLIMIT_CPU)[1]
    if hard != resource.RLIM_INFINITY:
        assert hard > 1000
    used = iter([0.0, 20.5, 500.25])

    def limits() -> bytes:
        cpu, core, alarm = resource.getrlimit(resource.RLIMIT_CPU)[0], resource.getrlimit(resource.RLIMIT_CORE)[0], 0
        alarm = signal.alarm(1000)
        return f"{cpu} {core} {alarm} {resource.getrlimit(resource.RLIMIT_AS)[0] >> 32 > 0}".encode()

    monkeypatch.setattr(resource, "getrusage", lambda _: SimpleNamespace(ru_utime=(time := next(used)), ru_stime=time))
    assert sandbox.sandboxed([limits] * 3) == [
        f"{cpu} 0 {3 * sandbox.MAX_SECONDS} True".encode() for cpu in (20, 61, 1021)
    ]


# ------------------------------------------------------------------------------------------------ processes of a check


def _model(functions: int, levels: int, called: int) -> ModelProto:
    """Return a model with chains of this many functions that call each other. The graph calls the first few."""
    text = '<ir_version: 9, opset_import: ["": 17, "d": 1]> g (float[2] x) => (float[2] y) { y = Max(x) '
    text += "".join(f"z{number} = d.f{number}_0(x) " for number in range(called)) + "}"
    for number in range(functions):
        for level in range(levels):
            inner = f"d.f{number}_{level + 1}(a)" if level + 1 < levels else "Max(a, a)"
            text += f' <domain: "d", opset_import: ["": 17, "d": 1]> f{number}_{level} (a) => (b) {{ b = {inner} }}'
    return parser.parse_model(text)


@pytest.mark.parametrize(
    ("functions", "levels", "called"), [(7, 1, 0), (7, 2, 7), (7, 3, 1), (40, 1, 7), (40, 2, 1), (40, 3, 0)]
)
def test_functions_of_a_level_take_one_process(
    functions: int, levels: int, called: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = _model(functions, levels, called)
    forks = _counted(monkeypatch)
    report = check(made)
    assert len(report.nodes) == 1 + functions
    uncalled = functions > called
    assert len(forks) == 2 + levels * (uncalled + (called > 0))  # onnx.checker, the graph, and the functions
    named = [node.where for node in report.nodes if "which is never called" in node.where]
    assert len(named) == functions - called
