"""Exceptions, each with the clause that a call violates.

Every error says where, what it got, what was expected and, in brackets at the end, the id of the clause.
"""

from __future__ import annotations

from typing import Any, Self

from numpy.exceptions import AxisError


class MaxopsError(Exception):
    """Base of all errors that maxops raises on purpose.

    ``clause`` is the id of the broken clause, as `maxops.operators` lists them: a standard's for its named versions,
    ``maxops.maximum.types`` and the like for the plain functions; or "" where neither speaks. ``message`` is the text
    without it.
    """

    def __init__(self, message: str, clause: str = "") -> None:
        self.message = message
        # not by super().__init__, which PyTorch's compiler does not follow
        self.args: tuple[Any, ...] = (f"{message} [{clause}]" if clause else message,)
        self.clause = clause

    def at(self, where: str) -> Self:
        """The same error with a place before its text.

        >>> ShapeError("input 1 is too long", "ONNX.Max-6.shape").at("model.onnx")
        ShapeError('model.onnx: input 1 is too long [ONNX.Max-6.shape]')
        """
        return type(self)(f"{where}: {self.message}", self.clause)


class DTypeError(MaxopsError, TypeError):
    """A type that the operator does not take, types that differ, or no array at all."""


class EngineError(MaxopsError, TypeError):
    """Arrays of kinds that no engine takes together, or something that an engine does not have."""


class ShapeError(MaxopsError, ValueError):
    """Shapes that do not go together, or a rank that is not allowed."""


class InputCountError(MaxopsError, TypeError):
    """Too few or too many inputs."""


class AttributeValueError(MaxopsError, ValueError):
    """An attribute that is missing, unknown to the version, or outside its values."""


class AxesError(MaxopsError, AxisError):
    """Axes out of range, twice, or not a list of integers. Also a `numpy.exceptions.AxisError`."""

    axis: int | None = None  # as NumPy has it for an error with a text of its own
    ndim: int | None = None

    def __str__(self) -> str:
        return Exception.__str__(self)


class SegmentIdsError(MaxopsError, ValueError):
    """Segment ids that are negative, unsorted, or of the wrong length, rank or type."""


class OffsetsError(MaxopsError, ValueError):
    """Offsets of segments that decrease, or do not run from 0 to the number of rows."""


class IndicesError(MaxopsError, ValueError, IndexError):
    """An index of ScatterElements or ScatterND that lies outside the data. As NumPy's AxisError, also an IndexError."""


class NumSegmentsError(MaxopsError, ValueError):
    """A number of segments that is negative or no scalar."""


class OutputError(MaxopsError, ValueError):
    """An ``out`` that cannot take the result."""


class RunFileError(MaxopsError, ValueError):
    """A file that should hold runs of the conformance kit, and does not."""


class OutputTooLargeError(MaxopsError, MemoryError):
    """An output that this machine's memory cannot hold."""


class EmptyReductionError(MaxopsError, ValueError):
    """A maximum over nothing, for a type without a lowest value."""


class UnknownOperatorError(MaxopsError, LookupError):
    """A standard, operator or version that is not in the table."""


class VersionError(MaxopsError, TypeError):
    """A version or an operator set that is not an integer, or both of them."""


class ConfigurationError(MaxopsError, ValueError):
    """An environment variable or setting that maxops does not understand."""


class ModelError(MaxopsError, ValueError):
    """A model that cannot be read, is not well formed, or holds what maxops does not run."""


class ModelInputError(MaxopsError, ValueError):
    """Inputs that do not fit a model, or files that do not hold them."""
