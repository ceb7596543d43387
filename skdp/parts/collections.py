"""Conversion of collections into arrays in parts. Dask is imported only for Dask collections."""

from __future__ import annotations

import sys
from typing import Any


def is_collection(data: Any) -> bool:
    """Return whether data are a Dask collection."""
    dask = sys.modules.get("dask")
    # The type is asked, because other data may raise errors that count their rows.
    return dask is not None and hasattr(type(data), "__dask_graph__") and bool(dask.is_dask_collection(data))


def lowered(*collections: Any) -> tuple[Any, ...]:
    """Return collections with the same rows as arrays in the same parts, and None for None."""
    from ._dask import parted

    found = iter(parted(*(one for one in collections if one is not None)))
    return tuple(None if one is None else next(found) for one in collections)


def in_parts(X: Any, groups: Any = None) -> tuple[Any, Any]:
    """Return Dask collections as arrays in parts, and other data unchanged."""
    return lowered(X, groups) if is_collection(X) else (X, groups)
