"""Messages between the kit and a runtime's process, serialized by pickle.

Types and rows arrive as the receiver's own objects, for much of maxops asks `dtype is dtypes.REAL`.
"""

from __future__ import annotations

import copyreg
import io
import pickle
from typing import Any

from maxops import dtypes, spec
from maxops.dtypes import DType
from maxops.spec import Spec

_DTYPES = {dtype.name: dtype for dtype in dtypes.ALL}


def to_bytes(message: object) -> bytes:
    """Serialize a message."""
    buffer = io.BytesIO()
    pickler = pickle.Pickler(buffer, pickle.HIGHEST_PROTOCOL)
    pickler.dispatch_table = _TABLE
    pickler.dump(message)
    return buffer.getvalue()


def from_bytes(data: bytes) -> Any:
    """Deserialize a message."""
    return pickle.loads(data)


def _dtype(name: str) -> DType:
    return _DTYPES[name]


def _reduce_dtype(dtype: DType) -> tuple[object, ...]:
    return _dtype, (dtype.name,)


def _reduce_spec(row: Spec) -> str | tuple[Any, ...]:
    if any(row is known for known in spec.ALL):
        return spec.find, (row.standard, row.operator, row.version)
    return row.__reduce_ex__(pickle.HIGHEST_PROTOCOL)


_TABLE: dict[type, Any] = {**copyreg.dispatch_table, DType: _reduce_dtype, Spec: _reduce_spec}
