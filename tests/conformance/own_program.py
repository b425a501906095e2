"""A user's own program for the kit's command, for Max of small tensors: correct except for three types.

It imports no package, because the kit starts it many times.
"""

from __future__ import annotations

import os
import signal
import sys
from array import array
from pathlib import Path

INT8, INT16, INT32 = 3, 5, 6  # type numbers of ONNX's TensorProto
CODES = {1: "f", 7: "q"}


def fields(message: bytes) -> dict[int, bytes]:
    """Return the fields of a message by number, if all lengths and numbers are below 128."""
    found = {}
    while message:
        number, wire_type = divmod(message[0], 8)
        start, end = (2, 2 + message[1]) if wire_type == 2 else (1, 2)
        found[number] = message[start:end]
        message = message[end:]
    return found


for data in sorted(Path(sys.argv[-1]).glob("test_data_set_*")):
    files = [path.read_bytes() for path in sorted(data.glob("input_*.pb"))]
    (element_type,) = fields(files[0])[2]
    if element_type == INT8:
        sys.exit("loading\nno such type")
    if element_type == INT16:
        os.kill(os.getpid(), signal.SIGSEGV)
    if element_type == INT32:
        sys.exit(128 + signal.SIGSEGV)  # the exit status that a shell would report
    raw = [fields(file)[9] for file in files]
    larger = array(CODES[element_type], map(max, *(array(CODES[element_type], each) for each in raw)))
    (data / "output_0.pb").write_bytes(files[0].removesuffix(raw[0]) + larger.tobytes())
