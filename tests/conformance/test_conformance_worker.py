"""The kit's worker processes: every effect of a runtime is an outcome of the trial that caused it."""

from __future__ import annotations

import gc
import os
import shutil
import signal
import subprocess
import sys
import textwrap
import time
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pytest

import broken_backends
from broken_backends import BAD, KINDS, Each
from maxops.conformance import child
from maxops.conformance import process as process_module
from maxops.conformance.case import Call, Feed, Trial
from maxops.conformance.child import RuntimeUnusableError
from maxops.conformance.expected import expected_result
from maxops.conformance.outcome import Outcome
from maxops.conformance.process import Process, _as_far, _Suspect
from maxops.conformance.runtimes.runtime import Prepared, Runtime
from maxops.conformance.sanity_calls import sanity_calls
from maxops.conformance.worker import _Serving
from maxops.conformance.worker_pool import WorkerPool
from maxops.errors import MaxopsError
from trials import GOOD, SANITY_CALLS, WRONG, ends, returned, trial_of

SECONDS = 20.0
TESTS = Path(__file__).parent


def process(backend: type, sanity_calls: Sequence[Trial] = SANITY_CALLS) -> Process:
    return Process(f"broken_backends:{backend.__name__}", sanity_calls)


# ------------------------------------------------------------------------------------------- every kind of failure

# Calls that end the process come first, so that each runs alone and only once.
ENDS = {
    "Segfaults": ("crashed", "the process was killed by SIGSEGV: about to read what is not there"),
    "Aborts": ("crashed", "the process was killed by SIGABRT"),
    "Exits": ("crashed", "the process ended with status 0"),
    "SystemExits": ("crashed", "raised SystemExit(3)"),
    "AbortsAfterAnError": ("crashed", "after the call, the process was killed by SIGABRT"),
    "PrintsWithoutEnd": ("crashed", "the process was killed by SIGABRT: [31mthe last of it"),
    "Interrupts": ("refused", "KeyboardInterrupt"),
    "Raises": ("refused", "RuntimeError: not today"),
    "RaisesWhatHasNoText": ("refused", "Error: (converting the error to text raises ValueError)"),
    "GivesNone": ("garbage", "run must return a tuple or list of outputs, got None of type NoneType"),
    "ReadsPastTheEnd": ("nondeterministic", "two runs differ"),
    "WrongAfterAnError": (
        "corrupted state",
        "ValueError: no; Max-13 of float32 returns a different result after this call than before",
    ),
    "RaisesAfterAnError": (
        "corrupted state",
        "ValueError: no; Max-13 of float32 returned a result before this call, but is refused after it: "
        "RuntimeError: the session is gone",
    ),
}


def number(name: str) -> int:
    """Return the index by which `Each` selects a backend."""
    return [kind.__name__ for kind in KINDS].index(name)


@pytest.fixture(scope="module")
def each() -> Iterator[Process]:
    with process(Each) as running:
        yield running
    assert running.amended == {}
    assert running.notes == []


@pytest.mark.parametrize("name", ENDS)
def test_what_goes_wrong_is_an_outcome(name: str, each: Process) -> None:
    kind, text = ENDS[name]
    wrong = trial_of(1.0, BAD, second=number(name))
    outcome = each.run(name, wrong, SECONDS)
    assert (outcome.kind, outcome.text) == (kind, text)
    if kind in ("refused", "garbage", "nondeterministic"):
        assert outcome.feed == 1


@pytest.mark.parametrize("name", ["AbortsAfterAnError", "WrongAfterAnError"])
def test_the_next_trial_is_fine(name: str, each: Process) -> None:
    assert returned(each.run("before", GOOD, SECONDS), GOOD)
    assert each.run(name, trial_of(BAD, second=number(name)), SECONDS).kind == ENDS[name][0]
    assert returned(each.run("after", GOOD, SECONDS), GOOD)


def test_a_hang_ends_with_its_time_and_with_what_it_started() -> None:
    with process(broken_backends.Hangs) as running:
        assert running.run("hangs", WRONG, 0.5) == Outcome("hung", text="timed out after 0.5 s")
        assert ends(int(Path(running._directory.name, "started").read_text()))
        assert returned(running.run("after", GOOD, SECONDS), GOOD)


def test_what_a_runtime_prints_is_no_answer(each: Process) -> None:
    trial = trial_of(1.0, BAD, 3.0, second=number("Prints"))
    assert returned(each.run("prints", trial, SECONDS), trial)


@pytest.mark.filterwarnings("ignore:.*fork")
@pytest.mark.parametrize("last", [1, BAD])
def test_a_child_process_of_a_runtime_answers_no_requests(last: float, each: Process) -> None:
    trial = trial_of(BAD, second=number("ForksAndReturns"))
    trial.feeds[0][0][-1] = last
    trial = replace(trial, expected=(np.maximum(*trial.feeds[0]),))
    for name in ("forks", "forks again"):
        assert returned(each.run(name, trial, SECONDS), trial)
        assert each.run("raises", trial_of(BAD, second=number("Raises")), SECONDS).kind == "refused"
        assert returned(each.run("after", GOOD, SECONDS), GOOD)


@pytest.mark.parametrize("size", [2, 30, 255, 256, 1 << 18])
def test_memory_that_nobody_wrote_is_seen_in_results_of_any_size(size: int, each: Process) -> None:
    trial = trial_of(BAD, size=size, second=number("GivesWhatNobodyWrote"))
    outcome = each.run("uninitialized memory", trial, SECONDS)
    assert outcome.kind == "nondeterministic"
    (one,), (again,) = outcome.outputs, outcome.again
    assert one[:-1].tobytes() == again[:-1].tobytes()
    assert (one.view("u4")[-1], again.view("u4")[-1]) == (0x5A5A5A5A, 0xA5A5A5A5)


def test_memory_has_an_end() -> None:
    with Process("broken_backends:TakesAllMemory", memory=1 << 29) as running:
        outcome = running.run("takes all", WRONG, SECONDS)
        assert (outcome.kind, outcome.feed) == ("refused", 1)
        assert "MemoryError" in outcome.text
        assert returned(running.run("after", GOOD, SECONDS), GOOD)


# ----------------------------------------------------------------------------------------------- the cause of a crash

LARGE = trial_of(1.0, size=1000)
ACCEPTED = trial_of(BAD, refusal=True)
FINE = trial_of(4.0, refusal=True)


def test_a_crash_that_comes_later_belongs_to_who_caused_it() -> None:
    with process(broken_backends.Corrupts) as running:
        assert running.run("corrupts", ACCEPTED, SECONDS).kind == "returned"
        assert returned(running.run("innocent", LARGE, SECONDS), LARGE)
        text = "after the call, the process was killed by SIGABRT"
        assert running.amended == {"corrupts": Outcome("crashed", text=text)}
    assert running.notes == []


def test_a_crash_at_the_end_belongs_to_who_caused_it() -> None:
    with process(broken_backends.Corrupts) as running:
        assert running.run("corrupts", ACCEPTED, SECONDS).kind == "returned"
        running.close()
        assert list(running.amended) == ["corrupts"]


@pytest.mark.parametrize(
    ("status", "how", "others"),
    [(-1, "was killed by SIGABRT", {"before": GOOD, "after": FINE}), (3, "ended with status 3", {})],
)
def test_a_call_without_an_error_may_be_who_ends_the_process(status: int, how: str, others: dict[str, Trial]) -> None:
    with process(broken_backends.EndsAtTheEnd) as running:
        for name, trial in {"ends": trial_of(BAD, second=status), **others}.items():
            assert running.run(name, trial, SECONDS).kind == "returned"
        running.close()
    assert running.amended == {"ends": Outcome("crashed", text=f"after the call, the process {how}")}
    assert running.notes == []


def test_what_no_trial_alone_does_is_noted() -> None:
    with process(broken_backends.EndsAtTheEnd) as running:
        running._repeats = 1
        for name, trial in {"one": trial_of(BAD, second=0), "fine": FINE, "two": trial_of(BAD, second=0)}.items():
            assert running.run(name, trial, SECONDS).kind == "returned"
        running.close()
    assert running.amended == {}
    text = "during shutdown, the process was killed by SIGABRT; rerunning 3 trials did not reproduce the failure"
    assert running.notes == [text]


def test_a_runtime_that_always_ends_by_a_signal_is_noted_once() -> None:
    with process(broken_backends.AbortsAtTheEnd) as running:
        assert running.run("fine", FINE, SECONDS).kind == "returned"
        running.close()
    assert running.amended == {}
    assert running.notes == ["during shutdown, the process was killed by SIGABRT, regardless of the calls"]


def test_a_crash_that_only_comes_in_company_stays_where_it_was() -> None:
    with process(broken_backends.Corrupts) as running:
        # not suspected, because it was a valid call without an error
        assert running.run("corrupts", trial_of(BAD), SECONDS).kind == "returned"
        outcome = running.run("innocent", LARGE, SECONDS)
    assert outcome == Outcome(
        "crashed", text="the process was killed by SIGABRT (the trial does not fail when run alone)"
    )


def test_a_crash_in_company_that_alone_comes_at_the_end_is_the_trials_own() -> None:
    with process(broken_backends.AbortsInCompanyOrAtTheEnd, ()) as running:
        assert returned(running.run("fine", GOOD, SECONDS), GOOD)
        outcome = running.run("crashes", trial_of(BAD), SECONDS)
    assert outcome == Outcome("crashed", text="during shutdown, the process was killed by SIGABRT")


def test_a_hang_in_company_that_does_not_come_alone_is_noted() -> None:
    trial = trial_of(BAD)
    with process(broken_backends.HangsInCompany, ()) as running:
        assert returned(running.run("fine", GOOD, SECONDS), GOOD)
        assert returned(running.run("hangs", trial, 1), trial)
        assert running.notes == ["hangs: timed out after 1 s; the trial does not fail when run alone"]


@pytest.mark.parametrize("bad", [(), (0,), (6,), (2, 3), (0, 6), (1, 4, 5), tuple(range(7))], ids=str)
@pytest.mark.parametrize("count", [0, 1, 7])
def test_each_suspect_that_ends_a_process_is_found(
    bad: tuple[int, ...], count: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    names = {f"trial {number}" for number in bad if number < count}

    def fatal(self: Process, suspects: Sequence[_Suspect]) -> str:
        return "SIGABRT" if any(each.name in names for each in suspects) else ""

    monkeypatch.setattr(Process, "_fatal", fatal)
    running = Process.__new__(Process)
    running.amended = {}
    assert running._bisect([_Suspect(f"trial {number}", GOOD, 1.0) for number in range(count)]) is bool(names)
    assert running.amended == dict.fromkeys(names, Outcome("crashed", text="SIGABRT"))


@pytest.mark.parametrize("feed", range(3))
def test_a_suspect_is_run_again_up_to_the_feed_that_failed(feed: int) -> None:
    trial = trial_of(1.0, 2.0, 3.0)
    assert _as_far(trial, Outcome("refused", feed=feed)).feeds == trial.feeds[: feed + 1]
    assert _as_far(trial, Outcome("returned")) is trial


def test_a_control_that_ends_the_process_is_no_control() -> None:
    with process(broken_backends.CrashesOnEverything) as running:
        assert running.run("any", GOOD, SECONDS) == Outcome("crashed", text="the process was killed by SIGABRT")
    assert running.notes == ["Max-13 of float32 cannot be a sanity call: the process was killed by SIGABRT"]


def test_a_control_that_times_out_is_no_control(monkeypatch: pytest.MonkeyPatch) -> None:
    """Test that a call that times out is not used as a sanity call. Its timeout depends on that of the trial."""
    with Process("numpy", seconds=1) as running:
        assert running._sanity_seconds == process_module.SANITY_SECONDS[0]
    monkeypatch.setattr(process_module, "SANITY_SECONDS", (0.1, 60.0))
    with Process("broken_backends:Hangs", [trial_of(BAD, size=3), *SANITY_CALLS], seconds=0.5) as running:
        assert returned(running.run("fine", GOOD, SECONDS), GOOD)
    assert running.notes == ["Max-13 of float32 cannot be a sanity call: it timed out after 0.5 s"]


@pytest.mark.parametrize(
    ("name", "kind", "how"),
    [("Aborts", "crashed", "the process was killed by SIGABRT"), ("Hangs", "hung", "timed out after 0.5 s")],
)
def test_an_end_is_found_even_if_the_runtime_does_not_start_again(name: str, kind: str, how: str) -> None:
    with Process("broken_imports.starts_once:Backend", SANITY_CALLS) as running:
        assert returned(running.run("before", GOOD, SECONDS), GOOD)
        outcome = running.run(name, trial_of(BAD, second=number(name)), 0.5)
        assert outcome.kind == kind
        assert outcome.text.startswith(f"{how}; the runtime cannot be restarted: broken_imports.starts_once:Backend")
        with pytest.raises(RuntimeUnusableError, match="FileExistsError"):
            running.run("after", GOOD, SECONDS)


# ------------------------------------------------------------------------------------------- the start and the end

UNUSABLE = {
    "broken_imports.missing:Backend": "ModuleNotFoundError: No module named 'a_package_that_is_not_there'",
    "broken_imports.aborts:Backend": "cannot be loaded: the process was killed by SIGABRT: no processor of this kind",
    "broken_imports.exits:Backend": "cannot be loaded: SystemExit: 4",
    "broken_imports": "has no prepare",
    "a_runtime_that_is_not_there": "unknown runtime 'a_runtime_that_is_not_there'",
}


@pytest.mark.parametrize("name", UNUSABLE)
def test_a_runtime_that_cannot_be_loaded_says_so_in_a_line(name: str) -> None:
    with pytest.raises(MaxopsError) as caught:
        Process(name)
    assert UNUSABLE[name] in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_start_that_takes_too_long(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(child, "START_TIMEOUT", 0.01)
    with pytest.raises(RuntimeUnusableError, match=r"numpy cannot be loaded: timed out after 0\.01 s"):
        Process("numpy")


PARENT = """
import sys, signal
signal.signal(signal.SIGINT, signal.default_int_handler)
sys.path.insert(0, {tests!r})
from maxops.conformance.process import Process
from trials import WRONG
try:
    with Process("broken_backends:Hangs") as running:
        print(running._child._process.pid, running._directory.name, flush=True)
        running.run("hangs", WRONG, 60)
except KeyboardInterrupt:
    print("interrupted", flush=True)
"""


@pytest.mark.parametrize("sent", [signal.SIGINT, signal.SIGKILL])
def test_a_runtime_goes_with_its_parent(sent: signal.Signals) -> None:
    with subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(PARENT).format(tests=str(TESTS))],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as parent:
        assert parent.stdout is not None
        pid, directory = parent.stdout.readline().split()
        started = Path(directory, "started")
        deadline = time.monotonic() + 30
        while not (started.exists() and started.read_text()) and time.monotonic() < deadline:
            time.sleep(0.02)
        parent.send_signal(sent)
        out, errors = parent.communicate(timeout=10)
    assert ends(int(pid))
    if sent == signal.SIGINT:
        assert (out, errors) == ("interrupted\n", "")
        assert not Path(directory).exists()
    else:  # a killed process cannot clean up or end its child processes
        os.kill(int(started.read_text()), signal.SIGKILL)
        shutil.rmtree(directory)


def test_what_a_runtime_leaves_in_temporary_files_goes() -> None:
    with process(broken_backends.LeavesFiles) as running:
        outcome = running.run("leaves", WRONG, SECONDS)
        directory = Path(outcome.text.rpartition(" ")[2])
        assert (directory / "left").exists()
    assert not directory.exists()


def test_nothing_stays_open() -> None:
    before = sorted(os.listdir("/proc/self/fd"))
    for backend in (broken_backends.Good, broken_backends.Aborts):
        with process(backend, ()) as running:
            running.run("wrong", WRONG, SECONDS)
    assert sorted(os.listdir("/proc/self/fd")) == before


# --------------------------------------------------------------------------------------------- replies of a process


class Spoiled(Runtime):
    """A runtime that is correct until a trial begins with BAD. Then it fails as requested, and breaks one operator."""

    name = "spoiled"
    wrong = ""

    def __init__(self, does: str, operator: str) -> None:
        self.does, self.operator, self.calls = does, operator, 0

    def prepare(self, call: Call) -> Prepared:
        def run(feed: Feed) -> object:
            self.calls += 1
            if feed[0][0] == BAD:
                self.wrong = self.operator
                return self.spoil(feed)
            result = expected_result(call.row, call, feed)
            return -result if self.wrong == call.row.operator else result

        return run

    def spoil(self, feed: Feed) -> object:
        if self.does == "raises":
            raise ValueError("no")
        if self.does == "exits":
            raise SystemExit(3)
        if self.does == "writes":
            feed[0][0] = 7
        if self.does == "differs":
            return np.full(4, self.calls, np.float32)
        return None if self.does == "gives None" else np.full(4, BAD, np.float32)


class Connected:
    """A connection with given requests, which records the answers."""

    def __init__(self, *requests: object) -> None:
        self._requests = iter(requests)
        self.send = (answers := list[Any]()).append
        self.answers = answers

    def recv(self) -> object:
        try:
            return next(self._requests)
        except StopIteration:
            raise EOFError from None


def answers_of(runtime: Runtime, *requests: object) -> list[Any]:
    connection: Any = Connected(*requests)
    try:
        _Serving(runtime, connection).serve()
    finally:
        gc.unfreeze()
    return connection.answers  # type: ignore[no-any-return]


SPOILT = trial_of(BAD)
ASKED = [("sanity call", each) for each in sanity_calls()]


@pytest.mark.parametrize(
    ("does", "kind", "is_error"),
    [
        ("raises", "refused", True),
        ("gives None", "garbage", True),
        ("writes", "overwrote", True),
        ("exits", "crashed", True),
        ("differs", "nondeterministic", False),
        ("returns", "returned", False),
    ],
)
@pytest.mark.parametrize("refusal", [False, True])
@pytest.mark.parametrize("operator", ["Max", "ReduceMax"])
def test_the_sanity_calls_of_an_operator_follow_its_errors(
    does: str, kind: str, is_error: bool, refusal: bool, operator: str
) -> None:
    """Test that sanity calls include calls that must be rejected."""
    trial = trial_of(BAD, refusal=refusal)
    answers = answers_of(Spoiled(does, operator), *ASKED, ("trial", trial, 2))
    asked, (outcome, due), wrong = answers[: len(ASKED)], answers[len(ASKED)], answers[len(ASKED) + 1 :]
    assert (asked, outcome.kind, due) == ([True] * len(ASKED), kind, is_error or refusal)
    text = "Max-13 of float32 returns a different result after this call than before" if operator == "Max" else ""
    assert wrong == ([text] if due else [])


def test_of_an_operator_without_a_sanity_call_the_first_one_follows() -> None:
    *_, answer, wrong = answers_of(Spoiled("raises", "ReduceMax"), *ASKED[1:], ("trial", SPOILT, 2))
    assert answer[0].kind == "refused"
    assert wrong == "ReduceMax-20 of float32 returns a different result after this call than before"
    assert answers_of(Spoiled("raises", "Max"), ("trial", SPOILT, 2))[1:] == [""]


@pytest.mark.parametrize("does", ["raises", "differs", "gives None"])
def test_a_call_that_gets_no_answer_is_no_sanity_call(does: str) -> None:
    answers = answers_of(Spoiled(does, ""), ("sanity call", SPOILT), ("trial", trial_of(1.0, refusal=True), 2))
    assert answers[0] is False
    assert answers[2:] == [""]


def test_a_trial_runs_as_often_as_it_is_to() -> None:
    for repeats in (2, 3, 10):
        runtime = Spoiled("returns", "")
        ((outcome, due),) = answers_of(runtime, ("trial", GOOD, repeats))
        assert (outcome.kind, due, runtime.calls) == ("returned", False, repeats)
    with Process("numpy", repeats=7) as running:
        asked: list[Any] = []
        assert running._child is not None

        def request(message: Any, seconds: float) -> tuple[Outcome, bool]:
            asked.append(message)
            return outcome, False

        running._child.request = request  # type: ignore[method-assign]
        running.run("fine", GOOD, SECONDS)
    assert asked == [("trial", GOOD, 7)]


# --------------------------------------------------------------------------------------------------- several processes


class Told:
    """A process that runs nothing and records its requests."""

    made: ClassVar[list[Told]] = []

    def __init__(self, runtime: str, sanity_calls: Sequence[Trial], *, repeats: int, seconds: float) -> None:
        self.message = runtime, sanity_calls, repeats, seconds
        self.number, self.asked = len(self.made), list[str]()
        self.made.append(self)
        if runtime == "fails" and self.number == 1:
            raise RuntimeUnusableError("no second one")
        self.version, self.notes = "1.0", ["all", f"of {self.number}"]
        self.amended = {f"trial {self.number}": Outcome("crashed")}

    def close(self) -> None:
        self.asked.append("close")

    def kill(self) -> None:
        self.asked.append("kill")


@pytest.fixture
def message(monkeypatch: pytest.MonkeyPatch) -> list[Told]:
    monkeypatch.setattr("maxops.conformance.worker_pool.Process", Told)
    monkeypatch.setattr(Told, "made", [])
    return Told.made


@pytest.mark.parametrize("count", [0, 1, 3, 50])
@pytest.mark.parametrize("size", [1, 2, 5])
def test_each_job_is_done_once_and_its_result_is_its_own(size: int, count: int, message: list[Told]) -> None:
    done: list[int] = []
    progress: list[tuple[int, int]] = []

    def work(process: Told, job: int) -> int:
        time.sleep(0.01 * (job % 3 == 0))
        done.append(job)
        return job * job

    with WorkerPool("name", SANITY_CALLS, size, 7, SECONDS) as pool:
        jobs = range(100, 100 + count)
        assert pool.map(work, jobs, lambda *each: progress.append(each)) == [job * job for job in jobs]  # type: ignore[arg-type]
        assert pool.version == "1.0"
        assert pool.notes == ["all", *(f"of {number}" for number in range(size))]
        assert pool.amended() == {f"trial {number}": Outcome("crashed") for number in range(size)}
    assert sorted(done) == [*jobs]
    assert [each.message for each in message] == [("name", SANITY_CALLS, 7, SECONDS)] * size
    assert [each.asked for each in message] == [["close", "close", "kill"]] * size
    assert [number for number, _ in progress] == sorted(number for number, _ in progress)
    assert [number for number, _ in progress[-1:]] == [count] * (count > 0)
    assert {job for _, job in progress} <= {*jobs}


@pytest.mark.parametrize("size", [1, 2, 5])
def test_an_error_of_a_job_is_the_pools_and_ends_it(size: int, message: list[Told]) -> None:
    done: list[int] = []

    def work(process: Told, job: int) -> int:
        if job == 7:
            raise ZeroDivisionError
        time.sleep(0.01)
        done.append(job)
        return job

    with pytest.raises(ZeroDivisionError), WorkerPool("name", (), size, 2, SECONDS) as pool:
        pool.map(work, range(1000), lambda *_: None)  # type: ignore[arg-type]
    assert len(done) < 500
    assert [each.asked for each in message] == [["kill"]] * size


def test_of_processes_that_cannot_all_start_none_is_left(message: list[Told]) -> None:
    with pytest.raises(RuntimeUnusableError, match="no second one"):
        WorkerPool("fails", (), 3, 2, SECONDS)
    assert message[0].asked == ["kill"]
