"""What launches need to know of the device, and the types of offsets and indices that are wide enough."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from functools import cache
from typing import Any

import torch
import triton

# Whether kernels run in Triton's interpreter, on the CPU: Triton decides it for good when they are defined.
INTERPRETED = bool(triton.knobs.runtime.interpret)

THREADS = 128
# Nothing is ever fused, since no kernel computes with floats; said here, since Triton 3.9 warns who does not say.
LAUNCH: dict[str, Any] = {"num_warps": THREADS // 32, "enable_fp_fusion": False}
# Bytes that each thread of a pass over memory asks for at once: four loads of 16, so that a multiprocessor with all
# its threads at work has more than 100 KiB on the way, several times what hides the memory's latency.
BYTES_AT_ONCE = 64
# Programs per multiprocessor that a reduction is split for.
PROGRAMS_EACH = 8
# One more than any 32-bit offset.
NARROW = 2**31 - 1


@cache
def programs(device: torch.device) -> int:
    """How many programs fill the device."""
    if device.type != "cuda":
        return 4  # the interpreter: few, for its sake, and more than one
    return int(torch.cuda.get_device_properties(device).multi_processor_count) * PROGRAMS_EACH


def on(device: torch.device) -> AbstractContextManager[Any]:
    """Launches within go to this device, on its current stream."""
    return torch.cuda.device(device) if device.type == "cuda" else nullcontext()


def tile(bits: int) -> int:
    """How many elements of a type one program works on at once."""
    return THREADS * BYTES_AT_ONCE * 8 // max(bits, 16)


def at_least(number: int) -> int:
    """The lowest power of two that is not below a number: the shapes of tiles are such."""
    return 1 << max(number - 1, 0).bit_length()
