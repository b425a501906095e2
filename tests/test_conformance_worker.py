"""The kit's processes: whatever a runtime does in one is an outcome, and belongs to the trial that did it."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import textwrap
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import broken_backends
from broken_backends import BAD, KINDS, Each
from maxops import dtypes, spec
from maxops.conformance import child, transport
from maxops.conformance.attempt import attempt
from maxops.conformance.attempt import words as attempt_words
from maxops.conformance.case import Call, Feed, Input, Trial
from maxops.conformance.child import RuntimeUnusableError
from maxops.conformance.outcome import Outcome
from maxops.conformance.poison import Memory
from maxops.conformance.process import Process
from maxops.conformance.runtimes.runtime import NotApplicableError, Prepared, Runtime
from maxops.dtypes import DType
from maxops.errors import MaxopsError
from maxops.plan import Array

SECONDS = 20.0
TESTS = Path(__file__).parent


def call_of(dtype: DType = dtypes.FLOAT32, constant: Array | None = None) -> Call:
    return Call(spec.MAX_13, (Input("a", dtype, (None,)), Input("b", dtype, (None,), constant)), rank=1)


def trial_of(*firsts: float, size: int = 4, refusal: bool = False, second: float = 1) -> Trial:
    """One feed for each first element."""
    feeds = []
    for first in firsts:
        a = np.arange(size, dtype=np.float32)
        a[:2] = first, second
        feeds.append((a, np.full(size, 2, np.float32)))
    wanted = None if refusal else tuple(np.maximum(*feed) for feed in feeds)
    return Trial(call_of(), tuple(feeds), wanted)


GOOD = trial_of(1.0)
WRONG = trial_of(1.0, BAD)
CONTROLS = [trial_of(5.0, size=3)]


def process(backend: type, controls: Sequence[Trial] = CONTROLS) -> Process:
    return Process(f"broken_backends:{backend.__name__}", controls)


def gave(outcome: Outcome, trial: Trial) -> bool:
    assert trial.wanted is not None
    return outcome.kind == "gave" and all(map(np.array_equal, outcome.outputs, trial.wanted))


# ------------------------------------------------------------------------------------ each thing that can go wrong

ENDS = {
    "Segfaults": ("crashed", "the process ended by SIGSEGV: about to read what is not there"),
    "Aborts": ("crashed", "the process ended by SIGABRT"),
    "Exits": ("crashed", "the process ended with status 0"),
    "SystemExits": ("crashed", "raised SystemExit(3)"),
    "Interrupts": ("refused", "KeyboardInterrupt"),
    "Raises": ("refused", "RuntimeError: not today"),
    "RaisesWhatHasNoText": ("refused", "Error: (its text raises ValueError)"),
    "GivesNone": ("garbage", "run gave None of type NoneType; it gives a tuple or list of the model's outputs"),
    "GivesTwo": ("garbage", "run gave 2 outputs; the model has 1"),
    "GivesText": ("garbage", "run gave array(['a', 'b'], dtype='<U1') of type ndarray, which holds no numbers but <U1"),
    "GivesComplex": ("garbage", "gave an array of complex64"),
    "GivesWhatNobodyWrote": ("unstable", "two runs differ"),
    "ReadsPastTheEnd": ("unstable", "two runs differ"),
    "ChangesItsInput": ("garbage", "changed its input b"),
    "WritesBeside": ("garbage", "wrote beside its input a"),
    "WrongAfterAnError": ("poisoned", "ValueError: no; Max-13 of float32 gives another answer after it than before"),
    "RaisesAfterAnError": (
        "poisoned",
        "ValueError: no; Max-13 of float32, right before, is refused after it: RuntimeError: the session is gone",
    ),
    "AbortsAfterAnError": ("crashed", "after it, the process ended by SIGABRT"),
    "PrintsWithoutEnd": ("crashed", "the process ended by SIGABRT: [31mthe last of it"),
}


def number(name: str) -> int:
    """What `Each` knows a backend by."""
    return [kind.__name__ for kind in KINDS].index(name)


@pytest.fixture(scope="module")
def each() -> Iterator[Process]:
    with process(Each) as running:
        yield running
    assert running.amended == {}
    assert running.notes == []


@pytest.mark.parametrize("name", ENDS)
def test_what_goes_wrong_is_an_outcome_and_the_next_trial_is_fine(name: str, each: Process) -> None:
    kind, text = ENDS[name]
    wrong = trial_of(1.0, BAD, second=number(name))
    assert gave(each.run("before", GOOD, SECONDS), GOOD)
    outcome = each.run(name, wrong, SECONDS)
    assert (outcome.kind, outcome.text) == (kind, text)
    if kind in ("refused", "garbage", "unstable"):
        assert outcome.feed == 1
    assert gave(each.run("after", GOOD, SECONDS), GOOD)


def test_a_hang_ends_with_its_time_and_with_what_it_started() -> None:
    with process(broken_backends.Hangs) as running:
        before = time.monotonic()
        assert running.run("hangs", WRONG, 0.5) == Outcome("hung", text="no answer in 0.5 s")
        assert time.monotonic() - before < 5
        assert not alive(int(Path(running._directory.name, "started").read_text()))
        assert gave(running.run("after", GOOD, SECONDS), GOOD)


@pytest.mark.parametrize("name", ["Prints", "UsesItsBufferAgain"])
def test_what_is_not_wrong_is_no_finding(name: str, each: Process) -> None:
    trial = trial_of(1.0, BAD, 3.0, second=number(name))
    assert gave(each.run(name, trial, SECONDS), trial)


def test_another_type_is_for_the_judge(each: Process) -> None:
    outcome = each.run("float64", trial_of(1.0, BAD, second=number("GivesFloat64")), SECONDS)
    assert outcome.kind == "gave"
    assert [got.dtype for got in outcome.outputs] == [np.float32, np.float64]


@pytest.mark.parametrize("size", [2, 30, 255, 256, 1 << 18])
def test_memory_that_nobody_wrote_is_seen_in_results_of_any_size(size: int, leaks: Process) -> None:
    outcome = leaks.run("leaks", trial_of(BAD, size=size), SECONDS)
    assert outcome.kind == "unstable"
    (one,), (again,) = outcome.outputs, outcome.again
    assert one[:-1].tobytes() == again[:-1].tobytes()
    assert (one.view("u4")[-1], again.view("u4")[-1]) == (0x5A5A5A5A, 0xA5A5A5A5)


@pytest.fixture(scope="module")
def leaks() -> Iterator[Process]:
    with process(broken_backends.GivesWhatNobodyWrote) as running:
        yield running


def test_memory_has_an_end() -> None:
    with Process("broken_backends:TakesAllMemory", memory=1 << 29) as running:
        outcome = running.run("takes all", WRONG, SECONDS)
        assert (outcome.kind, outcome.feed) == ("refused", 1)
        assert "MemoryError" in outcome.text
        assert gave(running.run("after", GOOD, SECONDS), GOOD)


# -------------------------------------------------------------------------------- whose fault the end of a process is

LARGE = trial_of(1.0, size=1000)
ACCEPTED = trial_of(BAD, refusal=True)
FINE = trial_of(4.0, refusal=True)


def test_a_crash_that_comes_later_belongs_to_who_caused_it() -> None:
    with process(broken_backends.Corrupts) as running:
        assert running.run("fine", FINE, SECONDS).kind == "gave"
        assert running.run("corrupts", ACCEPTED, SECONDS).kind == "gave"
        assert gave(running.run("innocent", LARGE, SECONDS), LARGE)
        assert running.amended == {"corrupts": Outcome("crashed", text="after it, the process ended by SIGABRT")}
    assert running.notes == []


def test_a_crash_at_the_end_belongs_to_who_caused_it() -> None:
    with process(broken_backends.Corrupts) as running:
        assert running.run("corrupts", ACCEPTED, SECONDS).kind == "gave"
        running.close()
        assert list(running.amended) == ["corrupts"]


def test_a_runtime_that_always_ends_by_a_signal_is_noted_once() -> None:
    with process(broken_backends.AbortsAtTheEnd) as running:
        assert running.run("fine", FINE, SECONDS).kind == "gave"
        running.close()
    assert running.amended == {}
    assert running.notes == ["at its end, the process ended by SIGABRT, whatever was run"]


def test_a_crash_that_only_comes_in_company_stays_where_it_was() -> None:
    with process(broken_backends.Corrupts) as running:
        # not suspected, for it is a plain call and had no error
        assert running.run("corrupts", trial_of(BAD), SECONDS).kind == "gave"
        outcome = running.run("innocent", LARGE, SECONDS)
    assert outcome == Outcome("crashed", text="the process ended by SIGABRT (not when it is the only one)")


def test_a_control_that_ends_the_process_is_no_control() -> None:
    with process(broken_backends.CrashesOnEverything) as running:
        assert running.run("any", GOOD, SECONDS) == Outcome("crashed", text="the process ended by SIGABRT")
    assert running.notes == ["Max-13 of float32 is no control: the process ended by SIGABRT"]


# ------------------------------------------------------------------------------------------- the start and the end

UNUSABLE = {
    "broken_imports.missing:Backend": "ModuleNotFoundError: No module named 'a_package_that_is_not_there'",
    "broken_imports.aborts:Backend": "cannot be loaded: the process ended by SIGABRT: no processor of this kind",
    "broken_imports.exits:Backend": "cannot be loaded: SystemExit: 4",
    "broken_imports": "has no prepare",
    "a_runtime_that_is_not_there": "there is no runtime 'a_runtime_that_is_not_there'",
}


@pytest.mark.parametrize("name", UNUSABLE)
def test_a_runtime_that_cannot_be_loaded_says_so_in_a_line(name: str) -> None:
    with pytest.raises(MaxopsError) as caught:
        Process(name)
    assert UNUSABLE[name] in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_start_that_takes_too_long(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(child, "START_SECONDS", 0.01)
    with pytest.raises(RuntimeUnusableError, match=r"numpy cannot be loaded: not ready in 0\.01 s"):
        Process("numpy")


PARENT = """
import sys, signal
signal.signal(signal.SIGINT, signal.default_int_handler)
sys.path.insert(0, {tests!r})
from test_conformance_worker import WRONG, broken_backends, process
try:
    with process(broken_backends.Hangs) as running:
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
        time.sleep(0.5)
        parent.send_signal(sent)
        out, errors = parent.communicate(timeout=10)
    deadline = time.monotonic() + 5
    while alive(int(pid)) and time.monotonic() < deadline:
        time.sleep(0.02)
    assert not alive(int(pid))
    if sent == signal.SIGINT:
        assert (out, errors) == ("interrupted\n", "")
        assert not Path(directory).exists()


def alive(pid: int) -> bool:
    """Whether a process runs; one that ended and was not waited for does not."""
    status = Path(f"/proc/{pid}/stat")
    try:
        return status.read_text().rpartition(")")[2].split()[0] != "Z"
    except (FileNotFoundError, ProcessLookupError):
        return False


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


# ------------------------------------------------------------------------------------------- within the process


class Given(Runtime):
    """Gives the results of a function."""

    name = "given"
    result: Any = staticmethod(np.maximum)

    def prepare(self, call: Call) -> Prepared:
        return lambda feed: self.result(*feed)


class AtOnce(Given):
    def run(self, call: Call, feeds: Sequence[Feed]) -> list[Any]:
        return self.result(feeds)  # type: ignore[no-any-return]


def with_result(kind: type[Given], result: Any) -> Given:
    runtime = kind()
    runtime.result = result
    return runtime


@pytest.mark.parametrize(
    ("result", "text"),
    [
        (None, "gave None for 1 output"),
        ([np.array([1], np.float32), np.array([2], np.float32)], "gave a list of 2 for 1 output"),
        ((), "gave a tuple of 0 for 1 output"),
        ("text", "gave a str for 1 output"),
        (np.float32(1), "gave a float32 for 1 output"),
        (np.array(["a"]), "gave an array of <U1"),
        (np.array([None]), "gave an array of object"),
        (np.array([(1, 2.0)], "i4,f4"), "gave an array of [('f0', '<i4'), ('f1', '<f4')]"),
    ],
    ids=lambda value: value if isinstance(value, str) and "gave" in value else "",
)
def test_what_is_no_array_is_garbage(result: object, text: str) -> None:
    outcome = attempt(with_result(Given, lambda *_: result), GOOD, Memory())
    assert (outcome.kind, outcome.text) == ("garbage", text)


@pytest.mark.parametrize(
    ("result", "text", "feed"),
    [
        (lambda feeds: None, "gave None for 2 feeds", 0),
        (lambda feeds: [np.maximum(*feeds[0])], "gave a list of 1 for 2 feeds", 0),
        (lambda feeds: [np.maximum(*feeds[0]), None], "gave None for 1 output", 1),
    ],
    ids=["None", "too few", "None for one"],
)
def test_all_feeds_at_once(result: Any, text: str, feed: int) -> None:
    assert attempt(with_result(AtOnce, result), WRONG, Memory()) == Outcome("garbage", text=text, feed=feed)
    right = attempt(with_result(AtOnce, lambda feeds: [np.maximum(*each) for each in feeds]), WRONG, Memory())
    assert gave(right, WRONG)


def test_an_error_only_in_the_second_run_is_told_as_such() -> None:
    came: list[int] = []

    def result(a: Array, b: Array) -> Array:
        came.append(1)
        if len(came) > 2:
            raise RuntimeError("tired")
        return np.maximum(a, b)

    outcome = attempt(with_result(Given, result), WRONG, Memory())
    text = "RuntimeError: tired, in a second run on the same arrays"
    assert outcome == Outcome("refused", text=text, feed=1)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "ValueError"),
        ("\n\n one\ntwo", "ValueError: one"),
        ("Exception from a.cpp:105:\nCheck 'false' failed at b.hpp:34:\nno such mode\n", "ValueError: no such mode"),
        ("only this:", "ValueError: only this:"),
    ],
    ids=["nothing", "lines", "places first", "a colon"],
)
def test_an_error_in_a_line(text: str, words: str) -> None:
    assert attempt_words(ValueError(text)) == words


def test_constants_are_prepared_again_for_the_second_run() -> None:
    constant = np.array([1, 2, 3, 4], np.float32)

    class Folds(Runtime):
        name = "folds"

        def prepare(self, call: Call) -> Prepared:
            folded = np.empty(1 << 16, np.float32)  # in this process, only large blocks are poisoned
            return lambda feed: folded

    trial = Trial(call_of(constant=constant), ((constant,),), (constant,))
    assert attempt(Folds(), trial, Memory()).kind == "unstable"


def test_not_applicable() -> None:
    def result(*arrays: Array) -> Array:
        raise NotApplicableError("no such function")

    assert attempt(with_result(Given, result), GOOD, Memory()) == Outcome("not applicable", text="no such function")


@pytest.mark.parametrize("dtype", dtypes.ALL, ids=str)
def test_arrays_arrive_as_they_are(dtype: DType) -> None:
    values = [1, 0, 1] if dtype is dtypes.BOOL else [1, 2, 3]
    shapes: list[tuple[int, ...]] = [(3,), (1, 3), (), (0, 2)]
    arrays = [np.array(values, dtype.numpy).flat[: int(np.prod(shape))].reshape(shape) for shape in shapes]
    trial = Trial(call_of(dtype), tuple((array, array) for array in arrays), tuple(arrays))
    seen: list[Array] = []

    def result(a: Array, b: Array) -> Array:
        assert a.flags.c_contiguous
        assert a.flags.writeable
        assert dtype is dtypes.REAL or a.ctypes.data % 64 == 0
        assert not np.shares_memory(a, b)
        seen.append(a)
        return b

    outcome = attempt(with_result(Given, result), trial, Memory())
    assert outcome.kind == "gave"
    for got, array in zip(outcome.outputs, arrays, strict=True):
        assert (got.dtype, got.shape, got.tolist()) == (array.dtype, array.shape, array.tolist())
    assert len(seen) == 2 * len(arrays)


def test_changed_objects_are_seen() -> None:
    def result(a: Array, b: Array) -> Array:
        a[0] = 9
        return b

    array = np.array([1, 2], object)
    outcome = attempt(with_result(Given, result), Trial(call_of(dtypes.REAL), ((array, array),), (array,)), Memory())
    assert (outcome.kind, outcome.text) == ("garbage", "changed its input")


def test_types_and_rows_arrive_as_the_receivers_own() -> None:
    bfloat16 = np.array([1, 2], ml_dtypes.bfloat16)
    sent = Trial(call_of(dtypes.BFLOAT16), ((bfloat16, bfloat16),), None)
    came = transport.from_bytes(transport.to_bytes(sent))
    assert came.call.row is spec.MAX_13
    assert came.call.dtype is dtypes.BFLOAT16
    assert came.feeds[0][0].dtype == bfloat16.dtype
    own = Call(spec.MAXIMUM, sent.call.inputs)  # a row that is not in the table
    assert transport.from_bytes(transport.to_bytes(own)) == own


def test_thousands_of_feeds_are_cheap() -> None:
    count = 4000
    assert GOOD.wanted is not None
    trial = Trial(call_of(), GOOD.feeds * count, GOOD.wanted * count)
    memory = Memory()
    runtime = Given()

    def seconds(work: Any) -> float:
        return min(timed(work) for _ in range(3))

    def timed(work: Any) -> float:
        before = time.process_time()
        work()
        return time.process_time() - before

    whole = seconds(lambda: attempt(runtime, trial, memory))
    bare = seconds(lambda: [runtime.result(*feed) for feed in trial.feeds])
    overhead = (whole / 2 - bare) / count
    print(f"{overhead * 1e6:.1f} us a feed and run")
    assert overhead < 60e-6  # about 10 us on a quiet machine
