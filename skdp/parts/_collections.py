"""Which data are collections of parts, and how they become arrays. No engine is imported unless the data are its own."""

from __future__ import annotations

import sys
from typing import Any

from ._arrays import PartedArray


def is_collection(data: Any) -> bool:
    """Whether data are a collection of Dask."""
    dask = sys.modules.get("dask")
    return dask is not None and hasattr(data, "__dask_graph__") and bool(dask.is_dask_collection(data))


def lowered(X: Any, y: Any = None) -> tuple[PartedArray, PartedArray | None]:
    """Return the rows, and the targets if there are any, of collections as arrays in the same parts."""
    from ._dask import parted

    arrays = parted(*([X] if y is None else [X, y]))
    return arrays[0], (None if y is None else arrays[1])
