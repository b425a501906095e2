"""Exceptions that name the clause that a call violates.

Each message states the location of the error, the actual and expected values, and, in brackets, the id of the clause.
"""

from __future__ import annotations

from typing import Any, Self

from numpy.exceptions import AxisError


class MaxopsError(Exception):
    """The base class of all errors that maxops raises.

    ``clause`` is the id of the violated clause, or "" if no clause applies. Operators of a standard cite the clauses of
    the standard. The functions of maxops cite their own clauses, such as ``maxops.maximum.types``. `maxops.operators`
    returns all clauses. ``message`` is the text of the error without the clause.
    """

    def __init__(self, message: str, clause: str = "") -> None:
        self.message = message
        # not super().__init__, which PyTorch's compiler cannot trace
        self.args: tuple[Any, ...] = (f"{message} [{clause}]" if clause else message,)
        self.clause = clause

    def __reduce__(self) -> tuple[Any, ...]:
        """Return what `pickle` and `copy` need. Without this method, tblib, as in Dask, pickles errors by `__new__`."""
        return type(self), (self.message, self.clause), self.__dict__

    def at(self, where: str) -> Self:
        """Return a copy of the error with a location before its message.

        >>> ShapeError("input 1 is too long", "ONNX.Max-6.shape").at("model.onnx")
        ShapeError('model.onnx: input 1 is too long [ONNX.Max-6.shape]')
        """
        return type(self)(f"{where}: {self.message}", self.clause)


class DTypeError(MaxopsError, TypeError):
    """A dtype is not supported, dtypes differ, an argument is not an array, or a dtype cannot represent a scalar."""


class EngineError(MaxopsError, TypeError):
    """No engine supports the arrays or their combination, or an engine requires another package or argument."""


class ShapeError(MaxopsError, ValueError):
    """Shapes are incompatible, a rank is not allowed, or labels differ."""


class InputCountError(MaxopsError, TypeError):
    """A call has too few or too many inputs."""


class AttributeValueError(MaxopsError, ValueError):
    """An attribute is missing, has an invalid value, or does not exist in this version of the operator."""


class AxesError(MaxopsError, AxisError):
    """Axes are out of range, repeated, not integers, or passed twice. This is also a `numpy.exceptions.AxisError`."""

    axis: int | None = None  # None, as in NumPy for an AxisError with a custom message
    ndim: int | None = None

    def __str__(self) -> str:
        return Exception.__str__(self)


class SegmentIdsError(MaxopsError, ValueError):
    """Segment ids are out of range or unsorted, or have the wrong length or rank."""


class OffsetsError(MaxopsError, ValueError):
    """Segment offsets decrease, do not run from 0 to the number of rows, or have the wrong rank."""


class IndicesError(MaxopsError, ValueError, IndexError):
    """An index of ScatterElements or ScatterND is out of range. This is also an `IndexError`."""


class NumSegmentsError(MaxopsError, ValueError):
    """The number of segments is negative, or not an integer scalar."""


class OutputError(MaxopsError, ValueError):
    """The ``out`` argument or an output file cannot store the result."""


class RunFileError(MaxopsError, ValueError):
    """A file does not contain valid runs of the conformance kit."""


class OutputTooLargeError(MaxopsError, MemoryError):
    """An array does not fit in this machine's memory."""


class EmptyReductionError(MaxopsError, ValueError):
    """A reduction or a segment is empty, and the dtype has no lowest value."""


class UnknownOperatorError(MaxopsError, LookupError):
    """A standard, operator, version or clause is unknown to maxops."""


class VersionError(MaxopsError, TypeError):
    """A version or opset is not an integer, or both are given."""


class ConfigurationError(MaxopsError, ValueError):
    """An environment variable or setting has an invalid value, or the system does not support it."""


class ModelError(MaxopsError, ValueError):
    """A model cannot be read, is malformed, or contains an operator, a type or another feature that is unsupported."""


class ModelInputError(MaxopsError, ValueError):
    """Inputs do not match a model, or a file of inputs cannot be read."""
