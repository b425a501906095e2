"""The bounds of a run: the sizes of the largest calls of each operator. A run does not cover larger calls."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TypedDict

from maxops.conformance.case import Layout, Trial
from maxops.conformance.layouts import LAYOUTS
from maxops.conformance.result import Run
from maxops.counted import counted


class Bounds(TypedDict):
    """The maximum size and rank of an array, the maximum number of inputs of a call, and the layouts of the inputs."""

    elements: int
    rank: int
    inputs: int
    layouts: list[Layout]


def bounds_of(trial: Trial) -> Bounds:
    """Return the bounds of a trial."""
    fed = [array for feed in trial.feeds for array in feed]
    arrays = [*fed, *(trial.expected or ()), *trial.call.constants.values()]
    return {
        "elements": max((array.size for array in arrays), default=0),
        "rank": max((array.ndim for array in arrays), default=0),
        "inputs": len(trial.call.inputs),
        "layouts": [trial.layout],
    }


def widest(found: Iterable[Bounds]) -> Bounds:
    """Return the combined bounds of several trials.

    >>> widest([{"elements": 9, "rank": 1, "inputs": 2, "layouts": ["reversed"]},
    ...         {"elements": 4, "rank": 2, "inputs": 2, "layouts": ["contiguous"]}])
    {'elements': 9, 'rank': 2, 'inputs': 2, 'layouts': ['contiguous', 'reversed']}
    """
    every = list(found)
    layouts = {layout for each in every for layout in each["layouts"]}
    return {
        "elements": max(each["elements"] for each in every),
        "rank": max(each["rank"] for each in every),
        "inputs": max(each["inputs"] for each in every),
        "layouts": [layout for layout in LAYOUTS if layout in layouts],
    }


def sentences(run: Run) -> list[str]:
    """Return one line per operator with the bounds of a run. Runs from older maxops versions have no bounds."""
    found: dict[str, Bounds] = run["kit"].get("bounds", {})
    repeats = counted(run["kit"].get("repeats", 2), "run")
    return [f"{operator}: {_spoken(each)}; {repeats} per call" for operator, each in found.items()]


def _spoken(each: Bounds) -> str:
    inputs = f"{each['inputs']:,} input{'s' * (each['inputs'] != 1)}"
    numbers = f"up to {each['elements']:,} elements, rank {each['rank']} and {inputs}"
    return f"{numbers}; layouts: {', '.join(each['layouts'])}"
