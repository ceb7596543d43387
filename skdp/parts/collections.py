"""Conversion of collections into arrays in parts. Dask is imported only for Dask collections."""

from __future__ import annotations

import sys
from typing import Any

from .arrays import PartedArray


def is_collection(data: Any) -> bool:
    """Return whether data are a Dask collection."""
    dask = sys.modules.get("dask")
    # The type is asked, because other data may raise errors that count their rows.
    return dask is not None and hasattr(type(data), "__dask_graph__") and bool(dask.is_dask_collection(data))


def lowered(X: Any, y: Any = None) -> tuple[PartedArray, PartedArray | None]:
    """Return the collections X and y (if it is given) as arrays in the same parts."""
    from ._dask import parted

    arrays = parted(*([X] if y is None else [X, y]))
    return arrays[0], (None if y is None else arrays[1])


def in_parts(X: Any, *, groups: Any = None, rows_per_group: Any = None) -> Any:
    """Return a Dask collection as an array in parts, and other data unchanged."""
    if not is_collection(X):
        return X
    if groups is not None or rows_per_group is not None:
        raise TypeError(
            "groups and rows_per_group are not supported for a Dask collection, because the rows of a group are "
            "sampled in one place. Load the rows into one table. Nothing was charged"
        )
    return lowered(X)[0]
