"""Loaded and checked models, which run on NumPy arrays."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from traceback import walk_stack
from typing import Any, Literal, Protocol, overload

import numpy as np

from maxops import dtypes, sizes
from maxops.dtypes import DType
from maxops.errors import MaxopsError, ModelError, ModelInputError
from maxops.plan import Array
from maxops.sizes import Dims

# The runtime for operators that maxops does not implement: onnx's reference evaluator, or ONNX Runtime.
Other = Literal["onnx", "onnxruntime"]

# The container of a value's arrays: none, a sequence, an optional, or an optional sequence.
Container = Literal["", "sequence", "optional", "optional sequence"]

# A callback that runs before each node. Its arguments are the node's index, the number of nodes, and the node's name. A
# graph that an evaluator runs counts as one node.
Progress = Callable[[int, int, str], None]


@dataclass(frozen=True)
class OtherType:
    """An element type that other operators support but no max operator supports, such as complex64 or strings."""

    name: str
    numpy: np.dtype[Any]

    def __str__(self) -> str:
        return self.name


def warn_caller(message: str) -> None:
    """Issue a UserWarning at the innermost frame outside maxops."""
    modules = (frame.f_globals.get("__name__", "") for frame, _ in walk_stack(sys._getframe()))
    level = next((number for number, name in enumerate(modules, 1) if not name.startswith("maxops.")), 1)
    warnings.warn(message, stacklevel=level)


def has_type(array: Any, dtype: DType | OtherType) -> bool:
    """Return whether the elements of an array have the given type."""
    if isinstance(dtype, DType):
        return dtypes.of(array.dtype) is dtype
    return array.dtype.kind in "UO" if dtype.numpy.kind == "O" else array.dtype == dtype.numpy


def type_name(array: Any) -> str:
    """Return the name of an array's element type."""
    return "string" if array.dtype.kind == "O" else str(dtypes.of(array.dtype) or array.dtype)


@dataclass(frozen=True)
class Value:
    """A declared input or output of a graph: an array, a sequence (a list of arrays), or an optional (possibly None).

    `dims` is None if a container does not declare the rank of its arrays.
    """

    name: str
    dtype: DType | OtherType
    dims: Dims | None
    container: Container = ""

    def __str__(self) -> str:
        kind = f"{self.container} of " if self.container else ""
        return f"{self.name!r}: {kind}{self.dtype} {'of any shape' if self.dims is None else sizes.text(self.dims)}"

    def arrays(self, given: Any) -> list[Any] | None:
        """Return the arrays in a passed value, or None if the value does not match the declared container."""
        if given is None and self.container.startswith("optional"):
            return []
        if self.container.endswith("sequence"):
            return [*given] if _is_list(given) else None
        return [given]

    def holds(self, given: Any) -> bool:
        """Return whether a passed value has the declared container and element type."""
        arrays = self.arrays(given)
        if arrays is None:
            return False
        return all(isinstance(each, np.ndarray | np.generic) and has_type(each, self.dtype) for each in arrays)

    def admits(self, given: Any) -> bool:
        """Return whether a passed value has the declared type, rank and fixed sizes. `Model.run` checks named sizes."""
        return self.holds(given) and (self.dims is None or all(map(self._fits, self.arrays(given) or [])))

    def _fits(self, array: Array) -> bool:
        dims = self.dims or ()
        return array.ndim == len(dims) and all(
            not isinstance(declared, int) or declared == size for declared, size in zip(dims, array.shape, strict=True)
        )


def flat(values: Mapping[str, Any]) -> dict[str, Array]:
    """Return all arrays by name. The name of an array in a sequence includes its index. Empty optionals are omitted.

    >>> list(flat({"y": np.zeros(2), "z": [np.zeros(1), np.zeros(3)], "o": None}))
    ['y', 'z[0]', 'z[1]']
    """
    found: dict[str, Array] = {}
    for name, value in values.items():
        members = [(f"{name}[{number}]", array) for number, array in enumerate(value)] if _is_list(value) else []
        for key, array in members or ([(name, value)] if value is not None and not _is_list(value) else []):
            if key in found:
                raise ModelError(f"duplicate name {key!r}: an element of a sequence and another value share this name")
            found[key] = array
    return found


def _is_list(value: Any) -> bool:
    return isinstance(value, (list, tuple))


@dataclass(frozen=True)
class Step:
    """One node: its inputs ("" for an omitted input), its output, and its computation."""

    label: str
    inputs: tuple[str, ...]
    output: str
    compute: Callable[[Sequence[Array | None]], Array]


def identity(inputs: Sequence[Array | None]) -> Array:
    """Return the only input unchanged, as the operator Identity does."""
    (data,) = inputs
    assert data is not None
    return data


@dataclass(frozen=True)
class Placement:
    """An operator of a model, the number of its nodes, and the runtime that runs them."""

    operator: str
    nodes: int
    runs_on: str


class Evaluator(Protocol):
    """An object that runs a whole model, including operators that maxops does not implement."""

    placements: tuple[Placement, ...]

    def __call__(self, inputs: Mapping[str, Any], outputs: Iterable[str]) -> dict[str, Any]:
        """Run the model on one value per input, and return the requested outputs by name."""


@dataclass(frozen=True)
class Model:
    """A well-formed model. `constants` contains the values of initializers and Constant nodes.

    If `constants` contains the name of an input, that constant is the default value of the input.
    """

    source: str
    opset: int
    inputs: tuple[Value, ...]
    outputs: tuple[Value, ...]
    constants: Mapping[str, Array]
    steps: tuple[Step, ...]
    # runs the whole model, instead of `steps`, if it contains operators that maxops does not implement
    evaluator: Evaluator | None = None

    @property
    def placements(self) -> tuple[Placement, ...]:
        """The runtime of each operator, or an empty tuple if maxops runs the whole model."""
        return () if self.evaluator is None else self.evaluator.placements

    @property
    def required(self) -> tuple[Value, ...]:
        """The inputs that have no default and are not optional."""
        return tuple(
            value
            for value in self.inputs
            if value.name not in self.constants and not value.container.startswith("optional")
        )

    @overload
    def run(self, inputs: Mapping[str, Any], *, progress: Progress | None = None) -> dict[str, Any]: ...
    @overload
    def run(
        self, output_names: Sequence[str] | None, inputs: Mapping[str, Any], /, *, progress: Progress | None = None
    ) -> list[Any]: ...
    def run(self, *args: Any, inputs: Any = None, progress: Progress | None = None) -> dict[str, Any] | list[Any]:
        """Run the model on one array per input, and return one array per output, keyed by name.

        A sequence is a list of arrays. An empty optional is None, and may be omitted as an input.

        With two arguments, the method works as in ONNX Runtime and onnx's reference evaluator: ``run(output_names,
        inputs)`` returns a list of the named outputs in the given order. If ``output_names`` is None, the list contains
        all outputs in the model's order.

        An input with a default may be omitted. Raises ModelInputError for invalid inputs or output names, and
        ModelError for an output that contradicts its declaration. If a node violates a clause, raises the error for
        this clause, with a message that names the node.
        """
        if inputs is not None:
            args = (*args, inputs)
        if not 1 <= len(args) <= 2:
            raise TypeError(f"run() expects inputs, or output_names and inputs, got {len(args)} arguments")
        names = self._asked(args[0]) if len(args) == 2 else None
        results = self._run(args[-1], progress)
        return results if names is None else [results[name] for name in names]

    def _asked(self, output_names: Sequence[str] | None) -> Sequence[str]:
        """Return the names of the requested outputs. Raise an error if a name is unknown or repeated."""
        there = [value.name for value in self.outputs]
        if output_names is None:
            return there
        listed = ", ".join(map(str, self.outputs)) or "none"
        if isinstance(output_names, str) or not isinstance(output_names, Sequence):
            raise ModelInputError(
                f"{self.source}: output_names must be None or a list of names, got {type(output_names).__name__}; "
                f"the model's outputs: {listed}"
            )
        for name in output_names:
            if name not in there:
                raise ModelInputError(f"{self.source}: output {name!r} is unknown; the model's outputs: {listed}")
        if len({*output_names}) < len(output_names):
            raise ModelInputError(
                f"{self.source}: output_names must not contain duplicates, got {list(output_names)!r}"
            )
        return output_names

    def _run(self, inputs: Mapping[str, Any], progress: Progress | None) -> dict[str, Any]:
        if not isinstance(inputs, Mapping):
            raise ModelInputError(
                f"{self.source}: inputs must be a mapping of names to arrays, got {type(inputs).__name__}; the model's "
                f"inputs: {', '.join(map(str, self.inputs)) or 'none'}"
            )
        given = self._checked(inputs)
        if self.evaluator is not None:
            if progress is not None:
                progress(0, 1, "the graph")
            made = self.evaluator(given, [value.name for value in self.outputs])
            # copy all outputs, because they may be views of inputs or of each other, or constants of the evaluator
            return self._results(
                made, owned=[each for value in self.outputs for each in value.arrays(made[value.name]) or []]
            )
        values = dict(self.constants) | given
        last_use = {name: number for number, step in enumerate(self.steps) for name in step.inputs}
        kept = {value.name for value in self.outputs}
        for number, step in enumerate(self.steps):
            if progress is not None:
                progress(number, len(self.steps), step.label)
            try:
                values[step.output] = step.compute([values[name] if name else None for name in step.inputs])
            except MaxopsError as error:
                raise error.at(f"{self.source}: {step.label}") from error
            for name in {*step.inputs, step.output} - kept - {""}:
                if last_use.get(name, number) == number:
                    del values[name]
        return self._results(values, owned=[*self.constants.values(), *given.values()])

    def _results(self, values: Mapping[str, Any], owned: list[Array]) -> dict[str, Any]:
        taken = {id(array) for array in owned}
        results: dict[str, Any] = {}
        for value in self.outputs:
            made = values[value.name]
            if not value.admits(made):  # ignores named sizes, because exporters often declare wrong names for outputs
                differs = f"{self.source}: the model declares output {value}, but its nodes return {_kind(made)}"
                if self.evaluator is None or not value.holds(made):
                    raise ModelError(differs)
                warn_caller(differs)  # a warning as in ONNX Runtime, because exporters often declare wrong shapes
            arrays = value.arrays(made) or []
            for number, array in enumerate(arrays):
                if id(array) in taken:
                    # copy the array, because changing a result must not change an input (Identity returns its input),
                    # the model or another result; the copy is in native byte order
                    arrays[number] = array.astype(array.dtype.newbyteorder("="))
                taken.add(id(arrays[number]))
            results[value.name] = arrays if _is_list(made) else (*arrays, None)[0]
        return results

    def _checked(self, inputs: Mapping[str, Any]) -> dict[str, Any]:
        known = {value.name: value for value in self.inputs}
        for name in inputs:
            if name not in known:
                fixed = "is a constant of the model" if name in self.constants else "is unknown"
                listed = ", ".join(map(str, self.inputs)) or "none"
                raise ModelInputError(f"{self.source}: input {name!r} {fixed}; the model's inputs: {listed}")
        if missing := [value for value in self.required if value.name not in inputs]:
            raise ModelInputError(f"{self.source}: missing inputs: {', '.join(map(str, missing))}")
        sizes: dict[str, tuple[int, str]] = {}
        given: dict[str, Any] = {}
        for name, value in known.items():
            array: Any = inputs[name] if name in inputs else self.constants.get(name)
            if not value.container:
                _check_input(self.source, value, array, sizes)
                given[name] = self._taken(array)
                continue
            arrays = value.arrays(array)
            if arrays is None:
                none = " or None" if value.container.startswith("optional") else ""
                raise ModelInputError(
                    f"{self.source}: input {name!r} must be a list of arrays{none}, got {type(array).__name__}; the "
                    f"model expects {value}"
                )
            is_list = value.container.endswith("sequence")
            for number, each in enumerate(arrays):  # named sizes may differ between the arrays of a sequence
                member = replace(value, name=f"{name}[{number}]" if is_list else name, container="")
                _check_input(self.source, member, each, {})
            arrays = [self._taken(each) for each in arrays]
            given[name] = arrays if _is_list(array) else (*arrays, None)[0]
        return given

    def _taken(self, array: Any) -> Array:
        """Return an input as an array, in native byte order if an evaluator runs the model."""
        taken: Array = np.asarray(array)
        return taken if self.evaluator is None else taken.astype(taken.dtype.newbyteorder("="), copy=False)


def _kind(value: Any) -> str:
    if isinstance(value, np.ndarray | np.generic):
        return f"{type_name(value)} {value.shape}"
    return f"[{', '.join(map(_kind, value))}]" if _is_list(value) else type(value).__name__


def _check_input(source: str, value: Value, array: Array, sizes: dict[str, tuple[int, str]]) -> None:
    """Check an array against its declaration. `sizes` records each named size, and where it was first found."""
    expected = f"the model expects {value}"
    # subclasses except memmap are rejected, because they contain more than elements, such as a mask
    plain = isinstance(array, np.ndarray) and type(array) in (np.ndarray, np.memmap)
    if not plain and not isinstance(array, np.generic):
        raise ModelInputError(
            f"{source}: input {value.name!r} must be a NumPy array, got {type(array).__name__}; {expected}"
        )
    if not has_type(array, value.dtype):
        raise ModelInputError(f"{source}: input {value.name!r} has dtype {type_name(array)}; {expected}")
    if value.dims is None:
        return
    if array.ndim != len(value.dims):
        raise ModelInputError(
            f"{source}: input {value.name!r} has rank {array.ndim} and shape {array.shape}; {expected}"
        )
    for axis, (size, declared) in enumerate(zip(array.shape, value.dims, strict=True)):
        if isinstance(declared, int) and size != declared:
            raise ModelInputError(
                f"{source}: input {value.name!r} has shape {array.shape}, with size {size} along axis {axis}; "
                f"{expected}"
            )
        if isinstance(declared, str):
            first, where = sizes.setdefault(declared, (size, f"axis {axis} of input {value.name!r}"))
            if size != first:
                raise ModelInputError(
                    f"{source}: input {value.name!r} has shape {array.shape}, with size {size} along axis {axis}, "
                    f"but {declared!r} is {first} along {where}; {expected}"
                )
