"""Data whose rows are in parts, on one machine or several. Dask is imported only for its collections."""

from typing import Any

from .arrays import is_collection


def lowered(*collections: Any) -> tuple[Any, ...]:
    """Return collections with the same rows as arrays in the same parts, and None for None."""
    from ._dask import parted

    arrays = iter(parted(*(collection for collection in collections if collection is not None)))
    return tuple(None if collection is None else next(arrays) for collection in collections)


def in_parts(X: Any, groups: Any = None) -> tuple[Any, Any]:
    """Return Dask collections as arrays in parts, and other data unchanged."""
    return lowered(X, groups) if is_collection(X) else (X, groups)
