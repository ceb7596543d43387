"""Which data are collections of parts, and how they become arrays. An engine is imported only for its own data."""

from __future__ import annotations

import sys
from typing import Any

from .arrays import PartedArray


def is_collection(data: Any) -> bool:
    """Whether data are a collection of Dask."""
    dask = sys.modules.get("dask")
    # The type is asked, because other data may raise errors that count their rows.
    return dask is not None and hasattr(type(data), "__dask_graph__") and bool(dask.is_dask_collection(data))


def lowered(X: Any, y: Any = None) -> tuple[PartedArray, PartedArray | None]:
    """Return the rows, and the targets if there are any, of collections as arrays in the same parts."""
    from ._dask import parted

    arrays = parted(*([X] if y is None else [X, y]))
    return arrays[0], (None if y is None else arrays[1])


def in_parts(X: Any, *, groups: Any = None, rows_per_group: Any = None) -> Any:
    """Return a collection of Dask as an array in parts, and other data as they are."""
    if not is_collection(X):
        return X
    if groups is not None or rows_per_group is not None:
        raise TypeError(
            "groups and rows_per_group are not supported where the rows are a collection of Dask, because the rows "
            "that count are drawn in one place. Nothing was charged"
        )
    return lowered(X)[0]
