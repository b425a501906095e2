"""Progress bars, which count items or show the counters of the native core."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from itertools import count
from threading import Event, Thread
from time import monotonic

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TaskProgressColumn, TextColumn, TimeElapsedColumn

from maxops import _native

AFTER_SECONDS = 1.5
EVERY_SECONDS = 0.1


def counting_bar(refresh_per_second: float = 10) -> Progress:
    """Return a progress bar that counts items. It is shown only if stderr is a terminal."""
    columns = (TextColumn("{task.description}", markup=False), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    off = not sys.stderr.isatty()
    return Progress(
        *columns,
        console=Console(stderr=True, quiet=off),  # before rich 14.3, a disabled bar ends with an empty line
        transient=True,
        refresh_per_second=refresh_per_second,
        disable=off,
    )


@contextmanager
def counting(doing: str, total: int) -> Iterator[Callable[[], None]]:
    """Yield a function to call after each item. If stderr is a terminal, a bar appears after AFTER_SECONDS."""
    began, done = monotonic(), count(1)
    with ExitStack() as stack:
        bar = counting_bar()
        task = bar.add_task(doing, total=total)

        def advance() -> None:
            if not bar.live.is_started and monotonic() - began > AFTER_SECONDS:
                stack.enter_context(bar)
            bar.update(task, completed=next(done))

        yield advance


@contextmanager
def progress(doing: str) -> Iterator[Callable[[str], None]]:
    """Yield a function to call with the name of a new stage. On a terminal, a bar appears after AFTER_SECONDS."""
    stage = [doing]
    if not sys.stderr.isatty():
        yield lambda text: None
        return
    done = Event()
    thread = Thread(target=_draw, args=(stage, done), name="maxops progress", daemon=True)
    thread.start()
    try:
        yield lambda text: stage.__setitem__(0, text)
    finally:
        done.set()
        thread.join()


def _draw(stage: list[str], done: Event) -> None:
    if done.wait(AFTER_SECONDS):
        return
    columns = (TextColumn("{task.description}", markup=False), BarColumn(), TaskProgressColumn(), TimeElapsedColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task(stage[0], total=None)
        while not done.wait(EVERY_SECONDS):
            completed, total = _native.progress()
            bar.update(task, description=stage[0], completed=completed, total=total or None)
