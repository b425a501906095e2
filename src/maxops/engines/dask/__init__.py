"""The engine for Dask arrays. It is lazy, works chunk by chunk, and uses only public Dask functions.

Each task calls the engine for its chunk, so chunks may be arrays from any supported library. Nothing is computed until
the user calls `compute`. Invalid values in Dask arrays, such as unsorted ids, raise an error at that time.
"""

from maxops.extras import needed

with needed("maxops.engines.dask", "dask"):
    from dask.base import normalize_token

from maxops.engines.base import Run, by_operator
from maxops.engines.dask.elementwise import maximum
from maxops.engines.dask.reduction import reduce_max
from maxops.engines.dask.segments import segment_max
from maxops.spec import Spec

__all__ = ["run"]


run: Run = by_operator(maximum, reduce_max, segment_max)

# In the keys of a graph, a row is identified by its standard and name.
normalize_token.register(Spec, lambda row: (row.standard, row.name))
