"""The main program of a runtime's process. `child` starts it with RUNTIME PIPE PARENT_PID MEMORY_BYTES.

It sends ("ready", version) or ("failed", message), and then answers requests until the pipe closes:

("sanity call", trial)  whether the runtime returned a result, which it must repeat after every error
("trial", trial, repeats)  (outcome, whether sanity calls follow); if they do, a second reply: their fault or ""
"""

from __future__ import annotations

import gc
import os
import signal
from multiprocessing.connection import Connection

from maxops.conformance import limits, resource_limits, runtimes
from maxops.conformance.attempt import attempt, error_line
from maxops.conformance.case import Trial
from maxops.conformance.outcome import Outcome, same_bits
from maxops.conformance.poison import Memory
from maxops.conformance.runtimes.runtime import Runtime
from maxops.errors import MaxopsError
from maxops.shown import printable

_ERRORS = ("refused", "garbage", "overwrote", "crashed", "hung")


def main(arguments: list[str]) -> None:
    """Serve one runtime until the parent closes the pipe."""
    name, pipe, parent, memory = arguments[0], *map(int, arguments[1:])
    resource_limits.die_with_parent(parent)
    resource_limits.limit_resources(memory)
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent handles Ctrl-C
    os.set_inheritable(pipe, False)
    connection, process = Connection(pipe), os.getpid()
    runtime, message = _load(name)
    _end_unless(process)
    connection.send(message)
    if runtime is not None:
        _Serving(runtime, connection).serve()


def _load(name: str) -> tuple[Runtime | None, tuple[str, str]]:
    """Return the runtime, or None if it cannot be loaded, and the message to the parent."""
    try:
        runtime = runtimes.load(name)
        return runtime, ("ready", printable(runtime.version.strip()))
    except MaxopsError as error:
        return None, ("failed", str(error))
    except BaseException as error:  # noqa: BLE001 - a third party's import may raise anything
        return None, ("failed", f"{name} cannot be loaded: {error_line(error)}")


def _end_unless(process: int) -> None:
    """End this process if a runtime forked it and the fork returned here, because a fork must not answer requests."""
    if os.getpid() != process:
        os._exit(1)


class _Serving:
    """Answers requests with a runtime, and keeps the sanity calls, whose results must not change."""

    def __init__(self, runtime: Runtime, connection: Connection) -> None:
        self._runtime = runtime
        self._connection = connection
        self._process = os.getpid()
        self._memory = Memory()
        self._sanity_calls: list[tuple[Trial, Outcome]] = []
        self._frozen = False

    def serve(self) -> None:
        while True:
            try:
                message = self._connection.recv()
            except EOFError:
                return
            kind, arguments = message[0], message[1:]
            if kind == "sanity call":
                self._connection.send(self._add_sanity_call(*arguments))
            else:
                self._try(*arguments)

    def _add_sanity_call(self, trial: Trial) -> bool:
        outcome = self._attempt(trial)
        if outcome.kind == "returned":
            self._sanity_calls.append((trial, outcome))
        return outcome.kind == "returned"

    def _try(self, trial: Trial, repeats: int) -> None:
        if not self._frozen:
            gc.freeze()  # later collections skip the objects that the frameworks loaded
            self._frozen = True
        outcome = self._attempt(trial, repeats)
        errors = outcome.kind in _ERRORS or (trial.is_refusal and outcome.kind != "not applicable")
        self._connection.send((outcome, errors))
        if errors:
            self._connection.send(self._corrupted(trial.call.row.operator))

    def _attempt(self, trial: Trial, repeats: int = limits.REPEATS) -> Outcome:
        outcome = attempt(self._runtime, trial, self._memory, repeats)
        _end_unless(self._process)
        return outcome

    def _corrupted(self, operator: str) -> str:
        """Return how a sanity call of the operator fails, or "". Without such a call, run the first sanity call."""
        gc.collect()  # destroys the error's leftovers now, not in the next trial
        of_operator = [each for each in self._sanity_calls if each[0].call.row.operator == operator]
        for trial, before in of_operator or self._sanity_calls[:1]:
            after = self._attempt(trial)
            call = f"{trial.call.row.name} of {trial.call.dtype}"
            if after.kind != "returned":
                return f"{call} returned a result before this call, but is {after.kind} after it: {after.text}"
            if not all(map(same_bits, before.outputs, after.outputs)):
                return f"{call} returns a different result after this call than before"
        return ""
