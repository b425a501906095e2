"""Shrinks a failing call to a minimal counterexample: fewer elements, fewer inputs and simpler values.

Every step runs on the runtime and is judged like any trial. A step that no longer shows the finding is undone.
Therefore, a call keeps the elements that fill the affected vector lane if the fault depends on the lane. It shrinks to
one element if the fault depends only on a value.
If the call must be large, its size is bisected, which assumes that a fault at one size occurs at every larger size.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeVar

import numpy as np

from maxops import dtypes
from maxops.conformance.case import Call, Case, Feed, Input, Layout, Trial
from maxops.conformance.expected import expected_result, without_nan
from maxops.conformance.judge import Judgement, judge
from maxops.conformance.outcome import Outcome
from maxops.conformance.result import words
from maxops.errors import MaxopsError
from maxops.plan import Array
from maxops.spec import SCATTERS

MAX_TRIES = 80
MANY = 4096  # sequences of more items are bisected, because delta debugging would exceed the budget
FEW_INPUTS = 16  # for more inputs, the list is bisected before inputs are removed one by one
MAX_RESTARTS = 6  # budget for crashes and hangs, after which a process restarts

Whole = list[Array | None]  # all inputs of a call, including constants
Item = TypeVar("Item")


@dataclass(frozen=True)
class Counterexample:
    """A call on one feed, its outcome, and its judgement."""

    trial: Trial
    outcome: Outcome
    judgement: Judgement


class Search:
    """A search for smaller calls of one finding on a runtime, within a budget."""

    def __init__(self, case: Case, trial: Trial, judgement: Judgement, run: Callable[[Trial], Outcome]) -> None:
        self._case, self._target, self._run = case, judgement, run
        own = len(trial.call.fed) - len(trial.call.controls)
        self._controls, self._layout = trial.feeds[judgement.feed][own:], trial.layout
        self._left = MAX_RESTARTS if judgement.verdict in ("crashes", "hangs") else MAX_TRIES
        self.found: Counterexample | None = None

    def shows(self, call: Call, whole: Whole) -> bool:
        """Return whether these inputs show the finding. `found` keeps the last inputs that do."""
        if self._left == 0:
            return False
        call, feed = resized(call, whole)
        if (trial := trial_of(self._case, (call, (*feed, *self._controls)), self._layout)) is None:
            return False
        self._left -= 1
        outcome = self._run(trial)
        judgement = judge(self._case, trial, outcome)
        target = self._target
        if (judgement.verdict, judgement.clause, judgement.kind) != (target.verdict, target.clause, target.kind):
            return False
        self.found = Counterexample(trial, outcome, judgement)
        return True

    def smallest(self) -> tuple[Call, Whole]:
        """Return the last call that shows the finding, and all of its inputs."""
        assert self.found is not None
        call = self.found.trial.call
        return call, call.whole(self.found.trial.feeds[0])


def shrink(case: Case, trial: Trial, judgement: Judgement, run: Callable[[Trial], Outcome]) -> Counterexample | None:
    """Return the smallest call that shows a finding, or None if its feed alone does not show it."""
    number = judgement.feed
    if judgement.verdict in ("crashes", "hangs"):  # the failing feed is unknown
        number = _feed_that_ends_it(case, trial, judgement, run)
    search = Search(case, trial, replace(judgement, feed=number), run)
    call, whole = trial.call, trial.call.whole(trial.feeds[number])
    if not search.shows(call, whole):
        return None
    if trial.expected is not None:
        _fewer_elements(search, call, whole, judgement.index)
        if call.row.operator == "Max":
            _fewer_inputs(search)
    _plainer(search)
    return search.found


def _feed_that_ends_it(case: Case, trial: Trial, judgement: Judgement, run: Callable[[Trial], Outcome]) -> int:
    """Bisect for a feed that crashes or hangs. Return its number, or the last number tried if no feed does so alone."""
    first, count = 0, len(trial.feeds)
    while count > 1:
        half = slice(first, first + count // 2)
        expected_half = None if trial.expected is None else trial.expected[half]
        part = replace(trial, feeds=trial.feeds[half], expected=expected_half, without_nan=trial.without_nan[half])
        if judge(case, part, run(part)).verdict == judgement.verdict:
            count //= 2
        else:
            first, count = first + count // 2, count - count // 2
    return first


def trial_of(case: Case, resized_call: tuple[Call, Feed], layout: Layout = "contiguous") -> Trial | None:
    """Return the trial that the case's row defines for a call and a feed, or None if it cannot show the fault."""
    call, feed = resized_call
    try:
        expected = expected_result(case.row, call, feed)
    except MaxopsError as error:
        return Trial(call, (feed,), None) if case.refusal and error.clause == case.clause.id else None
    if case.refusal:
        return None
    other = without_nan(case.row, call, feed)
    return Trial(replace(call, rank=expected.ndim), (feed,), (expected,), (other,), layout)


def resized(call: Call, whole: Whole) -> tuple[Call, Feed]:
    """Return the call with the sizes of its new arrays (dynamic if all sizes were dynamic), and its feed."""
    inputs: list[Input | None] = []
    feed: list[Array] = []
    for each, array in zip(call.inputs, whole, strict=True):
        if each is None or array is None:
            inputs.append(None)
            continue
        is_open = bool(each.dims) and set(each.dims) == {None}
        dims = (None,) * array.ndim if is_open else array.shape
        is_constant = each.constant is not None
        inputs.append(replace(each, dims=dims, constant=array if is_constant else None))
        if not is_constant:
            feed.append(array)
    return replace(call, inputs=tuple(inputs)), tuple(feed)


# ------------------------------------------------------------------------------------------------ fewer elements


def _fewer_elements(search: Search, call: Call, whole: Whole, index: tuple[int, ...] | None) -> None:
    """Remove the elements that do not affect the wrong element, then all that are not needed to show the finding."""
    for form in _FORMS[call.row.operator](call, whole, index):
        if not search.shows(*form.of(form.items)):
            continue
        following: _Form | None = form
        while following is not None:
            minimize = _smallest_prefix if len(following.items) > MANY else _delta_debug
            kept = minimize(following.items, lambda items, of=following.of: search.shows(*of(items)))  # type: ignore[misc]
            following = following.then(kept) if following.then else None
        return


@dataclass(frozen=True)
class _Form:
    """A way to run a call on some of the items that determine its result."""

    items: Sequence[int]
    of: Callable[[Sequence[int]], tuple[Call, Whole]]
    then: Callable[[Sequence[int]], _Form] | None = None  # the next form, from the items that are left


def _index(items: Sequence[int]) -> Any:
    """Return the index that selects these items of an axis, as a range if possible."""
    return slice(items.start, items.stop) if isinstance(items, range) else list(items)


def _forms_of_max(call: Call, whole: Whole, index: tuple[int, ...] | None) -> Iterator[_Form]:
    arrays = [array for array in whole if array is not None]
    try:
        columns = [array.reshape(-1) for array in np.broadcast_arrays(*arrays)]
    except ValueError:
        return
    shape = np.broadcast_shapes(*(array.shape for array in arrays))

    def of(items: Sequence[int]) -> tuple[Call, Whole]:
        return call, [column[_index(items)] for column in columns]

    if index is not None:
        yield _Form([int(np.ravel_multi_index(index, shape))] if shape else [0], of)
    yield _Form(range(columns[0].size), of)


def _forms_of_reduce(call: Call, whole: Whole, index: tuple[int, ...] | None) -> Iterator[_Form]:
    data, *rest = whole
    assert data is not None
    plan_axes = dict(call.attributes).get("axes")
    given = rest[0] if rest and rest[0] is not None else plan_axes
    axes = [] if given is None else [int(axis) % max(data.ndim, 1) for axis in np.asarray(given).reshape(-1)]
    taken = axes or list(range(data.ndim))
    row, at = data.reshape(-1), None
    if index is not None and axes and len(set(axes)) == len(axes):
        kept = [axis for axis in range(data.ndim) if axis not in taken]
        at = tuple(index[axis] for axis in kept) if len(index) == data.ndim else index
        row = np.moveaxis(data, kept, range(len(kept)))[at].reshape(-1)
    attributes = tuple((name, [0] if name == "axes" and axes else value) for name, value in call.attributes)

    def of(items: Sequence[int]) -> tuple[Call, Whole]:
        first = [np.zeros(1, np.int64) if axes and array is not None else array for array in rest]
        return replace(call, attributes=attributes), [row[_index(items)], *first]

    yield _Form(range(row.size), of)
    if data.ndim > 1 and len(taken) == 1:
        moved, first_axis = np.moveaxis(data, taken[0], -1), taken[0] == 0
        if at is not None:  # repeats one row, for findings that need many rows with any contents
            yield _form_of_matrix(call, np.broadcast_to(moved[at], moved.shape), rest, first=first_axis)
        yield _form_of_matrix(call, moved, rest, first=first_axis)


def _form_of_matrix(call: Call, data: Array, rest: Whole, *, first: bool) -> _Form:
    """Return a form with rows as items. The call reduces the last axis or the first."""
    rows = data.reshape(-1, data.shape[-1])
    axis = 0 if first else 1
    attributes = tuple((name, [axis] if name == "axes" else value) for name, value in call.attributes)
    given = [np.full(1, axis, np.int64) if array is not None else None for array in rest]

    def of(kept: Sequence[int], columns: Sequence[int]) -> tuple[Call, Whole]:
        matrix = rows[_index(kept)][:, _index(columns)]
        return replace(call, attributes=attributes), [np.ascontiguousarray(matrix.T if first else matrix), *given]

    every = range(rows.shape[1])
    return _Form(
        range(len(rows)),
        lambda kept: of(kept, every),
        lambda kept: _Form(every, lambda columns: of(kept, columns)),
    )


def _forms_of_segments(call: Call, whole: Whole, index: tuple[int, ...] | None) -> Iterator[_Form]:
    data, ids, *rest = whole
    assert data is not None
    assert ids is not None
    if data.ndim == 0 or ids.shape != data.shape[:1]:
        return
    if index is not None and data.size:
        columns = data.reshape(len(data), -1)
        column = int(np.ravel_multi_index(index[1:], data.shape[1:])) if data.ndim > 1 else 0
        rows: Sequence[int] = np.flatnonzero(ids == index[0]).tolist()

        def of_one(items: Sequence[int]) -> tuple[Call, Whole]:
            count = [None if array is None else np.ones_like(array) for array in rest]
            return call, [columns[_index(items), column], np.zeros(len(items), ids.dtype), *count]

        if rows:
            yield _Form(rows, of_one)

    def of(items: Sequence[int]) -> tuple[Call, Whole]:
        return call, [data[_index(items)], ids[_index(items)], *rest]

    yield _Form(range(len(data)), of)


def _forms_of_scatter(call: Call, whole: Whole, index: tuple[int, ...] | None) -> Iterator[_Form]:
    """Yield forms with the updates of the wrong element, then with all updates. Multidimensional data has no forms."""
    data, indices, updates = whole
    assert data is not None
    assert indices is not None
    assert updates is not None
    if data.ndim != 1 or updates.ndim != 1 or len(indices) != len(updates):
        return
    if index is not None and data.size:
        rows: Sequence[int] = np.flatnonzero(indices.reshape(-1) % len(data) == index[0]).tolist()

        def of_one(items: Sequence[int]) -> tuple[Call, Whole]:
            at = index[0]
            return call, [data[at : at + 1], np.zeros_like(indices[_index(items)]), updates[_index(items)]]

        if rows:
            yield _Form(rows, of_one)

    def of(items: Sequence[int]) -> tuple[Call, Whole]:
        return call, [data, indices[_index(items)], updates[_index(items)]]

    yield _Form(range(len(updates)), of)


_FORMS: dict[str, Callable[[Call, Whole, tuple[int, ...] | None], Iterator[_Form]]] = {
    "Max": _forms_of_max,
    "ReduceMax": _forms_of_reduce,
    "SegmentMax": _forms_of_segments,
    **dict.fromkeys(SCATTERS, _forms_of_scatter),
}


def _smallest_prefix(items: Sequence[Item], shows: Callable[[Sequence[Item]], bool]) -> Sequence[Item]:
    """Return the shortest prefix that shows the finding, assuming that all longer prefixes do."""
    without, enough = 0, len(items)
    while enough - without > 1:
        middle = (without + enough) // 2
        if shows(items[:middle]):
            enough = middle
        else:
            without = middle
    return items[:enough]


def _delta_debug(items: Sequence[Item], shows: Callable[[list[Item]], bool]) -> list[Item]:
    """Run Zeller's delta debugging: return a minimal subset that still shows the finding, within the budget."""
    kept, parts = list(items), 2
    while len(kept) > 1:
        size = -(-len(kept) // parts)
        chunks = [kept[start : start + size] for start in range(0, len(kept), size)]
        rests = [[item for other in chunks if other is not chunk for item in other] for chunk in chunks]
        smaller = next((some for some in [*chunks, *(rests if parts > 2 else [])] if some and shows(some)), None)
        if smaller is not None:
            kept, parts = smaller, 2
        elif parts >= len(kept):
            break
        else:
            parts = min(2 * parts, len(kept))
    return kept


# ------------------------------------------------------------------------------------- fewer inputs, simpler values


def _fewer_inputs(search: Search) -> None:
    """Remove inputs one by one, from the last to the first."""
    call, whole = search.smallest()
    if len(whole) > FEW_INPUTS:

        def first(numbers: Sequence[int]) -> tuple[Call, Whole]:
            return replace(call, inputs=call.inputs[: len(numbers)]), whole[: len(numbers)]

        kept = first(_smallest_prefix(range(len(whole)), lambda numbers: search.shows(*first(numbers))))
        call, whole = kept
    number = len(whole) - 1
    while number >= 0 and len(whole) > 1:
        fewer = replace(call, inputs=call.inputs[:number] + call.inputs[number + 1 :])
        rest = whole[:number] + whole[number + 1 :]
        if search.shows(fewer, rest):
            call, whole = fewer, rest
        number -= 1


def _plainer(search: Search) -> None:
    """Replace values with ones, or with zeros if ones fail, except the values that determine the wrong element.

    For operators that reduce many elements to one, only large calls are simplified: only the maximum is kept.
    """
    found = search.found
    assert found is not None
    trial, index = found.trial, found.judgement.index
    call, feed = trial.call, trial.feeds[0]
    if call.dtype is dtypes.REAL or trial.expected is None:
        return
    is_max = call.row.operator == "Max"
    if not is_max and max(array.size for array in feed) <= MANY:
        return
    for plain in (1, 0):
        whole = call.whole(feed)
        for number, array in enumerate(whole):
            if array is None or (number > 0 and not is_max):
                continue
            whole[number] = np.full_like(array, plain)
            if is_max and index is not None:  # broadcasting aligns shapes at their ends and repeats sizes of 1
                ends = index[len(index) - array.ndim :]
                at = tuple(min(place, size - 1) for place, size in zip(ends, array.shape, strict=True))
                whole[number][at] = array[at]  # type: ignore[index]
            elif not is_max and index is not None:
                highest = words(array) == words(trial.expected[0][index])
                whole[number].reshape(-1)[np.flatnonzero(highest)[:1]] = trial.expected[0][index]  # type: ignore[union-attr]
        if search.shows(call, whole):
            break
    if call.row.operator == "SegmentMax":
        _plainer_ids(search)


def _plainer_ids(search: Search) -> None:
    """Replace ids with simple ones: one segment for each row, for every two rows, or for all rows."""
    call, whole = search.smallest()
    ids = whole[1]
    assert ids is not None
    for plain in (np.arange(len(ids)), np.arange(len(ids)) // 2, np.zeros(len(ids))):
        if search.shows(call, [whole[0], plain.astype(ids.dtype), *whole[2:]]):
            return
