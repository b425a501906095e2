"""jax: jitted, 64-bit types on; views are part of what is jitted, since its arrays have no strides."""

from __future__ import annotations

from collections.abc import Callable
from functools import reduce
from importlib import import_module
from typing import Any

import numpy as np

from maxops.bench.candidate import Candidate, Work
from maxops.bench.inputs import view
from maxops.bench.libraries.library import Library
from maxops.plan import Array


class Jax(Library):
    """XLA on the CPU; it has no `out=`."""

    name = "jax"

    def set_threads(self, threads: int) -> None:
        """The threads come from the process's CPUs; here only the wide types are switched on."""
        self.module.config.update("jax_enable_x64", True)
        self.numpy: Any = import_module("jax.numpy")

    def _candidates(self, function: Callable[..., Any], arrays: tuple[Array, ...]) -> list[Candidate]:
        device = [self.module.block_until_ready(self.numpy.asarray(array)) for array in arrays]
        compiled = self.module.jit(function).lower(*device).compile()

        def run() -> Any:
            return compiled(*device).block_until_ready()

        return [Candidate("jit", run)]

    def maximum(self, work: Work) -> list[Candidate]:
        """One fused loop for any number of inputs."""
        views = [operand.view for operand in work.case.operands]

        def fold(*bases: Any) -> Any:
            return reduce(self.numpy.maximum, map(view, bases, views))

        return self._candidates(fold, work.inputs.bases)

    def reduce_max(self, work: Work) -> list[Candidate]:
        """jnp.max."""
        kind = work.case.operands[0].view
        return self._candidates(lambda base: self.numpy.max(view(base, kind), axis=work.case.axes), work.inputs.bases)

    def segment_max(self, work: Work) -> list[Candidate]:
        """jax.ops.segment_max of sorted ids; it fills with -Inf, and we with the lowest finite value."""
        segment_max: Any = import_module("jax.ops").segment_max
        has_empty = work.num_segments > len(np.unique(work.ids))

        def segments(data: Any, ids: Any) -> Any:
            found = segment_max(data, ids, num_segments=work.num_segments, indices_are_sorted=True)
            return self.numpy.maximum(found, work.lowest) if has_empty else found

        return self._candidates(segments, (work.data, work.ids))


LIBRARY = Jax
