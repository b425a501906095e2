"""A pool of worker processes of one runtime. One thread per process sends jobs to it."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from functools import partial
from threading import Lock
from typing import Self, TypeVar

from maxops.conformance.case import Trial
from maxops.conformance.outcome import Outcome
from maxops.conformance.process import Process

POLL_SECONDS = 0.1

Job = TypeVar("Job")
Result = TypeVar("Result")


class WorkerPool:
    """A context manager of worker processes. Raises the errors of Process if the runtime cannot be started."""

    def __init__(self, runtime: str, sanity_calls: Sequence[Trial], size: int, repeats: int, seconds: float) -> None:
        # Linux ends a process with the thread that started it, so each process has its own long-lived thread
        self._threads = [ThreadPoolExecutor(1, f"maxops conform {number}") for number in range(size)]
        self._processes: list[Process] = []
        self._stopped = False
        try:
            start = partial(Process, runtime, sanity_calls, repeats=repeats, seconds=seconds)
            for started in [thread.submit(start) for thread in self._threads]:
                self._processes.append(started.result())
        except BaseException:
            self._end(graceful=False)
            raise
        self.version: str = self._processes[0].version

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        self._end(graceful=kind is None)

    @property
    def notes(self) -> list[str]:
        """Return observations that belong to no trial."""
        return list(dict.fromkeys(note for process in self._processes for note in process.notes))

    def map(
        self, work: Callable[[Process, Job], Result], jobs: Sequence[Job], progress: Callable[[int, Job], None]
    ) -> list[Result]:
        """Return each job's result, in order. Call `progress` with the number done and the current job."""
        if not jobs:
            return []
        results: dict[int, Result] = {}
        waiting, lock = iter(enumerate(jobs)), Lock()

        def do_all(process: Process) -> None:
            while not self._stopped:
                with lock:
                    number, job = next(waiting, (None, None))
                if number is None or job is None:
                    return
                results[number] = work(process, job)

        futures = [thread.submit(do_all, each) for thread, each in zip(self._threads, self._processes, strict=True)]
        working: Collection[Future[None]] = futures
        while working:
            done, working = wait(futures, POLL_SECONDS)
            self._stopped |= any(future.exception() is not None for future in done)
            if not working:
                for future in futures:
                    future.result()
            progress(len(results), jobs[min(len(results), len(jobs) - 1)])
        return [results[number] for number in range(len(jobs))]

    def amended(self) -> dict[str, Outcome]:
        """Shut all processes down gracefully, and return the amended outcomes.

        The processes restart with their next job.
        """
        for future in [thread.submit(each.close) for thread, each in zip(self._threads, self._processes, strict=True)]:
            future.result()
        return {name: outcome for process in self._processes for name, outcome in process.amended.items()}

    def _end(self, *, graceful: bool) -> None:
        self._stopped = True
        if graceful:
            self.amended()
        for process in self._processes:
            process.kill()  # from this thread, because the process's own thread may be waiting for an answer
        for thread in self._threads:
            thread.shutdown()
